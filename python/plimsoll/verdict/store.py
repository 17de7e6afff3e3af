"""The checks that only a store has.

Whether it holds what was done to it, and whether its load was the one of the published tests.

An audit that does not add up is a fault of whoever keeps the data: engine or storage. A share of
rolled back orders outside of its band is a load that was not as planned: nothing is concluded from
it.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll import settings
from plimsoll.documents.summary import StoreFigures, Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.results.digits import rates_apart
from plimsoll.verdict.audits import audit_check

AUDIT, ROLLBACKS, REFUSED = "store_audit", "store_rollbacks", "store_refused"
#: So few orders say nothing of a share of two in a hundred.
ORDERS_MIN = 1000


def in_a_sentence(figures: Sequence[StoreFigures], iops: float) -> str:
    """What stores took, for a headline: orders, and database I/O where it was seen."""
    orders = "; ".join(f"{item.workload}: {item.opm:,} orders per minute" for item in figures)
    seen = f" at {iops:.0f} database IOPS" if iops else ""
    return f"{orders}{seen}, no requirement stated"


def store_checks(summary: Summary) -> list[Check]:
    """One check for each audit, one for each workload."""
    return [
        *(audit_check(AUDIT, "store", item) for item in summary.store_audits),
        *(_rollbacks(item) for item in summary.store),
        *(_refused(item) for item in summary.store),
    ]


def _rollbacks(figures: StoreFigures) -> Check:
    rule = settings.single_rule(ROLLBACKS)
    low, high = rule["percent_range"]
    share = figures.rollback_percent
    status: Status = "not_evaluated"
    if share is None or figures.orders_count < ORDERS_MIN:
        status = "pass"
        reason = f"{figures.orders_count} orders are too few to judge their share of rollbacks"
    elif low <= share <= high:
        status = "pass"
        reason = f"{share:.2f} % lies within {low:g} to {high:g} %"
    else:
        told, _ = rates_apart(share, low if share < low else high, 2)
        reason = f"{told} % is outside of {low:g} to {high:g} %: the load was not as planned"
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
    all_refused = figures.connections_refused_count + figures.given_up_count
    in_answers = figures.answers_lost_count + figures.answers_refused_count
    nothing = lost + all_refused - figures.answers_refused_count + no_space
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
        statistic="window",
        measured=share,
        limit=rule["percent"],
        unit="%",
        status=status,
        reason=", ".join(counted) or "every order came to an end",
        source=rule["source"],
    )
