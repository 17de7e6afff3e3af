"""What figures of every workload family ask of samples and distributions.

Percentiles, sums by metric, rates of whole windows.

Percentiles come from distributions, which every run keeps with the same bounds; never from samples.
The tables that are asked are `measured` (samples of the measured phases) and `bucket`
(distributions); `Measurements` makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.files.parquet import Query
from plimsoll.units import NS_PER_MS, NS_PER_S

#: Names of percentiles in documents, and the share of events that are no longer than each.
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
#: A last window this much shorter than the others is none.
WINDOW_SHARE_MIN = 0.98

#: A distribution: upper bound in ns and count of each bucket, in ascending order.
Buckets = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Counted:
    """All events of one metric: how many, how long in sum, and the longest."""

    count: int
    total_ns: float
    max_ns: int

    @property
    def ms_mean(self) -> float:
        """The mean length in ms."""
        return self.total_ns / self.count / NS_PER_MS

    @property
    def ms_max(self) -> float:
        """The longest in ms."""
        return self.max_ns / NS_PER_MS


def quantile_ms(buckets: Buckets, share: float) -> float | None:
    """The upper bound, in ms, of the bucket in which a quantile lies.

    None where nothing was counted.

    >>> quantile_ms([(1_000_000, 98), (4_000_000, 2)], 0.99)
    4.0
    """
    total = sum(count for _, count in buckets)
    reached = 0
    for upper_ns, count in buckets:
        reached += count
        if reached >= share * total:
            return upper_ns / NS_PER_MS
    return None


def quantiles_ms(
    buckets: Buckets, prefix: str, names: Sequence[str] = tuple(QUANTILES)
) -> dict[str, float | None]:
    """Percentiles in ms under the names that documents have for them.

    >>> quantiles_ms([(2_000_000, 1)], "ms", ["p50", "p99"])
    {'ms_p50': 2.0, 'ms_p99': 2.0}
    """
    return {f"{prefix}_{name}": quantile_ms(buckets, QUANTILES[name]) for name in names}


def counted_of(ask: Query, workload: str) -> dict[str, Counted]:
    """What a workload counted in the measured phases, by metric.

    A metric without events is left out.
    """
    rows = ask(
        "SELECT metric, sum(count)::BIGINT AS count, sum(latency_ns_sum)::DOUBLE AS total_ns,"
        " max(latency_ns_max)::BIGINT AS max_ns FROM measured WHERE workload = $workload GROUP BY "
        "metric HAVING sum(count) > 0",
        {"workload": workload},
    )
    return {row["metric"]: Counted(row["count"], row["total_ns"], row["max_ns"]) for row in rows}


def buckets_of(
    ask: Query, workload: str, metric: str, phases: Sequence[str]
) -> list[tuple[int, int]]:
    """The distribution of a metric of a workload over some phases."""
    rows = ask(
        "SELECT upper_ns::BIGINT AS upper_ns, sum(count)::BIGINT AS count FROM bucket"
        " WHERE workload = $workload AND metric = $metric"
        " AND list_contains($phases, phase) AND count > 0 GROUP BY upper_ns ORDER BY upper_ns",
        {"workload": workload, "metric": metric, "phases": list(phases)},
    )
    return [(row["upper_ns"], row["count"]) for row in rows]


@dataclass(frozen=True)
class WindowCount:
    """How many events a window of the measured time held.

    Attributes:
        phase: the measured phase it lies in.
        start_s, end_s: from when to when, in seconds on the clock of the run.
        seconds: how long its samples lasted.
        count: how many events there were.
    """

    phase: str
    start_s: float
    end_s: float
    seconds: float
    count: int


def window_counts(
    ask: Query,
    metrics: Sequence[str],
    width_s: float,
    *,
    workload: str | None = None,
    instances: Sequence[str] | None = None,
) -> list[WindowCount]:
    """Events of some metrics in each whole window of the measured phases, one after the other.

    A sample belongs to the window that its middle lies in: a phase may begin within one.

    Args:
        ask: asks the samples.
        metrics: whose events are counted together.
        width_s: the width of a window in seconds; windows begin anew with each phase.
        workload: of which workload they are.
        instances: on which instances, where no workload is named.
    """
    width_ns = int(width_s * NS_PER_S)
    values: dict[str, object] = {
        "metrics": list(metrics),
        "width": width_ns,
        "share": WINDOW_SHARE_MIN,
    }
    if workload is None:
        whose, values["instances"] = "list_contains($instances, instance)", list(instances or ())
    else:
        whose, values["workload"] = "workload = $workload", workload
    rows = ask(
        "WITH each AS (SELECT phase, end_ns::BIGINT AS end_ns, max(interval_ns)::BIGINT AS "
        "interval_ns,"
        f" (sum(count) FILTER (WHERE {whose} AND list_contains($metrics, metric)))::BIGINT AS "
        "count"
        " FROM measured GROUP BY phase, end_ns),"
        " numbered AS (SELECT phase, count, interval_ns, end_ns,"
        " (sum(interval_ns) OVER (PARTITION BY phase ORDER BY end_ns) - interval_ns // 2 - 1)"
        " // $width AS window_number,"
        " sum(interval_ns) OVER (PARTITION BY phase) / $width AS windows FROM each)"
        " SELECT phase, coalesce(sum(count), 0)::BIGINT AS count, sum(interval_ns)::BIGINT AS ns,"
        " min(end_ns - interval_ns)::BIGINT AS start_ns, max(end_ns)::BIGINT AS end_ns FROM "
        "numbered WHERE window_number + $share <= windows"
        " GROUP BY phase, window_number ORDER BY phase, window_number",
        values,
    )
    return [
        WindowCount(
            phase=row["phase"],
            start_s=row["start_ns"] / NS_PER_S,
            end_s=row["end_ns"] / NS_PER_S,
            seconds=row["ns"] / NS_PER_S,
            count=row["count"],
        )
        for row in rows
    ]


def window_rates(
    ask: Query, workload: str, metrics: Sequence[str], width_s: float, per_s: float = 1.0
) -> list[float]:
    """Events of some metrics of a workload per `per_s` seconds in each whole window.

    The other arguments are those of `window_counts`; 60 is the unit of a rate per minute.
    """
    return [
        per_s * window.count / window.seconds
        for window in window_counts(ask, metrics, width_s, workload=workload)
    ]
