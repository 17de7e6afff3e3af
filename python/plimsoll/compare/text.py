"""A comparison in words: rows of tables for the terminal and the page, and the sentence that says
what came out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

from plimsoll.compare.compare import (
    BETTER,
    CHANGED,
    NO_CONFIDENCE,
    SAME,
    SAME_MS,
    SAME_SHARE,
    UNDECIDED,
    WORSE,
)
from plimsoll.documents.comparison import ComparedFigure, Comparison, Difference
from plimsoll.pages.tables import shortened, shown

#: Of a line where there is no terminal; names of sides above their columns are cut at HEAD_MAX.
WIDTH, HEAD_MAX, NAME_MIN = 100, 10, 2
GAP = "  "
_ORDER = (BETTER, WORSE, CHANGED, SAME, UNDECIDED, NO_CONFIDENCE)


def headline(found: Comparison, side: int) -> str:
    """What became of a side, in a few words."""
    words = [row.against_first[side].word for row in found.figures]
    counted = [f"{words.count(word)} {word}" for word in _ORDER if word in words]
    return ", ".join(counted) or "nothing in common"


def factor_text(against: Difference) -> str:
    """A factor as people write it, in one piece.

    >>> empty = Difference(factor=None, low=None, high=None, change_percent=None, word=None, basis=None, why=None)
    >>> factor_text(empty.replace(factor=17.994)).split(), factor_text(empty)
    (['18.0', 'x'], '–')
    """  # noqa: E501
    factor = against.factor
    return "–" if factor is None else f"{_of_three_digits(factor)}\u00a0x"


def interval_text(against: Difference) -> str:
    """The interval of a factor, or nothing."""
    low, high = against.low, against.high
    if low is None or high is None:
        return "–"
    # Near 1 three digits would hide what the interval says.
    if 0.99 < low <= high < 1.01:
        return f"{low:.4f} to {high:.4f}"
    return f"{_of_three_digits(low)} to {_of_three_digits(high)}"


def _of_three_digits(factor: float) -> str:
    """Three significant digits, and all that stand before the point.

    >>> _of_three_digits(0.98), _of_three_digits(17.994), _of_three_digits(2533.4)
    ('0.980', '18.0', '2,533')
    """
    return f"{factor:#.3g}" if factor < 999.5 else f"{factor:,.0f}"


def basis_text(figure: ComparedFigure, side: int) -> str:
    """Where the confidence comes from, or why there is none."""
    against = figure.against_first[side]
    if against.factor is None or against.basis is None:
        return f"none: {against.why}" if against.why else "none"
    parts = []
    for estimate in (figure.sides[0], figure.sides[side + 1]):
        if estimate.basis == "runs":
            parts.append(f"{estimate.count} whole runs")
        else:
            parts.append(f"{estimate.count} blocks of {estimate.block_s:.3g} s")
    return " and ".join(dict.fromkeys(parts))


def figure_rows(figures: Sequence[ComparedFigure], side: int) -> list[list[Any]]:
    """The improvement table of one side: figure, both values, factor, interval, word, basis."""
    rows = []
    for figure in figures:
        against = figure.against_first[side]
        name = f"{figure.title} ({figure.unit})" if figure.unit else figure.title
        values = [figure.sides[0].value, figure.sides[side + 1].value]
        rows.append(
            [
                name,
                *values,
                factor_text(against),
                interval_text(against),
                against.word or "–",
                basis_text(figure, side),
            ]
        )
    return rows


def confidence_note(found: Comparison) -> list[str]:
    """What the confidence of this comparison rests on, in sentences."""
    bases = {
        against.basis
        for figure in found.figures
        for against in figure.against_first
        if against.basis
    }
    sentences = [
        "A factor above 1 is better: more operations, or less time. Where neither is better, it is "
        "the quotient of the values."
    ]
    if any("runs" in basis for basis in bases):
        sentences.append("Where a side has several runs, intervals of 95 % come from whole runs.")
    if any("blocks" in basis for basis in bases):
        sentences.append(
            "Where a side is one run, intervals of 95 % come from blocks of its time that do not "
            "overlap and are long enough to be "
            "independent of each other; single samples are never used. They say nothing of what "
            "differs from one run to "
            "the next: repeat the runs (--repeat 3) to know that."
        )
    if any(
        against.word == SAME and against.basis is None
        for figure in found.figures
        for against in figure.against_first
    ):
        sentences.append(
            f"Without a confidence, same means: at most {100 * SAME_SHARE:g} % or {SAME_MS:g} ms "
            "apart."
        )
    if not bases:
        sentences.append("No figure has a confidence: the reasons stand next to them.")
    return sentences


def lines_of(found: Comparison, width: int = WIDTH) -> list[str]:
    """The comparison for a terminal.

    Args:
        found: the comparison.
        width: how many characters a line has at most, where the figures leave room for a name.
    """
    lines = _wrapped([f"warning: {text}" for text in found.warnings], width)
    for side in range(len(found.sides) - 1):
        names = [found.sides[0].name, found.sides[side + 1].name]
        lines += ["", *_wrapped([f"{names[1]} against {names[0]}: {headline(found, side)}"], width)]
        lines += _figure_lines(found, side, names, width)
    lines += _wrapped(
        [f"{part.title}: not in {', '.join(part.missing)}" for part in found.parts if part.missing],
        width,
    )
    differing = [row.key for row in found.environment if row.differs]
    plans = [row.key for row in found.plan if row.differs]
    differences = (
        f"values that differ: {len(plans)} of the plans, {len(differing)} of the environments; "
        f"--html shows them side by side"
    )
    return [*lines, "", *_wrapped([*confidence_note(found), differences], width)]


class _Row(NamedTuple):
    """A heading, or the name of a figure and its cells."""

    name: str
    cells: Sequence[str] = ()


def _figure_lines(found: Comparison, side: int, names: Sequence[str], width: int) -> list[str]:
    """The figures of one side in columns, those of each load and event below its name.

    What is too long for its column stands on a line of its own. Why a factor has no interval is
    told below, where its number stands.
    """
    reasons: dict[str, int] = {}
    rows = [_row(figure, side, "", reasons) for figure in found.figures]
    for part in (part for part in found.parts if part.figures):
        rows.append(_Row(part.title))
        load = None
        for figure in part.figures:
            if figure.load is not None and figure.load != load:
                rows.append(_Row(f"  {figure.load}"))
            load = figure.load
            rows.append(_row(figure, side, "  " if load is None else "    ", reasons))
    heads = [*(shortened(name, HEAD_MAX) for name in names), "factor", "95 %"]
    table = [row.cells for row in rows if row.cells]
    sizes = [
        max(map(len, column)) for column in zip(heads, *(row[:-1] for row in table), strict=True)
    ]
    words = max((len(cells[-1]) for cells in table), default=0)
    rest = sum(len(GAP) + size for size in [*sizes, words])
    longest = max((len(row.name) for row in rows if row.cells), default=0)
    column = max(min(longest, width - len(GAP) - rest), NAME_MIN)
    lines = [_line("", [*heads, ""], column, sizes)]
    for row in rows:
        is_alone = not row.cells or len(row.name) > column
        indent = GAP + " " * (len(row.name) - len(row.name.lstrip()))
        if is_alone:
            lines += _wrapped([row.name.strip()], width, indent)
        if row.cells:
            lines.append(_line("" if is_alone else row.name, row.cells, column, sizes))
    told = [f"[{number}] no interval: {why}" for why, number in reasons.items()]
    return lines + _wrapped(told, width, GAP)


def _row(figure: ComparedFigure, side: int, indent: str, reasons: dict[str, int]) -> _Row:
    """A figure as cells; a reason that is new gets the next number."""
    (row,) = figure_rows([figure], side)
    name, first, other, factor, interval, word, _ = row
    why = figure.against_first[side].why
    if why:
        interval = f"[{reasons.setdefault(why, len(reasons) + 1)}]"
    if figure.load is not None:
        name = name.removeprefix(f"{figure.load}, ")
    return _Row(f"{indent}{name}", [shown(first), shown(other), factor, interval, word])


def _line(name: str, cells: Sequence[str], column: int, sizes: Sequence[int]) -> str:
    figures = [cell.rjust(size) for cell, size in zip(cells[:-1], sizes, strict=True)]
    return GAP.join(["", name.ljust(column), *figures, cells[-1]]).rstrip()


def _wrapped(texts: Sequence[str], width: int, indent: str = "") -> list[str]:
    """Texts in lines; all but the first line of each stand further in."""
    return [
        line
        for text in texts
        for line in textwrap.wrap(
            text,
            width,
            initial_indent=indent,
            subsequent_indent=f"{indent}{GAP}",
            break_on_hyphens=False,
        )
    ]
