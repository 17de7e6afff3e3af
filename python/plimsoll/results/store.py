"""Figures of workloads on a store.

Orders per minute, their ceiling, steps, rollbacks, and the audits.

Orders per minute are those of the whole measured time, as DVD Store prints them, rolled back orders
included; beside them stands the rate without these, and the rate of each whole window. Percentiles
come from the distributions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll import settings
from plimsoll.documents.document import ABSENT
from plimsoll.documents.event_figures import EventFigures
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import (
    RateLoad,
    SessionsLoad,
    StoreClientInstance,
    StoreInstance,
    StoreWorkload,
)
from plimsoll.documents.summary import (
    StoreAudit,
    StoreFigures,
    StoreRisk,
    StoreStep,
    StoreWindows,
)
from plimsoll.files.parquet import Query
from plimsoll.results.answering import counts_while_answering
from plimsoll.results.audits import audits_of
from plimsoll.results.distributions import (
    Counted,
    buckets_of,
    counted_of,
    quantiles_ms,
    window_rates,
)
from plimsoll.units import NS_PER_S
from plimsoll.workloads.store.fields import STEPS
from plimsoll.workloads.store.rate import HIDDEN_SHARE, ceiling, opm

#: What becomes of orders while their server is gone.
_GONE = ("store_connection_lost", "store_connection_refused", "store_given_up")
PERCENTILES = ("p50", "p95", "p99")


def store_figures(
    plan: Plan,
    ask: Query,
    seconds: Mapping[str, float],
    phases: Sequence[str],
    events: Sequence[EventFigures] = (),
) -> list[StoreFigures]:
    """The figures of every workload on a store.

    The arguments are those of `results.files.files_figures`, and how the loads answered what was
    staged.
    """
    loads = [item for item in plan.run.workloads if isinstance(item, StoreWorkload)]
    return [
        _figures(load, ask, seconds[load.name], phases, events)
        for load in loads
        if seconds[load.name]
    ]


def _figures(
    load: StoreWorkload,
    ask: Query,
    seconds: float,
    phases: Sequence[str],
    events: Sequence[EventFigures],
) -> StoreFigures:
    counted = counted_of(ask, load.name)

    def count(metric: str) -> int:
        return counted[metric].count if metric in counted else 0

    orders, rolled_back = count("order"), count("store_rolled_back")
    response_s = counted["order"].total_ns / orders / NS_PER_S if orders else None
    sessions = load.load.sessions if isinstance(load.load, SessionsLoad) else None
    most = (
        ceiling(sessions, load.think_s, response_s) if sessions and response_s is not None else None
    )
    without_storage = ceiling(sessions, load.think_s, 0.0) if sessions else None
    rate = 60 * orders / seconds
    names = {"order": "order", **STEPS}
    gone = counts_while_answering(load.name, _GONE, ask, events)
    lost = gone["store_connection_lost"]
    return StoreFigures(
        workload=load.name,
        orders_count=orders,
        due_count=_due(load, seconds) or ABSENT,
        rolled_back_count=rolled_back,
        retries_count=count("store_retry"),
        given_up_count=count("store_given_up"),
        connections_lost_count=count("store_connection_lost"),
        connections_refused_count=count("store_connection_refused"),
        no_space_count=count("store_no_space"),
        answers_lost_count=lost or ABSENT,
        answers_refused_count=gone.total() - lost or ABSENT,
        opm=opm(orders, seconds),
        opm_clean=60 * (orders - rolled_back) / seconds,
        rollback_percent=100 * rolled_back / orders if orders else None,
        sessions=sessions,
        think_s=load.think_s,
        ceiling_opm=most,
        think_bound_opm=without_storage,
        is_think_bound=rate > HIDDEN_SHARE * without_storage if without_storage else False,
        windows=_windows(load.name, ask),
        steps=[
            _step(name, title, counted[name], load.name, ask, phases)
            for name, title in names.items()
            if name in counted
        ],
    )


def _due(load: StoreWorkload, seconds: float) -> int | None:
    """Orders that were due by one rate; None of sessions and stages."""
    if not isinstance(load.load, RateLoad) or load.load.stages:
        return None
    return round(load.load.transactions_per_s * seconds)


def _step(
    metric: str, title: str, row: Counted, workload: str, ask: Query, phases: Sequence[str]
) -> StoreStep:
    return StoreStep(
        step=title,
        count=row.count,
        ms_mean=row.ms_mean,
        **quantiles_ms(buckets_of(ask, workload, metric, phases), "ms", PERCENTILES),
        ms_max=row.ms_max,
    )


def _windows(workload: str, ask: Query) -> StoreWindows | None:
    """Orders per minute in every whole window; None where there is no whole window."""
    whole = window_rates(ask, workload, ["order"], settings.STORE["window_s"], per_s=60)
    if not whole:
        return None
    return StoreWindows(
        count=len(whole),
        opm_min=min(whole),
        opm_mean=sum(whole) / len(whole),
        opm_max=max(whole),
        opm_last=whole[-1],
    )


def store_audits(plan: Plan, outcome: Outcome) -> list[StoreAudit]:
    """What the audits of a run found, under the names of the instances."""
    return audits_of(plan, outcome, (StoreInstance, StoreClientInstance), StoreAudit)


def stores_at_risk(plan: Plan, outcome: Outcome) -> list[StoreRisk]:
    """Stores that can lose what they acknowledged, with every setting that any phase saw."""
    found: dict[str, dict[str, None]] = {}
    for phase in outcome.phases:
        for instance, databases in zip(plan.run.instances, phase.databases, strict=False):
            for database in databases:
                if database.commits_at_risk:
                    found.setdefault(instance.name, {}).update(
                        dict.fromkeys(database.commits_at_risk)
                    )
    return [StoreRisk(instance=name, settings=list(said)) for name, said in found.items()]


def in_words(figures: Sequence[StoreFigures], audits: Sequence[StoreAudit]) -> list[str]:
    """Lines for the printed result."""
    lines = []
    for item in figures:
        order = next((step for step in item.steps if step.step == "order"), None)
        took = (
            f"; an order took {order.ms_mean:.2f} ms, p95 {order.ms_p95:.2f} ms"
            if order and order.ms_p95
            else ""
        )
        back = (
            f", {item.rollback_percent:.1f} % rolled back"
            if item.rollback_percent is not None
            else ""
        )
        lines.append(f"{item.workload}: {item.opm:,} orders per minute{back}{took}")
        if item.ceiling_opm and item.sessions and item.think_s:
            lines.append(
                f"{item.workload}: {100 * item.opm / item.ceiling_opm:.1f} % of the "
                f"{item.ceiling_opm:,.0f} that "
                f"{item.sessions} sessions can make which think {item.think_s:g} s"
                + ("; think time is the bound, it hides the storage" if item.is_think_bound else "")
            )
    for audit in audits:
        orders, units = audit.counts.get("orders", 0), audit.counts.get("units_sold", 0)
        lines.append(
            f"audit of {audit.instance}: {'; '.join(audit.findings)}"
            if audit.findings
            else f"audit of {audit.instance}: {orders:,} orders and {units:,} units sold, as they "
            f"must be"
        )
    return lines
