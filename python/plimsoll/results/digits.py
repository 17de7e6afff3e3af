"""Figures with their units in words, with as many digits as decide.

Three digits are enough to read a figure by itself. Next to its limit they may not be: "20 ms is
above the limit of 20 ms" says nothing. So a figure and what it is held against are shown with more
and more digits until they differ.
"""

from __future__ import annotations

from collections.abc import Callable

#: From here on milliseconds are said as seconds.
SECONDS_FROM_MS = 1000
#: Digits of a figure by itself, and so many that every two numbers differ.
DIGITS, DIGITS_MAX = 3, 17
SINGULAR_UNITS = ("bytes", "counters", "errors", "files", "lines", "pages", "requests")


def shown(value: float, unit: str, digits: int = DIGITS) -> str:
    """A value with its unit, as people read it.

    >>> shown(0.01234, "ms"), shown(12000, "ms"), shown(3, "count"), shown(0.93, "ratio")
    ('0.0123 ms', '12 s', '3', '93 %')
    >>> shown(1, "pages"), shown(999.96, "ms"), shown(1234.5, "1/s")
    ('1 page', '1 s', '1234 per second')
    """
    if unit == "ms" and float(f"{value:.{digits}g}") >= SECONDS_FROM_MS:
        value, unit = value / SECONDS_FROM_MS, "s"
    if unit == "ratio":
        return f"{value:.{digits}g}" if value > 10 else f"{100 * value:.{digits}g} %"
    is_whole = float(value).is_integer() and abs(value) < 1e9
    number = f"{value:.0f}" if is_whole else f"{value:.{digits}g}"
    if "e+" in number and abs(value) < 1e9:
        number = f"{value:.0f}"
    words = {"1/s": " per second", "count": ""}
    if number == "1" and unit in SINGULAR_UNITS:
        unit = unit.removesuffix("s")
    return number + words.get(unit, f" {unit}")


def shown_apart(value: float, other: float, unit: str) -> tuple[str, str]:
    """A value and what it is held against, with as many digits as tell them apart.

    >>> shown_apart(20.004, 20, "ms"), shown_apart(999.96, 1000, "ms"), shown_apart(20, 20, "ms")
    (('20.004 ms', '20 ms'), ('999.96 ms', '1 s'), ('20 ms', '20 ms'))
    """
    return apart(value, other, lambda number, digits: shown(number, unit, digits), DIGITS)


def rates_apart(rate: float, other: float, decimals: int = 0) -> tuple[str, str]:
    """Two rates, whole where that tells them apart.

    >>> rates_apart(240.2, 231), rates_apart(239.6, 240), rates_apart(0.9983, 1, decimals=2)
    (('240', '231'), ('239.6', '240.0'), ('0.998', '1.000'))
    """
    return apart(rate, other, lambda number, digits: f"{number:.{digits}f}", decimals)


def apart(
    value: float, other: float, form: Callable[[float, int], str], digits: int
) -> tuple[str, str]:
    """Two numbers in a form that takes a count of digits, from so many on until they differ."""
    while digits < DIGITS_MAX and value != other and form(value, digits) == form(other, digits):
        digits += 1
    return form(value, digits), form(other, digits)
