"""Loads of a plan that begin one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from plimsoll.documents import phase_actions


def one_after_the_other(
    run_phases: Sequence[phase_actions.PhaseSpec], start_after_s: Mapping[str, float]
) -> list[phase_actions.PhaseSpec]:
    """Phases that let loads begin one after the other, before the first phase that any of them runs
    in.

    Args:
        run_phases: the phases of the plan.
        start_after_s: when each load begins, in seconds from the first; those that are not named
            begin at once.

    Returns:
        The phases with soaks put in between, so that what is measured counts from the last start
        on.
    """
    first = next((number for number, phase in enumerate(run_phases) if phase.workloads), None)
    if first is None or not any(start_after_s.get(name) for name in run_phases[first].workloads):
        return list(run_phases)
    loads = run_phases[first].workloads
    moments = sorted({0.0, *(start_after_s.get(name) or 0.0 for name in loads)})
    names = {phase.name for phase in run_phases}
    soaks = []
    for number, (begin_s, end_s) in enumerate(pairwise(moments), 1):
        name = f"start {number}"
        while name in names:
            name += " of loads"
        running = [load for load in loads if (start_after_s.get(load) or 0.0) <= begin_s]
        action = phase_actions.Soak(kind="soak", duration_s=end_s - begin_s, until_utc_s=None)
        soaks.append(phase_actions.PhaseSpec(name=name, action=action, workloads=running))
    return [*run_phases[:first], *soaks, *run_phases[first:]]
