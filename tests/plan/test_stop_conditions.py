"""Conditions bound the harm a test does on shared storage.

They must fire when they hold, and only then.
"""

from typing import Any

import numpy as np
import pytest

from plimsoll.plan import stop_conditions
from plimsoll.plan.stop_conditions import ConditionError, parse

READ, LOG = 0, 1
MS = 1_000_000


def batch(*rows: tuple[int, int, int, int]) -> dict[str, Any]:
    """Samples of one second: (end in s, metric, count, latency of each in ms)."""
    columns = {
        "end_ns": [end * 10**9 for end, _, _, _ in rows],
        "interval_ns": [10**9 for _ in rows],
        "metric": [metric for _, metric, _, _ in rows],
        "count": [count for _, _, count, _ in rows],
        "errors": [0 for _ in rows],
        "latency_ns_sum": [count * latency * MS for _, _, count, latency in rows],
        **{
            f"latency_ns_{name}": [latency * MS for *_, latency in rows]
            for name in ("p50", "p99", "max")
        },
    }
    return {name: np.array(values, dtype=np.uint64) for name, values in columns.items()}


def test_a_condition_fires_only_after_it_has_held_long_enough() -> None:
    """A single slow second on a shared array is no reason to stop; thirty are."""
    condition = parse("db_read_latency_ms_p99>50 for 3s")
    assert condition.look(batch((1, READ, 10, 60), (2, READ, 10, 60)), READ) is None
    assert condition.look(batch((3, READ, 10, 40)), READ) is None, "it recovered"
    assert condition.look(batch((4, READ, 10, 60), (5, READ, 10, 60)), READ) is None
    reason = condition.look(batch((6, READ, 10, 70)), READ)
    assert reason is not None
    assert "it was 70 and has held for 3 s" in reason


def test_other_metrics_and_idle_seconds_do_not_count() -> None:
    """The log's latency says nothing about reads.

    A second without any read neither proves nor disproves.
    """
    condition = parse("database_read_latency_ms_mean > 50 for 2 s")
    assert condition.look(batch((1, LOG, 10, 900), (1, READ, 10, 60)), READ) is None
    assert condition.look(batch((2, READ, 0, 0)), READ) is None
    assert condition.look(batch((3, READ, 10, 60)), READ) is not None


def test_means_are_weighted_and_percentiles_are_the_worst() -> None:
    """Ninety fast reads of one database must not hide ten slow ones of another, nor the other way
    round.
    """
    rows = batch((1, READ, 90, 1), (1, READ, 10, 100))
    assert parse("db_read_latency_ms_mean>10.8").look(rows, READ) is not None
    assert parse("db_read_latency_ms_mean>11").look(rows, READ) is None
    assert parse("db_read_latency_ms_p99>=100").look(rows, READ) is not None
    assert parse("db_read_per_s<101").look(rows, READ) is not None
    assert parse("db_read_errors>0").look(rows, READ) is None


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("nonsense", "write it like"),
        ("db_read_latency_p99>50", "did you mean"),
        ("db_read_latency_ms_p99>50 for ever", "write it like"),
        ("colour>3", "and one of"),
        ("db_read_latency_ms_p99>5.0.0", "write it like"),
    ],
)
def test_a_condition_that_says_nothing_is_refused(text: str, phrase: str) -> None:
    """A condition with a typing mistake would never stop anything."""
    with pytest.raises(ConditionError) as caught:
        parse(text)
    assert phrase in caught.value.hint


def test_every_figure_can_be_named() -> None:
    """What the hint offers must be accepted."""
    for metric in (*stop_conditions.SHORT_NAMES, *stop_conditions.TRANSFERS):
        for statistic in stop_conditions.STATISTICS:
            assert parse(f"{metric}_{statistic}>1 for 2 min").for_s == 120
