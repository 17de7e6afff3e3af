"""The checks of a run: the published limits, the required rate, and limits that a person added.

A check compares one figure of the summary at one place. What was not measured is `not_evaluated`, never a pass; a check
that cannot apply (stalls of a cache that raw files do not have, a kernel log that may not be read) does not appear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll import settings
from plimsoll.documents.figures import DatabaseFigures, InstanceFigures
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import BackupFigures, Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.plan.limits import Limit, parse_limit, unit_of
from plimsoll.verdict.summary_fields import values_of

PASS: Literal["pass"] = "pass"
FAIL: Literal["fail"] = "fail"
NOT_EVALUATED: Literal["not_evaluated"] = "not_evaluated"
NOTHING = "nothing of the kind was measured"
#: Of what the kernel or a device said, so much stands in the reason; all of it is in the run folder.
LINES_SHOWN_MAX = 3


def all_checks(plan: Plan, summary: Summary) -> list[Check]:
    """Every check of a run, the published ones first."""
    limit_set = plan.judgement.limits
    rules = [rule for rule in settings.limits()["check"] if not _means_nothing(rule, plan, summary)]
    checks = [check for rule in rules for check in _checks_of_rule(rule, rule["limit"][limit_set], plan, summary)]
    if plan.judgement.required_iops is not None:
        checks.append(required_iops(plan.judgement.required_iops, summary))
    for text in plan.judgement.stated_limits:
        checks += _stated(parse_limit(text), summary)
    return checks


def _means_nothing(rule: settings.Row, plan: Plan, summary: Summary) -> bool:
    """What says nothing of this run.

    Latencies are judged under the load that a plan measures: a backup alone, or a recovery, has limits only where they are stated. A
    modelled array has no kernel that could complain, and its pages need no checksum pass unless the plan wants one.
    """
    loaded = any(phase.action.kind in settings.MEASURED_KINDS for phase in plan.run.phases)
    # A load that was measured before a crash and not again is not judged, which must show.
    loaded = loaded or any(gap.measured_lost for gap in summary.gaps)
    if not loaded and not rule.get("fault", False):
        return True
    if not plan.judgement.modelled:
        return False
    return rule["statistic"] in ("kernel_log", "device_errors") or (
        rule["statistic"] == "bad_pages" and not summary.checksums
    )


def is_fault(check: Check) -> bool:
    """Whether a failure is a fault of the storage, which no time explains and no late load generator excuses."""
    rules = settings.limits()["check"]
    return any(rule["name"] == check.name and rule.get("fault", False) for rule in rules)


def shown(value: float, unit: str) -> str:
    """A value with its unit, as people read it.

    >>> shown(0.01234, "ms"), shown(3, "count"), shown(0.93, "ratio"), shown(1, "pages")
    ('0.0123 ms', '3', '93 %', '1 page')
    """
    if unit == "ratio":
        return f"{value:.3g}" if value > 10 else f"{100 * value:.3g} %"
    number = f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e9 else f"{value:.3g}"
    words = {"1/s": " per second", "count": ""}
    if number == "1" and unit in ("bytes", "counters", "errors", "lines", "pages"):
        unit = unit.removesuffix("s")
    return number + words.get(unit, f" {unit}")


def _check(rule: settings.Row, scope: str, measured: float | None, limit: float, lacking: str) -> Check:
    unit = rule["unit"]
    status: Status
    if measured is None:
        status, reason = NOT_EVALUATED, lacking
    elif measured <= limit:
        status, reason = PASS, f"{shown(measured, unit)} is within the limit of {shown(limit, unit)}"
    else:
        status, reason = FAIL, f"{shown(measured, unit)} is above the limit of {shown(limit, unit)}"
    return Check(
        name=rule["name"],
        title=rule["title"],
        scope=scope,
        metric=rule["metric"],
        statistic=rule["statistic"],
        measured=measured,
        limit=limit,
        unit=unit,
        status=status,
        reason=reason,
        source=rule["source"],
    )


def _checks_of_rule(rule: settings.Row, limit: float, plan: Plan, summary: Summary) -> list[Check]:
    match rule["scope"], rule["statistic"]:
        case "run", "errors":
            return [_check(rule, "run", summary.total.errors_in_run, limit, NOTHING)]
        case "run", "kernel_log":
            log = summary.kernel_log
            return [_of_lines(rule, log.lines, limit)] if log and log.readable else []
        case "run", "device_errors":
            counted = summary.device_errors
            return [_of_lines(rule, counted.lines, limit)] if counted and counted.readable else []
        case "run", _:
            return [_check(rule, "run", summary.total.hung_in_run, limit, NOTHING)]
        case "database", "bad_pages":
            return [_bad_pages(rule, database.name, limit, summary) for database in summary.databases]
        case "instance", "per_s":
            backends = {item.name: item.backend for item in plan.run.instances}
            return [
                _check(rule, instance.name, instance.page_fault_stalls_per_s, limit, NOTHING)
                for instance in summary.instances
                if backends[instance.name] == rule["backend"]
            ]
        case scope, statistic:
            places: Sequence[DatabaseFigures | InstanceFigures] = (
                summary.databases if scope == "database" else summary.instances
            )
            metric, figure = rule["metric"], f"latency_ms_{statistic}"
            return [
                _check(rule, place.name, place.transfers(metric).number(figure), limit, NOTHING) for place in places
            ]


def _of_lines(rule: settings.Row, lines: Sequence[str], limit: float) -> Check:
    """A count of things that were said: the reason repeats the first of them, because a count alone sends nobody anywhere."""
    check = _check(rule, "run", len(lines), limit, NOTHING)
    if check.status == FAIL:
        rest = f"; and {len(lines) - LINES_SHOWN_MAX} more" if len(lines) > LINES_SHOWN_MAX else ""
        return check.replace(reason=f"{check.reason}: {'; '.join(lines[:LINES_SHOWN_MAX])}{rest}")
    return check


def _bad_pages(rule: settings.Row, name: str, limit: float, summary: Summary) -> Check:
    """What the last checksum pass found, or without one what a backup did: it verifies every page that it reads."""
    passes = [checksum for checksum in summary.checksums if checksum.name == name]
    measured: float | None = None
    reasons: Sequence[str] = ()
    if passes:
        last = passes[-1]
        measured = last.bad + last.correctable + last.wrong_page_number
        reasons = last.reasons
    elif read := _backups_of(name, summary):
        # A page that cannot be put right ends the backup and the run.
        measured = sum((item.correctable or 0) + (item.headers_bad or 0) for item in read)
    check = _check(rule, name, measured, limit, "no checksum pass was completed")
    if check.status == FAIL and reasons:
        return check.replace(reason=f"{check.reason}: {'; '.join(reasons[:LINES_SHOWN_MAX])}")
    return check


def _backups_of(name: str, summary: Summary) -> list[BackupFigures]:
    """The backups of a database that came to their end."""
    places = [(item.instance, item.database) for item in summary.databases if item.name == name]
    return [
        item for item in summary.backups if (item.instance, item.database) in places and item.pages_count is not None
    ]


def required_iops(required: float, summary: Summary) -> Check:
    """The check of the rate that a plan requires; also of several hosts together."""
    rule = settings.limits()["required_iops"]
    achieved = summary.total.database_iops if summary.window.seconds else None
    step = summary.plateaus
    bursting = ""
    if achieved is not None and step.kind == "burst":
        # What ends during the test does not carry the load that it is required for.
        achieved, bursting = step.sustained_iops, " sustained after a burst"
    status: Status = NOT_EVALUATED
    reason = "nothing was measured"
    if achieved is not None:
        margin = rule["margin"]
        enough = achieved >= required * (1 - margin)
        status = PASS if enough else FAIL
        headroom = f", headroom {achieved / required:.2f}" if required else ""
        reason = f"{achieved:.0f} of {required:.0f} required per second{bursting} ({margin:.0%} margin){headroom}"
    return Check(
        name="required_iops",
        title=rule["title"],
        scope="run",
        metric="database_iops",
        statistic="mean",
        measured=achieved,
        limit=required,
        unit="1/s",
        status=status,
        reason=reason,
        source=rule["source"],
    )


def _stated(limit: Limit, summary: Summary) -> list[Check]:
    """One check for each place at which the field occurs; a field that occurs nowhere is a check not evaluated."""
    rule = settings.limits()["stated_limit"]
    unit = unit_of(limit.field)
    checks = []
    for scope, measured in values_of(summary, limit.field) or [("run", None)]:
        status: Status
        if measured is None:
            status, reason = NOT_EVALUATED, NOTHING
        else:
            status = PASS if limit.holds(measured) else FAIL
            reason = f"{shown(measured, unit)}; stated: {limit.comparison} {shown(limit.limit, unit)}"
        checks.append(
            Check(
                name=limit.text,
                title=f"Stated limit {limit.text}",
                scope=scope,
                metric=limit.field,
                statistic="stated",
                measured=measured,
                limit=limit.limit,
                unit=unit,
                status=status,
                reason=reason,
                source=rule["source"],
            )
        )
    return checks
