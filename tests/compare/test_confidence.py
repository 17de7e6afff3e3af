"""Confidence from whole runs or from blocks of time, and never from single samples."""

import math
import random

import pytest

from plimsoll.compare.blocks import Moment, of_blocks, of_runs
from plimsoll.compare.student_t import quantile


def series(seed: int, count: int, memory: float, mean: float = 100.0) -> list[Moment]:
    """Operations of each second, each second remembering the one before."""
    source = random.Random(seed)
    level, found = 0.0, []
    for _ in range(count):
        level = memory * level + source.gauss(0, 10)
        found.append(Moment(1.0, mean + level, 1.0))
    return found


def estimated(moments: list[Moment]):
    mean = sum(moment.numerator for moment in moments) / sum(moment.denominator for moment in moments)
    return of_blocks(mean, moments)


def covered(memory: float, trials: int = 80) -> float:
    """How often the interval of 95 % holds the true mean, where there is an interval."""
    inside, given = 0, 0
    for seed in range(trials):
        estimate = estimated(series(seed, 800, memory))
        if estimate.relative_error is None:
            continue
        reach = quantile(0.975, estimate.degrees) * estimate.relative_error * estimate.value
        given += 1
        inside += abs(estimate.value - 100.0) <= reach
    return inside / given


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_intervals_hold_what_they_promise(memory: float) -> None:
    """An interval of 95 % must hold the truth about that often, also where samples follow each other."""
    assert covered(memory) >= 0.90


def test_single_samples_would_promise_too_much() -> None:
    """Why there are blocks: on the same series, an error from single samples is three times too small."""
    moments = series(1, 1200, 0.8)
    values = [moment.numerator for moment in moments]
    mean = sum(values) / len(values)
    naive = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)) / math.sqrt(len(values)) / mean
    assert estimated(moments).relative_error > 2 * naive


def test_blocks_grow_until_they_are_independent() -> None:
    """The slower the ups and downs, the longer the blocks."""
    quick, slow = estimated(series(3, 1200, 0.0)), estimated(series(3, 1200, 0.95))
    assert quick.block_s == 5.0
    assert slow.block_s > quick.block_s


def test_what_is_too_short_or_drifts_has_no_confidence() -> None:
    """Nine blocks are too few, and a rate that only climbs has no mean to be sure of."""
    short = estimated(series(4, 49, 0.0))
    assert short.relative_error is None
    assert "49 s are too short: ten blocks need 50 s" in short.why_not
    drifting = estimated([Moment(1.0, 100.0 + second, 1.0) for second in range(600)])
    assert drifting.relative_error is None
    assert "drifts" in drifting.why_not


def test_a_latency_is_weighted_by_operations() -> None:
    """A quotient of sums: seconds with few operations must not count like seconds with many."""
    source = random.Random(5)
    moments = []
    for _ in range(600):
        count = source.randint(1, 200)
        moments.append(Moment(1.0, sum(source.gauss(10, 1) for _ in range(count)), count))
    estimate = estimated(moments)
    assert estimate.value == pytest.approx(10, abs=0.05)
    # A thousand times a hundred operations of deviation 1: the error is about 1 / sqrt(60000).
    assert estimate.relative_error * estimate.value == pytest.approx(1 / math.sqrt(60_000), rel=0.35)


def test_whole_runs_are_a_sample_of_their_own() -> None:
    """Three runs of 90, 100 and 110: standard error 5.77 of a hundred, two degrees of freedom."""
    estimate = of_runs([90.0, 100.0, 110.0])
    assert (estimate.value, estimate.degrees, estimate.basis) == (100.0, 2.0, "runs")
    assert estimate.relative_error == pytest.approx(10 / math.sqrt(3) / 100)


@pytest.mark.parametrize(("degrees", "expected"), [(1, 12.706), (2, 4.303), (4.5, 2.658), (30, 2.042)])
def test_students_quantiles(degrees: float, expected: float) -> None:
    """The printed tables; 4.5 by numerical integration of the density."""
    assert quantile(0.975, degrees) == pytest.approx(expected, abs=0.002)
