"""Figures of users of home folders.

Scenarios per second against what was planned, response times, the single operations, and the
audits. The response time of a scenario runs from the moment it was due; the times of its kinds
and operations run from their actual start. Users are overloaded where less than 95 % of what was
planned came to an end, or where the 95th percentile of response times is above its limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from plimsoll.documents.homes import HomesAudit, HomesFigures, HomeStep
from plimsoll.documents.outcome import Outcome, SearchEnd
from plimsoll.documents.plan import HomesAsked, Plan
from plimsoll.documents.run_spec import HomesInstance, HomesWorkload, RateLoad, SearchLoad
from plimsoll.files.parquet import Query
from plimsoll.results.distributions import Counted, buckets_of, counted_of, quantiles_ms
from plimsoll.workloads.homes.fields import SECONDS_PER_H

#: Metrics and how they are called; `crates/plimsoll-run/src/homes` counts them.
SCENARIO = "home_scenario"
SCENARIOS = {
    "home_copy_in": "copy in",
    "home_copy_out": "copy out",
    "home_edit": "open, edit, save",
    "home_browse": "browse",
    "home_search": "search by name",
    "home_delete": "delete",
    "home_new_folder": "new folder",
    "home_remove_folder": "remove folder",
}
OPERATIONS = {
    "home_op_create": "create",
    "home_op_close": "close",
    "home_op_read": "read",
    "home_op_write": "write",
    "home_op_query_info": "query info",
    "home_op_query_directory": "query directory",
    "home_op_other": "other",
}
PERCENTILES = ("p50", "p95", "p99")


def homes_figures(
    plan: Plan, ask: Query, seconds: Mapping[str, float], phases: Sequence[str], outcome: Outcome
) -> list[HomesFigures]:
    """The figures of every workload on home folders.

    Args:
        plan: the completed plan.
        ask: asks the tables `measured` (samples of the measured phases) and `bucket`
            (distributions).
        seconds: how long each load was measured, by its name.
        phases: the measured phases.
        outcome: what the run ended with, for the rate that a search found.
    """
    found = {
        phase.search.workload: phase.search for phase in outcome.phases if phase.search is not None
    }
    loads = [item for item in plan.run.workloads if isinstance(item, HomesWorkload)]
    return [
        _figures(load, plan.judgement.homes[load.name], ask, seconds[load.name], phases, found)
        for load in loads
        if seconds[load.name]
    ]


def _figures(
    load: HomesWorkload,
    asked: HomesAsked,
    ask: Query,
    seconds: float,
    phases: Sequence[str],
    found: Mapping[str, SearchEnd],
) -> HomesFigures:
    counted = counted_of(ask, load.name)
    done = counted.get(SCENARIO)
    count = done.count if done else 0
    search = found.get(load.name)
    found_per_s = None if search is None else search.passed_per_s
    planned = _planned(load, found_per_s)
    p95 = quantiles_ms(buckets_of(ask, load.name, SCENARIO, phases), "ms", ("p95",))["ms_p95"]
    achieved = 100 * count / (planned * seconds) if planned else None
    waits = counted.get("home_user_wait")
    return HomesFigures(
        workload=load.name,
        users=asked.users,
        users_found=None
        if found_per_s is None
        else found_per_s * SECONDS_PER_H / asked.scenarios_per_h,
        homes=asked.homes,
        scenarios_count=count,
        scenarios_per_s=count / seconds,
        planned_per_s=planned,
        achieved_percent=achieved,
        response_ms_mean=done.ms_mean if done else None,
        response_ms_p95=p95,
        user_waits_count=waits.count if waits else 0,
        is_overloaded=_is_overloaded(load, asked, planned, seconds, count, p95),
        scenarios=_steps(SCENARIOS, counted, load.name, ask, phases),
        operations=_steps(OPERATIONS, counted, load.name, ask, phases),
        users_found_is_least=search is not None and _is_least(search),
    )


def _is_least(search: SearchEnd) -> bool:
    """Whether the storage may carry more than what a search found."""
    is_narrow = search.end == "narrow" and search.confirmed
    return not is_narrow or search.limited_by in ("generator", "sessions_max")


def _planned(load: HomesWorkload, found_per_s: float | None) -> float | None:
    """Scenarios per second that were to be gone through; None of sessions, which wait."""
    if isinstance(load.load, RateLoad):
        return load.load.transactions_per_s
    if isinstance(load.load, SearchLoad) and found_per_s is not None:
        return found_per_s * (load.load.throughput_percent or 100) / 100
    return None


def _is_overloaded(
    load: HomesWorkload,
    asked: HomesAsked,
    planned: float | None,
    seconds: float,
    count: int,
    p95: float | None,
) -> bool | None:
    """Whether the users were too many; None where no rate was planned or nothing came to an end."""
    if planned is None:
        return None
    if p95 is not None and p95 > asked.response_ms_p95_max:
        return True
    due = planned * seconds
    # Evenly spaced, one may still be under way at either end; by chance, three standard deviations.
    spacing = getattr(load.load, "spacing", "regular")
    leeway = 3 * math.sqrt(due) if spacing == "poisson" else 1.0
    return count + leeway < asked.overload_percent / 100 * due


def _steps(
    names: Mapping[str, str],
    counted: Mapping[str, Counted],
    workload: str,
    ask: Query,
    phases: Sequence[str],
) -> list[HomeStep]:
    total = sum(counted[name].count for name in names if name in counted)
    return [
        HomeStep(
            step=title,
            count=counted[name].count,
            share=counted[name].count / total,
            ms_mean=counted[name].ms_mean,
            **quantiles_ms(buckets_of(ask, workload, name, phases), "ms", PERCENTILES),
            ms_max=counted[name].ms_max,
        )
        for name, title in names.items()
        if name in counted
    ]


def homes_audits(plan: Plan, outcome: Outcome) -> list[HomesAudit]:
    """What the audits of a run found, under the names of the instances."""
    return [
        HomesAudit(
            instance=plan.run.instances[audit.instance].name,
            seconds=audit.seconds,
            counts=audit.counts,
            findings=audit.findings,
        )
        for phase in outcome.phases
        for audit in phase.audits
        if isinstance(plan.run.instances[audit.instance], HomesInstance)
    ]


def in_words(figures: Sequence[HomesFigures], audits: Sequence[HomesAudit]) -> list[str]:
    """Lines for the printed result."""
    lines = []
    for item in figures:
        p95 = "" if item.response_ms_p95 is None else f", p95 {item.response_ms_p95:.2f} ms"
        planned = (
            ""
            if item.planned_per_s is None or item.achieved_percent is None
            else f", {item.achieved_percent:.1f} % of the {item.planned_per_s:.3g} planned"
        )
        overload = "; too many users" if item.is_overloaded else ""
        users = "" if item.users is None else f" of {item.users:,} users"
        lines.append(
            f"{item.workload}: {item.scenarios_per_s:.3g} scenarios per second{users}{planned}"
            f"{p95}{overload}"
        )
        if item.users_found is not None:
            users = f"{math.floor(item.users_found):,} users are"
            said = f"at least {users} carried" if item.users_found_is_least else f"{users} the most"
            lines.append(f"{item.workload}: {said}, in {item.homes:,} homes")
    for audit in audits:
        files, folders = audit.counts.get("files", 0), audit.counts.get("folders", 0)
        lines.append(
            f"audit of {audit.instance}: {'; '.join(audit.findings)}"
            if audit.findings
            else f"audit of {audit.instance}: {files:,} files in {folders:,} folders, as they must "
            f"be"
        )
    return lines
