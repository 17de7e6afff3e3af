"""A comparison in words: rows of tables for the terminal and the page, and the sentence that says
what came out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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

#: Longer names of figures are shortened in a terminal.
NAME_MAX = 60
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
    return (
        "–"
        if factor is None
        else f"{factor:#.3g}\u00a0x"
        if factor < 1000
        else f"{factor:,.0f}\u00a0x"
    )


def interval_text(against: Difference) -> str:
    """The interval of a factor, or nothing."""
    low, high = against.low, against.high
    if low is None or high is None:
        return "–"
    # Near 1 three digits would hide what the interval says.
    digits = ".4f" if 0.99 < low <= high < 1.01 else "#.3g"
    return f"{low:{digits}} to {high:{digits}}"


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


def lines_of(found: Comparison, across: int = 12) -> list[str]:
    """The comparison for a terminal."""
    lines = [f"warning: {text}" for text in found.warnings]
    for side in range(len(found.sides) - 1):
        names = [found.sides[0].name, found.sides[side + 1].name]
        lines += ["", f"{names[1]} against {names[0]}: {headline(found, side)}"]
        rows = figure_rows(found.figures, side)
        for part in found.parts:
            rows += [
                [f"{part.title}: {name}", *rest] for name, *rest in figure_rows(part.figures, side)
            ]
        rows = [[shortened(row[0], NAME_MAX), *row[1:]] for row in rows]
        width = max((len(row[0]) for row in rows), default=10)
        heads = [shortened(name, across) for name in names]
        lines.append(
            f"  {'':<{width}}  {heads[0]:>{across}}  {heads[1]:>{across}}  {'factor':>8}  "
            f"{'95 %':>16}  "
        )
        for name, first, other, factor, interval, word, basis in rows:
            lines.append(
                f"  {name:<{width}}  {shown(first):>{across}}  {shown(other):>{across}}  "
                f"{factor:>8}  {interval:>16}  {word}"
                + (f" ({basis})" if basis.startswith("none") else "")
            )
    lines += [
        f"{shortened(part.title, NAME_MAX)}: not in {', '.join(part.missing)}"
        for part in found.parts
        if part.missing
    ]
    differing = [row.key for row in found.environment if row.differs]
    plans = [row.key for row in found.plan if row.differs]
    lines += ["", *confidence_note(found)]
    lines.append(
        f"values that differ: {len(plans)} of the plans, {len(differing)} of the environments; "
        f"--html shows them side by side"
    )
    return lines
