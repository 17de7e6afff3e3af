"""Comparing two programs on a machine that is not quiet.

Interleaved runs, ratios of neighbours, bounds that do not flatter.

The two sides of a pair run one directly after the other, and the order changes from pair to pair,
so that a slow minute of the machine hits both. What counts is the ratio inside a pair.
"""

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Resamplings of the bootstrap; the seed is fixed so that the same figures give the same bound.
RESAMPLINGS = 10_000


@dataclass(frozen=True)
class Spread:
    """A median and what lies around it."""

    median: float
    least: float
    most: float
    count: int

    def text(self, digits: int = 2) -> str:
        """For a table."""
        return (
            f"{self.median:.{digits}f} ({self.least:.{digits}f} to {self.most:.{digits}f}, n = "
            f"{self.count})"
        )


def spread(values: Sequence[float]) -> Spread:
    """Median, least and most."""
    return Spread(statistics.median(values), min(values), max(values), len(values))


def lower_bound(values: Sequence[float], confidence: float = 0.90) -> float:
    """The one-sided lower bound of the median at this confidence, by bootstrap with a fixed
    seed.
    """
    source = random.Random(1)
    medians = sorted(
        statistics.median(source.choices(values, k=len(values))) for _ in range(RESAMPLINGS)
    )
    return medians[math.floor((1 - confidence) * RESAMPLINGS)]


@dataclass(frozen=True)
class Comparison:
    """Rates of two programs, pair by pair."""

    ours: list[float]
    theirs: list[float]

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs, inside each pair."""
        return [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]

    def row(self) -> dict[str, object]:
        """For the record."""
        ratios = self.ratios
        return {
            "ours": self.ours,
            "theirs": self.theirs,
            "ratio_median": statistics.median(ratios),
            "ratio_least": min(ratios),
            "ratio_most": max(ratios),
            "ratio_lower_bound_90": lower_bound(ratios),
            "pairs": len(ratios),
        }


def compare(pairs: int, ours: Callable[[], float], theirs: Callable[[], float]) -> Comparison:
    """Runs both as often as asked, in turns, each going first every second time."""
    comparison = Comparison([], [])
    for number in range(pairs):
        sides = [(comparison.ours, ours), (comparison.theirs, theirs)]
        for figures, measure in sides if number % 2 == 0 else reversed(sides):
            figures.append(measure())
    return comparison
