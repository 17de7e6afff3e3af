"""What a paper printed for the same loads, next to this run; its contradictions are named.

Figures of a paper are as printed: medians of three runs on its own storage, with servers of its
time. They say what was found there, and are no limits here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plimsoll import settings
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import SessionsLoad, StoreWorkload
from plimsoll.documents.summary import StoreFigures, Summary
from plimsoll.pages.tables import Table
from plimsoll.workloads.store.rate import USERS_PER_SESSION

ORDERS = "orders per minute"
#: Figures of the paper, and what they are called; the peak stands with the threads of its shop.
_ROWS = (
    ("orders_per_min", "Orders per minute"),
    ("orders_per_user_per_min", "Orders per minute of each user"),
    ("percent_of_peak", "% of the peak that think time allows"),
    ("file_iops_per_user", "File I/O per second of each user and file server"),
    ("mail_p95_weighted_ms", "Mail, weighted mean of the 95th percentiles, ms"),
)


def per_user_table(plan: Plan, summary: Summary) -> Table | None:
    """What every load did for each of its users; None where no load speaks of users."""
    rows: list[list[Any]] = []
    for store in summary.store:
        users = users_of_store(plan, store)
        if users is None:
            continue
        bound = store.think_bound_opm
        peak = None if bound is None else bound / users
        share = None if bound is None else 100 * store.opm / bound
        each = store.opm / users
        rows.append([store.workload, users, ORDERS, each, peak, share])
    for files in summary.files:
        if files.users:
            target = files.target_iops / files.users if files.target_iops else None
            share = 100 * files.iops / files.target_iops if files.target_iops else None
            rows.append(
                [files.workload, files.users, "I/O per second", files.iops_per_user, target, share]
            )
    if not rows:
        return None
    has_store = any(row[2] == ORDERS for row in rows)
    most = "Asked for, or most that think time allows" if has_store else "Asked for"
    headings = ["Load", "Users", "Unit", "Each user", most, "% of that"]
    note = (
        "A session of a store stands for ten users, as in the published tests. Near 100 % of what "
        "think time allows, orders say little of the storage. Think times vary: a short run "
        "may have a few % more."
        if has_store
        else ""
    )
    return Table("Work of each user", headings, rows, note)


def users_of_store(plan: Plan, figures: StoreFigures) -> int | None:
    """How many users a load on a store stands for; None where it arrives at a rate."""
    for load in plan.run.workloads:
        if load.name == figures.workload and isinstance(load, StoreWorkload):
            sessions = load.load.sessions if isinstance(load.load, SessionsLoad) else None
            return None if sessions is None else sessions * USERS_PER_SESSION
    return None


def published_table(plan: Plan, summary: Summary) -> Table | None:
    """The cells of the paper that the plan names, with this run; None where it names none."""
    named = plan.judgement.published
    if named is None:
        return None
    data = settings.published_results()
    cell = next(row for row in data["result"] if row["id"] == named)
    cells = [row for row in data["result"] if row["paper"] == cell["paper"]]
    peak = data["shop_threads"]["orders_per_user_per_min_max"]
    ours = own_figures(plan, summary)
    rows: list[list[Any]] = []
    for key, title in _ROWS:
        printed = [_printed(row, key, peak) for row in cells]
        if any(value is not None for value in printed):
            rows.append([title, *printed, ours.get(key)])
    users = users_of_loads(plan, summary)
    counts = {count for _, count in users}
    told_users = (
        counts.pop() if len(counts) == 1 else ", ".join(f"{count} {load}" for load, count in users)
    )
    rows.insert(0, ["Users of each load", *(row.get("users") for row in cells), told_users or None])
    this_run = "This run, MODELLED" if plan.judgement.modelled else "This run"
    headings = ["Figure", *(f"Paper: {_short(row['id'])} users" for row in cells), this_run]
    note = (
        f"Printed by {cell['paper']}, {cell['where']}; the plan names {_short(named)} users. "
        f"{unlike_cell(plan, summary)}"
        "A degraded cell that is better "
        "than its optimized one is a question, not a success: ask for cache and placement."
    )
    return Table("Published cells and this run", headings, rows, note)


def contradictions_table(plan: Plan) -> Table | None:
    """What the paper that the plan names says against itself; None where it names none."""
    named = plan.judgement.published
    if named is None:
        return None
    data = settings.published_results()
    paper = next(row["paper"] for row in data["result"] if row["id"] == named)
    rows = [[row["id"], row["text"]] for row in data["contradiction"] if row["paper"] == paper]
    note = f"Of {paper}: whoever compares with it chooses a side."
    return Table("What the paper says against itself", ["Number", "What"], rows, note)


def unlike_cell(plan: Plan, summary: Summary) -> str:
    """In what a run is not the cell that its plan names, in sentences; empty where it is alike."""
    named = plan.judgement.published
    cell = next(row for row in settings.published_results()["result"] if row["id"] == named)
    wanted = cell.get("users")
    others = [
        f"{count} users of {load} instead of {wanted}"
        for load, count in users_of_loads(plan, summary)
        if wanted and count != wanted
    ]
    found = ""
    if others:
        found = f"This run has {', '.join(others)}: only figures for each user can be compared. "
    array = cell["id"].split("-")[0]
    modelled = (plan.judgement.modelled or {}).get("name")
    if modelled is None or array not in str(modelled):
        where = f"modelled {modelled}" if modelled else "storage of its own"
        found += f"It was not on the array of the paper ({array}) but on {where}. "
    return found


def users_of_loads(plan: Plan, summary: Summary) -> list[tuple[str, int]]:
    """The loads that speak of users, and how many."""
    stores = [(store.workload, users_of_store(plan, store)) for store in summary.store]
    files = [(item.workload, item.users) for item in summary.files]
    return [(load, count) for load, count in [*stores, *files] if count]


def _short(cell_id: str) -> str:
    """The cell without the name of its array: `md3000i-optimized-200` is `optimized, 200`."""
    return ", ".join(cell_id.split("-")[1:])


def _printed(row: settings.PublishedRow, key: str, peak: float) -> float | None:
    figures, users = row["figures"], row.get("users")
    orders = figures.get("orders_per_min")
    if key == "orders_per_user_per_min":
        return orders / users if orders and users else None
    if key == "percent_of_peak":
        return 100 * orders / (peak * users) if orders and users else None
    value = figures.get(key)
    return None if value is None else float(value)


def own_figures(plan: Plan, summary: Summary) -> dict[str, float]:
    """The figures of this run under the names of the paper; of several loads the mean."""
    found: dict[str, float] = {}
    users = [users_of_store(plan, store) or 0 for store in summary.store]
    if summary.store and all(users):
        orders = sum(store.opm for store in summary.store)
        possible = [store.think_bound_opm for store in summary.store]
        found["orders_per_min"] = float(orders)
        found["orders_per_user_per_min"] = orders / sum(users)
        if all(possible):
            found["percent_of_peak"] = 100 * orders / sum(most or 0.0 for most in possible)
    each = [files.iops_per_user for files in summary.files]
    found |= _mean_of("file_iops_per_user", each)
    return found | _mean_of("mail_p95_weighted_ms", [mail.score.ms for mail in summary.mail])


def _mean_of(name: str, values: Sequence[float | None]) -> dict[str, float]:
    known = [value for value in values if value is not None]
    return {name: sum(known) / len(known)} if known else {}
