"""The limits of the whole run where events lasted for a part of it.

A latency that fails is judged again without the time in which an event lasted, which the event has
limits of its own for. Where events took all of the time, nothing is known of the rest.
"""

from __future__ import annotations

from plimsoll.documents.event_figures import Undisturbed
from plimsoll.documents.verdict import Check
from plimsoll.results.digits import shown, shown_apart


def without_events(check: Check, quiet: Undisturbed | None) -> Check:
    """A latency check by the time in which no event lasted, where it fails with all of it."""
    if check.status != "fail" or quiet is None or check.measured is None:
        return check
    if check.unit != "ms" or check.statistic not in ("mean", "sample_mean_max"):
        return check
    said = f"{quiet.left_out_s:.4g} s in which {_named(quiet)} lasted are left out"
    figures = next(
        (
            item
            for item in quiet.figures
            if (item.scope, item.metric) == (check.scope, check.metric)
        ),
        None,
    )
    if figures is None:
        reason = f"{check.reason}; {said}, and nothing of the kind was measured in the rest"
        return check.replace(status="not_evaluated", reason=reason)
    is_mean = check.statistic == "mean"
    rest = figures.latency_ms_mean if is_mean else figures.latency_ms_sample_mean_max
    if rest > check.limit:
        told = shown(rest, check.unit)
        return check.replace(reason=f"{check.reason}; {told} where {said}")
    told, bound = shown_apart(rest, check.limit, check.unit)
    reason = f"{told} is within {bound} where {said}; {shown(check.measured, check.unit)} with them"
    return check.replace(status="pass", measured=rest, reason=reason, left_out_s=quiet.left_out_s)


def with_events_said(check: Check, quiet: Undisturbed | None) -> Check:
    """A rate that fails, with the events in whose time a part of it was measured."""
    if check.status != "fail" or quiet is None:
        return check
    said = f"{_named(quiet)} lasted {quiet.left_out_s:.4g} s of it, which are in this rate"
    return check.replace(reason=f"{check.reason}; {said}")


def _named(quiet: Undisturbed) -> str:
    return f"event{'' if len(quiet.events) == 1 else 's'} {', '.join(quiet.events)}"
