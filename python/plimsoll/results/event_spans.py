"""Which time of a phase belongs to which of its events.

What happens from the begin of an event on is its answer, until the next event begins, or an earlier
one is undone: from then on no one can tell the two apart. Nor is what an earlier event changed the
rate that a later one is held against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plimsoll.documents.event_figures import EventFigures, LoadResponse
from plimsoll.documents.staged_events import StagedEvent
from plimsoll.results.load_rates import Chosen, LoadRates

BASELINE_S = 60.0
#: Fewer samples before the event are no baseline.
BASELINE_SAMPLES_MIN = 5
#: So much of a phase may be degraded by an event of an earlier one, whose undo takes its time.
UNDONE_LATE_SHARE = 0.05
#: Times are nanoseconds as fractions of seconds.
ROUNDING_S = 1e-6


@dataclass(frozen=True)
class Disturbance:
    """The time in which an earlier event changed a load.

    Attributes:
        event: its name.
        from_s: when it began, in seconds on the clock of the run.
        until_s: when the load was back and the event was undone, likewise.
        is_back: whether the load was seen to be back, or was never seen to change.
    """

    event: str
    from_s: float
    until_s: float
    is_back: bool


@dataclass(frozen=True)
class End:
    """When the time of an event ends, and the event that ends it; none if its phase does."""

    moment_s: float
    event: str | None


def end_of(event: StagedEvent, events: Sequence[StagedEvent], phase_end_s: float) -> End:
    """When the time of an event ends: with its phase, or when another event changes something."""
    assert event.begun_s is not None
    ends = [End(phase_end_s, None)]
    before = True
    for other in in_order(events):
        if other.name == event.name:
            before = False
        elif before and other.undo_begun_s is not None and other.undo_begun_s > event.begun_s:
            ends.append(End(other.undo_begun_s, other.name))
        elif not before and other.begun_s is not None:
            ends.append(End(other.begun_s, other.name))
    return min(ends, key=lambda end: end.moment_s)


def undone_in(event: StagedEvent, measured_s: Mapping[str, tuple[float, float]]) -> str | None:
    """The later phase that an event degraded for too much of its time, before it was undone.

    Args:
        event: of a phase that may be one of them.
        measured_s: begin and end of every measured phase by its name, in their order.
    """
    if event.begun_s is None or event.undone_s is None:
        return None
    for name, (begin_s, end_s) in measured_s.items():
        shared_s = min(event.undone_s, end_s) - begin_s
        if event.begun_s < begin_s and shared_s > UNDONE_LATE_SHARE * (end_s - begin_s):
            return name
    return None


def in_order(events: Sequence[StagedEvent]) -> list[StagedEvent]:
    """Events by when they began; those that did not come last."""
    return sorted(events, key=lambda event: np.inf if event.begun_s is None else event.begun_s)


def disturbances(workload: str, earlier: Sequence[EventFigures]) -> list[Disturbance]:
    """When earlier events of a phase changed a load."""
    return [
        _disturbance(event, event.begun_s, load)
        for event in earlier
        for load in event.loads
        if load.workload == workload and event.begun_s is not None
    ]


def _disturbance(event: EventFigures, begun_s: float, load: LoadResponse) -> Disturbance:
    undone_s = begun_s if event.undone_s is None else event.undone_s
    if load.baseline_per_s is None:
        # No one knows whether it was back. What is so a minute later is as it is.
        return Disturbance(event.name, begun_s, undone_s + BASELINE_S, is_back=False)
    if load.detected_s is None:
        return Disturbance(event.name, begun_s, undone_s, is_back=True)
    if load.recovered_s is None:
        return Disturbance(event.name, begun_s, np.inf, is_back=False)
    return Disturbance(event.name, begun_s, max(begun_s + load.recovered_s, undone_s), is_back=True)


def baseline_of(
    load: LoadRates, begun_s: float, disturbed: Sequence[Disturbance]
) -> tuple[Chosen, str | None]:
    """The samples that an event's answer is held against.

    Those of the minute before it that no earlier event disturbed, or, where they are too few, of
    the last such minute of the phase.

    Args:
        load: the samples of the phase.
        begun_s: when the event began.
        disturbed: when earlier events changed the load.

    Returns:
        The samples, and the event that is too near: from which the load was not back, or which
        leaves too few samples.
    """
    lasting = [item.event for item in disturbed if item.until_s > begun_s and not item.is_back]
    if lasting:
        return np.zeros(len(load.ends_s), bool), lasting[-1]
    quiet = load.ends_s <= begun_s
    for item in disturbed:
        quiet &= (load.ends_s <= item.from_s) | (load.starts_s >= item.until_s)
    chosen = quiet & (load.starts_s >= begun_s - BASELINE_S)
    if chosen.sum() < BASELINE_SAMPLES_MIN and disturbed:
        later_s = np.cumsum(np.where(quiet, load.lengths_s, 0.0)[::-1])[::-1]
        chosen = quiet & (later_s <= BASELINE_S + ROUNDING_S)
    is_enough = chosen.sum() >= BASELINE_SAMPLES_MIN
    return chosen, disturbed[-1].event if disturbed and not is_enough else None
