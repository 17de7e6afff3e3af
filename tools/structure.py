"""`python -m tools.structure`.

The measured structure of the source tree, as ARCHITECTURE.md shows it.

Counted are files under version control below `crates/*/src`, `python/plimsoll` and `tools`, without
tests. A function reaches from its `def` or `fn` to its last line; of Rust only functions whose
closing brace stands in the column of their first line are counted, which rustfmt guarantees.
Repeated lines are runs of `RUN_LINES` or more equal lines, without blank lines, comments, imports
and lines of punctuation, that stand in two places.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUN_LINES = 6
PLACES_MAX = 8
#: Imports of both languages, those in parentheses or braces to their last line.
IMPORTS = re.compile(
    r"^[ \t]*(?:from \S+ import (?:\([^)]*\)|.*)|import .*|(?:pub(?:\(\w+\))? )?use [^;]+;)\n",
    re.MULTILINE,
)
UNTYPED = re.compile(r"\b(?:dict|Mapping)\[str, Any\]")
#: Content of files of any version or of another tool; a checked table of a file that people write.
CONTENT = re.compile(r"(?<=[:>,\[|] )(?:\w+\.)?Content\b|\[(?:folder\.)?Content\b")
GIVEN = re.compile(r"(?<=[:>,|] )(?:Given|Entry)\b|\[(?:Given|Entry)\b")


def sources(suffix: str) -> list[Path]:
    """Product sources of one language under version control."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    roots = ("python/plimsoll/", "tools/") if suffix == ".py" else ("crates/",)
    return [
        ROOT / name
        for name in listed
        if name.endswith(suffix) and name.startswith(roots) and "/tests" not in name
    ]


def function_lengths(path: Path) -> Iterator[int]:
    """Lines of each function of a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                yield node.end_lineno - node.lineno + 1
        return
    open_at: list[tuple[str, int]] = []
    for number, line in enumerate(text.splitlines()):
        if re.match(r"\s*(pub(\([^)]*\))? )?(const |async |unsafe |extern \"C\" )*fn \w+", line):
            if line.rstrip().endswith("}"):
                yield 1
            elif not line.rstrip().endswith(";"):
                open_at.append((line[: len(line) - len(line.lstrip())], number))
        elif open_at and line.rstrip() in (open_at[-1][0] + "}", open_at[-1][0] + ";"):
            yield number - open_at.pop()[1] + 1


def quantiles(values: list[int]) -> str:
    """Median, 90th percentile and maximum."""
    ordered = sorted(values)
    return " / ".join(
        str(ordered[min(len(ordered) - 1, int(len(ordered) * share))]) for share in (0.5, 0.9, 1.0)
    )


def outside_readers(pattern: re.Pattern[str]) -> int:
    """How often a pattern stands outside `inputs` and `files`; this file names what it counts."""
    return sum(
        len(pattern.findall(path.read_text(encoding="utf-8")))
        for path in sources(".py")
        if path != Path(__file__) and path.parent.name not in ("inputs", "files")
    )


def repeated_runs(paths: list[Path]) -> int:
    """Pairs of places that share a run of equal lines."""
    places: dict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    for path in paths:
        text = IMPORTS.sub("", path.read_text(encoding="utf-8"))
        kept = [
            (number, line.strip())
            for number, line in enumerate(text.splitlines())
            if re.search(r"\w", line) and not re.match(r"\s*(#|//|mod )", line)
        ]
        for start in range(len(kept) - RUN_LINES + 1):
            run = tuple(line for _, line in kept[start : start + RUN_LINES])
            places[run].append((path, start))
    pairs: set[tuple[Path, int, Path, int]] = set()
    for where in places.values():
        if 2 <= len(where) <= PLACES_MAX:
            pairs |= {(a, i, b, j) for n, (a, i) in enumerate(where) for b, j in where[n + 1 :]}
    return sum((a, i - 1, b, j - 1) not in pairs for a, i, b, j in pairs)


def main() -> None:
    """Print the table."""
    print("| measured | Rust | Python |\n|---|---|---|")
    rust, python = sources(".rs"), sources(".py")
    rows: dict[str, list[str]] = {
        "files": [str(len(paths)) for paths in (rust, python)],
        "lines": [
            f"{sum(len(p.read_text().splitlines()) for p in paths):,}" for paths in (rust, python)
        ],
        "file lines, median / p90 / max": [
            quantiles([len(p.read_text().splitlines()) for p in paths]) for paths in (rust, python)
        ],
        "function lines, median / p90 / max": [
            quantiles([length for p in paths for length in function_lengths(p)])
            for paths in (rust, python)
        ],
        f"repeated runs of {RUN_LINES} or more equal lines": [
            str(repeated_runs(paths)) for paths in (rust, python)
        ],
        "`dict[str, Any]` outside `inputs` and `files`": ["-", str(outside_readers(UNTYPED))],
        "annotations with `Content`, with `Given`": [
            "-",
            f"{outside_readers(CONTENT)}, {outside_readers(GIVEN)}",
        ],
    }
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
