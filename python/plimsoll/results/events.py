"""How loads answered the events that a run staged, from its samples.

Of every load the completed operations of each sample are a rate. Before the event they give a
baseline: mean and standard deviation of up to 60 s. What leaves the band of four standard
deviations for two samples, or is far out in one, is detected, whether the rate falls or rises: a
degraded storage may be faster. What the load generator's own delays can have made is left out of
all of it. The definitions are those of `docs/degraded.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from plimsoll import settings
from plimsoll.documents.document import ABSENT
from plimsoll.documents.event_figures import (
    EventFigures,
    FailoverFigures,
    LoadResponse,
    SeenResponse,
)
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.staged_events import (
    KINDS_OF_RUN,
    EventPlan,
    StagedEvent,
    StagedEventsFile,
)
from plimsoll.files import folder
from plimsoll.files.parquet import Query
from plimsoll.results.degraded import degraded_figures, degraded_span
from plimsoll.results.digits import shown
from plimsoll.results.event_pauses import Pause, chance_of, longest_pause
from plimsoll.results.event_spans import (
    BASELINE_S,
    BASELINE_SAMPLES_MIN,
    ROUNDING_S,
    Disturbance,
    baseline_of,
    disturbances,
    end_of,
    in_order,
    undone_in,
)
from plimsoll.results.generator_delays import Floats, GeneratorDelays
from plimsoll.results.integrity import failed_operations_s, stopped_early_by
from plimsoll.results.load_rates import Chosen, LoadRates, rates_of
from plimsoll.results.places import names_of_databases
from plimsoll.results.rate_changes import BAND_SD, Band, first_change
from plimsoll.units import BYTES_PER_MB, NS_PER_S

#: A load is back once its rate over so long is so much of what it was.
RECOVERED_S, RECOVERED_SHARE = 10.0, 0.95

#: A generator that was less late than this is not worth a word.
TOLD_S = 0.1


def event_figures(run_folder: Path, plan: Plan, outcome: Outcome, ask: Query) -> list[EventFigures]:
    """The events of a run, staged or modelled, in the order in which they happened.

    Args:
        run_folder: where what was done of them is noted.
        plan: the completed plan.
        outcome: how the phases went.
        ask: asks the table `sample`.

    Raises:
        FolderError: a note of the run folder is damaged.
    """
    staged = in_order(_staged(run_folder, plan))
    if not staged:
        return []
    planned = {event.name: event for event in plan.events}
    rates = [rates_of(load.name, ask) for load in plan.run.workloads]
    running = {phase.name: phase.workloads for phase in plan.run.phases}
    errors_s = failed_operations_s(run_folder, outcome)
    stopped_by = stopped_early_by(run_folder, outcome)
    kinds = {phase.name: phase.action.kind for phase in plan.run.phases}
    measured_s = {
        phase.name: (phase.start_ns / NS_PER_S, phase.end_ns / NS_PER_S)
        for phase in outcome.phases
        if kinds.get(phase.name) in settings.MEASURED_KINDS
    }
    found: list[EventFigures] = []
    for event in staged:
        figures = _of_node(_figures(event), planned[event.name], plan, outcome)
        phase = next((phase for phase in outcome.phases if phase.name == event.phase), None)
        if phase is None and event.begun_s is not None and figures.problem is None:
            figures = figures.replace(
                problem=f"its phase is not in the outcome of the run: {event.phase} did not end"
            )
        if phase is None or event.begun_s is None:
            found.append(figures)
            continue
        ends = end_of(event, staged, phase.end_ns / NS_PER_S)
        earlier = [other for other in found if other.phase == event.phase]
        span = (phase.start_ns / NS_PER_S, phase.end_ns / NS_PER_S)
        loads = [
            answer(load, event, staged, earlier, span)
            for load in rates
            # A load that does not run in the phase answers nothing.
            if load.workload in running[phase.name]
        ]
        if not phase.complete and stopped_by is not None:
            loads = [
                load.replace(stopped_by=stopped_by) if load.cut_by is None else load
                for load in loads
            ]
        late = None if planned[event.name].undo_in else undone_in(event, measured_s)
        judged = figures.replace(
            loads=loads,
            undone_in=late or ABSENT,
            io_errors=sum(event.begun_s <= moment_s <= ends.moment_s for moment_s in errors_s),
        )
        lasted = degraded_span(event, loads, ends.moment_s)
        if event.judge.degraded_limits is not None and lasted is not None:
            judged = judged.replace(
                degraded_from_s=lasted[0],
                degraded_until_s=lasted[1],
                degraded=degraded_figures(
                    lasted, (span[0], event.begun_s), ask, names_of_databases(plan)
                ),
            )
        found.append(judged)
    return found


def answer(
    load: LoadRates,
    event: StagedEvent,
    staged: Sequence[StagedEvent],
    earlier: Sequence[EventFigures],
    phase_s: tuple[float, float],
) -> LoadResponse:
    """How one load answered one of several events.

    Args:
        load: what it completed over the run.
        event: one that has begun.
        staged: all events of the run.
        earlier: how loads answered those before it in its phase.
        phase_s: begin and end of its phase, in seconds.
    """
    assert event.begun_s is not None
    ends = end_of(event, staged, phase_s[1])
    found = response(
        load,
        event=(event.begun_s, event.undone_s),
        span=(phase_s[0], ends.moment_s),
        disturbed=disturbances(load.workload, earlier),
        cut_by=ends.event,
    )
    return unseen(load.workload).replace(samples_count=0) if found is None else found


def response(
    load: LoadRates,
    *,
    event: tuple[float, float | None],
    span: tuple[float, float],
    disturbed: Sequence[Disturbance] = (),
    cut_by: str | None = None,
) -> LoadResponse | None:
    """How one load answered one event.

    Args:
        load: what it completed over the run.
        event: when the event began and when it was undone (None if it was not), in seconds.
        span: the begin of the phase of the event, and the last moment that belongs to the event,
            in seconds.
        disturbed: when earlier events of the phase changed the load.
        cut_by: the event that ends the span; none if the phase does.

    Returns:
        None where no sample lies in the phase.
    """
    found = _answered(load, event, span, disturbed)
    if found is None:
        return None
    found = found.replace(judged_s=span[1] - event[0], cut_by=ABSENT if cut_by is None else cut_by)
    late_s = _late_s(load, event[0], span)
    if not late_s:
        return found
    seen = _answered(replace(load, delays=None), event, span, disturbed)
    if seen is None or seen.baseline_per_s is None:
        return found
    return found.replace(
        generator_late_s=late_s,
        seen=SeenResponse(
            pause_s=seen.pause_s, dip_percent=seen.dip_percent, recovered_s=seen.recovered_s
        ),
    )


def _answered(
    load: LoadRates,
    event: tuple[float, float | None],
    span: tuple[float, float],
    disturbed: Sequence[Disturbance],
) -> LoadResponse | None:
    begun_s, undone_s = event
    workload = load.workload
    load = load.of(
        (load.starts_s >= span[0] - ROUNDING_S)
        & (load.ends_s <= span[1] + ROUNDING_S)
        & (load.lengths_s > 0)
    )
    ends_s, lengths_s, counts, starts_s = load.ends_s, load.lengths_s, load.counts, load.starts_s
    if not len(ends_s):
        return None
    assert load.delays is not None
    rates = counts / lengths_s
    before, near = baseline_of(load, begun_s, disturbed)
    after = starts_s >= begun_s - lengths_s / 2
    failed = None if load.failed is None else _failed_count(load, load.failed, begun_s, after)
    if before.sum() < BASELINE_SAMPLES_MIN or not after.any():
        pause = longest_pause(load.of(after), begun_s, None) if after.any() else Pause(0, 0, 0)
        return unseen(workload, float(lengths_s[before].sum()), pause.least_s).replace(
            disturbed_by=ABSENT if near is None else near,
            failed_count=ABSENT if failed is None else failed,
            samples_count=int(after.sum()),
        )
    delays = load.delays.beyond(before)
    first, last = np.flatnonzero(before)[[0, -1]]
    # What was late at its end belongs to it, and what was late at its begin does not.
    asked_s = float(lengths_s[before].sum())
    asked_s -= min(delays.carried_s(last) - delays.carried_s(first - 1), asked_s / 2)
    baseline = float(counts[before].sum() / asked_s)
    band = Band.of(
        _settled(load, delays, baseline)[before], baseline, float(lengths_s[before].mean())
    )
    detected = first_change(load, delays, band, int(np.flatnonzero(after)[0]))
    recovered_s, unproved_s = _recovered_s(load, delays, band, detected)
    perhaps_s = _perhaps_s(load, delays, band, detected)
    chance_s = chance_of(load.of(before), baseline)
    pause = longest_pause(load.of(after), begun_s, chance_s)
    # A sliver of a sample at a boundary holds too few operations for a rate.
    whole = after & (2 * lengths_s >= lengths_s[after].max())
    degraded = _mean(rates, lengths_s, starts_s, detected, undone_s or span[1])
    back_s = undone_s if undone_s is not None else recovered_s
    # What had waited often comes in the very sample in which the event is undone.
    later = (
        whole & (ends_s > back_s + ROUNDING_S)
        if back_s is not None and detected is not None
        else np.zeros(len(rates), bool)
    )
    change = None if degraded is None or not baseline else 100.0 * (degraded / baseline - 1.0)
    return LoadResponse(
        workload=workload,
        baseline_per_s=baseline,
        baseline_s=float(lengths_s[before].sum()),
        detected_s=None if detected is None else max(float(starts_s[detected]) - begun_s, 0.0),
        pause_s=pause.least_s,
        least_per_s=float(rates[whole].min()),
        # Where nothing changed, the lowest of many samples is chance.
        dip_percent=None
        if not baseline
        else 0.0
        if detected is None
        else _dip_percent(load.of(whole), delays.of(whole), baseline, change),
        recovered_s=None if recovered_s is None else max(recovered_s - begun_s, 0.0),
        degraded_per_s=degraded,
        degraded_change_percent=change,
        surge_per_s=float(rates[later].max()) if later.any() else None,
        before_ms_mean=_mean_ms(load.response_ms, counts, before),
        lasting_ms_mean=_mean_ms(
            load.response_ms, counts, after & (ends_s <= (undone_s or span[1]) + ROUNDING_S)
        ),
        unseen_percent=100.0 * band.unseen / baseline if baseline else None,
        pause_s_most=pause.most_s,
        pause_goes_on_s=pause.goes_on_s or ABSENT,
        pause_chance_s=chance_s if baseline else ABSENT,
        unproved_s=ABSENT if unproved_s is None else max(unproved_s - begun_s, 0.0),
        perhaps_s=ABSENT if perhaps_s is None else max(perhaps_s - begun_s, 0.0),
        failed_count=ABSENT if failed is None else failed,
        samples_count=int(after.sum()),
    )


def _failed_count(load: LoadRates, failed: Floats, begun_s: float, after: Chosen) -> int:
    """What came to nothing from an event on.

    What fails at once lies in the sample in which the event begins, most of which may lie before
    it. Where nothing failed in the sample before, it is the event's.
    """
    begins = (load.starts_s < begun_s - ROUNDING_S) & (load.ends_s > begun_s + ROUNDING_S) & ~after
    at = int(np.argmax(begins))
    is_its_own = begins.any() and (at == 0 or not failed[at - 1])
    return int(failed[after].sum() + (failed[at] if is_its_own else 0.0))


def _settled(load: LoadRates, delays: GeneratorDelays, baseline: float) -> Floats:
    """The rates, as near to the baseline as the generator's own delays let them be."""
    rates = load.counts / load.lengths_s
    distance = rates - baseline
    made_s = np.array(
        [
            delays.ahead_s(at, at) if distance[at] > 0 else delays.lacking_s(at, at)
            for at in range(len(rates))
        ]
    )
    left = np.maximum(np.abs(distance) - baseline * made_s / load.lengths_s, 0.0)
    return baseline + np.sign(distance) * left


def _dip_percent(
    load: LoadRates, delays: GeneratorDelays, baseline: float, change: float | None
) -> float:
    """How far below the rate before the lowest sample lies that no delay of the generator explains.

    What was lacking over the whole time was lacking at some time of it.
    """
    lacking = [
        1.0 - (load.counts[at] / baseline + delays.lacking_s(at, at)) / load.lengths_s[at]
        for at in range(len(load.counts))
    ]
    return max(100.0 * float(max(lacking)), -(change or 0.0), 0.0)


def _late_s(load: LoadRates, begun_s: float, span: tuple[float, float]) -> float:
    """By how much the generator was late at most around an event, in seconds."""
    if load.delays is None:
        return 0.0
    around = (load.ends_s > max(begun_s - BASELINE_S, span[0])) & (load.ends_s <= span[1])
    late = (load.delays.late_s + load.delays.lost_s)[around]
    return float(late.max()) if len(late) else 0.0


def unseen(workload: str, baseline_s: float = 0.0, pause_s: float = 0.0) -> LoadResponse:
    """The answer of a load of which too little is known to tell one."""
    return LoadResponse(
        workload=workload,
        baseline_per_s=None,
        baseline_s=baseline_s,
        detected_s=None,
        pause_s=pause_s,
        least_per_s=None,
        dip_percent=None,
        recovered_s=None,
        degraded_per_s=None,
        degraded_change_percent=None,
        surge_per_s=None,
        before_ms_mean=None,
        lasting_ms_mean=None,
    )


def _recovered_s(
    load: LoadRates, delays: GeneratorDelays, band: Band, detected: int | None
) -> tuple[float | None, float | None]:
    """When the rate of the next ten seconds is back at what it was, beginning with a sample that is
    within the band or above; and from when on it may be back, with too little time left to tell.
    """
    if detected is None:
        return None, None
    lengths_s, counts, starts_s = load.lengths_s, load.counts, load.starts_s
    if not band.baseline:
        return float(starts_s[detected]), None
    made = _made(load, band)
    for first in range(detected, len(counts)):
        behind = load.ends_s >= starts_s[first] + RECOVERED_S - ROUNDING_S
        is_whole = bool(behind.any())
        last = int(np.argmax(behind)) if is_whole else len(counts) - 1
        seconds = load.ends_s[last] - starts_s[first] if is_whole else RECOVERED_S
        lacking_s = (1.0 - RECOVERED_SHARE) * seconds
        is_up = counts[first] / lengths_s[first] >= band.baseline - BAND_SD * band.usual
        lacked_s = lengths_s[first : last + 1].sum() - made[first : last + 1].sum() / band.baseline
        if is_up and lacked_s - delays.lacking_s(first, last) <= lacking_s + ROUNDING_S:
            moment_s = float(starts_s[first])
            return (moment_s, None) if is_whole else (None, moment_s)
    return None, None


def _made(load: LoadRates, band: Band) -> Floats:
    """What each sample made of the rate before.

    What had waited comes at once: it makes up for nothing that was lacking before.
    """
    made: Floats = np.minimum(load.counts, (band.baseline + band.usual) * load.lengths_s)
    return made


def _perhaps_s(
    load: LoadRates, delays: GeneratorDelays, band: Band, detected: int | None
) -> float | None:
    """From when on the rate lacked no more than chance makes a load lack that is back, in the next
    ten seconds and in all that follows; None where it always lacked more.
    """
    if detected is None or not band.baseline:
        return None
    made = _made(load, band)
    for first in range(detected, len(made)):
        behind = np.flatnonzero(load.ends_s >= load.starts_s[first] + RECOVERED_S - ROUNDING_S)
        if not len(behind):
            return None
        for last in (int(behind[0]), len(made) - 1):
            seconds = float(load.lengths_s[first : last + 1].sum())
            lacked_s = seconds - float(made[first : last + 1].sum()) / band.baseline
            share = 1.0 - RECOVERED_SHARE + band.lacking_by_chance(last + 1 - first)
            if lacked_s - delays.lacking_s(first, last) > share * seconds + ROUNDING_S:
                break
        else:
            return float(load.starts_s[first])
    return None


def _mean_ms(response_ms: Floats, counts: Floats, chosen: Chosen) -> float | None:
    """The mean response time of the operations in some samples; None where there are none."""
    return float(response_ms[chosen].sum() / counts[chosen].sum()) if counts[chosen].sum() else None


def _mean(
    rates: Floats, lengths_s: Floats, starts_s: Floats, detected: int | None, until_s: float
) -> float | None:
    if detected is None:
        return None
    chosen = (starts_s >= starts_s[detected]) & (starts_s + lengths_s <= until_s + ROUNDING_S)
    return (
        float((rates * lengths_s)[chosen].sum() / lengths_s[chosen].sum()) if chosen.any() else None
    )


def answered_span(workload: str, event: EventFigures) -> tuple[float, float] | None:
    """From when to when a load answered an event, in seconds on the clock of the run.

    Until it was back, or until the event was undone where that is later. None where the event did
    not begin, or changed nothing.
    """
    found = next((load for load in event.loads if load.workload == workload), None)
    if event.begun_s is None or found is None:
        return None
    undone_s = event.begun_s if event.undone_s is None else event.undone_s
    if found.baseline_per_s is None:
        return event.begun_s, math.inf if event.undone_s is None else undone_s
    if found.detected_s is None:
        return None
    if found.recovered_s is None:
        return event.begun_s, math.inf
    return event.begun_s, max(event.begun_s + found.recovered_s, undone_s)


def _staged(run_folder: Path, plan: Plan) -> list[StagedEvent]:
    """The plan's events, with what became of them.

    A run that was killed before it noted that did nothing we know of.
    """
    path = run_folder / folder.STAGED_EVENTS
    known = (
        {event.name: event for event in StagedEventsFile.read(path).events} if path.exists() else {}
    )
    return [
        known.get(event.name)
        or StagedEvent(
            name=event.name,
            phase=event.phase,
            kind=event.kind,
            planned_s=event.after_s,
            begun_s=None,
            applied_s=None,
            undo_begun_s=None,
            undone_s=None,
            proved=None,
            exit_code=None,
            output=None,
            undo_exit_code=None,
            undo_output=None,
            error=None,
            judge=event.judge,
        )
        for event in plan.events
    ]


def _figures(event: StagedEvent) -> EventFigures:
    return EventFigures(
        name=event.name,
        kind=event.kind,
        phase=event.phase,
        begun_s=event.begun_s,
        applied_s=event.applied_s,
        undone_s=event.undone_s,
        is_proved=event.proved,
        problem=event.error or ("the run did not come to it" if event.begun_s is None else None),
        io_errors=0,
        judge=event.judge,
        loads=(),
        held_s=ABSENT if event.held_s is None else event.held_s,
    )


def _of_node(event: EventFigures, planned: EventPlan, plan: Plan, outcome: Outcome) -> EventFigures:
    """What the death of a node cost, where the event was one."""
    if planned.node is None:
        return event
    found = [
        FailoverFigures(
            instance=plan.run.instances[item.instance].name,
            node=item.node,
            to=item.to,
            opened_s=(item.opened_ns - item.died_ns) / NS_PER_S,
            served_s=None if item.served_ns is None else (item.served_ns - item.died_ns) / NS_PER_S,
            lost_count=item.lost_count,
            cache_mib_max=item.cache_bytes_max / BYTES_PER_MB,
            log_mib=0.0 if item.recovery is None else item.recovery.log_bytes / BYTES_PER_MB,
        )
        for phase in outcome.phases
        for item in phase.failovers
        if item.event == event.name
    ]
    proved = bool(found) if event.kind in KINDS_OF_RUN else event.is_proved
    problem = event.problem
    if problem is None and not found and outcome.error and outcome.error.family == "cluster":
        problem = f"{outcome.error.text}, so nothing came back"
    return event.replace(
        is_proved=proved,
        problem=problem,
        failovers=found or ABSENT,
        fit=planned.fit or ABSENT,
        fit_lacking=planned.fit_lacking or ABSENT,
    )


def failover_in_words(found: FailoverFigures) -> str:
    """How an instance came back, in a sentence."""
    served = (
        "nothing was served again in the phase"
        if found.served_s is None
        else f"the first operation was served after {found.served_s:.2f} s"
    )
    return (
        f"{found.instance} is back on {found.to} {found.opened_s:.2f} s after {found.node} died; "
        f"{served}; {found.lost_count} operations were lost"
    )


def in_words(figures: Sequence[EventFigures]) -> list[str]:
    """Lines for the printed result."""
    lines = []
    for event in figures:
        if event.problem is not None:
            lines.append(f"event {event.name}: {event.problem}")
        if event.held_s is not None:
            lines.append(f"event {event.name}: all writes were held for {event.held_s:.2f} s")
        lines += [f"event {event.name}: {failover_in_words(item)}" for item in event.failovers]
        lines += [
            f"event {event.name}, {load.workload}: {response_in_words(load)}"
            for load in event.loads
        ]
    return lines


def response_in_words(load: LoadResponse) -> str:
    """One answer in a sentence."""
    if load.baseline_per_s is None and load.disturbed_by is not None:
        return f"event {load.disturbed_by} is too near to tell what it changed"
    if load.baseline_per_s is None:
        return f"{load.baseline_s:.3g} s before it are too short to tell what it changed"
    if load.detected_s is None:
        late_s = load.generator_late_s or 0.0
        late = f"; the load generator was late by up to {late_s:.2g} s" if late_s >= TOLD_S else ""
        took = ""
        if load.before_ms_mean is not None and load.lasting_ms_mean is not None:
            took = (
                f", in {shown(load.before_ms_mean, 'ms')} on average before and "
                f"{shown(load.lasting_ms_mean, 'ms')} while it lasted"
            )
        return f"no change seen in {load.baseline_per_s:,.1f} operations per second{took}{late}"
    parts = [f"seen after {load.detected_s:.1f} s"]
    if load.pause_s:
        parts.append(f"{load.pause_s:.1f} s without any operation")
    if load.dip_percent is not None:
        parts.append(
            f"lowest {load.dip_percent:.0f} % below the {load.baseline_per_s:,.1f} per second "
            f"before"
        )
    if load.degraded_change_percent is not None:
        parts.append(f"{load.degraded_change_percent:+.0f} % while it lasted")
    back = "not back" if load.recovered_s is None else f"back after {load.recovered_s:.1f} s"
    return ", ".join([*parts, back])
