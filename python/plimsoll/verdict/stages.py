"""The check that every stage of a load was carried."""

from __future__ import annotations

from math import sqrt

from plimsoll import settings
from plimsoll.documents.summary import StageFigures, Summary, WorkloadFigures
from plimsoll.documents.verdict import Check

#: What chance alone takes from independent arrivals, in standard deviations of their number.
CHANCE_SD = 3.0


def stage_checks(summary: Summary) -> list[Check]:
    """One check for each load that goes through stages."""
    return [_check(load) for load in summary.load.workloads if load.stages]


def lacking_percent(stage: StageFigures) -> float | None:
    """How far a stage fell below what arrived in it, less what chance explains.

    None where it has no sample.
    """
    arrived = stage.offered_per_s * stage.seconds
    if stage.completed_per_s is None or not arrived:
        return None
    lacking = arrived - stage.completed_per_s * stage.seconds - CHANCE_SD * sqrt(arrived)
    return max(0.0, 100 * lacking / arrived)


def _check(load: WorkloadFigures) -> Check:
    rule = settings.single_rule("stage_carried")
    most = rule["percent"]
    told = [
        (percent, stage) for stage in load.stages if (percent := lacking_percent(stage)) is not None
    ]
    worst = max(told, key=lambda item: item[0], default=None)
    reason = "no stage has a whole sample"
    if worst is not None:
        percent, stage = worst
        reason = (
            f"every one of {len(told)} stages completed what arrived, to {most:g} %"
            if percent <= most
            else f"stage {stage.stage}, {stage.start_s:.0f} s into the run, completed "
            f"{stage.completed_per_s:.1f} of {stage.offered_per_s:.1f} transactions that arrived "
            f"per second"
        )
    return Check(
        name="stage_carried",
        title=rule["title"],
        scope=load.name,
        metric="transactions_per_s",
        statistic="shortfall",
        measured=None if worst is None else worst[0],
        limit=most,
        unit="%",
        status="not_evaluated" if worst is None else "pass" if worst[0] <= most else "fail",
        reason=reason,
        source=rule["source"],
    )
