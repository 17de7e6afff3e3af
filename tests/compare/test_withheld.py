"""Equal runs of which one had to share its processors: no interval from within a run sees that.

Of eight pairs of equal runs beside builds one was called better in seven figures.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from plimsoll.compare.blocks import Estimate
from plimsoll.compare.compare import BETTER, UNDECIDED, WORSE, difference
from plimsoll.compare.figures import FIGURES
from plimsoll.compare.withheld import withheld_from, withheld_share
from tests.support.plain_stages import summarize, summary_of
from tests.support.planted_run import run_folder

IOPS = next(figure for figure in FIGURES if figure.name == "database_iops")
READS = next(figure for figure in FIGURES if figure.name == "total_database_read_latency_ms_mean")


def estimate(value: float, withheld: float = 0.0) -> Estimate:
    return Estimate(value, 0.01, 100.0, "blocks", 100, 1.0, withheld=withheld)


@pytest.mark.parametrize(
    ("first", "other", "word"),
    [
        (0.0, 0.0, BETTER),
        # The first was held up: without that it may have been as fast.
        (0.12, 0.0, UNDECIDED),
        # The other was held up, and is better all the same.
        (0.0, 0.5, BETTER),
        (0.02, 0.0, BETTER),
        (1.0, 1.0, UNDECIDED),
    ],
)
def test_what_was_withheld_from_a_run_is_no_difference(
    first: float, other: float, word: str
) -> None:
    """By the arithmetic by which the verdict excuses a failed check."""
    found = difference(READS, estimate(13.8, first), estimate(12.2, other))
    assert found.word == word
    rates = difference(IOPS, estimate(100.0, first), estimate(113.0, other))
    assert rates.word == word
    turned = difference(READS, estimate(12.2, other), estimate(13.8, first))
    assert turned.word == {BETTER: WORSE}.get(word, word)


@pytest.mark.parametrize(
    ("level", "value", "of_rate", "of_reads"),
    [
        ("executor_wait", 0.3, 0.3, 0.05),
        ("executor_wait", 0.09, 0.0, 0.0),
        ("cpu_stolen", 0.1, 0.1, 0.05),
        ("cpu_throttled", 0.02, 0.02, 0.02),
        ("executor_busy", 0.95, 0.0, 0.0),
    ],
)
def test_the_share_is_that_of_the_time_and_of_a_latency_no_more_than_lies_above_the_device(
    tmp_path: Path, level: str, value: float, of_rate: float, of_reads: float
) -> None:
    """Of reads of 5 ms the block layer counted 4.8 and 0.05 went to hand them over."""
    run = run_folder(tmp_path / "run", {(level, 0): {"value": value}})
    summary = summary_of(summarize(run))
    assert withheld_share(IOPS, summary) == pytest.approx(of_rate)
    assert withheld_share(READS, summary) == pytest.approx(of_reads, abs=0.002)
    assert [found.name for found, _ in withheld_from(summary)] == [level] * (of_rate > 0)


def test_an_interval_is_wider_and_never_narrower() -> None:
    """Whoever had no processor knows less, in one direction."""
    plain = difference(IOPS, estimate(100.0), estimate(100.0))
    held = difference(IOPS, estimate(100.0, 0.1), replace(estimate(100.0), withheld=0.2))
    assert plain.low is not None and plain.high is not None
    assert held.low == pytest.approx(plain.low * 0.9)
    assert held.high == pytest.approx(plain.high / 0.8)
