"""Lines of prose and of Rust have at most 100 columns: they are read side by side, and in diffs.

Ruff holds Python to the same length.
"""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS_MAX = 100
#: Written by programs, which do not break lines: `make papers`, `make bench` and `make rogues`.
WRITTEN_BY_PROGRAMS = {"docs/papers.md", "docs/benchmarks.md", "docs/honesty.md"}


def too_long(text: str) -> list[int]:
    """Numbers of the lines that are too long.

    Tables, code, headings and single words cannot be broken.

    >>> too_long("word " * 21), too_long("| " + "word " * 21), too_long("x" * 120)
    ([1], [], [])
    >>> too_long("```" + chr(10) + "word " * 21 + chr(10) + "```" + chr(10) + "word " * 21)
    [4]
    """
    found = []
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            code = not code
        can_break = re.search(r"\S\s+\S", line.strip()) is not None
        fixed = code or line.startswith("    ") or line.lstrip().startswith(("|", "#", "<"))
        if len(line.rstrip()) > COLUMNS_MAX and can_break and not fixed:
            found.append(number)
    return found


def too_long_in_rust(text: str) -> list[int]:
    """Numbers of the lines of Rust that are too long; tables and drawings in comments are not.

    >>> too_long_in_rust("let a = 1; " * 10), too_long_in_rust("// " + "word " * 21)
    ([1], [1])
    >>> fence = "//! ```text" + chr(10)
    >>> too_long_in_rust(fence + "//! " + "| 4 B " * 20), too_long_in_rust('let a = "' + "x" * 100)
    ([], [])
    """
    found = []
    drawing = False
    for number, line in enumerate(text.split("\n"), 1):
        comment = re.match(r"\s*//[/!]? ?(.*)", line)
        if comment and comment[1].startswith("```"):
            drawing = not drawing
        drawing = drawing and comment is not None
        fixed = drawing or (comment is not None and comment[1].startswith("|"))
        # A single word, such as a format of a row, cannot be broken.
        can_break = len(max(line.split(), key=len, default="")) <= COLUMNS_MAX - 20
        if len(line) > COLUMNS_MAX and can_break and not fixed:
            found.append(number)
    return found


def listed(pattern: str) -> list[str]:
    """The files under version control that fit a pattern."""
    command = ["git", "ls-files", pattern]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()


def test_prose_has_at_most_a_hundred_columns() -> None:
    """Of every Markdown file under version control that people write."""
    names = listed("*.md")
    assert "README.md" in names
    wrong = [
        f"{name}:{number}"
        for name in names
        if name not in WRITTEN_BY_PROGRAMS
        for number in too_long((ROOT / name).read_text(encoding="utf-8"))
    ]
    assert not wrong, "break these lines at 100 columns: " + ", ".join(wrong)


def test_long_prose_is_seen_and_what_cannot_be_broken_is_not() -> None:
    """The rule itself, on a line of each kind."""
    prose = "a line of prose that goes on and on " * 4
    assert too_long(prose) == [1]
    assert too_long("- " + prose) == [1]
    for kept in ("| " + prose, "# " + prose, "```\n" + prose + "\n```", "x" * 200):
        assert too_long(kept) == []


def test_rust_has_at_most_a_hundred_columns() -> None:
    """The formatter breaks code, and leaves comments and texts as they are."""
    names = listed("*.rs")
    assert "crates/plimsoll-engine/src/lib.rs" in names
    wrong = [
        f"{name}:{number}"
        for name in names
        for number in too_long_in_rust((ROOT / name).read_text(encoding="utf-8"))
    ]
    assert not wrong, "break these lines at 100 columns: " + ", ".join(wrong)
