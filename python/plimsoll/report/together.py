"""The section "Together": all loads of a run on one time axis, the events that were staged, and how
each load answered them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from plimsoll.documents.endpoint_figures import DistributionFigures
from plimsoll.documents.event_figures import EventFigures, LoadResponse
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.pages.kit import Chart
from plimsoll.pages.tables import Table
from plimsoll.pages.vega import PLACES_MAX
from plimsoll.report.load import windows_table
from plimsoll.report.load_charts import load_chart
from plimsoll.report.published_cells import (
    contradictions_table,
    per_user_table,
    published_table,
)
from plimsoll.results.events import RECOVERED_S, RECOVERED_SHARE
from plimsoll.results.measurements import Measurements
from plimsoll.results.servers import summary_in_words
from plimsoll.units import NS_PER_S

MIB = 1 << 20
#: Of more events than these the answers are opened on demand.
SHOWN_MAX = 6
KINDS = {
    "command": "command",
    "manual": "by hand",
    "action": "ready action",
    "modelled": "modelled",
    "node": "node of the plan",
}


def together_tables(plan: Plan, summary: Summary) -> list[Table]:
    """What the loads did beside each other, and every event.

    None where one load ran and nothing happened.
    """
    found = []
    if len(plan.run.workloads) > 1:
        found.append(_loads(summary))
        found += [table for table in (per_user_table(plan, summary),) if table is not None]
        found += windows_table(summary)
    published = (published_table(plan, summary), contradictions_table(plan))
    found += [table for table in published if table is not None]
    if summary.servers:
        found.append(_servers(summary))
    found += [_endpoints(item) for item in summary.endpoints]
    if summary.events:
        found += [
            _events(summary.events),
            *(_failovers(event) for event in summary.events if event.failovers),
            *(
                _responses(event, number, folded=len(summary.events) > SHOWN_MAX)
                for number, event in enumerate(summary.events, 1)
                if event.loads
            ),
        ]
    return found


def together_charts(
    plan: Plan, summary: Summary, outcome: Outcome, measured: Measurements
) -> list[Chart]:
    """The rate of every load over the time in which it ran, with the events of the run."""
    if len(plan.run.workloads) < 2 and not summary.events:
        return []
    rates = measured.load_rates(plan)
    return [
        chart
        for number, load in enumerate(rates[:PLACES_MAX], 1)
        if (
            chart := load_chart(load, number, summary.events, _busy_s(plan, outcome, load.workload))
        )
        is not None
    ]


def _busy_s(plan: Plan, outcome: Outcome, workload: str) -> list[tuple[float, float]]:
    """From when to when a load ran, in seconds on the clock of the run."""
    running = {phase.name: phase.workloads for phase in plan.run.phases}
    return [
        (phase.start_ns / NS_PER_S, phase.end_ns / NS_PER_S)
        for phase in outcome.phases
        if workload in running.get(phase.name, ())
    ]


def _loads(summary: Summary) -> Table:
    rows: list[list[Any]] = [
        [
            load.name,
            load.transactions_per_s,
            load.response.ms_mean,
            load.response.ms_p99,
            _to_the_microsecond(load.arrival_lag.ms_p99 if load.arrival_lag else None),
        ]
        for load in summary.load.workloads
    ]
    headings = ["Load", "Operations per second", "Mean ms", "p99 ms", "Generator late p99 ms"]
    note = (
        "All over the same time, from when the last of them had started. An operation is a "
        "transaction, an order or an I/O of files. Loads of sessions have no arrivals that could "
        "be late."
    )
    return Table("Loads next to each other", headings, rows, note)


def _to_the_microsecond(late_ms: float | None) -> float | None:
    """What is less is the resolution of the clock."""
    return None if late_ms is None else round(late_ms, 3)


def _servers(summary: Summary) -> Table:
    rows: list[list[Any]] = [
        [
            server.name,
            server.busy_mean,
            server.busy_max,
            server.share_percent,
            None if server.resident_bytes_mean is None else server.resident_bytes_mean / MIB,
            None if server.resident_bytes_max is None else server.resident_bytes_max / MIB,
            server.processes_max,
            server.problem,
        ]
        for server in summary.servers
    ]
    headings = [
        "Server",
        "Processors kept busy, mean",
        "Most",
        "% of all",
        "Memory, MiB, mean",
        "Most, MiB",
        "Processes",
        "Problem",
    ]
    out = summary_in_words(summary) or ["No server was out of processors or memory"]
    note = f"{'; '.join(out)}. Memory that processes share counts in each of them."
    return Table("Servers and the run itself", headings, rows, note)


def _endpoints(figures: DistributionFigures) -> Table:
    rows: list[list[Any]] = [
        [
            item.endpoint,
            item.clients,
            item.sessions,
            item.sessions_max,
            item.connections,
            item.refused,
            item.moved,
            item.operations,
            None if item.share is None else 100 * item.share,
            item.ms_mean,
            item.ms_p95,
            item.ms_max,
        ]
        for item in figures.endpoints
    ]
    headings = [
        *("Endpoint", "Clients planned", "Sessions at the end", "Most", "Connections", "Refused"),
        *("Moved here", "Operations", "%", "Mean ms", "p95 ms", "Longest ms"),
    ]
    count = figures.addresses
    addresses = "one address" if count == 1 else f"{count} addresses"
    come = "" if count is None else f", clients of {addresses}"
    note = (
        f"Policy: {figures.policy}{come}. Refused are attempts at connecting that came to nothing; "
        f"moved are clients that were at another endpoint before."
    )
    return Table(f"Endpoints: {figures.workload} on {figures.instance}", headings, rows, note)


def _events(events: Sequence[EventFigures]) -> Table:
    any_held = any(event.held_s is not None for event in events)
    rows: list[list[Any]] = [
        [
            event.name,
            number,
            KINDS[event.kind],
            event.begun_s,
            event.undone_s,
            {True: "yes", False: "no", None: "not asked"}[event.is_proved],
            event.io_errors,
            *([event.held_s] if any_held else []),
            event.problem,
        ]
        for number, event in enumerate(events, 1)
    ]
    headings = [
        *("Event", "Number", "Kind", "Began, s", "Undone, s", "Proved", "I/O errors"),
        *(["Writes held, s"] if any_held else []),
        "Problem",
    ]
    note = f"Seconds since the run began, on the axis of samples and charts.{_shared(events)}"
    return Table("Events", headings, rows, note, decimals=(1,))


def _shared(events: Sequence[EventFigures]) -> str:
    """Which events lasted at the same time, in a sentence, where any did."""
    lasting = [
        (number, event.begun_s, math.inf if event.undone_s is None else event.undone_s)
        for number, event in enumerate(events, 1)
        if event.begun_s is not None
    ]
    told = []
    for number, begun_s, undone_s in lasting:
        others = [
            str(other)
            for other, begins_s, ends_s in lasting
            if other != number and begins_s < undone_s and begun_s < ends_s
        ]
        if others:
            more = f" and {len(others) - SHOWN_MAX} more" if len(others) > SHOWN_MAX else ""
            told.append(f"{number} with {', '.join(others[:SHOWN_MAX])}{more}")
    if not told:
        return ""
    kept = [*told[:SHOWN_MAX], *(["and so on"] if len(told) > SHOWN_MAX else [])]
    return f" What was seen while several lasted is of all of them: {'; '.join(kept)}."


def _failovers(event: EventFigures) -> Table:
    rows: list[list[Any]] = [
        [
            item.instance,
            item.node,
            item.to,
            item.served_s,
            item.opened_s,
            item.log_mib,
            item.lost_count,
            item.cache_mib_max,
        ]
        for item in event.failovers
    ]
    headings = [
        "Instance",
        "Died",
        "Survivor",
        "Failover, s",
        "Open after, s",
        "Log replayed, MiB",
        "Operations lost",
        "Cache there, MiB",
    ]
    note = (
        "Failover: from the death to the first operation that was served again. Operations lost "
        f"were being carried out at that moment. {'; '.join(event.fit)}."
    )
    return Table(f"What came back after {event.name}", headings, rows, note)


def _responses(event: EventFigures, number: int, *, folded: bool) -> Table:
    rows: list[list[Any]] = [_response(load) for load in event.loads]
    headings = [
        "Load",
        "Before, per s",
        "Seen after, s",
        "Pause, s",
        "Lowest, per s",
        "Dip %",
        "Back after, s",
        "From seen to undone, per s",
        "Change %",
        "Highest after, per s",
        "Mean before, ms",
        "Mean while it lasted, ms",
        "Generator late, s",
    ]
    unseen = ", ".join(
        f"{load.workload} below {load.unseen_percent:.3g} %"
        if load.unseen_percent < 100
        else f"{load.workload} any, its samples hold too few operations"
        for load in event.loads
        if load.detected_s is None and load.unseen_percent is not None
    )
    chance = f"Falls that are not told from chance: {unseen}. " if unseen else ""
    came = (
        "Failover ends with the first operation that is served again, and back is when the rate "
        "is, known to a sample. "
        if event.failovers
        else ""
    )
    note = (
        "Not seen: the rate stayed within what it does by chance, so that the lowest rate is no "
        "dip. "
        f"Back: from then on the rate over {RECOVERED_S:g} s is at least {100 * RECOVERED_SHARE:g} "
        "% of what it was before. "
        "What the load generator's own delays can have made is left out. "
        "A rise is no success: a degraded storage may be faster for a while; look for what else "
        "changed."
        if number == 1
        else "The words of the table are those of event 1."
    )
    title = f"Event {number}, {event.name}: answers of the loads"
    note = f"{came}{chance}{note}"
    return Table(title, headings, rows, note, folded=folded)


def _response(load: LoadResponse) -> list[Any]:
    return [
        load.workload,
        load.baseline_per_s,
        "not seen" if load.detected_s is None else load.detected_s,
        load.pause_s,
        load.least_per_s,
        load.dip_percent,
        load.recovered_s,
        load.degraded_per_s,
        load.degraded_change_percent,
        load.surge_per_s,
        load.before_ms_mean,
        load.lasting_ms_mean,
        load.generator_late_s,
    ]
