"""The checks that only home folders have.

Whether the storage carries so many users, and whether the folders hold what was made in them.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll import settings
from plimsoll.documents.homes import HomesAudit, HomesFigures
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.results.digits import apart, rates_apart

AUDIT, RESPONSE, ACHIEVED = "homes_audit", "homes_response", "homes_achieved"


def in_a_sentence(figures: Sequence[HomesFigures]) -> str:
    """What home folders took, for a headline."""
    return "; ".join(
        f"{item.workload}: {item.scenarios_per_s:.3g} scenarios per second"
        + ("" if item.users is None else f" of {item.users:,} users")
        for item in figures
    )


def homes_checks(plan: Plan, summary: Summary) -> list[Check]:
    """Two checks for each workload that planned a rate, one for each audit."""
    checks = [_audit(item) for item in summary.homes_audits]
    for figures in summary.homes:
        asked = plan.judgement.homes[figures.workload]
        if figures.planned_per_s is not None:
            checks.append(_response(figures, asked.response_ms_p95_max))
            checks.append(_achieved(figures, asked.overload_percent))
    return checks


def _audit(audit: HomesAudit) -> Check:
    rule = settings.single_rule(AUDIT)
    found = len(audit.findings)
    counted = ", ".join(f"{name} {count:,}" for name, count in audit.counts.items())
    return Check(
        name=AUDIT,
        title=rule["title"],
        scope=audit.instance,
        metric="home_folders",
        statistic="audit",
        measured=found,
        limit=0,
        unit="findings",
        status="fail" if found else "pass",
        reason="; ".join(audit.findings) or f"everything is there: {counted}",
        source=rule["source"],
    )


def _response(figures: HomesFigures, most_ms: float) -> Check:
    rule = settings.single_rule(RESPONSE)
    measured = figures.response_ms_p95
    status: Status = "not_evaluated"
    reason = "no scenario came to an end"
    if measured is not None:
        status = "pass" if measured <= most_ms else "fail"
        told, bound = apart(measured, most_ms, lambda value, digits: f"{value:,.{digits}f}", 1)
        word = "is within" if status == "pass" else "is above"
        reason = f"{told} ms {word} {bound} ms"
    return Check(
        name=RESPONSE,
        title=rule["title"],
        scope=figures.workload,
        metric="home_scenario",
        statistic="p95",
        measured=measured,
        limit=most_ms,
        unit="ms",
        status=status,
        reason=reason,
        source=rule["source"],
    )


def _achieved(figures: HomesFigures, least_percent: float) -> Check:
    """Fewer scenarios than planned are the storage's doing: users wait for it."""
    rule = settings.single_rule(ACHIEVED)
    achieved = figures.achieved_percent or 0.0
    # A longer response time alone is told by the other check.
    too_few = bool(figures.is_overloaded) and achieved < least_percent
    told, bound = rates_apart(achieved, least_percent, 1)
    reason = f"{told} % of what was planned came to an end, {bound} % must"
    if achieved < least_percent and not too_few and figures.is_overloaded is False:
        due = round(100 * figures.scenarios_count / achieved) if achieved else 0
        reason += f"; what lacks of {due:,} scenarios may have been under way or chance"
    return Check(
        name=ACHIEVED,
        title=rule["title"],
        scope=figures.workload,
        metric="home_scenario",
        statistic="completed",
        measured=achieved,
        limit=least_percent,
        unit="%",
        status="fail" if too_few else "pass",
        reason=reason,
        source=rule["source"],
    )
