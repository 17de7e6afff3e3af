"""The check that clients were spread over endpoints as the plan says.

What the policy explains is said and is no fault: all clients of one address at one endpoint, or
those of a dead endpoint at the others, as many as were refused or moved. A spread that it does not
explain is another load than planned: nothing is concluded from it. Nor is it from operations so few
that chance alone moves a share by more than the limit.
"""

from __future__ import annotations

import math

from plimsoll import settings
from plimsoll.documents.endpoint_figures import DistributionFigures, EndpointFigures
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.workloads.distribution import SINGLE_AFFINITY

SPREAD = "endpoint_spread"


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
    clients = sum(item.clients or 0 for item in each)
    went = _in_words(figures)
    if any(item.clients is None for item in each):
        text = "loads that arrive at a rate have as many clients as they need connections"
        return "pass", went or text, None
    if went and _explains(figures, total, clients):
        return "pass", went, None
    also = f"; {went}" if went else ""
    distances, noises = {}, {}
    for item in each:
        planned = (item.clients or 0) / clients
        noise = 4 * math.sqrt(planned * (1 - planned) / total) if total else math.inf
        noises[item.endpoint] = noise / (planned or 1.0)
        away = abs(item.operations / total - planned) if total else 0.0
        distances[item.endpoint] = max(away - noise, 0.0) / (planned or 1.0)
    worst = max(distances, key=lambda name: distances[name])
    found = distances[worst]
    if found <= limit < max(noises.values()):
        few = f"{total} operations are too few to judge how they are spread; measure longer"
        return "not_evaluated", few + also, None
    of = next(item for item in each if item.endpoint == worst)
    shares = f"{worst} did {of.operations / total:.1%} of the operations with {of.clients} of "
    shares += f"{clients} clients{also}"
    if found <= limit:
        return "pass", f"spread as {figures.policy} has it: {shares}", found
    return "not_evaluated", f"{figures.policy} does not explain the spread: {shares}", found


def _in_words(figures: DistributionFigures) -> str:
    """What became of clients that were refused, or that moved; empty where none did."""
    each = figures.endpoints
    refused, moved = sum(item.refused for item in each), sum(item.moved for item in each)
    came = f"{moved} connections were of clients from another endpoint"
    if not refused:
        return came if moved else ""
    where = ", ".join(f"{item.endpoint} {item.refused}" for item in each if item.refused)
    went = "its clients stayed there" if figures.policy == SINGLE_AFFINITY else "others took on"
    return f"{refused} attempts at connecting came to nothing ({where}), {went}; {came}"


def _explains(figures: DistributionFigures, total: int, clients: int) -> bool:
    """Whether as many clients were refused, or moved away, as each endpoint lacks by its share."""
    moved = sum(item.moved for item in figures.endpoints)
    for item in figures.endpoints:
        share = item.operations / total if total else 0.0
        lacking = (item.clients or 0) - clients * share
        if lacking > max(item.refused, moved - item.moved):
            return False
    return True
