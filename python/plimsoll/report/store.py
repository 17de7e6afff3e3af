"""The section "Store": orders per minute with their ceiling, the steps of an order, rollbacks and
retries, and the audit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import StoreClientInstance, StoreInstance, StoreWorkload
from plimsoll.documents.summary import StoreAudit, StoreFigures, StoreRisk, Summary
from plimsoll.pages.kit import Chart
from plimsoll.pages.tables import Table
from plimsoll.pages.vega import (
    colour,
    finished,
    layer,
    nominal,
    quantitative,
)
from plimsoll.plan.load import described
from plimsoll.workloads.store.sizes import rows_of
from plimsoll.workloads.store.sizes import shown as size_shown


def store_tables(plan: Plan, summary: Summary) -> list[Table]:
    """The tables of every workload on a store; none where there is none."""
    loads = {item.name: item for item in plan.run.workloads if isinstance(item, StoreWorkload)}
    found = [_stores(plan, summary.stores_at_risk)] if loads else []
    for figures in summary.store:
        found += [_asked(loads[figures.workload]), _achieved(figures), _steps(figures)]
    return [*found, *(_audit(item) for item in summary.store_audits)]


def _stores(plan: Plan, at_risk: Sequence[StoreRisk]) -> Table:
    rows: list[list[Any]] = []
    for item in plan.run.instances:
        if isinstance(item, StoreInstance | StoreClientInstance):
            place = item.place if isinstance(item, StoreClientInstance) else "the engine"
            size = item.databases[0].store_mb
            is_known = isinstance(item, StoreInstance) or item.rows == "seed"
            rows.append(
                [item.name, place, size_shown(size), *rows_of(size).values()]
                if is_known
                else [item.name, place, "as it was found", None, None, None]
            )
    note = (
        "Sizes are nominal, as in DVD Store; what a store takes on disk stands with the databases."
    )
    for risk in at_risk:
        note += (
            f" {risk.instance} can lose orders that it acknowledged: {'; '.join(risk.settings)}."
        )
    return Table(
        "Stores",
        ["Instance", "Where", "Nominal size", "Customers", "Products", "Orders when new"],
        rows,
        note,
    )


def _asked(load: StoreWorkload) -> Table:
    rows: list[list[Any]] = [
        ["Load", described(load.load)],
        ["Think time, mean s", load.think_s],
        ["New customers, %", load.new_customers_percent],
        ["Searches before an order, mean", load.searches_mean],
        ["Rows that a search wants, mean", load.search_rows_mean],
        ["Lines of an order, mean", load.lines_mean],
        *(
            [title, value]
            for title, value in (
                ("New members, %", load.new_members_percent),
                ("Searches for reviews, mean", load.reviews_mean),
                ("New reviews, %", load.new_reviews_percent),
                ("New ratings, %", load.new_ratings_percent),
            )
            if value is not None
        ),
    ]
    return Table(f"What was asked for: {load.name}", [], rows)


def _achieved(figures: StoreFigures) -> Table:
    rows: list[list[Any]] = [
        ["Orders per minute, as DVD Store counts them", figures.opm],
        ["Orders per minute without rolled back ones", figures.opm_clean],
        ["Ceiling by think time and response", figures.ceiling_opm],
        ["Ceiling by think time alone", figures.think_bound_opm],
        ["Orders", figures.orders_count],
        *([["Orders that were due", figures.due_count]] if figures.due_count else []),
        ["Rolled back for want of stock, %", figures.rollback_percent],
        ["Attempts that were tried again", figures.retries_count],
        ["Purchases given up", figures.given_up_count],
        ["Connections lost", figures.connections_lost_count],
        ["Orders without a connection", figures.connections_refused_count],
        ["Orders without room for their rows", figures.no_space_count],
    ]
    if figures.windows:
        windows = figures.windows
        rows += [
            ["Least in a window of 10 s", windows.opm_min],
            ["Most in a window of 10 s", windows.opm_max],
            ["In the last window", windows.opm_last],
        ]
    note = (
        "Think time is the bound: the storage is hidden behind it."
        if figures.is_think_bound
        else ""
    )
    return Table(f"Orders: {figures.workload}", [], rows, note)


def _steps(figures: StoreFigures) -> Table:
    rows: list[list[Any]] = [
        [step.step, step.count, step.ms_mean, step.ms_p50, step.ms_p95, step.ms_p99, step.ms_max]
        for step in figures.steps
    ]
    headings = ["Step", "Count", "Mean ms", "p50 ms", "p95 ms", "p99 ms", "Longest ms"]
    note = (
        "An order runs from its intended start to the end of the purchase; its steps are parts of "
        "it."
    )
    return Table(f"Steps: {figures.workload}", headings, rows, note)


def _audit(audit: StoreAudit) -> Table:
    rows: list[list[Any]] = [
        [name.replace("_", " ").capitalize(), count] for name, count in audit.counts.items()
    ]
    rows += [["Does not add up", finding] for finding in audit.findings]
    note = (
        "Units sold are the sum of the inventory, units ordered that of the lines of orders: they "
        "must be equal."
    )
    return Table(f"Audit: {audit.instance}", [], rows, note)


def store_charts(figures: Sequence[StoreFigures]) -> list[Chart]:
    """How long each step took, for each workload."""
    return [_chart(item, number) for number, item in enumerate(figures, 1) if item.steps]


def _chart(figures: StoreFigures, number: int) -> Chart:
    order = [step.step for step in figures.steps]
    data = [
        {"x": step.step, "v": value, "w": name}
        for step in figures.steps
        for name, value in (("mean", step.ms_mean), ("p95", step.ms_p95), ("p99", step.ms_p99))
        if value is not None
    ]
    title = f"Time of each step, {figures.workload}"
    words = [f"{item.step}: mean {item.ms_mean:.3g} ms" for item in figures.steps]
    chart = layer(
        {"type": "point", "filled": True, "size": 70},
        data,
        x=nominal("x", title="step", sort=order),
        y=quantitative("v", title="ms"),
        color=colour(["mean", "p95", "p99"]),
        tooltip=[
            nominal("x", title="step"),
            nominal("w", title="what"),
            quantitative("v", format=".3~g", title="ms"),
        ],
    )
    description = ". ".join([title, *words])
    return Chart(
        f"store-{number}",
        title,
        description,
        finished(chart, title, words[:1], description),
        _steps(figures),
    )
