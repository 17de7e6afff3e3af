"""Events that a plan stages while it measures, what was done of them, and how the loads answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document


class EventLimits(Document):
    """What a load must keep through an event, as the plan states it; None where nothing is asked."""

    pause_s_max: float | None = None
    recover_s_max: float | None = None
    dip_percent_max: float | None = None
    errors_max: int | None = None


class StagedEvent(Document):
    """An event of a plan: commands, or a sentence that tells a person what to do.

    `after_s` and `undo_after_s` count from the beginning of the phase. Every command is a program and its arguments; no shell sees it.
    """

    name: str
    phase: str
    after_s: float
    undo_after_s: float | None
    command: Sequence[str]
    manual: str | None
    prove: Sequence[str]
    undo: Sequence[str]
    timeout_s: float
    judge: EventLimits


class StepDone(Document):
    """One command of an event, or one sentence told: its time on the clock of the run, and what came of it."""

    begun_ns: int
    ended_ns: int
    exit_code: int | None
    output: str
    error: str | None


class EventDone(Document):
    """What was done of a staged event; None for a step that it did not come to."""

    name: str
    phase: str
    applied: StepDone | None
    proved: StepDone | None
    undone: StepDone | None


class EventsDone(Document):
    """What was done of all staged events of a run."""

    schema_version: Literal[1]
    events: Sequence[EventDone]


class ToUndo(Document):
    """An event that was begun and whose undo has not been carried out: it outlives a killed process."""

    name: str
    undo: Sequence[str]
    timeout_s: float


class EventsToUndo(Document):
    """The events that a run leaves behind when it is killed, for `plimsoll clean`."""

    schema_version: Literal[1]
    events: Sequence[ToUndo]


class LoadResponse(Document):
    """How one load answered an event; rates in completed operations per second, times in seconds from the event on.

    None stands for what did not happen or could not be seen. `degraded_per_s` is the mean from when the event was detected until it was
    undone, or until the phase ended; `surge_per_s` the highest rate of one sample after that. The means of response times are those before
    the event and from the event until it was undone, or until the phase ended.
    """

    workload: str
    baseline_per_s: float | None
    baseline_s: float
    detected_s: float | None
    pause_s: float
    least_per_s: float | None
    dip_percent: float | None
    recovered_s: float | None
    degraded_per_s: float | None
    degraded_change_percent: float | None
    surge_per_s: float | None
    before_ms_mean: float | None
    lasting_ms_mean: float | None


class EventFigures(Document):
    """An event of a run as it was judged; seconds on the axis of the run's samples."""

    name: str
    kind: Literal["command", "manual", "modelled"]
    phase: str
    begun_s: float | None
    applied_s: float | None
    undone_s: float | None
    is_proved: bool | None
    problem: str | None
    undo_problem: str | None
    io_errors: int
    judge: EventLimits
    loads: Sequence[LoadResponse]
