"""Confidence from whole runs or from blocks of time, and never from single samples."""

import math
import random

import pytest

from plimsoll.compare.blocks import Estimate, Moment, of_runs
from plimsoll.compare.compare import BETTER, NO_CONFIDENCE, SAME, UNDECIDED, difference
from plimsoll.compare.figures import FIGURES
from plimsoll.compare.student_t import quantile
from tests.compare.simulated import coverage, estimated, false_alarms, series


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
    """An interval of 95 % must hold the truth about that often, also where samples follow each
    other.
    """
    assert covered(memory) >= 0.93


#: Lag-1 correlation and seconds; where a run is answered at all, its interval must hold in 93 of
#: 100 runs.
COVERAGE = [(0.0, 120), (0.3, 120), (0.5, 300), (0.8, 600), (0.9, 1800), (0.98, 7200)]


@pytest.mark.parametrize(
    ("memory", "seconds"), [*COVERAGE, pytest.param(0.95, 7200, marks=pytest.mark.slow)]
)
def test_intervals_cover_what_they_say_on_correlated_runs(memory: float, seconds: int) -> None:
    """Intervals said to hold 95 % held 46 to 85 % on runs of 2 to 10 minutes."""
    runs = coverage(memory, seconds, 150)
    assert runs.answered >= 0.9
    assert runs.covered >= 0.93


@pytest.mark.parametrize(("memory", "seconds"), [(0.6, 120), (0.8, 300)])
def test_intervals_cover_also_where_few_runs_are_answered(memory: float, seconds: int) -> None:
    """Of runs that are hardly long enough those are answered that happen to look calm.

    Of them 85 to 92 % held.
    """
    runs = coverage(memory, seconds, 100, given_min=40, runs_max=2_000)
    assert 40 <= runs.given < 0.1 * runs.runs
    assert runs.covered >= 0.93


@pytest.mark.parametrize(
    ("memory", "seconds"),
    [(0.8, 120), (0.95, 120), (0.9, 300), (0.95, 600), (0.98, 600), (0.98, 1800)],
)
def test_runs_too_short_for_their_correlation_are_refused(memory: float, seconds: int) -> None:
    """Below some thirty correlation times nobody knows how sure a mean is.

    Then nothing is said, but by rare chance.
    """
    runs = coverage(memory, seconds, 150)
    assert runs.answered <= 0.03


@pytest.mark.parametrize(("memory", "seconds"), [(0.0, 120), (0.8, 600), (0.9, 1800)])
def test_equal_runs_are_rarely_called_different(memory: float, seconds: int) -> None:
    """Identical runs were called different in 19 to 43 % of pairs."""
    assert false_alarms(memory, seconds, figures=1, pairs=60) <= 0.05
    assert false_alarms(memory, seconds, figures=10, pairs=40) <= 0.05


def test_a_tenth_more_latency_is_found() -> None:
    """A correction that finds nothing any more would be none.

    10 % on 20 minutes of noise of 20 % with memory 0.5.
    """
    found = 0
    for seed in range(20):
        pair = [
            estimated(series(2 * seed + side, 1200, 0.5, 100.0 * (1 + 0.1 * side)))
            for side in (0, 1)
        ]
        found += difference(FIGURES[0], *pair, 10).word != UNDECIDED
    assert found >= 19


def test_what_has_no_interval_is_called_neither_better_nor_worse() -> None:
    """A run too short to know how sure it is was called worse all the same.

    Of what others print once, the words mean the direction, and say that no more is known.
    """
    short = [estimated(series(seed, 49, 0.0, 100.0 * (1 + 0.5 * seed))) for seed in (0, 1)]
    found = difference(FIGURES[0], *short)
    assert (found.word, found.low) == (NO_CONFIDENCE, None)
    printed = Estimate(150.0, why_not="a paper prints one number")
    assert difference(FIGURES[0], short[0], printed).word == BETTER
    near = Estimate(short[0].value * 1.01, why_not="too short", is_open=True)
    assert difference(FIGURES[0], short[0], near).word == SAME


def test_single_samples_would_promise_too_much() -> None:
    """Why there are blocks: on the same series, an error from single samples is three times too
    small.
    """
    moments = series(1, 1200, 0.8)
    values = [moment.numerator for moment in moments]
    mean = sum(values) / len(values)
    naive = (
        math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        / math.sqrt(len(values))
        / mean
    )
    assert estimated(moments).relative_error > 2 * naive


def test_what_remembers_is_less_sure() -> None:
    """The slower the ups and downs, the less sure the mean."""
    quick, slow = estimated(series(3, 7200, 0.0)), estimated(series(3, 7200, 0.95))
    assert slow.relative_error > 3 * quick.relative_error


def test_what_is_too_short_or_drifts_has_no_confidence() -> None:
    """49 seconds are too few, and a rate that only climbs has no mean to be sure of."""
    short = estimated(series(4, 49, 0.0))
    assert short.relative_error is None
    assert "49 s are too short: 50 s are needed" in short.why_not
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
    assert estimate.relative_error * estimate.value == pytest.approx(
        1 / math.sqrt(60_000), rel=0.35
    )


def test_whole_runs_are_a_sample_of_their_own() -> None:
    """Three runs of 90, 100 and 110: standard error 5.77 of a hundred, two degrees of freedom."""
    estimate = of_runs([90.0, 100.0, 110.0])
    assert (estimate.value, estimate.degrees, estimate.basis) == (100.0, 2.0, "runs")
    assert estimate.relative_error == pytest.approx(10 / math.sqrt(3) / 100)


@pytest.mark.parametrize(
    ("degrees", "expected"), [(1, 12.706), (2, 4.303), (4.5, 2.658), (30, 2.042)]
)
def test_students_quantiles(degrees: float, expected: float) -> None:
    """The printed tables; 4.5 by numerical integration of the density."""
    assert quantile(0.975, degrees) == pytest.approx(expected, abs=0.002)
