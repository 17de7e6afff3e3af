"""The check that every load was the one that was planned, in every window of the measured time.

A load outside of its window is no fault of the storage and no success either: it was another load,
so nothing is concluded from it. What was too slow under more load than planned may be fast enough
under the planned one, so that a failed latency of such a run is doubted; what was too slow under
less is too slow.
"""

from __future__ import annotations

from plimsoll import settings
from plimsoll.documents.plan import LoadWindow, Plan
from plimsoll.documents.run_spec import WorkloadSpec
from plimsoll.documents.summary import LoadWindowFigures, Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.plan.windows import figure_of
from plimsoll.results.digits import apart

NAME = "load_window"


def window_checks(plan: Plan, summary: Summary) -> list[Check]:
    """One check for each load that has a window, where the plan measures it."""
    figures = {item.workload: item for item in summary.load_windows}
    measured = {
        name
        for phase in plan.run.phases
        if phase.action.kind in settings.MEASURED_KINDS
        for name in phase.workloads
    }
    return [
        _check(load, asked, figures.get(load.name))
        for load in plan.run.workloads
        if load.name in measured
        and (asked := plan.judgement.load_windows.get(load.name)) is not None
    ]


def _check(load: WorkloadSpec, asked: LoadWindow, figures: LoadWindowFigures | None) -> Check:
    rule = settings.single_rule(NAME)
    status: Status = "not_evaluated"
    measured = None
    unit = figure_of(load, asked).words
    if figures is None or figures.min is None or figures.max is None:
        left_out = figures is not None and figures.left_out_count
        reason = (
            f"events touch all windows of {asked.over_s:g} s"
            if left_out
            else f"less than a window of {asked.over_s:g} s was measured"
        )
    else:
        measured = figures.min if figures.min < asked.least else figures.max
        bound = asked.least if measured < asked.least else asked.most
        told, _ = apart(measured, bound, lambda rate, digits: f"{rate:.{digits}g}", 3)
        band = f"{asked.least:g} to {asked.most:g} {unit}"
        beside = (
            f"; {figures.left_out_count} in which an event changed it are left out"
            if figures.left_out_count
            else ""
        )
        if figures.outside_count:
            reason = (
                f"{told} is outside of {band} in {figures.outside_count} of {figures.count} "
                f"windows of {asked.over_s:g} s{beside}: the load was not as planned"
            )
        else:
            status = "pass"
            reason = (
                f"{figures.min:.3g} to {figures.max:.3g} lies within {band} in all "
                f"{figures.count} windows of {asked.over_s:g} s{beside}"
            )
    return Check(
        name=NAME,
        title=rule["title"],
        scope=load.name,
        metric=asked.figure,
        statistic="window",
        measured=measured,
        limit=asked.most,
        unit=unit,
        status=status,
        reason=reason,
        source=rule["source"],
    )
