"""The checks of a run: the published limits, the required rate, and limits that a person added.

A check compares one figure of the summary at one place. What was not measured is `not_evaluated`,
never a pass; a check that cannot apply (stalls of a cache that raw files do not have, a kernel log
that may not be read) does not appear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll import settings
from plimsoll.documents.backup_figures import BackupFigures
from plimsoll.documents.figures import DatabaseFigures, InstanceFigures
from plimsoll.documents.log_check import LogCheckFigures
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import FilesInstance, HomesInstance
from plimsoll.documents.summary import DeviceErrors, KernelLog, Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.plan.limits import Limit, parse_limit, unit_of
from plimsoll.results.digits import rates_apart, shown, shown_apart
from plimsoll.verdict import (
    endpoints,
    events,
    homes,
    mail,
    nodes,
    restored,
    stages,
    store,
    together,
    undisturbed,
    windows,
)
from plimsoll.verdict import log_space as log_rooms
from plimsoll.verdict.summary_fields import values_of

PASS: Literal["pass"] = "pass"
FAIL: Literal["fail"] = "fail"
NOT_EVALUATED: Literal["not_evaluated"] = "not_evaluated"
NOTHING = "nothing of the kind was measured"
NO_LOG_ERRORS = "no errors in the log checksum"
#: Of what the kernel or a device said, so much stands in the reason; all of it is in the run
#: folder.
LINES_SHOWN_MAX = 3


def all_checks(plan: Plan, summary: Summary) -> list[Check]:
    """Every check of a run, the published ones first."""
    limit_set = plan.judgement.limits
    rules = [rule for rule in settings.limits()["check"] if not _means_nothing(rule, plan, summary)]
    rules = [rule for rule in rules if limit_set in rule["limit"]]
    checks = [
        check
        for rule in rules
        for check in _checks_of_rule(rule, rule["limit"][limit_set], plan, summary)
    ]
    checks = [undisturbed.without_events(check, summary.undisturbed) for check in checks]
    if plan.judgement.required_iops is not None:
        checks.append(
            undisturbed.with_events_said(
                required_iops(plan.judgement.required_iops, summary, plan.judgement.margin_percent),
                summary.undisturbed,
            )
        )
    checks += stages.stage_checks(plan, summary)
    checks += restored.restored_checks(plan, summary)
    checks += homes.homes_checks(plan, summary)
    checks += events.event_checks(summary)
    checks += nodes.node_checks(summary)
    checks += together.overlap_checks(summary)
    checks += windows.window_checks(plan, summary)
    checks += endpoints.endpoint_checks(summary)
    checks += store.store_checks(plan, summary)
    checks += mail.mail_checks(plan, summary)
    checks += log_rooms.log_space_checks(summary)
    for text in plan.judgement.stated_limits:
        checks += _stated(parse_limit(text), summary)
    return checks


def _means_nothing(rule: settings.LimitRule, plan: Plan, summary: Summary) -> bool:
    """What says nothing of this run.

    Latencies are judged under the load that a plan measures: a backup alone, or a recovery, has
    limits only where they are stated. A modelled array has no kernel that could complain, and its
    pages need no checksum pass unless the plan wants one.
    """
    loaded = any(phase.action.kind in settings.MEASURED_KINDS for phase in plan.run.phases)
    # A load that was measured before a crash and not again is not judged, which must show.
    loaded = loaded or any(gap.measured_lost for gap in summary.gaps)
    if not loaded and not rule.get("fault", False):
        return True
    if not plan.judgement.modelled:
        return bool(rule["statistic"] == "data_loss")
    return rule["statistic"] in ("kernel_log", "device_errors") or (
        rule["statistic"] == "bad_pages" and not summary.checksums
    )


def is_fault(check: Check) -> bool:
    """Whether a failure is a fault of the storage, which no time explains and no late load
    generator excuses.
    """
    rules = settings.limits()["check"]
    return any(rule["name"] == check.name and rule.get("fault", False) for rule in rules)


def faults_of(checks: Sequence[Check]) -> list[str]:
    """What failed that is a fault of the storage, in words for the headline, the worst first."""
    words = {
        rule["name"]: rule["fails_by"] for rule in settings.limits()["check"] if "fails_by" in rule
    }
    failed = {check.name for check in checks if check.status == FAIL}
    return [word for name, word in words.items() if name in failed]


def _check(
    rule: settings.LimitRule, scope: str, measured: float | None, limit: float, lacking: str
) -> Check:
    unit = rule["unit"]
    status: Status
    if measured is None:
        status, reason = NOT_EVALUATED, lacking
    else:
        status, word = (PASS, "within") if measured <= limit else (FAIL, "above")
        told, bound = shown_apart(measured, limit, unit)
        reason = f"{told} is {word} the limit of {bound}"
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


def _checks_of_rule(
    rule: settings.LimitRule, limit: float, plan: Plan, summary: Summary
) -> list[Check]:
    match rule["scope"], rule["statistic"]:
        case "run", "errors":
            return [_check(rule, "run", summary.total.errors_in_run, limit, NOTHING)]
        case "run", "data_loss":
            return [_data_loss(rule, limit, summary)]
        case "run", "kernel_log":
            log = summary.kernel_log
            return [_of_lines(rule, log, limit)] if log and log.readable else []
        case "run", "device_errors":
            counted = summary.device_errors
            return [_of_lines(rule, counted, limit)] if counted and counted.readable else []
        case "run", _:
            return [_check(rule, "run", summary.total.hung_in_run, limit, NOTHING)]
        case "instance", "bad_files":
            return [_of_logs(rule, found, limit) for found in summary.log_check or ()]
        case "database", "bad_pages":
            unverified = _unverified(plan)
            judged = [item for item in summary.databases if item.instance not in unverified]
            return [_bad_pages(rule, database.name, limit, summary) for database in judged]
        case "instance", "per_s":
            backends = {item.name: item.backend for item in plan.run.instances}
            return [
                _of_stalls(rule, instance, limit, summary)
                for instance in summary.instances
                if backends[instance.name] == rule["backend"]
            ]
        case scope, "mean":
            return [_mean(rule, place, limit, plan) for place in _places(scope, plan, summary)]
        case scope, statistic:
            metric, figure = rule["metric"], f"latency_ms_{statistic}"
            return [
                _check(
                    rule,
                    place.name,
                    place.transfers(metric).number(figure),
                    limit,
                    _lacking(metric, place, plan),
                )
                for place in _places(scope, plan, summary)
            ]


def _unverified(plan: Plan) -> set[str]:
    """The instances whose content nobody can judge.

    Files without verification, and what other programs keep. Home folders have an audit instead.
    """
    foreign = {item.name for item in plan.run.instances if not item.is_ours}
    return foreign | {
        item.name
        for item in plan.run.instances
        if isinstance(item, HomesInstance) or (isinstance(item, FilesInstance) and not item.verify)
    }


def _places(
    scope: str, plan: Plan, summary: Summary
) -> Sequence[DatabaseFigures | InstanceFigures]:
    if scope == "database":
        # What other programs read and write, they do not tell us.
        foreign = {item.name for item in plan.run.instances if not item.is_ours}
        return [item for item in summary.databases if item.instance not in foreign]
    # Files have no log.
    with_log = {item.name for item in plan.run.engine_instances}
    return [item for item in summary.instances if item.name in with_log]


def _lacking(metric: str, place: DatabaseFigures | InstanceFigures, plan: Plan) -> str:
    """Why nothing was measured of a place, as far as the plan tells."""
    held = [
        item.cache_bytes_max
        for item in plan.run.engine_instances
        if place.name.startswith(f"{item.name}/")
        and sum(each.size_bytes for each in item.databases) <= item.cache_bytes_max
    ]
    if metric != "database_read" or not held:
        return NOTHING
    return (
        f"{NOTHING}, because the cache of {held[0] >> 20:,} MiB holds all of it: take a larger "
        f"database or a smaller cache"
    )


def _mean(
    rule: settings.LimitRule, place: DatabaseFigures | InstanceFigures, limit: float, plan: Plan
) -> Check:
    """A mean by the worst of three weightings.

    Weighted by operations, a burst drowns all that is slow after it; with all samples alike, as the
    published tool had it, a time in which nothing completes counts as zero; with all moments alike,
    a burst within a sample counts for its time only.
    """
    figures = place.transfers(rule["metric"])
    by_operations = figures.latency_ms_mean
    check = _check(rule, place.name, by_operations, limit, _lacking(rule["metric"], place, plan))
    if by_operations is None or by_operations > limit:
        return check
    others = (
        (
            figures.latency_ms_mean_of_samples,
            f"as the plain mean of samples of {settings.limits()['sample_interval_s']} s",
        ),
        (figures.latency_ms_mean_over_time, "with all moments of the time alike"),
    )
    for value, how in others:
        if value is not None and value > limit:
            failed = _check(rule, place.name, value, limit, NOTHING)
            weighted = shown(by_operations, check.unit)
            return failed.replace(
                reason=f"{failed.reason}, {how}; weighted by operations it is {weighted}, because "
                f"most of them came in a short time"
            )
    return check


def _of_lines(rule: settings.LimitRule, found: KernelLog | DeviceErrors, limit: float) -> Check:
    """A count of things that were said.

    The reason repeats the first of them, because a count alone sends nobody anywhere. What an event
    of the plan did to the storage is no fault of the storage.
    """
    check = _check(rule, "run", len(found.lines), limit, NOTHING)
    reason = check.reason
    if check.status == FAIL:
        reason += f": {_first_of(found.lines)}"
    if found.of_events:
        reason += (
            f"; left out is what came while events of the plan harmed the storage: "
            f"{_first_of(found.of_events)}"
        )
    return check.replace(reason=reason)


def _first_of(lines: Sequence[str]) -> str:
    rest = f"; and {len(lines) - LINES_SHOWN_MAX} more" if len(lines) > LINES_SHOWN_MAX else ""
    return f"{'; '.join(lines[:LINES_SHOWN_MAX])}{rest}"


def _data_loss(rule: settings.LimitRule, limit: float, summary: Summary) -> Check:
    """What a modelled array has lost.

    Every request that nobody could answer, and every set that is gone.
    """
    lost = summary.data_loss
    if lost is None:
        return _check(rule, "run", 0, limit, NOTHING)
    check = _check(rule, "run", lost.requests_count + len(lost.sets), limit, NOTHING)
    sets = [
        f"a RAID set of {item.group} lost its data after {item.at_s:.3g} s"
        for item in lost.sets[:LINES_SHOWN_MAX]
    ]
    reason = "; ".join([*sets, f"the data of {shown(lost.requests_count, 'requests')} is lost"])
    return check.replace(reason=f"{reason}; the limit is {shown(limit, 'requests')}")


def _of_stalls(
    rule: settings.LimitRule, instance: InstanceFigures, limit: float, summary: Summary
) -> Check:
    """The average that is judged, with the count of samples that published reports print beside
    it.
    """
    check = _check(rule, instance.name, instance.page_fault_stalls_per_s, limit, NOTHING)
    samples = summary.page_fault_stalls
    if (
        check.status == FAIL
        and samples is not None
        and samples.samples_above_zero_count is not None
    ):
        counted = (
            f"{samples.samples_above_zero_count} of {samples.samples_count} samples are higher "
            f"than 0"
        )
        return check.replace(reason=f"{check.reason}; {counted}")
    return check


def _of_logs(rule: settings.LimitRule, found: LogCheckFigures, limit: float) -> Check:
    """What is wrong beside the databases of an instance, or what was read to know that nothing
    is.
    """
    measured = None if found.unread else len(found.findings)
    check = _check(rule, found.instance, measured, limit, f"they could not be read: {found.unread}")
    if check.status == FAIL:
        rest = len(found.findings) - LINES_SHOWN_MAX
        more = f"; and {rest} more" if rest > 0 else ""
        return check.replace(reason=f"{'; '.join(found.findings[:LINES_SHOWN_MAX])}{more}")
    return check if found.unread else check.replace(reason=f"{NO_LOG_ERRORS}: {files_read(found)}")


def files_read(found: LogCheckFigures) -> str:
    """What was read whole beside the databases of an instance.

    >>> files_read(LogCheckFigures(instance="one", logs_count=3, log_bytes=3 << 20, first_log="E0000000091.log",
    ...     last_log="E00.log", checkpoints_count=1, flush_maps_count=1, flush_map_pages=1, findings=[]))
    '3 logs (E0000000091.log to E00.log, 3 MiB), 1 checkpoint, 1 flush map'
    """  # noqa: E501
    logs = f"{found.logs_count} log{'' if found.logs_count == 1 else 's'}"
    if found.logs_count:
        span = (
            found.last_log
            if found.first_log == found.last_log
            else f"{found.first_log} to {found.last_log}"
        )
        logs += f" ({span}, {found.log_bytes >> 20} MiB)"
    maps = f"{found.flush_maps_count} flush map{'' if found.flush_maps_count == 1 else 's'}"
    return f"{logs}, {found.checkpoints_count} checkpoint, {maps}"


def _bad_pages(rule: settings.LimitRule, name: str, limit: float, summary: Summary) -> Check:
    """What the last checksum pass found, or without one what a backup did.

    It verifies every page that it reads.

    A page whose flipped bit was put right under load counts as one in the pass: whoever read it
    first has only seen it earlier.
    """
    corrected = sum(item.pages_corrected or 0 for item in summary.databases if item.name == name)
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
    if corrected:
        measured = (measured or 0) + corrected
        verb = "was" if corrected == 1 else "were"
        reasons = [
            f"{shown(corrected, 'pages')} with a flipped bit {verb} put right under load",
            *reasons,
        ]
    check = _check(rule, name, measured, limit, "no checksum pass was completed")
    if check.status == FAIL and reasons:
        return check.replace(reason=f"{check.reason}: {'; '.join(reasons[:LINES_SHOWN_MAX])}")
    return check


def _backups_of(name: str, summary: Summary) -> list[BackupFigures]:
    """The backups of a database that came to their end."""
    places = [(item.instance, item.database) for item in summary.databases if item.name == name]
    return [
        item
        for item in summary.backups
        if (item.instance, item.database) in places and item.pages_count is not None
    ]


def least_iops(required: float, margin_percent: float) -> float:
    """The lowest rate that passes for the required one.

    >>> least_iops(240, 0), least_iops(240, 5), least_iops(1, 18)
    (240.0, 228.0, 0.82)
    """
    return required * (100 - margin_percent) / 100


def required_iops(required: float, summary: Summary, margin_percent: float = 0) -> Check:
    """The check of the rate that a plan requires, less the margin it states.

    Also of several hosts together.
    """
    rule = settings.single_rule("required_iops")
    achieved = summary.sustained_iops if summary.window.seconds else None
    least = least_iops(required, margin_percent)
    how = ""
    if achieved is not None and summary.ends_below(achieved):
        # What ends during the test does not carry the load that it is required for.
        how = " sustained after a burst"
    elif achieved is not None and round(achieved) < round(summary.total.database_iops):
        how = f" sustained; {summary.total.database_iops:.0f} on average"
    status: Status = NOT_EVALUATED
    reason = "nothing was measured"
    if achieved is not None:
        status = PASS if achieved >= least else FAIL
        told, bound = rates_apart(achieved, required)
        margin = ""
        if margin_percent:
            # As many digits as decide: what decides is the rate less the margin.
            told = max(told, rates_apart(achieved, least)[0], key=len)
            margin = f", with a margin of {margin_percent:g} %: {least:.10g} are enough"
        headroom = f", headroom {rates_apart(achieved / required, 1, 2)[0]}" if required else ""
        reason = f"{told} of {bound} required per second{how}{margin}{headroom}"
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
    """One check for each place at which the field occurs.

    A field that occurs nowhere is a check not evaluated.
    """
    rule = settings.single_rule("stated_limit")
    unit = unit_of(limit.field)
    checks = []
    for scope, measured in values_of(summary, limit.field) or [("run", None)]:
        status: Status
        if measured is None:
            status, reason = NOT_EVALUATED, NOTHING
        else:
            status = PASS if limit.holds(measured) else FAIL
            told, bound = shown_apart(measured, limit.limit, unit)
            reason = f"{told}; stated: {limit.comparison} {bound}"
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
