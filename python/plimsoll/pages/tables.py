"""A table of the report, and the one way in which values become text.

A table is a title, headings and rows of values. Tables without headings are two columns of names
and values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

#: The twelve columns of the published tables and the place they are of; more do not fit on a page.
COLUMNS_MAX = 13
_FIGURE = re.compile(r"–|-?[\d,]+(\.\d+)?([ \u00a0]([KMGT]iB|ms|s|%|bytes|pages|x))?")


@dataclass(frozen=True)
class Table:
    """One table, or two columns of names and values when `headings` is empty."""

    title: str
    headings: list[str]
    rows: list[list[Any]]
    note: str = ""
    #: Digits after the point of numbers that are not whole, for each column or one for all that
    #: follow; three significant digits where there is none.
    decimals: tuple[int, ...] = ()
    #: Whether the last row sums up the others.
    has_total: bool = False
    #: Whether it is only opened on demand, where its page can do that.
    folded: bool = False

    def shown(self, value: Any, column: int = 0) -> str:
        """A value of this table as text."""
        if self.decimals and isinstance(value, float):
            return f"{value:,.{self.decimals[min(column, len(self.decimals) - 1)]}f}"
        return shown(value)

    def parts(self) -> list[Table]:
        """The table itself, or where it has more columns than a page is wide, tables of some of its
        columns, each with the first.

        >>> wide = Table("t", list("abcdefghijklmnop"), [list(range(16))])
        >>> ["".join(part.headings) for part in wide.parts()], wide.parts()[1].rows
        (['abcdefghi', 'ajklmnop'], [[0, 9, 10, 11, 12, 13, 14, 15]])
        """
        width = len(self.headings)
        if width <= COLUMNS_MAX:
            return [self]
        count = -(-(width - 1) // (COLUMNS_MAX - 1))
        each = -(-(width - 1) // count)
        found = []
        for first in range(1, width, each):
            chosen = [0, *range(first, min(first + each, width))]
            digits = (
                tuple(self.decimals[min(column, len(self.decimals) - 1)] for column in chosen)
                if self.decimals
                else ()
            )
            rows = [[row[column] for column in chosen] for row in self.rows]
            found.append(
                replace(
                    self,
                    headings=[self.headings[column] for column in chosen],
                    rows=rows,
                    decimals=digits,
                )
            )
        return found

    def is_numeric(self, column: int) -> bool:
        """Whether a column of a table with headings holds figures, or nothing.

        They stand to the right.
        """
        return column > 0 and bool(self.headings) and column not in self._with_words

    @cached_property
    def _with_words(self) -> set[int]:
        """The columns in which something is neither a figure nor nothing."""
        return {
            column
            for row in self.rows
            for column, value in enumerate(row)
            if value is not None and not is_figure(value)
        }


def is_figure(value: Any) -> bool:
    """Whether a value is a number, or text that begins with one.

    >>> is_figure(1.5), is_figure("1,024 MiB"), is_figure("0.02"), is_figure(True), is_figure("2010 edition")
    (True, True, True, False, False)
    """  # noqa: E501
    if isinstance(value, str):
        return bool(_FIGURE.fullmatch(value))
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """A value as text: three significant digits below a thousand, grouped thousands above, a dash
    for nothing.

    >>> shown(0.01234), shown(999.6), shown(12345.6), shown(None), shown(True)
    ('0.0123', '1,000', '12,346', '–', 'yes')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"
    return str(value)


def shortened(text: str, length_max: int) -> str:
    """A name of at most so many characters, its middle left out where it is longer.

    >>> shortened("orders", 10), shortened("abcdefghijklmnop", 9)
    ('orders', 'abcd…mnop')
    """
    if len(text) <= length_max:
        return text
    kept = length_max - 1
    return f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"


def mib(size: int | float | None) -> str:
    """A size in MiB, as the published reports have it.

    >>> mib(1073741824), mib(None)
    ('1,024 MiB', '–')
    """
    return "–" if size is None else f"{size / 1048576:,.0f} MiB"


def size_shown(size: int | float | None) -> str:
    """A size in the largest unit that leaves a number of at least one.

    >>> size_shown(1073741824), size_shown(536870912), size_shown(0), size_shown(None)
    ('1 GiB', '512 MiB', '0 bytes', '–')
    """
    if size is None:
        return "–"
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(size) >= factor:
            return f"{shown(size / factor)} {unit}"
    return f"{size:.0f} bytes"


def duration_shown(seconds: float) -> str:
    """A length of time as people say it.

    >>> duration_shown(60), duration_shown(7200.4), duration_shown(86400), duration_shown(3725)
    ('60 s', '2 h', '24 h', '1 h 2 min')
    """
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.2g} s"
    hours, rest = divmod(round(seconds / 60), 60)
    parts = [f"{hours} h" if hours else "", f"{rest} min" if rest else ""]
    return " ".join(part for part in parts if part)


def same_shown(values: list[Any]) -> str:
    """What several places have in common, or every different value.

    >>> same_shown([3, 3]), same_shown([512, 1024])
    ('3', '512, 1,024')
    """
    return ", ".join(dict.fromkeys(shown(value) for value in values)) or "–"
