"""Events that would undo each other: ready actions on one thing at one time, names that share
files.

The second of two that overlap finds what the first has degraded, takes that for what was there
before, and brings it back. What a command or a person changes is not known here. A device that two
names stand for is found only on the machine, when the second begins (`plimsoll.run.actions`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from plimsoll.documents.ready_actions import ReadyAction
from plimsoll.documents.staged_events import EventPlan, file_name_of
from plimsoll.inputs.schema import Collector

#: An event and its place in the plan.
Placed = tuple[int, EventPlan]


def mistakes(placed: Sequence[Placed], targets: Sequence[str], collector: Collector) -> None:
    """Note every pair of events that overlap on one thing, and every name that shares files.

    Args:
        placed: the events of a plan.
        targets: the names of its targets.
        collector: takes the mistakes.
    """
    for pair in combinations(placed, 2):
        (_, first), (index, second) = pair
        names = {first.name, second.name}
        if len(names) == 2 and len({file_name_of(name) for name in names}) == 1:
            collector.add(
                ("event", index, "name"),
                f'is "{second.name}", whose files are called as those of event "{first.name}"',
                "let names differ in letters or digits",
            )
        (_, earlier), (later_index, later) = sorted(pair, key=lambda item: item[1].after_s)
        shared = things_of(earlier.action, targets) & things_of(later.action, targets)
        if _are_two_sessions(earlier.action, later.action):
            continue
        if not shared or later.phase != earlier.phase or later.after_s > _undone_at_s(earlier):
            continue
        until = (
            "the end of the phase"
            if earlier.undo_after_s is None
            else f"{earlier.undo_after_s:g} s"
        )
        collector.add(
            ("event", later_index, "after_s"),
            f'is {later.after_s:g}, but event "{earlier.name}" changes '
            f"{' and '.join(sorted(shared))} until {until}: each would put back what the other has "
            f"made",
            f'let "{later.name}" begin after "{earlier.name}" is undone',
        )


def _are_two_sessions(first: ReadyAction | None, second: ReadyAction | None) -> bool:
    """Whether both end sessions with a target, each at a portal of its own."""
    portals = [action.portal for action in (first, second) if action and action.portal]
    one, other = sorted(portals, key=len) if len(portals) == 2 else ("", "")
    # A portal without a port stands for all of its ports.
    return one != other and not other.startswith(f"{one}:")


def _undone_at_s(event: EventPlan) -> float:
    return math.inf if event.undo_after_s is None else event.undo_after_s


def things_of(action: ReadyAction | None, targets: Sequence[str]) -> frozenset[str]:
    """What an action changes, in words by which two of them are compared.

    >>> sorted(things_of(ReadyAction(what="throttle", iops=9.0), ["array"]))
    ['target array', 'the I/O of this run']
    >>> sorted(things_of(ReadyAction(what="disk slow", device="/dev/mapper/lv"), []))
    ['device lv']
    """
    if action is None:
        return frozenset()
    found = {f"device {_device(name)}" for name in (action.device, action.member) if name}
    if action.port is not None:
        found.add(f"the server on port {action.port}")
    if action.pid_file is not None:
        found.add(f"the server of {action.pid_file}")
    if action.what == "throttle":
        found |= {f"target {name}" for name in ([action.target] if action.target else targets[:1])}
        if action.port is None and action.pid_file is None:
            found.add("the I/O of this run")
    if action.link is not None:
        place = f" in namespace {action.namespace}" if action.namespace else ""
        found.add(f"link {action.link}{place}")
    if action.iqn is not None:
        found.add(f"iSCSI target {action.iqn}")
    if action.plan is not None:
        found.add(f"the databases of {action.plan}")
    return frozenset(found)


def _device(name: str) -> str:
    return name.removeprefix("/dev/").removeprefix("mapper/")
