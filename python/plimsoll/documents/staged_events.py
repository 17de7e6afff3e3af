"""What was staged while a run went on, and what became of it: `staged-events.json`.

A plan may stage events: a command, a step that a person takes, a ready action, or a fault of a
modelled array. Each is applied at its time in a phase and undone later. All times but the planned
one are seconds on the clock of the run, the axis of the samples' `end_ns`; null means that it did
not come to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document
from plimsoll.documents.ready_actions import HARMFUL_ACTIONS, ReadyAction

#: A command, a step of a person, a ready action, a fault of the modelled array, a node of the plan.
EventKind = Literal["command", "manual", "action", "modelled", "node"]
#: What the run itself does: nothing is started or undone for it, and it is known whether it was.
KINDS_OF_RUN = ("modelled", "node")


def file_name_of(event: str) -> str:
    """The name of an event as a part of names of files.

    >>> file_name_of("drive 3")
    'drive-3'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", event).strip("-") or "event"


class EventLimits(Document):
    """What an event is judged by, as its plan says it; what is left out is not judged.

    Attributes:
        pause_s_max: the longest time without a completion, in seconds.
        recover_s_max: the time from its begin to the recovered rate, in seconds.
        errors_max: operations that may fail.
        dip_max: the share of the baseline's rate that may be lacking, 0 to 1.
        degraded_limits: the limit set that holds between recovery and undo.
        failover_s_max: the time until what a dead node carried serves again, in seconds.
    """

    pause_s_max: float | None = None
    recover_s_max: float | None = None
    errors_max: int | None = None
    dip_max: float | None = None
    degraded_limits: str | None = None
    failover_s_max: float | None = None


class EventPlan(Document):
    """An event as a completed plan holds it.

    Attributes:
        name: what it is called.
        phase: the phase it is staged in.
        kind: a command, a person's step, a ready action, or a fault of the modelled array.
        after_s: when it begins, in seconds from the start of its phase.
        undo_after_s: when it is undone, likewise; at the end of the phase if null.
        command: program and arguments that apply it.
        undo: program and arguments that undo it.
        prove: program and arguments that end with 0 if it took.
        do: the modelled fault.
        timeout_s: how long each command may take.
        judge: what it is judged by.
        manual: what a person is to do, in a sentence.
        manual_undo: what a person is to do to take it back.
        confirm_file: who touches this file has done it; a file in the run folder, or Enter, if
            null.
        action: the ready action.
        hold_s_max: how long all writes are held at most while its command runs; not at all if null.
        undo_in: the later phase at whose end it is undone; its own if null.
        node: the node that dies; none if null.
        to: the survivor.
        fit: what the survivor needs after that, and has, in sentences.
        fit_lacking: those of them that do not fit.
    """

    name: str
    phase: str
    kind: EventKind
    after_s: float
    undo_after_s: float | None
    command: Sequence[str]
    undo: Sequence[str]
    prove: Sequence[str]
    do: str | None
    timeout_s: float
    judge: EventLimits
    manual: str | None = None
    manual_undo: str | None = None
    confirm_file: str | None = None
    action: ReadyAction | None = None
    hold_s_max: float | None = None
    undo_in: str | None = None
    node: str | None = None
    to: str | None = None
    fit: Sequence[str] = ()
    fit_lacking: Sequence[str] = ()

    @property
    def is_undone(self) -> bool:
        """Whether anything undoes it that is not the modelled array itself."""
        return bool(self.undo or self.manual_undo or self.action)

    @property
    def harms_storage(self) -> bool:
        """Whether storage may count and log errors because of it.

        Of commands and steps of a person nobody knows; what holds writes makes a copy.
        """
        if self.action is not None:
            return self.action.what in HARMFUL_ACTIONS
        return bool(self.command or self.manual) and self.hold_s_max is None

    @property
    def starts_commands(self) -> bool:
        """Whether something is changed or started that nobody does by hand."""
        return bool(self.command or self.undo or self.prove or self.action)


class StagedEvent(Document):
    """One event of a plan and what became of it.

    Attributes:
        name: as the plan calls it.
        phase: the phase it was staged in.
        kind: a command, a person's step, a ready action, or a fault of the modelled array.
        planned_s: when it was to begin, in seconds from the start of its phase.
        begun_s: when applying it began.
        applied_s: when applying it had ended well.
        undo_begun_s: when undoing it began.
        undone_s: when undoing it had ended well.
        proved: whether its `prove` command found that it took; null without one.
        exit_code: of the command; negative numbers are signals.
        output: what the command wrote, at most 64 KiB.
        undo_exit_code: of the undo.
        undo_output: what the undo wrote, at most 64 KiB.
        error: what went wrong, in a sentence; null if nothing did.
        judge: what it is judged by.
        held_s: how long all writes were held for it; null where they were not.
    """

    name: str
    phase: str
    kind: EventKind
    planned_s: float
    begun_s: float | None
    applied_s: float | None
    undo_begun_s: float | None
    undone_s: float | None
    proved: bool | None
    exit_code: int | None
    output: str | None
    undo_exit_code: int | None
    undo_output: str | None
    error: str | None
    judge: EventLimits
    held_s: float | None = None


class StagedEventsFile(Document):
    """`staged-events.json`."""

    schema_version: Literal[1] = 1
    events: Sequence[StagedEvent]
