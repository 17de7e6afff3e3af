"""Runs made of correlated noise.

How often intervals hold, and how often equal runs are called different.

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
    mean = sum(moment.numerator for moment in moments) / sum(
        moment.denominator for moment in moments
    )
    return of_blocks(mean, moments)


@cache
def estimate_of(seed: int, seconds: int, memory: float) -> Estimate:
    """The estimate of one series: coverage and false alarms ask about the same ones."""
    return estimated(series(seed, seconds, memory))


@dataclass(frozen=True)
class Coverage:
    """Of so many runs: how many have an interval, and of these how many hold the true mean."""

    runs: int
    given: int
    inside: int

    @property
    def answered(self) -> float:
        """The share that has an interval."""
        return self.given / self.runs

    @property
    def covered(self) -> float:
        """Of these the share whose interval holds the truth."""
        return self.inside / self.given if self.given else math.nan


def coverage(
    memory: float, seconds: int, runs: int, given_min: int = 0, runs_max: int = 0
) -> Coverage:
    """How often the interval of 95 % holds the truth.

    Args:
        memory: the share that each second remembers of the one before.
        seconds: how long each run is.
        runs: at least so many.
        given_min: go on until so many have an interval, where few have.
        runs_max: but not beyond so many runs.
    """
    count, given, inside = 0, 0, 0
    while count < runs or (given < given_min and count < runs_max):
        estimate = estimate_of(count, seconds, memory)
        count += 1
        if estimate.relative_error is None or estimate.value is None:
            continue
        reach = quantile(0.975, estimate.degrees) * estimate.relative_error * estimate.value
        given += 1
        inside += abs(estimate.value - 100.0) <= reach
    return Coverage(count, given, inside)


def false_alarms(memory: float, seconds: int, figures: int, pairs: int) -> float:
    """The share of pairs of equal runs in which at least one of so many figures is called
    different.
    """
    seeds, alarms = iter(range(1_000_000)), 0
    for _ in range(pairs):
        words = []
        for _ in range(figures):
            pair = [estimate_of(next(seeds), seconds, memory) for _ in (0, 1)]
            found = difference(FIGURES[0], pair[0], pair[1], figures)
            words.append(found.word if found.low is not None else UNDECIDED)
        alarms += any(word not in (UNDECIDED, SAME) for word in words)
    return alarms / pairs


#: So many answered runs tell 93 from 97 % well enough; where hardly any is answered, no number of
#: runs that a person waits for gives so many.
GIVEN_MIN, SECONDS_SIMULATED_MAX = 200, 3_000_000


def main() -> None:
    """Print coverage by correlation and length."""
    for seconds in (120, 300, 600, 1800, 7200):
        for memory in (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98):
            runs = coverage(memory, seconds, 200, GIVEN_MIN, SECONDS_SIMULATED_MAX // seconds)
            held = "-" if runs.given < GIVEN_MIN / 2 else f"{runs.covered:.0%} of {runs.given}"
            share = f"{runs.answered:.0%}" if runs.answered > 0.1 else f"{runs.answered:.2%}"
            print(f"| {seconds} | {memory} | {share} of {runs.runs:,} | {held} |", flush=True)


if __name__ == "__main__":
    main()
