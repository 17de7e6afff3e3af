"""The check that clients were spread over endpoints as the plan says.

What the policy explains is said and is no fault: all clients of one address at one endpoint, or
those of a dead endpoint at the others. A spread that it does not explain is another load than
planned: nothing is concluded from it.
"""

from __future__ import annotations

import math

from plimsoll import settings
from plimsoll.documents.endpoint_figures import DistributionFigures, EndpointFigures
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.workloads.distribution import SINGLE_AFFINITY

SPREAD = "endpoint_spread"
#: So few operations for each endpoint say nothing of their shares.
OPERATIONS_MIN = 100


def endpoint_checks(summary: Summary) -> list[Check]:
    """One check for each load on each server that has several endpoints."""
    return [_check(item) for item in summary.endpoints]


def _check(figures: DistributionFigures) -> Check:
    rule = settings.single_rule(SPREAD)
    status, reason, worst = _judged(figures, rule["percent"] / 100)
    said = [reason, *(f"{item.endpoint} takes nobody" for item in _idle(figures))]
    return Check(
        name=SPREAD,
        title=rule["title"],
        scope=f"{figures.workload}, {figures.instance}",
        metric="operations",
        statistic="spread",
        measured=None if worst is None else 100 * worst,
        limit=rule["percent"],
        unit="%",
        status=status,
        reason="; ".join(said),
        source=rule["source"],
    )


def _idle(figures: DistributionFigures) -> list[EndpointFigures]:
    """The endpoints that had no session and did nothing."""
    return [item for item in figures.endpoints if not item.operations and not item.sessions_max]


def _judged(figures: DistributionFigures, limit: float) -> tuple[Status, str, float | None]:
    """Status, reason, and the greatest distance of a share from what the policy gives it."""
    each = figures.endpoints
    total = sum(item.operations for item in each)
    refused, moved = sum(item.refused for item in each), sum(item.moved for item in each)
    if refused or moved:
        where = ", ".join(f"{item.endpoint} {item.refused}" for item in each if item.refused)
        went = "its clients stayed there" if figures.policy == SINGLE_AFFINITY else "others took on"
        text = (
            f"{refused} attempts at connecting came to nothing ({where}), {went}; {moved} "
            f"connections were of clients from another endpoint"
            if refused
            else f"{moved} connections were of clients from another endpoint"
        )
        return "pass", text, None
    if any(item.clients is None for item in each):
        text = "loads that arrive at a rate have as many clients as they need connections"
        return "pass", text, None
    if total < OPERATIONS_MIN * len(each):
        return "pass", f"{total} operations are too few to judge how they are spread", None
    clients = sum(item.clients or 0 for item in each)
    distances = {}
    for item in each:
        planned = (item.clients or 0) / clients
        noise = 4 * math.sqrt(planned * (1 - planned) / total)
        distances[item.endpoint] = max(abs(item.operations / total - planned) - noise, 0.0) / (
            planned or 1.0
        )
    worst = max(distances, key=lambda name: distances[name])
    found = distances[worst]
    of = next(item for item in each if item.endpoint == worst)
    shares = f"{worst} did {of.operations / total:.1%} of the operations with {of.clients} of "
    shares += f"{clients} clients"
    if found <= limit:
        return "pass", f"spread as {figures.policy} has it: {shares}", found
    return "not_evaluated", f"{figures.policy} does not explain the spread: {shares}", found
