"""Latencies of the measured time in which no event lasted, for the limits of the whole run.

An event lasts from its begin until every load is back and it is undone; what happens then is judged
by its own limits. Without events there is nothing to leave out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll import settings
from plimsoll.documents.event_figures import EventFigures, QuietFigures, Undisturbed
from plimsoll.documents.outcome import PhaseOutcome
from plimsoll.files.parquet import Query
from plimsoll.results.degraded import METRICS
from plimsoll.results.events import answered_span
from plimsoll.results.places import name_of
from plimsoll.results.sustained import Beat
from plimsoll.units import NS_PER_MS, NS_PER_S


def undisturbed(
    events: Sequence[EventFigures],
    phases: Sequence[PhaseOutcome],
    ask: Query,
    names: Mapping[tuple[str, int], str],
) -> Undisturbed | None:
    """What was read and written while no event lasted; None where none lasted meanwhile.

    Args:
        events: how the loads answered what was staged.
        phases: the measured phases.
        ask: asks the table `measured`.
        names: what databases are called, by instance and number; 0 stands for its log.
    """
    spans = _spans(events, phases)
    if not spans:
        return None
    lasting = " OR ".join(
        f"(end_ns > {round(begin_s * NS_PER_S)}"
        f" AND end_ns::BIGINT - interval_ns::BIGINT < {round(end_s * NS_PER_S)})"
        for begin_s, end_s in spans.values()
    )
    times = ask(
        f"SELECT coalesce(sum(length) FILTER (WHERE {lasting}), 0)::DOUBLE AS lasted,"
        " coalesce(sum(length), 0)::DOUBLE AS whole FROM (SELECT end_ns, max(interval_ns)::BIGINT"
        " AS interval_ns, max(interval_ns)::BIGINT AS length FROM measured GROUP BY end_ns)",
        {},
    )[0]
    if not times["lasted"]:
        return None
    rows = ask(
        "WITH each AS (SELECT instance, database, metric, end_ns, max(interval_ns)::DOUBLE AS"
        " length, sum(count)::DOUBLE AS count, sum(latency_ns_sum)::DOUBLE AS ns FROM measured"
        f" WHERE list_contains($metrics, metric) AND count > 0 AND NOT ({lasting})"
        " GROUP BY instance, database, metric, end_ns),"
        " intervals AS (SELECT instance, database, metric, sum(ns) / sum(count) AS mean FROM each"
        " GROUP BY instance, database, metric, (end_ns::BIGINT - 1) // $interval),"
        " worst AS (SELECT instance, database, metric, avg(mean) AS mean, max(mean) AS most"
        " FROM intervals GROUP BY instance, database, metric)"
        " SELECT instance, database, metric, greatest(sum(each.ns) / sum(each.count),"
        " sum(each.ns / each.count * length) / sum(length), any_value(worst.mean)) AS mean_ns,"
        " any_value(worst.most) AS most_ns FROM each JOIN worst USING (instance, database, metric)"
        " GROUP BY instance, database, metric ORDER BY instance, database, metric",
        {"metrics": list(METRICS), "interval": settings.limits()["sample_interval_s"] * NS_PER_S},
    )
    return Undisturbed(
        events=list(spans),
        left_out_s=times["lasted"] / NS_PER_S,
        seconds=(times["whole"] - times["lasted"]) / NS_PER_S,
        figures=[
            QuietFigures(
                scope=name_of(row, names),
                metric=row["metric"],
                latency_ms_mean=row["mean_ns"] / NS_PER_MS,
                latency_ms_sample_mean_max=row["most_ns"] / NS_PER_MS,
            )
            for row in rows
        ],
    )


def beats_outside(
    events: Sequence[EventFigures],
    phases: Sequence[PhaseOutcome],
    measured: Sequence[Sequence[Beat]],
) -> list[list[Beat]]:
    """The samples in which no event lasted, each time between two events by itself."""
    spans = list(_spans(events, phases).values())
    found: list[list[Beat]] = []
    for rows in measured:
        found.append([])
        for row in rows:
            end_s = row.end_ns / NS_PER_S
            if any(begin < end_s and end_s - row.seconds < end for begin, end in spans):
                found.append([])
            else:
                found[-1].append(row)
    return [rows for rows in found if rows]


def _spans(
    events: Sequence[EventFigures], phases: Sequence[PhaseOutcome]
) -> dict[str, tuple[float, float]]:
    """From when to when each event lasted that began in one of the phases, by its name."""
    return {
        event.name: _span(event, phase)
        for event in events
        for phase in phases
        if phase.name == event.phase and event.begun_s is not None
    }


def _span(event: EventFigures, phase: PhaseOutcome) -> tuple[float, float]:
    """From when to when an event lasted, within its phase."""
    assert event.begun_s is not None
    ends = [event.begun_s if event.undone_s is None else event.undone_s]
    ends += [
        span[1] for load in event.loads if (span := answered_span(load.workload, event)) is not None
    ]
    return event.begun_s, min(max(ends), phase.end_ns / NS_PER_S)
