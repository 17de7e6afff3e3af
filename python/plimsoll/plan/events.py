"""The events of a plan: what is degraded, when, how it is proved and undone.

    [[event]]
    name = "controller A"
    phase = "measure"
    after_s = 600
    undo_after_s = 900
    command = ["ssh", "-oBatchMode=yes", "array1", "reset", "controller", "a"]
    undo = ["ssh", "-oBatchMode=yes", "array1", "start", "controller", "a"]
    judge = { pause_s_max = 30, recover_s_max = 120 }

A person's step takes the place of a command with `manual = "pull drive 3"`, a ready action with
`action = "throttle"` (`plimsoll.plan.actions`). On a modelled array `do` takes the place of the
command and names a fault of `plimsoll.arrays.faults`; one plan may state both, and the storage
decides which of them is staged.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll import settings
from plimsoll.arrays.faults import KINDS, impossible_faults
from plimsoll.documents import phase_actions
from plimsoll.documents.array_sheet import ArraySheet, FaultSheet
from plimsoll.documents.document import ABSENT
from plimsoll.documents.ready_actions import ReadyAction
from plimsoll.documents.staged_events import EventKind, EventLimits, EventPlan
from plimsoll.files.paths import whole_path
from plimsoll.inputs.schema import Collector, Field, Flag, Given, ListOf, Number, Table, Text
from plimsoll.plan import nodes, overlaps
from plimsoll.plan.actions import ACTION_FIELDS, action_of
from plimsoll.workloads.mail.fields import SERVER_BACKENDS
from plimsoll.workloads.store.fields import CLIENT_BACKENDS

TIMEOUT_S = 60.0
#: Somebody has to walk to the rack.
MANUAL_TIMEOUT_S = 600.0
#: As long as a Volume Shadow Copy provider may keep writes waiting.
HOLD_S_MAX = 10.0
#: Each has a thread of its own.
EVENTS_MAX = 64
#: What mends a modelled fault; the others mend themselves or stay.
MENDED_BY = {"path fails": "path returns", "cache unprotected": "cache protected"}

#: The sets that say anything of the latency of a storage.
DEGRADED_SETS = tuple(
    name
    for name in settings.limits()["sets"]
    if any(
        rule["statistic"] in ("mean", "sample_mean_max") and name in rule["limit"]
        for rule in settings.limits()["check"]
    )
)

JUDGE_FIELDS = {
    "pause_s_max": Field(Number(0, 86400), meaning="the longest time without a completion"),
    "recover_s_max": Field(Number(0, 86400), meaning="the time until the rate is back"),
    "failover_s_max": Field(
        Number(0, 86400),
        meaning="node killed: the time from the death to the first operation that is served again",
    ),
    "errors_max": Field(Number(0, 1e9, whole=True), meaning="operations that may fail"),
    "dip_max": Field(Number(0, 1), meaning="the share of the rate before that may be lacking"),
    "degraded_limits": Field(
        Text(DEGRADED_SETS), meaning="the limit set of latencies between recovery and undo"
    ),
}

EVENT_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the event"),
    "phase": Field(
        Text(), meaning="the phase it is staged in; the first that measures if left out"
    ),
    "after_s": Field(
        Number(0, 30 * 86400), required=True, meaning="when it begins, from the start of its phase"
    ),
    "undo_after_s": Field(
        Number(0, 30 * 86400),
        meaning="when it is undone, likewise; at the end of its phase if left out",
    ),
    "command": Field(
        ListOf(Text(), 1), meaning="program and arguments that apply it; no shell reads them"
    ),
    "undo": Field(
        ListOf(Text(), 1), meaning="program and arguments that undo it, on every way out"
    ),
    "prove": Field(ListOf(Text(), 1), meaning="program and arguments that end with 0 if it took"),
    "manual": Field(
        Text(), meaning="in the place of `command`, what a person is to do, in a sentence"
    ),
    "manual_undo": Field(Text(), meaning="what a person is to do to take it back"),
    "confirm_file": Field(
        Text(),
        meaning="who touches this file has done what `manual` or `manual_undo` says; a run without "
        "a terminal needs it",
    ),
    **ACTION_FIELDS,
    "hold_writes": Field(
        Flag(),
        meaning="hold all writes of the run while `command` takes a snapshot; `undo` removes it, "
        "at the end of a phase of kind restore that names clones, where there is one",
    ),
    "hold_s_max": Field(
        Number(0.1, 60),
        meaning=f"how long they are held at most; {HOLD_S_MAX:g} if left out",
    ),
    "do": Field(
        Text((*KINDS, nodes.NODE_KILLED)),
        meaning="on a modelled array, in the place of `command`: what breaks; node killed, on any "
        "storage: a node of the plan dies",
    ),
    **nodes.EVENT_FIELDS,
    "number": Field(
        Number(1, 100_000, whole=True),
        meaning="which drive, path or controller, from 1; 1 if left out",
    ),
    "box": Field(
        Number(1, 64, whole=True), meaning="in which box of a modelled array, from 1; 1 if left out"
    ),
    "timeout_s": Field(
        Number(0.1, 86400),
        meaning="how long each of its commands may take; 60 if left out, and 600 for a person",
    ),
    "judge": Field(Table(JUDGE_FIELDS), meaning="what it is judged by: { pause_s_max = 30 }"),
}


def with_faults(array: ArraySheet, plan: Given, collector: Collector) -> ArraySheet:
    """A modelled array with the faults that the events of a plan make of it.

    Faults of what is not there are noted.
    """
    rows: list[FaultSheet] = []
    for index, given in enumerate(plan["event"]):
        own = _faults_of(given)
        for path, message, hint in impossible_faults(array | {"faults": own[:1]}):
            collector.add(("event", index, path[-1]), message, hint)
        rows += own
    return array | {"faults": [*(array.get("faults") or []), *rows]} if rows else array


def _faults_of(given: Given) -> list[FaultSheet]:
    if given["do"] in (None, nodes.NODE_KILLED) or given["after_s"] is None:
        return []
    begins = FaultSheet(
        what=given["do"],
        after_s=given["after_s"],
        number=given["number"] or 1,
        box=given["box"] or 1,
    )
    rows = [begins]
    mends = MENDED_BY.get(given["do"])
    if mends and given["undo_after_s"] is not None:
        rows.append({**begins, "what": mends, "after_s": given["undo_after_s"]})
    return rows


def completed(
    plan: Given, phases: Sequence[phase_actions.PhaseSpec], collector: Collector, *, modelled: bool
) -> list[EventPlan]:
    """The events of a checked plan; every mistake goes to the collector."""
    names = [phase.name for phase in phases]
    first = next(
        (phase.name for phase in phases if phase.action.kind in settings.MEASURED_KINDS), None
    )
    targets = [str(target["name"]) for target in plan["target"] or []]
    placed: list[overlaps.Placed] = []
    for index, given in enumerate(plan["event"]):
        wanted = given["phase"] or first
        if wanted is None:
            collector.add(
                ("event", index, "phase"),
                "is missing, and no phase measures",
                "name a phase of the plan",
            )
            continue
        phase = phases[names.index(wanted)] if wanted in names else None
        if phase is None:
            collector.named(given["phase"], names, ("event", index, "phase"))
        if given["name"] is None or given["after_s"] is None:
            continue
        _times(given, phase, index, collector)
        if given["do"] == nodes.NODE_KILLED:
            nodes.event_mistakes(given, phase, ("event", index), collector, modelled=modelled)
            if given["node"] is None or given["to"] is None:
                continue
        elif modelled:
            _of_modelled(given, wanted == first, index, collector)
        else:
            _of_real(given, index, collector)
        if given["do"] != nodes.NODE_KILLED:
            nodes.meaningless(given, ("event", index), collector)
        action = action_of(given, targets, ("event", index), collector)
        event = _completed(given, wanted, None if modelled else action, modelled=modelled)
        placed.append((index, _with_hold(event, given, plan, phases, index, collector)))
    overlaps.mistakes(placed, targets, collector)
    return [event for _, event in placed]


def _with_hold(
    event: EventPlan,
    given: Given,
    plan: Given,
    phases: Sequence[phase_actions.PhaseSpec],
    index: int,
    collector: Collector,
) -> EventPlan:
    """An event that holds writes, and keeps what it makes for the phase that opens clones."""
    if not given["hold_writes"]:
        if given["hold_s_max"] is not None:
            hint = "write hold_writes = true"
            collector.add(
                ("event", index, "hold_s_max"), "means nothing without `hold_writes`", hint
            )
        return event
    where = ("event", index, "hold_writes")
    if event.kind != "command" or not event.command:
        hint = "write the program that takes the snapshot, or leave hold_writes out"
        collector.add(where, "means nothing without `command`", hint)
    for instance in plan["instance"] or []:
        if instance["backend"] in (*CLIENT_BACKENDS, *SERVER_BACKENDS):
            text = "holds writes, but those of a server are not ours to hold"
            collector.add(where, text, "leave it out, and let the command freeze the server")
    if len(plan["host"] or ()) > 1:
        text = "holds writes, but those of other hosts go on"
        collector.add(where, text, "take the snapshot in a plan of one host")
    names = [phase.name for phase in phases]
    own = names.index(event.phase) if event.phase in names else 0
    opening = [phase.name for phase in phases[own + 1 :] if opens_clones(phase)]
    if opening and event.undo_after_s is not None:
        collector.add(
            ("event", index, "undo_after_s"),
            f"removes the snapshot before {opening[0]} has opened the clones",
            "leave it out: it is undone at the end of that phase",
        )
    return event.replace(
        hold_s_max=float(given["hold_s_max"] or HOLD_S_MAX),
        undo_in=opening[0] if opening else ABSENT,
    )


def opens_clones(phase: phase_actions.PhaseSpec) -> bool:
    """Whether a phase opens what a snapshot made."""
    action = phase.action
    return isinstance(action, phase_actions.Restore) and action.clones is not None


def _completed(
    given: Given, phase: str, action: ReadyAction | None, *, modelled: bool
) -> EventPlan:
    manual = None if modelled else given["manual"]
    usual_s = TIMEOUT_S if manual is None else MANUAL_TIMEOUT_S
    undo_after_s = given["undo_after_s"]
    confirm_file = given["confirm_file"]
    kills = given["do"] == nodes.NODE_KILLED
    return EventPlan(
        name=given["name"],
        phase=phase,
        kind=_kind_of(given, modelled=modelled),
        after_s=float(given["after_s"]),
        undo_after_s=None if undo_after_s is None else float(undo_after_s),
        command=() if modelled else given["command"] or (),
        undo=() if modelled else given["undo"] or (),
        prove=() if modelled else given["prove"] or (),
        do=given["do"] if modelled or kills else None,
        timeout_s=float(given["timeout_s"] or usual_s),
        judge=_limits(given["judge"] or {}),
        manual=ABSENT if manual is None else manual,
        manual_undo=ABSENT if modelled or not given["manual_undo"] else given["manual_undo"],
        confirm_file=ABSENT if modelled or confirm_file is None else whole_path(confirm_file),
        action=ABSENT if action is None else action,
        node=given["node"] if kills else ABSENT,
        to=given["to"] if kills else ABSENT,
    )


def _kind_of(given: Given, *, modelled: bool) -> EventKind:
    """Who carries an event out: the modelled array or the run itself, a person, or commands."""
    if modelled:
        return "modelled"
    if given["manual"]:
        return "manual"
    if given["do"] == nodes.NODE_KILLED and not given["command"]:
        return "node"
    return "action" if given["action"] else "command"


def _limits(given: Given) -> EventLimits:
    return EventLimits(**{key: ABSENT if value is None else value for key, value in given.items()})


def _times(
    given: Given, phase: phase_actions.PhaseSpec | None, index: int, collector: Collector
) -> None:
    undo_after_s, lasts_s = (
        given["undo_after_s"],
        getattr(phase and phase.action, "duration_s", None),
    )
    if undo_after_s is not None and undo_after_s <= given["after_s"]:
        collector.add(
            ("event", index, "undo_after_s"),
            "is not after the event begins",
            "write more than after_s",
        )
    for key in ("after_s", "undo_after_s"):
        if lasts_s and given[key] is not None and given[key] >= lasts_s:
            message = f"is {given[key]:g}, but its phase lasts {lasts_s:g} s"
            collector.add(
                ("event", index, key), message, "write less, or let the phase last longer"
            )


def _of_real(given: Given, index: int, collector: Collector) -> None:
    ways = [key for key in ("command", "manual", "action") if given[key] is not None]
    if not ways:
        message = (
            "is missing"
            if given["do"] is None
            else "is missing: `do` breaks nothing but a modelled array"
        )
        hint = 'write the program: command = ["ssh", "array1", "..."], or a ready action: action = '
        collector.add(("event", index, "command"), message, f'{hint}"throttle"')
    if len(ways) > 1 and "action" not in ways:
        collector.add(
            ("event", index, "manual"),
            "cannot be combined with `command`",
            "write two events, or one of them",
        )
    if "manual" in ways and "action" in ways:
        collector.add(
            ("event", index, "manual"), "cannot be combined with `action`", "write two events"
        )
    if given["manual"] is None:
        for key in ("manual_undo", "confirm_file"):
            if given[key] is not None:
                collector.add(
                    ("event", index, key), "means nothing without `manual`", "write manual"
                )
    elif given["undo"] is not None:
        hint = "write manual_undo, or a command with an undo"
        collector.add(("event", index, "undo"), "cannot be combined with `manual`", hint)
    is_undone = given["undo"] or given["manual_undo"] or given["action"]
    if given["undo_after_s"] is not None and not is_undone:
        collector.add(
            ("event", index, "manual_undo" if given["manual"] else "undo"),
            "is missing, but undo_after_s is there",
            "write how it is undone",
        )


def _of_modelled(given: Given, in_first: bool, index: int, collector: Collector) -> None:
    if given["do"] is None:
        collector.add(
            ("event", index, "do"),
            "is missing: no command reaches a modelled array",
            'write do = "..."',
        )
    if not in_first:
        hint = "leave `phase` out"
        collector.add(
            ("event", index, "phase"),
            "is not the first that measures, where modelled faults begin",
            hint,
        )
    if (
        given["do"] is not None
        and given["undo_after_s"] is not None
        and given["do"] not in MENDED_BY
    ):
        message = (
            f"means nothing for `{given['do']}` on a modelled array, which has no one to repair it"
        )
        collector.add(("event", index, "undo_after_s"), message, "remove it")
