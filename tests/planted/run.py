"""Plants bugs in a copy of the engine, of what prepares databases for it, of the stores on it and
of clients of servers, and looks which tests find them: `make planted`, or
`python -m tests.planted.run WORD...` for some of them.

A bug nobody finds is a hole in the tests. All bugs are planted in one copy, each behind a name, so
that the copy is built once; a run with `PLANTED=name` has that bug alone. The product's own sources
know nothing of this.

Each bug names the test that must find it, the narrowest there is, so that a test that loses its
teeth is found out even if a larger one would still bite. A test that does not end finds a bug only
where the bug says why. `--search` runs all tests instead, program by program, and prints who finds
what; `--first` stops looking for finders of a bug with the first program that has one."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.planted import (
    consumer_bugs,
    endpoint_bugs,
    engine_bugs,
    file_bugs,
    lives_bugs,
    log_bugs,
    operation_bugs,
    row_bugs,
    schema_bugs,
    store_bugs,
    text_bugs,
    tree_bugs,
)
from tests.planted.bug import Bug

BUGS = (
    *consumer_bugs.BUGS,
    *endpoint_bugs.BUGS,
    *engine_bugs.BUGS,
    *lives_bugs.BUGS,
    *log_bugs.BUGS,
    *row_bugs.BUGS,
    *tree_bugs.BUGS,
    *file_bugs.BUGS,
    *operation_bugs.BUGS,
    *schema_bugs.BUGS,
    *store_bugs.BUGS,
    *text_bugs.BUGS,
)
ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "target" / "planted"
#: Whose sources may hold bugs, and which have programs that find them.
CRATES = (
    "plimsoll-clients",
    "plimsoll-engine",
    "plimsoll-prepare",
    "plimsoll-run",
    "plimsoll-stores",
)
TESTED = tuple(crate for crate in CRATES if crate != "plimsoll-clients")
# The programs that may find bugs, the quickest first.
PROGRAMS = (
    "format",
    "prepare",
    "logs",
    "schema",
    "fuzz",
    "verify",
    "lives",
    "rows",
    "stores",
    "families",
    "power_cut",
    "failures",
)
SECONDS_MAX = 120
# A search runs whole programs.
PROGRAM_SECONDS_MAX = 900
HANGS = "it does not end"
SWITCH = """
/// Whether the bug of this name is planted.
pub(crate) fn planted(name: &str) -> bool {
    static NAME: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("PLANTED").unwrap_or_default()) == name
}
"""


def fits(sound: str) -> re.Pattern[str]:
    """What finds a piece of Rust however it is broken into lines: by its words and signs.

    >>> fits("a.count(one, two);").search("a.count(\\n    one,\\n    two,\\n);") is not None
    True
    >>> fits("a.count(one);").search("a.count(oneself);") is None
    True
    """
    pattern = ""
    before = ""
    for sign in re.findall(r"\w+|[^\w\s]", sound):
        if before:
            both_words = re.fullmatch(r"\w+", before) and re.fullmatch(r"\w+", sign)
            pattern += r"(?:\s|\\\n)+" if both_words else r"(?:\s|\\\n)*"
            pattern += r"(?:,\s*)?" if sign in ")]}" and before != "," else ""
        pattern += re.escape(sign)
        before = sign
    return re.compile(pattern)


def planted_texts() -> dict[Path, str]:
    """Every file of the copy that differs from the original.

    Stops if a bug no longer fits the sources.
    """
    texts: dict[Path, str] = {}
    misfits = []
    for bug in BUGS:
        path = Path("crates", bug.crate, "src", bug.file)
        text = texts.get(path) or (ROOT / path).read_text()
        places = list(fits(bug.sound).finditer(text))
        if len(places) != 1:
            misfits.append(f"{bug.name}: {bug.file} holds {len(places)} times\n{bug.sound}")
            continue
        # Two bugs may share a place: the second is planted in what the first made of it.
        broken = bug.broken.replace("PLANTED", f'crate::planted("{bug.name}")')
        texts[path] = text[: places[0].start()] + broken + text[places[0].end() :]
    if misfits:
        sys.exit(
            "these bugs do not fit the sources any more; each place must be there once:\n\n"
            + "\n\n".join(misfits)
        )
    for crate in CRATES:
        library = Path("crates", crate, "src", "lib.rs")
        texts[library] = texts.get(library, (ROOT / library).read_text()) + SWITCH
    return texts


def plant() -> None:
    """Brings the copy up to date, leaving alone what has not changed, so that only what has is
    built again.
    """
    folders = ("crates", "tests/golden/ese", "tests/fuzz/corpus", "docs/reference/schemas")
    names = ["Cargo.toml", "Cargo.lock"]
    names += [
        str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*")
    ]
    planted = planted_texts()
    wanted: dict[Path, bytes] = {}
    for name in map(Path, names):
        if (ROOT / name).is_file():
            wanted[name] = planted[name].encode() if name in planted else (ROOT / name).read_bytes()
    for old in COPY.rglob("*"):
        if old.is_file() and old.relative_to(COPY) not in wanted:
            old.unlink()
    for name, content in wanted.items():
        path = COPY / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def build() -> dict[str, tuple[Path, Path]]:
    """Builds the test programs of the copy.

    Returns where they are and the crate that each runs in.
    """
    command = [
        "cargo",
        "test",
        "--locked",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]
    for crate in TESTED:
        command += ["-p", crate]
    for program in PROGRAMS:
        command += ["--test", program]
    target = os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target" / "planted-build")}
    done = subprocess.run(
        command, cwd=COPY, env=target, stdout=subprocess.PIPE, text=True, check=True
    )
    built: dict[str, tuple[Path, Path]] = {}
    for message in map(json.loads, done.stdout.splitlines()):
        if message["reason"] == "compiler-artifact" and message["executable"]:
            built[message["target"]["name"]] = (
                Path(message["executable"]),
                Path(message["manifest_path"]).parent,
            )
    return built


def run(built: tuple[Path, Path], bug: str, test: str | None) -> tuple[bool, str]:
    """Runs one test, or all of a program, with a bug.

    Answers whether it passes and what it said.
    """
    program, place = built
    command = [str(program), *([test, "--exact", "--include-ignored"] if test else [])]
    env = os.environ | {"PLANTED": bug, "RUST_BACKTRACE": "0"}
    with subprocess.Popen(
        command,
        cwd=place,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=SECONDS_MAX if test else PROGRAM_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return False, HANGS
    if test and "running 1 test" not in said:
        sys.exit(f"{program.name} has no test {test}")
    return process.returncode == 0, said


def verdict_on(bug: Bug, programs: dict[str, tuple[Path, Path]]) -> str | None:
    """The test that has to find a bug if it does, or None."""
    passed, said = run(programs[bug.program], bug.name, bug.test)
    if passed or (said == HANGS and not bug.hangs):
        return None
    return f"{bug.program}: {bug.test}" + (f" ({HANGS}: {bug.hangs})" if said == HANGS else "")


def search(bug: Bug, programs: dict[str, tuple[Path, Path]], first: bool) -> str | None:
    """All tests that find a bug, or those of the first program that has one."""
    finders: list[str] = []
    for name in PROGRAMS:
        if first and finders:
            break
        passed, said = run(programs[name], bug.name, None)
        failed = re.findall(
            r"^    (\S+)$",
            said.partition("\nfailures:\n")[2].rpartition("failures:")[2],
            re.MULTILINE,
        )
        finders += [
            f"{name}: {test}" for test in failed or ([] if passed else [said.strip()[-100:]])
        ]
    return "; ".join(finders) or None


def main() -> None:
    """Plants, builds, and prints who finds what.

    Fails if a bug goes unnoticed or the sound copy fails.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only bugs whose name holds one of these")
    parser.add_argument("--search", action="store_true", help="look for all tests that find a bug")
    parser.add_argument(
        "--first", action="store_true", help="look for the first program with tests that find a bug"
    )
    chosen = parser.parse_args()
    bugs = [
        bug
        for bug in BUGS
        if not chosen.words
        or any(word in (bug.name, bug.test) or word in bug.name for word in chosen.words)
    ]
    if not bugs:
        sys.exit(f"no bug is called anything like {' or '.join(chosen.words)}")
    plant()
    programs = build()
    searching = chosen.search or chosen.first
    for program, test in [] if searching else sorted({(bug.program, bug.test) for bug in bugs}):
        passed, said = run(programs[program], "", test)
        if not passed:
            sys.exit(f"without a bug {program}: {test} fails:\n{said}")
    unnoticed = []
    for bug in bugs:
        started = time.monotonic()
        finder = search(bug, programs, chosen.first) if searching else verdict_on(bug, programs)
        print(
            f"{bug.name}: {finder or 'NOBODY NOTICES'} ({time.monotonic() - started:.0f} s)",
            flush=True,
        )
        if finder is None:
            unnoticed.append(bug.name)
    if unnoticed:
        sys.exit(f"{len(unnoticed)} of {len(bugs)} bugs go unnoticed: {', '.join(unnoticed)}")
    print(f"all {len(bugs)} bugs are found")


if __name__ == "__main__":
    main()
