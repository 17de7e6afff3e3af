"""The checks of staged events.

That they took place, and what the plan asks of the loads through them.

An event that nobody can say took place concludes nothing. A rise is no failure and no success: it
stands in the report as what it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll import settings
from plimsoll.documents.event_figures import EventFigures, LoadResponse
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.results.digits import apart
from plimsoll.results.events import BASELINE_SAMPLES_MIN, response_in_words


def event_checks(summary: Summary) -> list[Check]:
    """The checks of all events of a run, in the order of the events."""
    return [check for event in summary.events for check in checks_of(event)]


def checks_of(event: EventFigures) -> list[Check]:
    """The checks of one event: that it took place, then those of each load, then its errors."""
    return list(_checks(event))


def _checks(event: EventFigures) -> Iterator[Check]:
    yield _staged(event)
    if event.problem is not None:
        return
    limits = event.judge
    for load in event.loads:
        if limits.pause_s_max is not None:
            found = _held(event, load, "event_pause", load.pause_s, limits.pause_s_max, "s")
            yield _doubted(found, load, load.seen.pause_s if load.seen else None)
        if limits.dip_max is not None:
            found = _held(event, load, "event_dip", load.dip_percent, 100 * limits.dip_max, "%")
            yield _doubted(found, load, load.seen.dip_percent if load.seen else None)
        if limits.recover_s_max is not None:
            found = _recovery(event, load, limits.recover_s_max)
            yield _doubted(found, load, load.seen.recovered_s if load.seen else None)
    if limits.degraded_limits is not None:
        yield from _degraded(event, limits.degraded_limits)
    if limits.errors_max is not None:
        is_more = event.io_errors > limits.errors_max
        reason = f"{event.io_errors} I/O errors; at most {limits.errors_max} are allowed"
        yield _check(
            "event_errors",
            event.name,
            float(event.io_errors),
            float(limits.errors_max),
            ("", "fail" if is_more else "pass", reason),
        )


def _degraded(event: EventFigures, limit_set: str) -> Iterator[Check]:
    """The latencies while the event lasted, by the limits of a set.

    Without the time, or without a transfer in it, nothing is known.
    """
    rules = [
        rule
        for rule in settings.limits()["check"]
        if limit_set in rule["limit"] and rule["statistic"] in ("mean", "sample_mean_max")
    ]
    if not event.degraded:
        reason = "there was no time between recovery and undo in which anything was read or written"
        yield _check("event_degraded", event.name, None, 0.0, ("ms", "not_evaluated", reason))
    for figures in event.degraded:
        for rule in rules:
            if rule["metric"] != figures.metric:
                continue
            measured = (
                figures.latency_ms_mean
                if rule["statistic"] == "mean"
                else figures.latency_ms_sample_mean_max
            )
            limit = rule["limit"][limit_set]
            status: Status = "fail" if measured > limit else "pass"
            told, bound = apart(measured, limit, lambda value, digits: f"{value:.{digits}g}", 4)
            word = "above" if status == "fail" else "within"
            reason = f"{rule['title']}, while it lasted: {told} ms is {word} {bound} ms"
            scope = f"{event.name}, {figures.scope}"
            yield _check("event_degraded", scope, measured, limit, ("ms", status, reason)).replace(
                metric=figures.metric, statistic=rule["statistic"]
            )


def _staged(event: EventFigures) -> Check:
    problem = event.problem
    seen = any(load.detected_s is not None for load in event.loads)
    if problem is None and not seen and not event.is_proved:
        problem = (
            "nothing changed, and no command proves that it took effect; add `prove` to the event"
        )
    reason = problem or "it took place"
    return _check(
        "event_staged", event.name, None, 0.0, ("", "not_evaluated" if problem else "pass", reason)
    )


def _doubted(found: Check, load: LoadResponse, seen: float | None) -> Check:
    """A check that holds only because the generator was late holds nothing.

    What the samples show is beyond the limit, and nobody can tell the storage's part of it.
    """
    if found.status != "pass" or seen is None or seen <= found.limit:
        return found
    late_s = load.generator_late_s or 0.0
    reason = (
        f"{seen:.4g} {found.unit} were seen, above {found.limit:.4g} {found.unit}, but the load "
        f"generator itself was late by up to {late_s:.2g} s, which can be all that is beyond; run "
        "it on a host with processors to spare"
    )
    return found.replace(status="not_evaluated", reason=reason)


def _recovery(event: EventFigures, load: LoadResponse, limit_s: float) -> Check:
    if load.baseline_per_s and load.detected_s is not None and load.recovered_s is None:
        reason = f"{response_in_words(load)} within its phase; at most {limit_s:g} s are allowed"
        return _check(
            "event_recovery", f"{event.name}, {load.workload}", None, limit_s, ("s", "fail", reason)
        )
    measured = (
        0.0 if load.baseline_per_s is not None and load.detected_s is None else load.recovered_s
    )
    return _held(event, load, "event_recovery", measured, limit_s, "s")


def _held(
    event: EventFigures,
    load: LoadResponse,
    name: str,
    measured: float | None,
    limit: float,
    unit: str,
) -> Check:
    scope = f"{event.name}, {load.workload}"
    if name != "event_pause" and load.detected_s is None and (load.unseen_percent or 0.0) >= 100:
        reason = (
            "nothing was seen, and no one would see it if the load stopped: its samples hold too "
            "few operations, or scatter too much; ask for more load or for longer samples"
        )
        return _check(name, scope, None, limit, (unit, "not_evaluated", reason))
    if not load.baseline_per_s or measured is None:
        reason = (
            "it did nothing before the event, which its rate could be held against"
            if load.baseline_per_s == 0
            else f"less than {BASELINE_SAMPLES_MIN} samples were taken before the event; let it "
            "begin later"
        )
        return _check(name, scope, None, limit, (unit, "not_evaluated", reason))
    status: Status = "fail" if measured > limit else "pass"
    word = "above" if status == "fail" else "within"
    told, bound = apart(measured, limit, lambda value, digits: f"{value:.{digits}g}", 4)
    return _check(
        name,
        scope,
        measured,
        limit,
        (unit, status, f"{told} {unit} is {word} {bound} {unit}"),
    )


def _check(
    name: str, scope: str, measured: float | None, limit: float, outcome: tuple[str, Status, str]
) -> Check:
    rule = settings.single_rule(name)
    unit, status, reason = outcome
    return Check(
        name=name,
        title=rule["title"],
        scope=scope,
        metric="operations",
        statistic=name.removeprefix("event_"),
        measured=measured,
        limit=limit,
        unit=unit,
        status=status,
        reason=reason,
        source=rule["source"],
    )
