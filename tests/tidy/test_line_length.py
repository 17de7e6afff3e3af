"""Lines of prose in Markdown have at most 100 columns: they are read beside code, and in diffs."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS_MAX = 100
#: Written by programs, which do not break lines: `make papers`, `make bench` and `make rogues`.
WRITTEN_BY_PROGRAMS = {"docs/papers.md", "docs/benchmarks.md", "docs/honesty.md"}


def too_long(text: str) -> list[int]:
    """Numbers of the lines that are too long. Tables, code, headings and single words cannot be broken.

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


def test_prose_has_at_most_a_hundred_columns() -> None:
    """Of every Markdown file under version control that people write."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "README.md" in listed
    wrong = [
        f"{name}:{number}"
        for name in listed
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
