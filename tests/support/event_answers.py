"""How a load answered an event, written by hand."""

from __future__ import annotations

from plimsoll.documents.event_figures import EventFigures, LoadResponse
from plimsoll.documents.staged_events import EventLimits


def response(recovered_s: float | None, *, seen: bool = True, known: bool = True) -> LoadResponse:
    """A load that was back after so long."""
    return LoadResponse(
        workload="load",
        baseline_per_s=140 if known else None,
        baseline_s=40 if known else 2,
        detected_s=0.0 if seen else None,
        pause_s=0,
        least_per_s=None,
        dip_percent=None,
        recovered_s=recovered_s,
        degraded_per_s=None,
        degraded_change_percent=None,
        surge_per_s=None,
        before_ms_mean=None,
        lasting_ms_mean=None,
    )


def event(begun_s: float, undone_s: float | None, answer: LoadResponse) -> EventFigures:
    """An event in the phase `measure`, in seconds on the clock of the run."""
    return EventFigures(
        name="path 1",
        kind="command",
        phase="measure",
        begun_s=begun_s,
        applied_s=begun_s,
        undone_s=undone_s,
        is_proved=True,
        problem=None,
        io_errors=0,
        judge=EventLimits(),
        loads=[answer],
    )
