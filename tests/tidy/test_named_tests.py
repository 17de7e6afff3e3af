"""Tests that are named elsewhere.

In the Makefile's lists, in the list of planted bugs, in the table of promises.
"""

import re
from pathlib import Path

import pytest

from tests.planted.run import BUGS, planted_texts

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "crates" / "plimsoll-engine" / "tests"
TESTS_OF_PREPARE = ROOT / "crates" / "plimsoll-prepare" / "tests"


def rust_tests(program: str) -> set[str]:
    """The tests of a program by their full names."""
    singles = [folder / f"{program}.rs" for folder in (TESTS, TESTS_OF_PREPARE)]
    single = next((path for path in singles if path.is_file()), None)
    if single:
        files = {"": single}
    else:
        parts = (TESTS / program).glob("*.rs")
        files = {"" if path.stem == "main" else f"{path.stem}::": path for path in parts}
    found = set()
    for prefix, path in files.items():
        found |= {
            prefix + name
            for name in re.findall(r"#\[test\]\n(?:#\[[^\]]*\]\n)*fn (\w+)\(", path.read_text())
        }
    return found


def named_in_makefile() -> list[str]:
    """What `make simulate`, `make crash` and `make damage` promise to run."""
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    lists = re.findall(
        r"^(?:SIMULATIONS|FOR_HOURS|FUZZERS|HISTORIES_JUDGED|DAMAGES) := (.*)$", text, re.MULTILINE
    )
    return [name for line in lists for name in line.split()]


def named_by_planted_bugs() -> list[str]:
    """The test that must find each planted bug."""
    return [f"{bug.program}::{bug.test}" for bug in BUGS]


@pytest.mark.parametrize("name", sorted({*named_in_makefile(), *named_by_planted_bugs()}))
def test_a_test_that_is_named_exists(name: str) -> None:
    """A renamed test would drop out of its chore, and nobody would miss it."""
    program, _, test = name.partition("::")
    assert test in rust_tests(program)


def test_the_lists_are_there() -> None:
    """A renamed list would leave nothing to look for."""
    assert len(named_in_makefile()) > 5
    assert len(named_by_planted_bugs()) > 20


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
