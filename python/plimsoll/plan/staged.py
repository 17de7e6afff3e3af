"""Events in a plan: `[[event]]` stages something while the run measures, and loads that begin one after the other.

    [[event]]
    name = "controller A"
    after_s = 600
    undo_after_s = 900
    command = ["ssh", "-oBatchMode=yes", "array1", "reset", "controller", "a"]
    undo = ["ssh", "-oBatchMode=yes", "array1", "start", "controller", "a"]
    judge = { pause_s_max = 30, recover_s_max = 120 }

Commands are carried out only with the consent that is typed for each run. On a modelled array nothing outside can change it: there the
faults of the array are the events (`plimsoll.arrays.faults`).
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from itertools import pairwise

from plimsoll.documents import run_spec as spec
from plimsoll.documents.staged import EventLimits, StagedEvent
from plimsoll.inputs.schema import Collector, Field, Given, ListOf, Number, Table, Text

TIMEOUT_S = 60.0

JUDGE_FIELDS = {
    "pause_s_max": Field(Number(0, 86400), meaning="the longest time without a completed operation"),
    "recover_s_max": Field(Number(0, 86400), meaning="the longest time until the rate is back for ten seconds"),
    "dip_percent_max": Field(Number(0, 100), meaning="how far the rate may fall, of what it was before"),
    "errors_max": Field(Number(0, 2**53, whole=True), meaning="I/O errors between the event and the end of its phase"),
}

EVENT_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the event"),
    "phase": Field(Text(), meaning="the phase it happens in; the first that measures if left out"),
    "after_s": Field(Number(0, 30 * 86400), required=True, meaning="seconds after the phase begins"),
    "undo_after_s": Field(Number(0, 30 * 86400), meaning="when it is undone; at the end of the phase if left out"),
    "command": Field(ListOf(Text(), 1), meaning='what makes it happen, a program and its arguments: ["ip", "link", …]'),
    "manual": Field(Text(), meaning="in the place of `command`, what a person is told to do at that moment"),
    "prove": Field(ListOf(Text(), 1), meaning="a command that exits with 0 where the event has taken effect"),
    "undo": Field(ListOf(Text(), 1), meaning="what takes it back; carried out on every way out of the run"),
    "timeout_s": Field(Number(0.1, 3600), meaning="how long each command may take before it is killed; 60 if left out"),
    "judge": Field(Table(JUDGE_FIELDS), meaning="limits for what the event does to the loads"),
}


def staged_events(plan: Given, run_phases: Sequence[spec.PhaseSpec], collector: Collector) -> list[StagedEvent]:
    """The events of a checked plan, in the order of the plan."""
    measured = [phase.name for phase in run_phases if phase.action.kind in ("measure", "search")]
    names = [phase.name for phase in run_phases]
    modelled = any(target["modelled"] for target in plan["target"] or [])
    found = []
    for index, given in enumerate(plan["event"] or []):
        where = ("event", index)
        if (given["command"] is None) == (given["manual"] is None):
            collector.add(
                (*where, "command"), "and `manual`: exactly one of both says what happens", "write one of them"
            )
        if modelled:
            hint = 'write faults = [{ what = "drive fails", after_s = 60 }] into `changes` of the target'
            collector.add((*where, "name"), "stages commands, but the array is modelled", hint)
        if given["undo_after_s"] is not None and not given["undo"] and given["manual"] is None:
            collector.add(
                (*where, "undo_after_s"), "says when, but `undo` is missing", "write the command that undoes it"
            )
        late = given["after_s"] is not None and (given["undo_after_s"] or 0) <= given["after_s"]
        if given["undo_after_s"] is not None and late:
            collector.add((*where, "undo_after_s"), "is not after the event", "both count from the start of the phase")
        phase = given["phase"]
        if phase is not None:
            collector.named(phase, names, (*where, "phase"))
        elif not measured:
            collector.add((*where, "phase"), "is missing, and no phase measures", "name the phase it happens in")
        else:
            phase = measured[0]
        lasts = {item.name: getattr(item.action, "duration_s", None) for item in run_phases}.get(phase)
        for key in ("after_s", "undo_after_s"):
            if lasts is not None and given[key] is not None and given[key] >= lasts:
                collector.add((*where, key), f"lies behind phase {phase}, which lasts {lasts:g} s", "make it earlier")
        limits = given["judge"] or {}
        found.append(
            StagedEvent(
                name=given["name"] or "",
                phase=phase or "",
                after_s=float(given["after_s"] or 0),
                undo_after_s=None if given["undo_after_s"] is None else float(given["undo_after_s"]),
                command=given["command"] or [],
                manual=given["manual"],
                prove=given["prove"] or [],
                undo=given["undo"] or [],
                timeout_s=float(given["timeout_s"] or TIMEOUT_S),
                judge=EventLimits(**{key: limits.get(key) for key in JUDGE_FIELDS}),
            )
        )
    return found


def refused_events(events: Sequence[StagedEvent], *, allowed: bool) -> list[str]:
    """Why events cannot be staged: consent that was not given, programs that are not there."""
    problems = []
    for event in events:
        commands = [command for command in (event.command, event.prove, event.undo) if command]
        if commands and not allowed:
            said = "; ".join(shlex.join(command) for command in commands)
            problems.append(
                f"event {event.name} carries out commands: {said}; look at them, and give --allow-commands to agree"
            )
        problems += [
            f"event {event.name}: there is no program {command[0]}; install it, or write its whole path"
            for command in commands
            if shutil.which(command[0]) is None
        ]
    return problems


def in_words(events: Sequence[StagedEvent]) -> list[str]:
    """What will be staged, a line for each event."""
    lines = []
    for event in events:
        what = event.manual or shlex.join(event.command)
        undo = f"; undone by {shlex.join(event.undo)}" if event.undo else ""
        until = "until the phase ends" if event.undo_after_s is None else f"until {event.undo_after_s:g} s"
        lines.append(f"event {event.name}, {event.after_s:g} s into {event.phase} {until}: {what}{undo}")
    return lines


def one_after_the_other(
    run_phases: Sequence[spec.PhaseSpec], start_after_s: Mapping[str, float]
) -> list[spec.PhaseSpec]:
    """Phases that let loads begin one after the other, before the first phase that any of them runs in.

    Args:
        run_phases: the phases of the plan.
        start_after_s: when each load begins, in seconds from the first; those that are not named begin at once.

    Returns:
        The phases with soaks put in between, so that what is measured counts from the last start on.
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
        action = spec.Soak(kind="soak", duration_s=end_s - begin_s, until_utc_s=None)
        soaks.append(spec.PhaseSpec(name=name, action=action, workloads=running))
    return [*run_phases[:first], *soaks, *run_phases[first:]]
