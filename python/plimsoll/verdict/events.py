"""The checks of staged events.

That they took place, and what the plan asks of the loads through them.

An event that nobody can say took place concludes nothing. A rise is no failure and no success: it
stands in the report as what it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll import settings
from plimsoll.documents.event_figures import EventFigures, LoadResponse, StoppedBy
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.results.digits import apart
from plimsoll.results.event_spans import BASELINE_SAMPLES_MIN, ROUNDING_S
from plimsoll.results.events import RECOVERED_S, response_in_words

#: Who ended a phase before its time, in words.
STOPPED: dict[StoppedBy, str] = {
    "person": "a person ended the run",
    "condition": "a stop condition ended the run",
    "failure": "the run failed",
}


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
    if not event.loads:
        yield from _unanswered(event)
    for load in event.loads:
        if limits.pause_s_max is not None:
            found = _pause(event, load, limits.pause_s_max)
            found = _doubted(found, load, load.seen.pause_s if load.seen else None)
            yield _early(found, event, load)
        if limits.dip_max is not None:
            found = _dip(event, load, 100 * limits.dip_max)
            found = _doubted(found, load, load.seen.dip_percent if load.seen else None)
            yield _early(found, event, load)
        if limits.recover_s_max is not None:
            found = _recovery(event, load, limits.recover_s_max)
            found = _doubted(found, load, load.seen.recovered_s if load.seen else None)
            yield _early(found, event, load)
    if limits.degraded_limits is not None:
        yield from _degraded(event, limits.degraded_limits)
    if limits.errors_max is not None:
        yield _errors(event, limits.errors_max)


def _unanswered(event: EventFigures) -> Iterator[Check]:
    """Limits of loads where none runs: nothing answers, so nothing is known."""
    limits = event.judge
    reason = f"no load runs in the phase {event.phase}; stage the event in one with a load"
    percent = None if limits.dip_max is None else 100 * limits.dip_max
    for name, limit, unit in (
        ("event_pause", limits.pause_s_max, "s"),
        ("event_dip", percent, "%"),
        ("event_recovery", limits.recover_s_max, "s"),
    ):
        if limit is not None:
            yield _check(name, event.name, None, limit, (unit, "not_evaluated", reason))


def _errors(event: EventFigures, most: int) -> Check:
    """I/O errors, and what of each load came to nothing."""
    failed = {load.workload: load.failed_count or 0 for load in event.loads}
    count = event.io_errors + sum(failed.values())
    words = [f"{event.io_errors} I/O errors"]
    words += [f"{number} failed operations of {load}" for load, number in failed.items() if number]
    reason = f"{' and '.join(words)}; at most {most} are allowed"
    status: Status = "fail" if count > most else "pass"
    # While an earlier event goes on no one knows whose they are.
    near = _disturbed(event)
    others = sum(failed[load.workload] for load in near) + (event.io_errors if near else 0)
    if status == "pass":
        unknown = [load for load in event.loads if load.samples_count == 0]
        if all(_is_idle(load) for load in event.loads):
            unknown += event.loads
    else:
        unknown = near if count - others <= most else []
    if unknown:
        status, reason = "not_evaluated", f"{reason}; {_why_unknown(unknown[0])}"
    found = _check("event_errors", event.name, float(count), float(most), ("", status, reason))
    for load in event.loads:
        found = _early(found, event, load)
    return found


def _is_idle(load: LoadResponse) -> bool:
    """Whether a load did nothing before an event, and nothing after it."""
    return load.baseline_per_s == 0 and load.detected_s is None and not load.failed_count


def _disturbed(event: EventFigures) -> list[LoadResponse]:
    """The loads that were not back from an earlier event."""
    return [load for load in event.loads if load.disturbed_by is not None]


def _degraded(event: EventFigures, limit_set: str) -> Iterator[Check]:
    """The latencies while the event lasted, by the limits of a set.

    Without the time, or without a transfer in it, nothing is known.
    """
    rules = [
        rule
        for rule in settings.limits()["check"]
        if limit_set in rule["limit"] and rule["statistic"] in ("mean", "sample_mean_max")
    ]
    near = _disturbed(event)
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
            if measured is None:
                reason = (
                    f"nothing was answered by {figures.scope} while it lasted, which had answered "
                    "before: look at its errors, and at the pause of its loads"
                )
                scope = f"{event.name}, {figures.scope}"
                outcome: tuple[str, Status, str] = ("ms", "not_evaluated", reason)
                yield _check("event_degraded", scope, None, limit, outcome).replace(
                    metric=figures.metric, statistic=rule["statistic"]
                )
                continue
            status: Status = "fail" if measured > limit else "pass"
            told, bound = apart(measured, limit, lambda value, digits: f"{value:.{digits}g}", 4)
            word = "above" if status == "fail" else "within"
            reason = f"{rule['title']}, while it lasted: {told} ms is {word} {bound} ms"
            if near and status == "fail":
                status, reason = "not_evaluated", f"{reason}; {_why_unknown(near[0])}"
            scope = f"{event.name}, {figures.scope}"
            yield _check("event_degraded", scope, measured, limit, ("ms", status, reason)).replace(
                metric=figures.metric, statistic=rule["statistic"]
            )


def _staged(event: EventFigures) -> Check:
    problem = event.problem
    seen = any(load.detected_s is not None for load in event.loads)
    if problem is None and not seen and not event.is_proved:
        problem = (
            "no rate changed, and no command proves that it took effect; add `prove` to the event"
        )
    if problem is None and event.undone_in is not None:
        problem = (
            f"it was undone only when {event.undone_in} was measured, which was degraded until "
            "then; state undo_after_s, or let a phase of kind soak lie between"
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


def _early(found: Check, event: EventFigures, load: LoadResponse) -> Check:
    """A check that holds only because too little time lies behind the event holds nothing.

    What was seen may have begun before the command was through; nothing seen counts from its end.
    """
    if found.status != "pass" or load.judged_s is None:
        return found
    behind_s = load.judged_s
    if load.detected_s is None and event.begun_s is not None and event.applied_s is not None:
        behind_s = max(behind_s - (event.applied_s - event.begun_s), 0.0)
    if behind_s >= RECOVERED_S - ROUNDING_S:
        return found
    reason = (
        f"only {behind_s:.3g} s lie between it and the moment when {_ending(load)}, and "
        f"{RECOVERED_S:g} s are wanted to see what it does; {_let_apart(load)}"
    )
    return found.replace(status="not_evaluated", reason=reason)


def _pause(event: EventFigures, load: LoadResponse, limit_s: float) -> Check:
    """The longest pause, by its bounds: what it lasted at least, and at most."""
    found = _held(event, load, "event_pause", load.pause_s, limit_s, "s")
    if found.status == "fail" and load.pause_s <= (load.pause_chance_s or 0.0):
        reason = (
            f"{found.reason}, but {load.baseline_per_s:.3g} operations a second, as they came "
            f"before, leave gaps of up to {load.pause_chance_s:.3g} s by chance; ask for more load"
        )
        return found.replace(status="not_evaluated", reason=reason)
    if found.status != "pass":
        return found
    if load.pause_goes_on_s is not None:
        reason = (
            f"it had completed nothing for {load.pause_goes_on_s:.4g} s when {_ending(load)}, and "
            f"no one knows for how long it went on; {_let_apart(load)}"
        )
        return found.replace(status="not_evaluated", reason=reason)
    if load.pause_s_most is not None and load.pause_s_most > limit_s:
        reason = (
            f"the longest pause lasted {load.pause_s:.4g} to {load.pause_s_most:.4g} s, and its "
            f"samples cannot tell whether that is within {limit_s:.4g} s; ask for shorter samples "
            "(`sample_interval_ms`)"
        )
        return found.replace(status="not_evaluated", reason=reason)
    return found


def _dip(event: EventFigures, load: LoadResponse, limit_percent: float) -> Check:
    """The dip; where nothing was seen, only if what the limit forbids could have been seen."""
    found = _held(event, load, "event_dip", load.dip_percent, limit_percent, "%")
    unseen = load.unseen_percent or 0.0
    if found.status != "pass" or load.detected_s is not None or unseen <= limit_percent:
        return found
    reason = (
        f"nothing was seen, but a fall by less than {unseen:.3g} % of one sample is not told from "
        f"chance, and {limit_percent:.3g} % are allowed; ask for more load or for longer samples"
    )
    return found.replace(measured=None, status="not_evaluated", reason=reason)


def _ending(load: LoadResponse) -> str:
    if load.cut_by is not None:
        return f"event {load.cut_by} changed something"
    return "its phase ended" if load.stopped_by is None else STOPPED[load.stopped_by]


def _let_apart(load: LoadResponse) -> str:
    if load.cut_by is not None:
        return f"let {load.cut_by} lie farther away"
    whole = load.stopped_by is None
    return "let the phase last longer" if whole else "let the run come to its end"


def _recovery(event: EventFigures, load: LoadResponse, limit_s: float) -> Check:
    """When the load was back; what chance alone can have made late is no failure."""
    found = _recovered(event, load, limit_s)
    if found.status != "fail" or load.perhaps_s is None or load.perhaps_s > limit_s:
        return found
    reason = (
        f"{found.reason}; but from {load.perhaps_s:.4g} s on it lacked no more than chance makes "
        "so few operations lack; ask for more load, or let the event begin later"
    )
    return found.replace(status="not_evaluated", reason=reason)


def _recovered(event: EventFigures, load: LoadResponse, limit_s: float) -> Check:
    if load.baseline_per_s and load.detected_s is not None and load.recovered_s is None:
        scope = f"{event.name}, {load.workload}"
        judged_s = load.judged_s
        unproved = load.unproved_s is not None and load.unproved_s <= limit_s
        if unproved or (judged_s is not None and judged_s < limit_s):
            reason = (
                f"{response_in_words(load)} {judged_s or 0.0:.4g} s after it, when {_ending(load)};"
                f" {limit_s:g} s are allowed, and {RECOVERED_S:g} s more prove it; "
                f"{_let_apart(load)}"
            )
            outcome: tuple[str, Status, str] = ("s", "not_evaluated", reason)
            return _check("event_recovery", scope, None, limit_s, outcome)
        within = "its phase" if load.cut_by is None else f"its time, which {load.cut_by} ended"
        reason = f"{response_in_words(load)} within {within}; at most {limit_s:g} s are allowed"
        return _check("event_recovery", scope, None, limit_s, ("s", "fail", reason))
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
        return _check(name, scope, None, limit, (unit, "not_evaluated", _why_unknown(load)))
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


def _why_unknown(load: LoadResponse) -> str:
    """Why no answer of a load is known."""
    if load.baseline_per_s == 0:
        return "it did nothing before the event, which its rate could be held against"
    if load.samples_count == 0:
        return f"no sample lies between the event and the moment when {_ending(load)}"
    if load.disturbed_by is not None:
        return (
            f"event {load.disturbed_by} is too near: the load was not back from it, or less than "
            f"{BASELINE_SAMPLES_MIN} samples tell what it did without an event; let them lie "
            "farther apart"
        )
    return (
        f"less than {BASELINE_SAMPLES_MIN} samples were taken before the event; let it begin later"
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
