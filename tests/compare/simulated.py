"""Runs made of correlated noise: how often intervals hold, and how often equal runs are called different.

`python -m tests.compare.simulated` prints the table of `docs/statistics.md`.
"""

import math
import random
from dataclasses import dataclass
from functools import cache

from plimsoll.compare.blocks import Estimate, Moment, of_blocks
from plimsoll.compare.compare import SAME, UNDECIDED, difference
from plimsoll.compare.figures import FIGURES
from plimsoll.compare.student_t import quantile


def series(seed: int, count: int, memory: float, mean: float = 100.0) -> list[Moment]:
    """Operations of each second, each second remembering the one before."""
    source = random.Random(seed)
    level, found = 0.0, []
    for _ in range(count):
        level = memory * level + source.gauss(0, 10)
        found.append(Moment(1.0, mean + level, 1.0))
    return found


def estimated(moments: list[Moment]) -> Estimate:
    mean = sum(moment.numerator for moment in moments) / sum(moment.denominator for moment in moments)
    return of_blocks(mean, moments)


@cache
def estimate_of(seed: int, seconds: int, memory: float) -> Estimate:
    """The estimate of one series: coverage and false alarms ask about the same ones."""
    return estimated(series(seed, seconds, memory))


@dataclass(frozen=True)
class Coverage:
    """Of the runs: the share that has an interval, and of these the share whose interval holds the true mean."""

    answered: float
    covered: float


def coverage(memory: float, seconds: int, runs: int) -> Coverage:
    """How often the interval of 95 % holds the truth."""
    inside, given = 0, 0
    for seed in range(runs):
        estimate = estimate_of(seed, seconds, memory)
        if estimate.relative_error is None or estimate.value is None:
            continue
        reach = quantile(0.975, estimate.degrees) * estimate.relative_error * estimate.value
        given += 1
        inside += abs(estimate.value - 100.0) <= reach
    return Coverage(given / runs, inside / given if given else math.nan)


def false_alarms(memory: float, seconds: int, figures: int, pairs: int) -> float:
    """The share of pairs of equal runs in which at least one of so many figures is called different."""
    seeds, alarms = iter(range(1_000_000)), 0
    for _ in range(pairs):
        words = []
        for _ in range(figures):
            pair = [estimate_of(next(seeds), seconds, memory) for _ in (0, 1)]
            found = difference(FIGURES[0], pair[0], pair[1], figures)
            words.append(found.word if found.low is not None else UNDECIDED)
        alarms += any(word not in (UNDECIDED, SAME) for word in words)
    return alarms / pairs


def main() -> None:
    """Print coverage and false alarms by correlation and length."""
    for seconds in (120, 300, 600, 1800, 7200):
        for memory in (0.0, 0.3, 0.5, 0.8, 0.9, 0.95, 0.98):
            runs = coverage(memory, seconds, 300)
            held = "-" if math.isnan(runs.covered) else f"{runs.covered:.0%}"
            print(f"| {seconds} | {memory} | {runs.answered:.0%} | {held} |", flush=True)


if __name__ == "__main__":
    main()
