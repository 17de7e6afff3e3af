"""Rows of tables out of a printed page.

Cells cut in two, in one line or over several, put together again.

A page made narrower than its table breaks a cell after some digits: `12.517` becomes `12.5` and
`17`. Text taken from it shows the two below each other, one after the other, or side by side, and
the name of the row is cut in the same way. What makes repair possible is that the tool prints every
figure with the same number of decimals: a cell is whole when it has them, and no cell is whole too
early. A row that cannot be put together so is refused with its line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBERS = re.compile(r"\d[\d.]*|\.\d+")


@dataclass(frozen=True)
class Piece:
    """A run of digits with its place in the line."""

    text: str
    column: int


@dataclass
class Block:
    """The lines of one row: those from its name to the next row."""

    line: int
    name: str
    lines: list[str]


def blocks_of(lines: list[tuple[int, str]], name: re.Pattern[str]) -> list[Block]:
    """The rows of a table: each begins with a line that a name begins."""
    blocks: list[Block] = []
    for number, line in lines:
        match = name.match(line.strip())
        if match:
            blocks.append(Block(number, match.group().strip(), []))
            start = line.index(match.group()) + len(match.group())
            blocks[-1].lines.append(" " * start + line[start:])
        elif blocks and line.strip():
            blocks[-1].lines.append(line)
    return blocks


def whole_name(block: Block, known: list[str]) -> str:
    """The name of a row, the cut end taken from its lines; the longest that is known."""
    if block.name in known or not known:
        return block.name
    # The end of the name stands at the left of a line below it; a number in the first line is a
    # figure.
    for place, line in enumerate(block.lines[1:], 1):
        match = re.match(r"\s{0,4}(\d{1,3})(?=\s|$)", line)
        if match and block.name + match.group(1) in known:
            block.lines[place] = (
                line[: match.start(1)] + " " * len(match.group(1)) + line[match.end(1) :]
            )
            return block.name + match.group(1)
    return block.name


def cells_of(block: Block, count: int, decimals: int) -> list[str] | None:
    """The cells of a row, or None when they cannot be put together.

    >>> cells_of(Block(1, "a", ["12.5  9.13", "17    3"]), 2, 3)
    ['12.517', '9.133']
    >>> cells_of(Block(1, "a", ["12.5 17 9.1 33"]), 2, 3)
    ['12.517', '9.133']
    >>> cells_of(Block(1, "a", ["12.5"]), 2, 3) is None
    True
    """
    whole = re.compile(rf"\d{{1,25}}\.\d{{{decimals}}}")
    rows = [
        [Piece(match.group(), match.start()) for match in _NUMBERS.finditer(line)]
        for line in block.lines
        if not re.search(r"[A-Za-z]", line) or _NUMBERS.search(line)
    ]
    rows = [row for row in rows if row]
    if not rows:
        return None
    in_columns = len(rows[0]) == count and len(rows) > 1
    ways = (_by_columns, _in_sequence) if in_columns else (_in_sequence, _by_columns)
    for way in ways:
        cells = way(rows, count, whole)
        if cells is not None:
            return cells
    return None


def _in_sequence(rows: list[list[Piece]], count: int, whole: re.Pattern[str]) -> list[str] | None:
    """Pieces in reading order, each joined to the one before until that is whole."""
    cells: list[str] = []
    open_cell = ""
    for piece in (piece for row in rows for piece in row):
        open_cell += piece.text
        if open_cell.count(".") > 1 or len(open_cell) > 40:
            return None
        if whole.fullmatch(open_cell):
            cells.append(open_cell)
            open_cell = ""
    return cells if len(cells) == count and not open_cell else None


def _by_columns(rows: list[list[Piece]], count: int, whole: re.Pattern[str]) -> list[str] | None:
    """Pieces below each other: every further line's pieces belong to the nearest column above.

    A cell that was not cut has no piece below it. Where a line has just as many pieces as cells are
    open, they follow in order.
    """
    heads = rows[0]
    if len(heads) != count:
        return None
    cells = [piece.text for piece in heads]
    for row in rows[1:]:
        still_open = [index for index in range(count) if not whole.fullmatch(cells[index])]
        if len(row) == len(still_open):
            for index, piece in zip(still_open, row, strict=True):
                cells[index] += piece.text
            continue
        for piece in row:
            place = min(range(count), key=lambda index: abs(heads[index].column - piece.column))
            if whole.fullmatch(cells[place]):
                return None
            cells[place] += piece.text
    return cells if all(whole.fullmatch(cell) for cell in cells) else None


def was_cut(block: Block, cells: list[str]) -> bool:
    """Whether the cells of a row had to be put together."""
    return [match.group() for line in block.lines for match in _NUMBERS.finditer(line)] != cells
