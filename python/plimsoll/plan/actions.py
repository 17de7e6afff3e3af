"""What a plan says of ready actions: `action = "throttle"` and the keys that go with it.

    [[event]]
    name = "slow disk"
    after_s = 600
    undo_after_s = 900
    action = "throttle"
    target = "array"
    iops = 200

Whether the machine can do it is asked before a run, not here (`plimsoll.run.actions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.documents.document import ABSENT
from plimsoll.documents.ready_actions import ReadyAction
from plimsoll.files.paths import whole_path
from plimsoll.inputs.schema import Collector, Field, Given, ListOf, Number, Text
from plimsoll.inputs.toml_lines import KeyPath


@dataclass(frozen=True)
class Keys:
    """Which keys go with an action.

    Attributes:
        one_of: sets of keys of which at least one must be written.
        may: further keys.
        meaning: what the action does, for the reference page and the documents.
    """

    one_of: Sequence[Sequence[str]]
    may: Sequence[str]
    meaning: str


ACTIONS: Mapping[str, Keys] = {
    "throttle": Keys(
        [("iops", "mib_per_s")],
        ["target", "port", "pid_file"],
        "limits our I/O, or that of a server, on the device of a target",
    ),
    "server killed": Keys(
        [("port", "pid_file"), ("start",)], [], "kills a server and starts it again"
    ),
    "disk slow": Keys([("device",), ("delay_ms",)], [], "delays a device mapper disk"),
    "disk fails": Keys([("device",)], [], "lets a device mapper disk fail"),
    "md drive fails": Keys([("device",), ("member",)], [], "fails a drive of an md array"),
    "link down": Keys([("link",)], ["namespace"], "takes a network interface down"),
    "path fails": Keys([("device",)], [], "takes one path of a multipath disk offline"),
    "iscsi logout": Keys([("iqn",)], ["portal"], "ends an iSCSI session"),
    "neighbour": Keys([("plan",)], ["options"], "runs a second plan next to this one"),
}

ACTION_FIELDS = {
    "action": Field(
        Text(tuple(ACTIONS)),
        meaning="in the place of `command`, a ready action with proof and undo of its own",
    ),
    "target": Field(
        Text(), meaning="throttle: the target whose device is limited; the first if left out"
    ),
    "iops": Field(
        Number(1, 1e9), meaning="throttle: reads per second that pass, and likewise writes"
    ),
    "mib_per_s": Field(
        Number(0.001, 1e9), meaning="throttle: MiB read per second that pass, and likewise written"
    ),
    "port": Field(
        Number(1, 65535, whole=True),
        meaning="throttle, server killed: the server that listens on this TCP port",
    ),
    "pid_file": Field(
        Text(), meaning="throttle, server killed: the file that names the server's process"
    ),
    "start": Field(
        ListOf(Text(), 1),
        meaning="server killed: program and arguments that start it again; no shell reads them",
    ),
    "device": Field(
        Text(),
        meaning="disk slow, disk fails: a device mapper disk; md drive fails: the array; path "
        "fails: the disk of the path",
    ),
    "member": Field(Text(), meaning="md drive fails: the drive"),
    "delay_ms": Field(Number(1, 3_600_000), meaning="disk slow: how much later its I/O comes back"),
    "link": Field(Text(), meaning="link down: the network interface"),
    "namespace": Field(Text(), meaning="link down: the network namespace it is in"),
    "iqn": Field(Text(), meaning="iscsi logout: the name of the target"),
    "portal": Field(
        Text(), meaning="iscsi logout: the address of one portal; all of the target if left out"
    ),
    "plan": Field(Text(), meaning="neighbour: a plan file, from the directory of this one"),
    "options": Field(
        ListOf(Text(), 1), meaning='neighbour: options of its run, such as ["--allow-system-disk"]'
    ),
}
#: What a neighbour may not be told: it has a folder of its own, and nobody asks it.
_REFUSED_OPTIONS = ("--out", "--detach", "--repeat", "--allow-commands", "--dry-run")


def action_of(
    given: Given, targets: Sequence[str], path: KeyPath, collector: Collector
) -> ReadyAction | None:
    """The ready action of an event; None where it has none. Every mistake goes to the collector.

    Args:
        given: the checked event.
        targets: the names of the plan's targets.
        path: where the event stands.
        collector: takes the mistakes.
    """
    what = given["action"]
    stated = [key for key in ACTION_FIELDS if key != "action" and given[key] is not None]
    if what is None:
        for key in stated:
            collector.add((*path, key), "means nothing without `action`", "write an action")
        return None
    keys = ACTIONS[what]
    known = {key for group in keys.one_of for key in group} | set(keys.may)
    for key in stated:
        if key not in known:
            hint = f"{what} takes {', '.join(sorted(known))}"
            collector.add((*path, key), f"means nothing for {what}", hint)
    for group in keys.one_of:
        if not any(given[key] is not None or collector.is_told((*path, key)) for key in group):
            meaning = ACTION_FIELDS[group[0]].meaning
            message = f"is missing for {what}"
            others = f" (or {', '.join(group[1:])})" if group[1:] else ""
            collector.add((*path, group[0]), message, f"{meaning}{others}")
    for key in ("command", "undo"):
        if given[key] is not None:
            hint = f"{what} is applied and undone by itself; remove one of the two"
            collector.add((*path, key), "cannot be combined with `action`", hint)
    if given["port"] is not None and given["pid_file"] is not None:
        collector.add(
            (*path, "pid_file"), "cannot be combined with `port`", "name the server in one way"
        )
    if given["target"] is not None and given["target"] not in targets:
        collector.named(given["target"], targets, (*path, "target"))
    for option in given["options"] or ():
        if option.partition("=")[0] in _REFUSED_OPTIONS:
            collector.add((*path, "options"), f"has {option}", "leave it out")
    here = Path(collector.document.name).parent
    stated_values: Given = {
        key: ABSENT if given[key] is None else _settled(key, given[key], here)
        for key in ACTION_FIELDS
        if key != "action"
    }
    return ReadyAction(what=what, **stated_values)


def _settled(key: str, value: object, plan_directory: Path) -> object:
    """A value as it is kept: other plans are looked for next to this one, as by studies."""
    if key == "plan":
        return whole_path(plan_directory / Path(str(value)).expanduser())
    return whole_path(str(value)) if key == "pid_file" else value


def in_words(action: ReadyAction) -> str:
    """What an action will do, in a few words.

    >>> in_words(ReadyAction(what="throttle", target="array", iops=200.0))
    'throttle: target = array, iops = 200'
    """
    stated = [f"{key} = {_shown(value)}" for key, value in action.given().items() if key != "what"]
    return f"{action.what}: {', '.join(stated)}"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
