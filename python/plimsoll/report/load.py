"""How hard the run pressed.

What another tool needs to do the same, how arrivals did, and the rates a search tried.

The knee chart shows where latency turns upwards: each rate that was tried, its p99, and whether it
kept the limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plimsoll.documents.outcome import SearchResult, SearchStep
from plimsoll.documents.summary import Summary, WorkloadFigures
from plimsoll.pages.kit import Chart, Point
from plimsoll.pages.tables import Table, shown
from plimsoll.pages.vega import (
    Spec,
    colour,
    finished,
    latency_axis,
    layer,
    layered,
    nominal,
    quantitative,
)
from plimsoll.plan.load import described

KINDS = {
    "database_read_ms": "database reads",
    "log_write_ms": "log writes",
    "response_ms": "response of transactions",
}


def load_tables(summary: Summary) -> list[Table]:
    """The load as figures, and every search that looked for one."""
    load = summary.load
    rows: list[list[Any]] = [
        [f"{name.replace('_', ' ').capitalize()}s outstanding, mean", value]
        for name, value in load.outstanding_mean.given().items()
    ]
    note = (
        "Rate times latency. For fio: an iodepth of the database reads and writes together, beside "
        "one synchronous log job."
    )
    found = [Table("Outstanding I/O", [], rows, note)]
    arriving = [
        workload
        for workload in load.workloads
        if workload.arrival_lag and workload.arrival_lag.count
    ]
    if arriving:
        found.append(_arrivals(arriving))
    found += [_stages(workload) for workload in load.workloads if workload.stages]
    return found + windows_table(summary) if len(load.workloads) == 1 else found


def windows_table(summary: Summary) -> list[Table]:
    """What loads made in the windows of the measured time, and what they had to; none without."""
    rows: list[list[Any]] = [
        [
            item.workload,
            item.unit,
            item.least,
            item.most,
            item.over_s,
            item.min,
            item.mean,
            item.max,
            f"{item.outside_count} of {item.count}",
            item.left_out_count,
        ]
        for item in summary.load_windows
    ]
    headings = [
        *("Load", "Unit", "From", "To", "Over s", "Least", "Mean", "Most", "Outside"),
        "Left out for events",
    ]
    note = (
        "A load that is outside of its window was not as planned: the result is then inconclusive. "
        "Windows in which an event changed the load are left out. "
        "`plimsoll explain load_window`"
    )
    return [Table("Windows of the loads", headings, rows, note)] if rows else []


def _stages(workload: WorkloadFigures) -> Table:
    """What arrived in each stage, and what came of it."""
    headings = [
        "Stage",
        "Of the rate",
        "From s",
        "Due/s",
        "Completed/s",
        "Response ms",
        "Database IOPS",
        "Database read ms",
        "Log write ms",
    ]
    rows: list[list[Any]] = [
        [
            stage.stage,
            f"{stage.rate_percent:g} %",
            stage.start_s,
            stage.offered_per_s,
            stage.completed_per_s,
            stage.response_ms_mean,
            stage.database_iops,
            stage.database_read_ms_mean,
            stage.log_write_ms_mean,
        ]
        for stage in workload.stages
    ]
    return Table(
        f"Stages of {workload.name}",
        headings,
        rows,
        "Means over the samples that lie in a stage whole. What is due in one stage and completes "
        "in the next counts where it completes.",
    )


def _arrivals(workloads: Sequence[WorkloadFigures]) -> Table:
    rows: list[list[Any]] = [
        [
            workload.name,
            described(workload.load),
            workload.transactions_per_s,
            workload.response.ms_mean,
            workload.response.ms_p99,
            workload.arrival_lag.ms_p99 if workload.arrival_lag else None,
            workload.pool_wait.count if workload.pool_wait else None,
        ]
        for workload in workloads
    ]
    headings = [
        "Workload",
        "Load",
        "Transactions/s",
        "Response mean ms",
        "Response p99 ms",
        "Generator late p99 ms",
        "Waited for a session",
    ]
    return Table(
        "Arrivals",
        headings,
        rows,
        "Response times run from the moment at which a transaction was due.",
    )


def search_tables(searches: Sequence[SearchResult]) -> list[Table]:
    """What each search found."""
    rows: list[list[Any]] = [
        [
            search.workload,
            search.passed_per_s,
            search.passed_iops,
            search.failed_per_s,
            (search.limited_by or "–").replace("_", " "),
            len(search.steps),
        ]
        for search in searches
    ]
    headings = [
        "Workload",
        "Highest that passed (transactions/s)",
        "Its database IOPS",
        "Lowest that failed (transactions/s)",
        "First limit",
        "Levels tried",
    ]
    title = "Search for the highest rate"
    if any(search.search == "max_sessions" for search in searches):
        title = "Search for the highest load"
        headings[1:1] = ["Most sessions that passed", "Fewest that failed"]
        for row, search in zip(rows, searches, strict=True):
            row[1:1] = [search.passed_sessions, search.failed_sessions]
    return [Table(title, headings, rows)] if rows else []


def knee_charts(searches: Sequence[SearchResult]) -> list[Chart]:
    """Latency over rate for each search."""
    return [_knee(search, number) for number, search in enumerate(searches, 1) if search.steps]


def _knee(search: SearchResult, number: int) -> Chart:
    steps = sorted(search.steps, key=lambda step: step.transactions_per_s)
    data: list[Point] = [
        {"x": step.transactions_per_s, "v": getattr(step, key).p99, "w": kind, "d": step.decision}
        for step in steps
        for key, kind in KINDS.items()
        if getattr(step, key).p99 > 0
    ]
    channels: Spec = {
        "x": quantitative(
            "x", title="transactions per second", scale={"zero": False, "padding": 12}
        ),
        "y": quantitative("v", title="p99, ms", **latency_axis([point["v"] for point in data])),
        "color": colour(list(KINDS.values())),
    }
    decisions = {
        "domain": ["passed", "failed", "unsure"],
        "range": ["circle", "cross", "diamond"],
    }
    marks = layer(
        {"type": "point", "filled": True, "size": 70, "opacity": 1},
        **channels,
        shape=nominal("d", title=None, scale=decisions),
        tooltip=[
            nominal("w", title="what"),
            quantitative("x", format=".4~g", title="per s"),
            quantitative("v", format=".3~g", title="p99 ms"),
            nominal("d", title="rate"),
        ],
    )
    title = f"Latency over rate, {search.workload}"
    passed = search.passed_per_s
    words = [f"{shown(passed)} transactions per second passed" if passed else "nothing passed"]
    if passed and search.passed_sessions is not None:
        words = [f"{search.passed_sessions} sessions passed with {shown(passed)} transactions/s"]
    if search.limited_by:
        words.append(f"first limit above it: {search.limited_by.replace('_', ' ')}")
    chart = layered(data, layer({"type": "line", "strokeWidth": 1.2}, **channels), marks)
    description = ". ".join([title, *words])
    return Chart(
        f"knee-{number}",
        title,
        description,
        finished(chart, title, words, description),
        _steps(title, steps),
    )


def _steps(title: str, steps: Sequence[SearchStep]) -> Table:
    of_sessions = any(step.sessions is not None for step in steps)
    rows: list[list[Any]] = [
        [
            *([step.sessions] if of_sessions else []),
            f"{step.transactions_per_s:.1f}",
            step.decision + (f": {step.limited_by.replace('_', ' ')}" if step.limited_by else ""),
            step.database_iops,
            *(getattr(step, key).mean for key in KINDS),
            *(getattr(step, key).p99 for key in KINDS),
        ]
        for step in steps
    ]
    headings = ["Sessions"] if of_sessions else []
    headings += ["Transactions/s", "Result", "Database IOPS"]
    headings += [f"{kind}, {figure} ms" for figure in ("mean", "p99") for kind in KINDS.values()]
    return Table(f"{title}: values", headings, rows)
