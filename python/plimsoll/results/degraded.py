"""Latencies of the storage while an event lasts, for the limits that hold meanwhile.

The time is that between recovery and undo: paths and caches have settled, and what is left is what
the degraded storage gives. A load that was not back before the undo leaves no such time; then it
counts from when the event was applied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll import settings
from plimsoll.documents.event_figures import DegradedFigures, LoadResponse
from plimsoll.documents.staged_events import StagedEvent
from plimsoll.files.parquet import Query
from plimsoll.results.event_pauses import GAPS_MIN
from plimsoll.results.places import name_of
from plimsoll.units import NS_PER_MS, NS_PER_S

#: What limits name of a storage; log writes are counted beside all databases of an instance.
METRICS = ("database_read", "log_write")


def degraded_span(
    event: StagedEvent, loads: Sequence[LoadResponse], end_s: float
) -> tuple[float, float] | None:
    """From when to when the limits of a degraded storage hold, in seconds on the run's clock.

    Args:
        event: what was done, and when.
        loads: how each load answered.
        end_s: when the phase of the event ended.
    """
    if event.begun_s is None:
        return None
    until_s = end_s if event.undo_begun_s is None else min(event.undo_begun_s, end_s)
    back = [load.recovered_s for load in loads if load.detected_s is not None]
    times = [event.begun_s + again for again in back if again is not None]
    applied_s = event.begun_s if event.applied_s is None else event.applied_s
    are_back = len(times) == len(back) and all(moment < until_s for moment in times)
    from_s = max([applied_s, *times]) if are_back else applied_s
    return (from_s, until_s) if from_s < until_s else None


def degraded_figures(
    span: tuple[float, float],
    before: tuple[float, float],
    ask: Query,
    names: Mapping[tuple[str, int], str],
) -> list[DegradedFigures]:
    """The latencies of every database and log within a time, from samples that lie in it whole.

    Args:
        span: from when to when, in seconds on the run's clock.
        before: the time before the event, likewise: what answered then is missed where it does
            not answer within the span.
        ask: asks the table `sample`.
        names: what databases are called, by instance and number; 0 stands for its log.
    """
    begin_ns, end_ns = (round(moment * NS_PER_S) for moment in span)
    interval_ns = settings.limits()["sample_interval_s"] * NS_PER_S
    # A rest shorter than half an interval belongs to the one before it.
    last = max((2 * (end_ns - begin_ns) + interval_ns) // (2 * interval_ns) - 1, 0)
    rows = ask(
        "SELECT instance, database, metric, sum(count)::BIGINT AS count,"
        " sum(ns) / sum(count) AS mean_ns, max(ns / count) AS worst_ns FROM"
        " (SELECT instance, database, metric, sum(count) AS count,"
        " sum(latency_ns_sum)::DOUBLE AS ns FROM sample"
        " WHERE list_contains($metrics, metric) AND end_ns <= $end"
        " AND end_ns::BIGINT - interval_ns::BIGINT >= $begin AND count > 0"
        " GROUP BY instance, database, metric,"
        " least((end_ns::BIGINT - $begin - 1) // $interval, $last))"
        " GROUP BY instance, database, metric ORDER BY instance, database, metric",
        {
            "metrics": list(METRICS),
            "begin": begin_ns,
            "end": end_ns,
            "interval": interval_ns,
            "last": last,
        },
    )
    answered = [
        DegradedFigures(
            scope=name_of(row, names),
            metric=row["metric"],
            count=row["count"],
            latency_ms_mean=row["mean_ns"] / NS_PER_MS,
            latency_ms_sample_mean_max=row["worst_ns"] / NS_PER_MS,
        )
        for row in rows
    ]
    known = {(row["instance"], row["database"], row["metric"]) for row in rows}
    missing = [
        DegradedFigures(
            scope=name_of(row, names),
            metric=row["metric"],
            count=0,
            latency_ms_mean=None,
            latency_ms_sample_mean_max=None,
        )
        for row in ask(
            "SELECT instance, database, metric FROM sample"
            " WHERE list_contains($metrics, metric) AND end_ns > $begin AND end_ns <= $end"
            " GROUP BY instance, database, metric HAVING sum(count) * $lasts > $chance"
            " ORDER BY instance, database, metric",
            {
                "metrics": list(METRICS),
                "begin": round(before[0] * NS_PER_S),
                "end": round(before[1] * NS_PER_S),
                "lasts": (span[1] - span[0]) / max(before[1] - before[0], span[1] - span[0]),
                "chance": GAPS_MIN,
            },
        )
        if (row["instance"], row["database"], row["metric"]) not in known
    ]
    return [*answered, *missing]
