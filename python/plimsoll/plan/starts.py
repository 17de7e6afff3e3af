"""Loads of a plan that begin one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from plimsoll.documents import phase_actions
from plimsoll.inputs.schema import Collector, Given


def one_after_the_other(
    run_phases: Sequence[phase_actions.PhaseSpec],
    given_list: Sequence[Given],
    collector: Collector,
) -> list[phase_actions.PhaseSpec]:
    """Phases that let loads begin one after the other, before the first phase that any of them runs
    in.

    Args:
        run_phases: the phases of the plan.
        given_list: the checked tables of its loads.
        collector: takes a start that could not be kept.

    Returns:
        The phases with soaks put in between, so that what is measured counts from the last start
        on.
    """
    start_after_s: dict[str, float] = {
        given["name"]: given["start_after_s"] for given in given_list if given["start_after_s"]
    }
    first = next((number for number, phase in enumerate(run_phases) if phase.workloads), None)
    if first is None:
        return list(run_phases)
    loads = run_phases[first].workloads
    for index, given in enumerate(given_list):
        if given["name"] in start_after_s and given["name"] not in loads:
            collector.add(
                ("workload", index, "start_after_s"),
                f"cannot be kept: it does not run in {run_phases[first].name}, where loads begin",
                "let it run there, or remove it",
            )
    if not any(start_after_s.get(name) for name in loads):
        return list(run_phases)
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
