"""What is drawn, before it is drawn.

Curves over time in a fitting unit, and latencies in bins of 1, 2 and 5.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.files.parquet import Row
from plimsoll.pages.kit import Point

#: Upper bounds of the bins of a histogram, and the ticks of a latency axis; what is longer goes
#: into a last bin.
BOUNDS_MS = tuple(digit * 10.0**power for power in range(-3, 5) for digit in (1, 2, 5))


@dataclass(frozen=True)
class Unit:
    """A unit of time for an axis."""

    name: str
    seconds: int


@dataclass(frozen=True)
class Curve:
    """One place over time."""

    where: str
    points: list[tuple[float, float]]

    @property
    def mean(self) -> float:
        """Plain mean of the points."""
        return sum(value for _, value in self.points) / len(self.points)

    @property
    def least(self) -> float:
        """Smallest value."""
        return min(value for _, value in self.points)

    @property
    def most(self) -> float:
        """Largest value."""
        return max(value for _, value in self.points)


def time_unit(seconds: float) -> Unit:
    """The unit in which a run of this length is told.

    >>> time_unit(60).name, time_unit(7200).name, time_unit(86400).name
    ('seconds', 'minutes', 'hours')
    """
    for name, length in (("hours", 3600), ("minutes", 60)):
        if seconds > 4 * length:
            return Unit(name, length)
    return Unit("seconds", 1)


def curves(
    rows: list[Row], figure: str, names: dict[tuple[str, int], str], scale: float
) -> list[Curve]:
    """One curve for each named place that ever had a value above zero, in the order of the rows."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        where = names.get((row["instance"], row["database"]))
        if where is not None and row[figure] is not None:
            found.setdefault(where, []).append((row["second"], row[figure] * scale))
    return [
        Curve(where, points)
        for where, points in found.items()
        if any(value > 0 for _, value in points)
    ]


def step_points(
    drawn: Sequence[Curve], unit: Unit, span_s: float, *, above_zero: bool = False
) -> list[Point]:
    """The rows of a chart of steps: time `t` in the unit, value `v` and place `w`.

    The last value of a place has its step as well, to the end of its span.

    Args:
        drawn: the places over time in seconds.
        unit: of the axis of time.
        span_s: how long a value holds.
        above_zero: leave out what has no place on a logarithmic axis.

    >>> step_points([Curve("disk", [(0.0, 5.0), (60.0, 7.0)])], Unit("minutes", 60), 60.0)
    [{'t': 0.0, 'v': 5.0, 'w': 'disk'}, {'t': 1.0, 'v': 7.0, 'w': 'disk'}, {'t': 2.0, 'v': 7.0, 'w': 'disk'}]
    """  # noqa: E501
    rows: list[Point] = []
    for curve in drawn:
        points = [point for point in curve.points if point[1] > 0 or not above_zero]
        if points:
            points.append((points[-1][0] + span_s, points[-1][1]))
        rows += [
            {"t": round(second / unit.seconds, 5), "v": float(f"{value:.4g}"), "w": curve.where}
            for second, value in points
        ]
    return rows


def binned(buckets: list[tuple[float, int]]) -> list[int]:
    """Counts of the bins; a bucket counts where its upper bound lies.

    >>> counts = binned([(0.9, 3), (1.0, 1), (1.001, 5)])
    >>> counts[BOUNDS_MS.index(1.0)], counts[BOUNDS_MS.index(2.0)]
    (4, 5)
    """
    counts = [0] * (len(BOUNDS_MS) + 1)
    for upper_ms, count in buckets:
        counts[bisect_left(BOUNDS_MS, upper_ms)] += count
    return counts


def bound_label(index: int) -> str:
    """The range of a bin.

    >>> bound_label(BOUNDS_MS.index(2.0)), bound_label(0), bound_label(len(BOUNDS_MS))
    ('1–2', '≤ 0.001', '> 50000')
    """
    if index == 0:
        return f"≤ {BOUNDS_MS[0]:g}"
    if index == len(BOUNDS_MS):
        return f"> {BOUNDS_MS[-1]:.0f}"
    return f"{_plain(BOUNDS_MS[index - 1])}–{_plain(BOUNDS_MS[index])}"


def _plain(bound: float) -> str:
    return f"{bound:.0f}" if bound >= 1 else f"{bound:g}"
