"""Distributions and windows: what figures of every family are made of, on rows counted by hand."""

import duckdb
import pytest

from plimsoll.results.distributions import (
    Counted,
    buckets_of,
    counted_of,
    quantile_ms,
    quantiles_ms,
    window_rates,
)
from plimsoll.units import NS_PER_S

MEASURED = (
    "phase VARCHAR, end_ns BIGINT, interval_ns BIGINT, workload VARCHAR, metric VARCHAR, count "
    "BIGINT, latency_ns_sum DOUBLE, latency_ns_max BIGINT"
)
BUCKET = "phase VARCHAR, workload VARCHAR, metric VARCHAR, upper_ns UBIGINT, count BIGINT"


def asking(measured=(), bucket=()):
    """Asks tables of these rows."""
    database = duckdb.connect()
    for name, columns, rows in (("measured", MEASURED, measured), ("bucket", BUCKET, bucket)):
        database.execute(f"CREATE TABLE {name} ({columns})")
        for row in rows:
            database.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", list(row))

    def ask(question, values):
        cursor = database.execute(question, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    return ask


def sample(end_s, count, phase="measure", workload="mix", metric="read", seconds=1.0):
    """A sample of reads that took 2 ms each, the longest 5 ms."""
    return (
        phase,
        int(end_s * NS_PER_S),
        int(seconds * NS_PER_S),
        workload,
        metric,
        count,
        count * 2e6,
        5_000_000,
    )


@pytest.mark.parametrize(("share", "ms"), [(0.5, 1.0), (0.9, 1.0), (0.91, 4.0), (1.0, 8.0)])
def test_a_quantile_is_the_upper_bound_of_its_bucket(share, ms):
    """A bucket that holds exactly the share is enough; one event more lies in the next."""
    assert quantile_ms([(1_000_000, 90), (4_000_000, 9), (8_000_000, 1)], share) == ms


def test_nothing_counted_has_no_quantile():
    assert quantile_ms([], 0.5) is None
    assert quantiles_ms([], "ms", ["p99"]) == {"ms_p99": None}


def test_events_are_counted_by_metric_of_one_workload():
    """Events of another workload, and metrics without any, are left out."""
    ask = asking(
        [sample(1, 3), sample(2, 1), sample(1, 9, workload="other"), sample(1, 0, metric="write")]
    )
    assert counted_of(ask, "mix") == {"read": Counted(4, 8e6, 5_000_000)}
    assert (counted_of(ask, "mix")["read"].ms_mean, counted_of(ask, "mix")["read"].ms_max) == (
        2.0,
        5.0,
    )


def test_a_distribution_is_that_of_the_phases_asked_for():
    rows = [
        ("measure", "mix", "read", 10, 1),
        ("again", "mix", "read", 10, 2),
        ("ramp up", "mix", "read", 10, 4),
    ]
    ask = asking(
        bucket=[*rows, ("measure", "mix", "read", 20, 0), ("measure", "other", "read", 30, 1)]
    )
    assert buckets_of(ask, "mix", "read", ["measure", "again"]) == [(10, 3)]


def test_a_short_last_window_is_none_and_windows_begin_with_each_phase():
    """A rest of a window holds fewer events than a whole one, and would be quoted as the lowest
    rate.
    """
    first = [sample(end, 10) for end in range(1, 8)]
    second = [sample(end, 20, phase="again") for end in range(8, 11)]
    ask = asking([*first, *second, sample(9, 99, phase="again", metric="write")])
    assert window_rates(ask, "mix", ["read"], 3) == [20.0, 10.0, 10.0]
    assert window_rates(ask, "mix", ["read", "write"], 3, per_s=60) == [60 * 53.0, 600.0, 600.0]
    assert window_rates(ask, "mix", ["read"], 8) == []


def test_a_window_in_which_nothing_was_done_counts_as_zero():
    """Leaving out the seconds of a stall would hide it."""
    ask = asking([sample(1, 5), sample(2, 7, metric="write"), sample(3, 5)])
    assert window_rates(ask, "mix", ["read"], 1) == [5.0, 0.0, 5.0]
