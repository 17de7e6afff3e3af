"""The tables of home folders in the section "Files": what was asked of users, what they did, the
operations beside the published mix, and the audit.
"""

from __future__ import annotations

from typing import Any

from plimsoll.documents.homes import HomesAudit, HomesFigures, HomeStep
from plimsoll.documents.plan import HomesAsked, Plan
from plimsoll.documents.run_spec import HomesInstance, HomesWorkload
from plimsoll.documents.summary import Summary
from plimsoll.pages.tables import Table, mib
from plimsoll.plan.load import described
from plimsoll.workloads.homes.scenarios import home_folders, published_operations

_TIMES = ["Mean ms", "p50 ms", "p95 ms", "p99 ms", "Longest ms"]


def homes_tables(plan: Plan, summary: Summary) -> list[Table]:
    """The tables of every workload on home folders; none where there is none."""
    loads = {item.name: item for item in plan.run.workloads if isinstance(item, HomesWorkload)}
    found = [_storage(plan)] if loads else []
    for figures in summary.homes:
        asked = plan.judgement.homes[figures.workload]
        found += [
            _asked(loads[figures.workload], asked),
            _achieved(figures),
            _scenarios(figures),
            _operations(figures),
        ]
    return [*found, *(_audit(item) for item in summary.homes_audits)]


def _storage(plan: Plan) -> Table:
    rows: list[list[Any]] = [
        [
            item.name,
            item.homes,
            item.homes * item.folders * item.files_per_folder,
            mib(item.databases[0].size_bytes),
        ]
        for item in plan.run.instances
        if isinstance(item, HomesInstance)
    ]
    note = "Every run makes its own homes."
    if plan.run.modelled:
        note += " On a modelled array names take no time: not modelled."
    return Table("Home folders", ["Instance", "Homes", "Files at first", "About"], rows, note)


def _asked(load: HomesWorkload, asked: HomesAsked) -> Table:
    rows: list[list[Any]] = [
        ["Load", described(load.load)],
        ["Users", asked.users],
        ["Scenarios of a user in an hour", asked.scenarios_per_h],
        ["Response time, most that p95 may be, ms", asked.response_ms_p95_max],
        ["Least share of what was planned, %", asked.overload_percent],
    ]
    return Table(f"What was asked for: {load.name}", [], rows)


def _achieved(figures: HomesFigures) -> Table:
    rows: list[list[Any]] = [
        ["Scenarios per second", figures.scenarios_per_s],
        ["Planned", figures.planned_per_s],
        ["Share of what was planned, %", figures.achieved_percent],
        ["Response time, mean ms", figures.response_ms_mean],
        ["Response time, p95 ms", figures.response_ms_p95],
        ["Scenarios that waited for an earlier one of their user", figures.user_waits_count],
    ]
    if figures.users_found is not None:
        what = "Users carried, at least" if figures.users_found_is_least else "Most users"
        rows.append([f"{what}, as the search found", figures.users_found])
    if figures.is_overloaded is not None:
        rows.append(["Too many users", "yes" if figures.is_overloaded else "no"])
    note = "Response times run from the moment a scenario was due, also where its user was busy."
    return Table(f"What was done: {figures.workload}", [], rows, note)


def _row(item: HomeStep) -> list[Any]:
    return [item.ms_mean, item.ms_p50, item.ms_p95, item.ms_p99, item.ms_max]


def _scenarios(figures: HomesFigures) -> Table:
    rows = [[item.step, item.count, 100 * item.share, *_row(item)] for item in figures.scenarios]
    return Table(
        f"Scenarios: {figures.workload}",
        ["Scenario", "Count", "Share %", *_TIMES],
        rows,
        "From the actual start of a scenario.",
    )


def _operations(figures: HomesFigures) -> Table:
    known = home_folders()
    published = {
        name.replace("_", " "): share for name, share in published_operations(known).items()
    }
    counted = sum(item.count for item in figures.operations if item.step in published)
    rows = [
        [
            item.step,
            item.count,
            100 * item.count / counted if counted else None,
            published.get(item.step),
            *_row(item),
        ]
        for item in figures.operations
    ]
    note = (
        f"Shares are of the six published operations. Published: {known.mix_source}; made 100 over "
        "what a mounted client can cause. A step counts as the operation that it is named for."
    )
    return Table(
        f"Operations: {figures.workload}",
        ["Operation", "Count", "Share %", "Published %", *_TIMES],
        rows,
        note,
    )


def _audit(audit: HomesAudit) -> Table:
    rows: list[list[Any]] = [[name.capitalize(), count] for name, count in audit.counts.items()]
    rows += [["Differs", finding] for finding in audit.findings]
    note = "Every name, every length and every byte was held against what the users had made."
    return Table(f"Audit: {audit.instance}", [], rows, note)
