"""The check that every stage of a load was carried.

Stages of one number are put together however often they came, and all stages once more: a queue
that grows a little in each of them shows in the whole. Of independent arrivals chance takes some
and brings some; so many standard deviations of their number are allowed that all stages of a sound
storage pass in 999 of 1,000 runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

from plimsoll import settings
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import RateLoad, TargetIopsLoad
from plimsoll.documents.summary import StageFigures, Summary, WorkloadFigures
from plimsoll.documents.verdict import Check, Status
from plimsoll.verdict.cautions import ceilings

#: How often chance may fail a storage that carries everything.
CHANCE = 0.001
#: Where chance may take more of what was due, nothing can be told.
CHANCE_SHARE_MAX = 0.2
#: Regular arrivals that an end of a sample may part from their completion.
AT_ENDS = 2


@dataclass(frozen=True)
class _Group:
    """Stages that are judged together.

    Attributes:
        title: what they are called.
        due: transactions that were due in their samples.
        completed: those that completed in them.
        chance: how many may be missing by chance.
    """

    title: str
    due: float
    completed: float
    chance: float

    @property
    def percent(self) -> float:
        return 100 * self.completed / self.due

    def least_percent(self, allowed_percent: float) -> float:
        """The lowest share that passes."""
        return 100 - allowed_percent - 100 * self.chance / self.due


def stage_checks(plan: Plan, summary: Summary) -> list[Check]:
    """One check for each load that goes through stages."""
    loads = {load.name: load for load in summary.load.workloads}
    return [
        _check(loads[workload.name], workload.load, held_back=bool(ceilings(plan)))
        for workload in plan.run.workloads
        if isinstance(workload.load, RateLoad | TargetIopsLoad) and workload.load.stages
    ]


def stages_missing(summary: Summary) -> list[str]:
    """Loads whose stages did not all come, in sentences."""
    return [
        f"{load.name} went through {came} of its {planned} stages: nothing is known of the others"
        for load in summary.load.workloads
        if (planned := len(getattr(load.load, "stages", ())))
        if (came := len({stage.stage for stage in load.stages})) < planned
    ]


def _check(load: WorkloadFigures, asked: RateLoad | TargetIopsLoad, *, held_back: bool) -> Check:
    rule = settings.single_rule("stage_carried")
    allowed = rule["percent"]
    groups = _groups(load.stages, is_regular=asked.spacing == "regular")
    known = [group for group in groups if group.chance <= CHANCE_SHARE_MAX * group.due]
    worst = min(known, key=lambda group: group.percent - group.least_percent(allowed), default=None)
    unseen = [stage.stage for stage in load.stages if _is_unseen(stage, asked)]
    status: Status
    if worst is None:
        status, reason = "not_evaluated", "too little was due in its stages to tell"
    elif worst.percent < worst.least_percent(allowed):
        status = "not_evaluated" if held_back else "fail"
        reason = (
            f"{worst.title} completed {worst.completed:,.0f} of {worst.due:,.0f} transactions that "
            f"were due" + (", and the run has a ceiling of its own" if held_back else "")
        )
    elif unseen:
        status, reason = "not_evaluated", f"stage {unseen[0]} has too few whole samples to tell"
    else:
        status = "pass"
        told = len(known) - 1 if groups[-1] in known else len(known)
        few = len(groups) - 1 - told
        reason = f"{told} of {len(asked.stages)} stages completed what was due in them"
        reason += f", and too little was due in {few} to tell" if few else ""
    return Check(
        name="stage_carried",
        title=rule["title"],
        scope=load.name,
        metric="transactions_per_s",
        statistic="completed",
        measured=None if worst is None else worst.percent,
        limit=100 - allowed if worst is None else worst.least_percent(allowed),
        unit="%",
        status=status,
        reason=reason,
        source=rule["source"],
    )


def _groups(stages: Sequence[StageFigures], *, is_regular: bool) -> list[_Group]:
    """The stages of each number, and all of them together at the end."""
    seen = [stage for stage in stages if stage.completed_per_s is not None]
    by_number: dict[int, list[StageFigures]] = {}
    for stage in seen:
        by_number.setdefault(stage.stage, []).append(stage)
    deviations = NormalDist().inv_cdf(1 - CHANCE / (len(by_number) + 1))

    def group(title: str, members: Sequence[StageFigures]) -> _Group:
        due = sum(stage.offered_per_s * stage.seconds for stage in members)
        chance = AT_ENDS * len(members) if is_regular else deviations * sqrt(due) + 1
        completed = sum((stage.completed_per_s or 0.0) * stage.seconds for stage in members)
        return _Group(title, due, completed, chance)

    found = [group(f"stage {number}", members) for number, members in sorted(by_number.items())]
    return [*found, group("all stages together", seen)] if seen else []


def _is_unseen(stage: StageFigures, asked: RateLoad | TargetIopsLoad) -> bool:
    """Whether a stage that came whole has too few samples; the last one may be cut short."""
    whole_s = asked.stages[stage.stage - 1].for_s
    return stage.scheduled_s >= 0.99 * whole_s and stage.seconds < stage.scheduled_s / 2
