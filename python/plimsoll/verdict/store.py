"""The checks that only a store has.

Whether it holds what was done to it, and whether its load was the one of the published tests.

An audit that does not add up is a fault of whoever keeps the data: engine or storage. Customers
who arrive and whose orders do not come to an end are overload. A share of rolled back orders
outside of its band is a load that was not as planned: nothing is concluded from it. Nor is anything
from commits that a server acknowledges before they are durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, sqrt

from plimsoll import settings
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import RateLoad, StoreWorkload
from plimsoll.documents.summary import StoreFigures, StoreRisk, Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.results.digits import rates_apart
from plimsoll.verdict.audits import audit_check
from plimsoll.verdict.cautions import ceilings
from plimsoll.workloads.store.rate import rolled_back_share

AUDIT, ROLLBACKS, REFUSED = "store_audit", "store_rollbacks", "store_refused"
CARRIED, DURABLE = "store_carried", "store_durable"
#: So few orders say nothing of a share of two in a hundred.
ORDERS_MIN = 1000
#: So many standard deviations hold 999 of 1,000 sound runs.
DEVIATIONS = 3.3
#: The share of low stocks in a store of 10,000 products varies by so much of itself with the seed.
SHARE_OF_SEEDS = 0.14
#: Arrivals that are evenly spaced may part from their ends by one at each end of the time.
AT_ENDS = 2


def in_a_sentence(figures: Sequence[StoreFigures], iops: float) -> str:
    """What stores took, for a headline: orders, and database I/O where it was seen."""
    orders = "; ".join(f"{item.workload}: {item.opm:,} orders per minute" for item in figures)
    seen = f" at {iops:.0f} database IOPS" if iops else ""
    return f"{orders}{seen}, no requirement stated"


def store_checks(plan: Plan, summary: Summary) -> list[Check]:
    """Checks for each audit, for each workload, and for each store that commits are lost by."""
    loads = {load.name: load for load in plan.run.workloads if isinstance(load, StoreWorkload)}
    held_back = bool(ceilings(plan))
    return [
        *(audit_check(AUDIT, "store", item) for item in summary.store_audits),
        *(_durable(item) for item in summary.stores_at_risk),
        *(_rollbacks(item, loads[item.workload].lines_mean) for item in summary.store),
        *(_refused(item) for item in summary.store),
        *(
            _carried(item, load.load, due, held_back=held_back)
            for item in summary.store
            if isinstance((load := loads[item.workload]).load, RateLoad) and (due := item.due_count)
        ),
    ]


def _durable(risk: StoreRisk) -> Check:
    """What is lost with the machine was never an order: nothing is concluded from its rate."""
    rule = settings.single_rule(DURABLE)
    return Check(
        name=DURABLE,
        title=rule["title"],
        scope=risk.instance,
        metric="store",
        statistic="settings",
        measured=None,
        limit=0,
        unit="settings",
        status="not_evaluated",
        reason=f"{'; '.join(risk.settings)}: orders are acknowledged before they are durable",
        source=rule["source"],
    )


def _carried(figures: StoreFigures, load: RateLoad, due: int, *, held_back: bool) -> Check:
    """Customers who arrive wait for no one: orders that are due and do not end are overload."""
    rule = settings.single_rule(CARRIED)
    chance = AT_ENDS if load.spacing == "regular" else DEVIATIONS * sqrt(due) + 1
    ended = figures.orders_count + _came_to_nothing(figures)
    percent, least = 100 * ended / due, max(0.0, 100 - rule["percent"] - 100 * chance / due)
    too_few: Status = "not_evaluated" if held_back else "fail"
    told, bound = rates_apart(percent, least, 1)
    return Check(
        name=CARRIED,
        title=rule["title"],
        scope=figures.workload,
        metric="transactions_per_s",
        statistic="completed",
        measured=percent,
        limit=least,
        unit="%",
        status="pass" if percent >= least else too_few,
        reason=f"{told} % of the {due:,} orders that were due came to an end, {bound} % must"
        + (", and the run has a ceiling of its own" if held_back else ""),
        source=rule["source"],
    )


def _came_to_nothing(figures: StoreFigures) -> int:
    return (
        figures.connections_lost_count
        + figures.connections_refused_count
        + figures.given_up_count
        + figures.no_space_count
    )


def _band(percent_range: Sequence[float], orders: int, lines_mean: int) -> tuple[float, float]:
    """The shares of rollbacks that orders of so many lines may have, in percent.

    The published band is that of five lines. Where few orders were made chance may take more.

    >>> [f"{bound:.2f}" for bound in _band((1, 3), 1_000_000, 5)]
    ['1.00', '3.00']
    >>> [f"{bound:.2f}" for bound in _band((1, 3), 1_000, 1)]
    ['0.00', '1.08']
    """
    share = rolled_back_share(lines_mean)
    usual = rolled_back_share(int(settings.STORE["lines_mean"]))
    low, high = (bound * share / usual for bound in percent_range)
    chance = hypot(sqrt(share * (1 - share) / orders), SHARE_OF_SEEDS * share)
    least, most = 100 * (share - DEVIATIONS * chance), 100 * (share + DEVIATIONS * chance)
    return max(0.0, min(low, least)), max(high, most)


def _rollbacks(figures: StoreFigures, lines_mean: int) -> Check:
    rule = settings.single_rule(ROLLBACKS)
    low, high = _band(rule["percent_range"], max(figures.orders_count, ORDERS_MIN), lines_mean)
    share = figures.rollback_percent
    status: Status = "not_evaluated"
    if share is None or figures.orders_count < ORDERS_MIN:
        status = "pass"
        reason = f"{figures.orders_count} orders are too few to judge their share of rollbacks"
    elif low <= share <= high:
        status = "pass"
        reason = f"{share:.2f} % lies within {low:.3g} to {high:.3g} %"
    else:
        told, _ = rates_apart(share, low if share < low else high, 2)
        reason = f"{told} % is outside of {low:.3g} to {high:.3g} %: the load was not as planned"
    return Check(
        name=ROLLBACKS,
        title=rule["title"],
        scope=figures.workload,
        metric="store_rolled_back",
        statistic="window",
        measured=share,
        limit=high,
        unit="%",
        status=status,
        reason=reason,
        source=rule["source"],
    )


def _refused(figures: StoreFigures) -> Check:
    """Orders that came to nothing.

    Room that is lacking is the storage's; a server that was gone is another load than planned,
    where no event of the plan took it away.
    """
    rule = settings.single_rule(REFUSED)
    no_space = figures.no_space_count
    lost = figures.connections_lost_count - figures.answers_lost_count
    in_answers = figures.answers_lost_count + figures.answers_refused_count
    nothing = _came_to_nothing(figures) - in_answers
    tried = figures.orders_count + nothing
    share = 100 * nothing / tried if tried else 0.0
    # Sessions wait for a server that is gone, so an outage loses few orders: as many connections as
    # sessions show it.
    was_gone = lost >= (figures.sessions or 1) and lost > 0
    status: Status = "pass" if share <= rule["percent"] and not was_gone else "not_evaluated"
    if no_space:
        status = "fail"
    counted = [
        f"{count} {what}"
        for count, what in (
            (figures.connections_lost_count, "connections lost"),
            (figures.connections_refused_count, "orders without a connection"),
            (figures.given_up_count, "purchases given up"),
            (no_space, "orders without room for their rows"),
        )
        if count
    ]
    if in_answers:
        counted.append(
            f"{in_answers} of them from an event until the load was back, which the event is "
            "judged by (`errors_max`, `pause_s_max`)"
        )
    if was_gone:
        counted.append(
            "the server was gone for a time, and what is measured is another load than planned"
        )
    return Check(
        name=REFUSED,
        title=rule["title"],
        scope=figures.workload,
        metric="store_refused",
        statistic="share",
        measured=share,
        limit=rule["percent"],
        unit="%",
        status=status,
        reason=", ".join(counted) or "every order came to an end",
        source=rule["source"],
    )
