"""Tests that are named elsewhere.

In the Makefile's lists, in the list of planted bugs, in the table of promises.
"""

import re
import tomllib
from pathlib import Path

import pytest

from tests.planted.run import BUGS, PROGRAMS, planted_texts
from tests.powercut import kills

ROOT = Path(__file__).parents[2]
CRATES = ROOT / "crates"
TESTS = CRATES / "plimsoll-engine" / "tests"
TESTS_OF_PREPARE = CRATES / "plimsoll-prepare" / "tests"
TESTS_OF_STORES = CRATES / "plimsoll-stores" / "tests"
TESTS_OF_RUN = CRATES / "plimsoll-run" / "tests"
_TEST = re.compile(r"#\[test\]\n(?:#\[[^\]]*\]\n)*fn (\w+)\(")


def rust_tests(program: str, *folders: Path) -> set[str]:
    """The tests of a program by their full names: of a file, or of a folder and what it holds."""
    found = set()
    for folder in folders or (TESTS, TESTS_OF_PREPARE, TESTS_OF_STORES, TESTS_OF_RUN):
        for path in (folder / f"{program}.rs", *(folder / program).rglob("*.rs")):
            if path.is_file():
                modules = path.relative_to(folder).with_suffix("").parts[1:]
                within = [name for name in modules if name not in ("main", "mod")]
                tests = _TEST.findall(path.read_text())
                found |= {"::".join((*within, name)) for name in tests}
    return found


def documented_commands() -> list[str]:
    """The commands in documents that run a test program by its name."""
    pages = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    commands = {
        command
        for page in pages
        for command in re.findall(r"cargo test [^`|\n]*--test [^`|\n]*", page.read_text())
    }
    return sorted(commands)


def named_in_makefile() -> list[str]:
    """What `make simulate`, `make crash` and `make damage` promise to run."""
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    lists = re.findall(
        r"^(?:SIMULATIONS|MAIL_SIMULATED|FOR_HOURS|FUZZERS|HISTORIES_JUDGED|DAMAGES) := (.*)$",
        text,
        re.MULTILINE,
    )
    return [name for line in lists for name in line.split()]


def named_by_planted_bugs() -> list[str]:
    """The test that must find each planted bug."""
    return [f"{bug.program}::{bug.test}" for bug in BUGS]


def named_by_kills() -> str:
    """The test that `make crash` runs."""
    command = kills.command(release=True)
    return f"{command[command.index('--test') + 1]}::{kills.TEST}"


@pytest.mark.parametrize(
    "name", sorted({*named_in_makefile(), *named_by_planted_bugs(), named_by_kills()})
)
def test_a_test_that_is_named_exists(name: str) -> None:
    """A renamed test would drop out of its chore, and nobody would miss it."""
    program, _, test = name.partition("::")
    assert test in rust_tests(program)


def test_the_lists_are_there() -> None:
    """A renamed list would leave nothing to look for."""
    assert len(named_in_makefile()) > 5
    assert len(named_by_planted_bugs()) > 20
    assert len(documented_commands()) > 10


def test_programs_that_look_for_planted_bugs_are_built() -> None:
    """`make planted` builds those that it lists, and asks no others."""
    assert {bug.program for bug in BUGS} <= set(PROGRAMS)
    assert [program for program in PROGRAMS if not rust_tests(program)] == []


@pytest.mark.parametrize("command", documented_commands())
def test_a_command_in_a_document_runs_tests(command: str) -> None:
    """Whoever repeats a figure would run nothing, and be told that all is well."""
    words = command.split()
    tests = CRATES / words[words.index("-p") + 1] / "tests"
    program, *further = words[words.index("--test") + 1 :]
    filters = [word for word in further if not word.startswith("-")]
    found = rust_tests(program, tests)
    assert found
    assert [part for part in filters if not any(part in name for name in found)] == []


@pytest.mark.parametrize(
    "manifest", sorted(CRATES.glob("*/Cargo.toml")), ids=lambda at: at.parent.name
)
def test_what_is_not_built_for_its_tests_has_none(manifest: Path) -> None:
    """Tests in a crate that says it holds none would never run, and nobody would miss them."""
    library = tomllib.loads(manifest.read_text()).get("lib", {})
    sources = [path.read_text() for path in (manifest.parent / "src").rglob("*.rs")]
    if not library.get("test", True):
        assert not any("#[test]" in source for source in sources)


def test_promises_name_tests_that_exist() -> None:
    """A promise is worth what its test is worth."""
    table = re.findall(
        r"^\|.*\| (.*) \|$", (ROOT / "docs" / "reliability.md").read_text(), re.MULTILINE
    )
    files = [name for cell in table for name in re.findall(r"`([\w/-]+\.(?:rs|py))`", cell)]
    assert len(files) > 45
    roots = (TESTS, TESTS_OF_PREPARE, ROOT, ROOT / "tests")
    assert [name for name in files if not any((root / name).is_file() for root in roots)] == []


def test_every_planted_bug_fits_the_engine() -> None:
    """What `make planted` would stop over is seen at once, in the change that moved the place."""
    assert planted_texts()
