"""Runs Rust tests by their full names and fails unless each of them was there and passed.

A filter that selects nothing passes silently.

    python3 tests/rust_tests.py PACKAGE [--release] PROGRAM::TEST...

`make simulate`, `make crash` and `make damage` are lists of names given to this. What the tests
print comes through."""

import argparse
import re
import subprocess
import sys


def by_program(names: list[str]) -> dict[str, list[str]]:
    """The tests of each program, from names like `program::module::test`."""
    tests: dict[str, list[str]] = {}
    for name in names:
        program, found, test = name.partition("::")
        if not found:
            sys.exit(f"{name} names no test; write PROGRAM::TEST")
        tests.setdefault(program, []).append(test)
    return tests


def run(package: str, program: str, tests: list[str], *, release: bool) -> list[str]:
    """Runs tests of one program; returns those that did not pass."""
    command = ["cargo", "test", "--locked", "--quiet", "-p", package, "--test", program]
    command += ["--release"] if release else []
    command += [
        "--",
        "--include-ignored",
        "--nocapture",
        "--test-threads=1",
        "--format=pretty",
        "--exact",
        *tests,
    ]
    passed = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        running = None
        for line in process.stdout:
            print(line, end="", flush=True)
            if begun := re.match(r"test (\S+) \.\.\. ", line):
                running = begun[1]
            if line.rstrip().endswith("ok") and running:
                passed.add(running)
                running = None
    return [f"{program}::{test}" for test in tests if test not in passed or process.returncode != 0]


def main() -> None:
    """Runs everything, then says what did not pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package")
    parser.add_argument("names", nargs="+", metavar="PROGRAM::TEST")
    parser.add_argument("--release", action="store_true")
    chosen = parser.parse_args()
    missed = []
    for program, tests in by_program(chosen.names).items():
        missed += run(chosen.package, program, tests, release=chosen.release)
    if missed:
        sys.exit(f"these tests did not pass, or there are none of that name: {', '.join(missed)}")
    print(f"all {len(chosen.names)} tests named were there and passed")


if __name__ == "__main__":
    main()
