"""The tutorial is followed as it is written.

Each command in its order, with what the page says that it prints.

The checkout is a copy whose native part is built already, so that `make setup` has nothing left to
do; `/mnt/array` is a directory."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
ARRAY = "/mnt/array"
MADE = (
    "Makefile",
    "Cargo.toml",
    "Cargo.lock",
    "pyproject.toml",
    "requirements.txt",
    "requirements-tools.txt",
)


def steps(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a page, each with the lines that it should print."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"(?:^    .*\n)+", text, flags=re.MULTILINE):
        lines = textwrap.dedent(block).rstrip("\n").splitlines()
        if not lines[0].startswith("$ "):
            continue
        for line in lines:
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def prints(expected: list[str], said: str) -> bool:
    """Whether an output reads as the page says.

    `...` alone is any number of lines, within a line any text.
    """
    pattern = ""
    for line in expected:
        within = ".*".join(map(re.escape, line.split("...")))
        pattern += r"(?:.*\n)*?" if line == "..." else within + r"[ ]*\n"
    return re.fullmatch(pattern + r"(?:\s*\n)*", said) is not None


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that `make setup` was called in before."""
    home = tmp_path / "plimsoll"
    (home / ".venv" / "bin").mkdir(parents=True)
    (home / "crates").mkdir()
    for name in MADE:
        shutil.copy(ROOT / name, home)
    shutil.copytree(ROOT / "examples", home / "examples")
    (home / ".tools" / "bin").mkdir(parents=True)
    for stamp in (".tools/bin/uv", ".venv/.core", ".venv/.native"):
        (home / stamp).touch()
    program = home / ".venv" / "bin" / "plimsoll"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m plimsoll.cli "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return home


def test_the_page_is_read_as_a_reader_does() -> None:
    """A test that follows no command, or takes any output for the right one, would never fail."""
    commands = [command for command, _ in steps(PAGE.read_text(encoding="utf-8"))]
    assert commands[0] == "make setup" and len(commands) > 10
    assert prints(["a ... c", "...", "z"], "a b c\n\n1\n2\nz\n")
    assert not prints(["a ... c", "...", "z"], "a b d\nz\n")
    assert not prints(["a"], "a\nb\n")


@pytest.mark.slow
def test_the_tutorial_works_as_it_is_written(checkout: Path, tmp_path: Path) -> None:
    """A new user copies each line.

    One that fails or prints something else is where they give up.
    """
    array = tmp_path / "array"
    array.mkdir()
    for command, expected in steps(PAGE.read_text(encoding="utf-8")):
        done = subprocess.run(
            ["bash", "-c", command.replace(ARRAY, str(array))],
            cwd=checkout,
            env=dict(os.environ),
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
            stdin=subprocess.DEVNULL,
        )
        told = f"$ {command}\n{done.stdout}\n{done.stderr}"
        assert done.returncode in (
            (0, 1, 3) if "watch" in command or "report" in command else (0,)
        ), told
        if expected:
            assert prints([line.replace(ARRAY, str(array)) for line in expected], done.stdout), told
    assert (checkout / "results" / "first" / "report.html").exists()
    assert not list(array.rglob("*.edb")), "clean leaves no database"
