"""What each load with a window made, window by window of the measured time.

Windows that an event touches are left out: from its begin until the load is back, or until it was
undone where that is later, and on as long as what had waited comes at once. What a load does then
is the answer to the event, which has limits of its own. Of an event that changed too little of a
load to be seen, only windows are left out in which more came than its window allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plimsoll.documents import run_spec as spec
from plimsoll.documents.event_figures import EventFigures
from plimsoll.documents.plan import LoadWindow, Plan
from plimsoll.documents.summary import LoadWindowFigures
from plimsoll.files.parquet import Query
from plimsoll.plan.windows import figure_of, unit_s
from plimsoll.results.distributions import WindowCount, window_counts
from plimsoll.results.events import answered_span
from plimsoll.results.files import SIZES
from plimsoll.workloads.families import OPERATIONS

#: What is counted of databases that a load works on.
DATABASE_IO = ("database_read", "database_write")


def load_windows(plan: Plan, ask: Query, events: Sequence[EventFigures]) -> list[LoadWindowFigures]:
    """The figures of every load that has a window, in the order of the plan.

    Args:
        plan: the completed plan.
        ask: asks the table `measured`, the samples of the measured phases.
        events: how the loads answered what was staged.
    """
    return [
        _figures(plan, load, plan.judgement.load_windows[load.name], ask, events)
        for load in plan.run.workloads
        if load.name in plan.judgement.load_windows
    ]


def _figures(
    plan: Plan,
    load: spec.WorkloadSpec,
    asked: LoadWindow,
    ask: Query,
    events: Sequence[EventFigures],
) -> LoadWindowFigures:
    figure = figure_of(load, asked)
    runs_in = {phase.name for phase in plan.run.phases if load.name in phase.workloads}
    found = [item for item in _counted(load, asked, ask) if item.phase in runs_in]
    scale = unit_s(figure, load) / (asked.users or 1)
    rates = [scale * window.count / window.seconds for window in found]
    left_out = set(_left_out(load.name, asked, found, rates, events))
    kept = [rate for number, rate in enumerate(rates) if number not in left_out]
    return LoadWindowFigures(
        workload=load.name,
        figure=asked.figure,
        unit=figure.words,
        least=asked.least,
        most=asked.most,
        over_s=asked.over_s,
        count=len(kept),
        outside_count=sum(not asked.least <= rate <= asked.most for rate in kept),
        left_out_count=len(left_out),
        min=min(kept, default=None),
        mean=sum(kept) / len(kept) if kept else None,
        max=max(kept, default=None),
    )


def _counted(load: spec.WorkloadSpec, asked: LoadWindow, ask: Query) -> list[WindowCount]:
    match figure_of(load, asked).counted:
        case "transfers":
            return window_counts(ask, list(SIZES), asked.over_s, workload=load.name)
        case "database_io":
            return window_counts(ask, DATABASE_IO, asked.over_s, instances=load.instances)
    return window_counts(ask, OPERATIONS, asked.over_s, workload=load.name)


def _left_out(
    workload: str,
    asked: LoadWindow,
    windows: Sequence[WindowCount],
    rates: Sequence[float],
    events: Sequence[EventFigures],
) -> Iterator[int]:
    """The numbers of the windows in which a load answered an event."""
    for event in events:
        span = answered_span(workload, event)
        is_seen = span is not None
        if span is None:
            if event.begun_s is None or workload not in {load.workload for load in event.loads}:
                continue
            span = event.begun_s, event.begun_s if event.undone_s is None else event.undone_s
        answering = False
        for number, (window, rate) in enumerate(zip(windows, rates, strict=True)):
            if window.phase != event.phase:
                continue
            touched = window.end_s > span[0] and window.start_s < span[1]
            # What had waited comes at once, and then no more.
            answering = touched or (answering and rate > asked.most)
            if answering and (is_seen or rate > asked.most):
                yield number
