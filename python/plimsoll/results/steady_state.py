"""What was done to the storage before it was measured, and whether the load was as skewed as the
plan asked.

Preconditioning and soaking are phases of the run; the rule by which a drive counts as steady is
applied on the Rust side and its figures are in the outcome. A run that preconditioned and did not
become steady says so and does not qualify.
"""

from __future__ import annotations

from plimsoll.documents.outcome import Outcome, PhaseOutcome, PreconditionResult
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Conditioning, HotSet
from plimsoll.units import NS_PER_S


def conditioning(
    plan: Plan, outcome: Outcome, hot_operations: dict[str, dict[str, int]]
) -> Conditioning:
    """Soaking, preconditioning and hot sets of a run.

    Args:
        plan: the completed plan.
        outcome: as the run left it.
        hot_operations: for each workload its `operations` on records and how many of them were
            `hot`.
    """
    before = [phase for phase in outcome.phases if phase.kind in ("soak", "precondition")]
    found = next((phase.precondition for phase in reversed(before) if phase.precondition), None)
    return Conditioning(
        soaked_s=sum(_seconds(phase) for phase in before if phase.kind == "soak"),
        preconditioned_s=sum(_seconds(phase) for phase in before if phase.kind == "precondition"),
        precondition=found,
        text=None if found is None else _text(found),
        hot_sets=[
            HotSet(
                workload=workload.name,
                hot_percent=workload.locality.hot_percent,
                asked_access_percent=workload.locality.hot_access_percent or 0,
                access_percent=_share(hot_operations.get(workload.name)),
            )
            for workload in plan.run.record_workloads
            if workload.locality and workload.locality.hot_percent
        ],
    )


def _seconds(phase: PhaseOutcome) -> float:
    return float(phase.end_ns - phase.start_ns) / NS_PER_S


def _share(counted: dict[str, int] | None) -> float | None:
    return (
        100 * counted["hot"] / counted["operations"] if counted and counted["operations"] else None
    )


def _text(found: PreconditionResult) -> str:
    rounds, window = len(found.rounds_iops), found.last_window
    word = "steady" if found.is_steady else "not steady"
    how = (
        f"the last {found.window_rounds} of {rounds} rounds of {found.round_s:g} s lie within "
        f"{window.range_percent:.1f} % (limit {found.range_percent_max:g} %), slope "
        f"{window.slope_percent:.1f} % "
        f"(limit {found.slope_percent_max:g} %)"
        if window
        else f"{rounds} rounds of {found.round_s:g} s are less than a window of "
        f"{found.window_rounds}"
    )
    return f"preconditioned and {word}: {how}"
