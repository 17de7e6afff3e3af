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
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plimsoll.documents.document import ABSENT
from plimsoll.documents.event import read_events
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
from plimsoll.results.generator_delays import Floats, GeneratorDelays, delays_of
from plimsoll.results.places import names_of_databases
from plimsoll.units import BYTES_PER_MB, NS_PER_MS, NS_PER_S
from plimsoll.workloads.families import OPERATIONS

BASELINE_S = 60.0
#: Fewer samples before the event are no baseline.
BASELINE_SAMPLES_MIN = 5
#: Standard deviations of the baseline: one sample so far out has changed, or two samples running
#: that are out on the same side.
BAND_ALONE_SD, BAND_SD = 8.0, 4.0
#: So many samples are looked at together: what a late generator moves from one to the next weighs
#: the less the more they are.
ROW_MAX = 10
#: A load is back once its rate over so long is so much of what it was.
RECOVERED_S, RECOVERED_SHARE = 10.0, 0.95

#: A generator that was less late than this is not worth a word.
TOLD_S = 0.1

#: Times are nanoseconds as fractions of seconds.
ROUNDING_S = 1e-6

Chosen = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LoadRates:
    """What one load completed in every sample of the run.

    Attributes:
        workload: its name.
        ends_s: when each sample ended, in seconds on the clock of the run, ascending; shape (n,).
        lengths_s: how long each lasted, in seconds; shape (n,).
        counts: operations that completed in each; shape (n,).
        response_ms: the sum of their response times in ms; shape (n,).
        delays: how late the load generator was; never, if left out.
    """

    workload: str
    ends_s: Floats
    lengths_s: Floats
    counts: Floats
    response_ms: Floats
    delays: GeneratorDelays | None = None

    def of(self, chosen: Chosen) -> LoadRates:
        """Some of the samples."""
        delays = self.delays or GeneratorDelays.none(len(self.ends_s))
        return LoadRates(
            self.workload,
            self.ends_s[chosen],
            self.lengths_s[chosen],
            self.counts[chosen],
            self.response_ms[chosen],
            delays.of(chosen),
        )


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
    staged = {event.name: event for event in _staged(run_folder, plan)}
    planned = {event.name: event for event in plan.events}
    events = [
        _of_node(_figures(event), planned[event.name], plan, outcome) for event in staged.values()
    ]
    if not events:
        return []
    rates = [rates_of(load.name, ask) for load in plan.run.workloads]
    running = {phase.name: phase.workloads for phase in plan.run.phases}
    errors_ns = [
        event.time_ns
        for event in read_events(run_folder)
        if event.kind in ("io_error", "io_refused")
    ]
    found = []
    for event in sorted(
        events, key=lambda event: math.inf if event.begun_s is None else event.begun_s
    ):
        phase = next((phase for phase in outcome.phases if phase.name == event.phase), None)
        if phase is None or event.begun_s is None:
            found.append(event)
            continue
        span = (phase.start_ns / NS_PER_S, phase.end_ns / NS_PER_S)
        # Another event ends what can be said of this one.
        later = [
            other.begun_s
            for other in events
            if other.begun_s is not None and other.begun_s > event.begun_s
        ]
        ends_s = min([*later, span[1]]) if event.undone_s is None else span[1]
        loads = [
            response(load, event=(event.begun_s, event.undone_s), span=(span[0], ends_s))
            for load in rates
            # A load that does not run in the phase answers nothing.
            if load.workload in running[phase.name]
        ]
        errors = sum(event.begun_s <= time_ns / NS_PER_S <= span[1] for time_ns in errors_ns)
        answered = [load for load in loads if load is not None]
        judged = event.replace(loads=answered, io_errors=errors)
        lasted = degraded_span(staged[event.name], answered, ends_s)
        if event.judge.degraded_limits is not None and lasted is not None:
            judged = judged.replace(
                degraded_from_s=lasted[0],
                degraded_until_s=lasted[1],
                degraded=degraded_figures(lasted, ask, names_of_databases(plan)),
            )
        found.append(judged)
    return found


def response(
    load: LoadRates, *, event: tuple[float, float | None], span: tuple[float, float]
) -> LoadResponse | None:
    """How one load answered one event.

    Args:
        load: what it completed over the run.
        event: when the event began and when it was undone (None if it was not), in seconds.
        span: first and last moment that belong to the phase of the event, in seconds.

    Returns:
        None where no sample lies in the phase.
    """
    found = _answered(load, event, span)
    late_s = _late_s(load, event[0], span)
    if found is None or not late_s:
        return found
    seen = _answered(replace(load, delays=None), event, span)
    if seen is None or seen.baseline_per_s is None:
        return found
    return found.replace(
        generator_late_s=late_s,
        seen=SeenResponse(
            pause_s=seen.pause_s, dip_percent=seen.dip_percent, recovered_s=seen.recovered_s
        ),
    )


def _answered(
    load: LoadRates, event: tuple[float, float | None], span: tuple[float, float]
) -> LoadResponse | None:
    begun_s, undone_s = event
    workload = load.workload
    load = load.of(
        (load.ends_s - load.lengths_s >= span[0] - ROUNDING_S)
        & (load.ends_s <= span[1] + ROUNDING_S)
        & (load.lengths_s > 0)
    )
    ends_s, lengths_s, counts = load.ends_s, load.lengths_s, load.counts
    if not len(ends_s):
        return None
    assert load.delays is not None
    rates = counts / lengths_s
    starts_s = ends_s - lengths_s
    before = (ends_s <= begun_s) & (starts_s >= begun_s - BASELINE_S)
    after = starts_s >= begun_s - lengths_s / 2
    delays = load.delays.beyond(before)
    has_baseline = int(before.sum()) >= BASELINE_SAMPLES_MIN
    pause_s = _longest_pause(load.of(after))
    if not has_baseline or not after.any():
        return _unseen(workload, float(lengths_s[before].sum()), pause_s)
    first, last = np.flatnonzero(before)[[0, -1]]
    # What was late at its end belongs to it, and what was late at its begin does not.
    asked_s = float(lengths_s[before].sum())
    asked_s -= min(delays.carried_s(last) - delays.carried_s(first - 1), asked_s / 2)
    baseline = float(counts[before].sum() / asked_s)
    # Counts of independent events scatter by their root; a baseline that happens to be flatter
    # proves no narrower band.
    chance = math.sqrt(max(baseline * float(lengths_s.mean()), 1.0)) / float(lengths_s.mean())
    settled = _settled(load, delays, baseline)[before]
    scatter = max(float(np.std(settled, ddof=1)), chance)
    # What most samples scatter by: one stall before the event must not hide the event.
    usual = max(min(scatter, _usual_scatter(settled)), chance)
    band = _Band(baseline, usual, scatter)
    samples = (int(number) for number in np.flatnonzero(after))
    detected = next((first for first in samples if _changed(load, delays, band, first)), None)
    recovered_s = _recovered_s(load, delays, band, detected)
    degraded = _mean(rates, lengths_s, starts_s, detected, undone_s or span[1])
    back_s = undone_s if undone_s is not None else recovered_s
    later = (
        starts_s >= back_s
        if back_s is not None and detected is not None
        else np.zeros(len(rates), bool)
    )
    change = None if degraded is None or not baseline else 100.0 * (degraded / baseline - 1.0)
    return LoadResponse(
        workload=workload,
        baseline_per_s=baseline,
        baseline_s=float(lengths_s[before].sum()),
        detected_s=None if detected is None else max(float(starts_s[detected]) - begun_s, 0.0),
        pause_s=pause_s,
        least_per_s=float(rates[after].min()),
        # Where nothing changed, the lowest of many samples is chance.
        dip_percent=None
        if not baseline
        else 0.0
        if detected is None
        else _dip_percent(load.of(after), delays.of(after), baseline, change),
        recovered_s=None if recovered_s is None else max(recovered_s - begun_s, 0.0),
        degraded_per_s=degraded,
        degraded_change_percent=change,
        surge_per_s=float(rates[later].max()) if later.any() else None,
        before_ms_mean=_mean_ms(load.response_ms, counts, before),
        lasting_ms_mean=_mean_ms(
            load.response_ms, counts, after & (ends_s <= (undone_s or span[1]) + ROUNDING_S)
        ),
        unseen_percent=100.0 * min(BAND_ALONE_SD * scatter, BAND_SD * usual) / baseline
        if baseline
        else None,
    )


@dataclass(frozen=True)
class _Band:
    """What a load did before an event, in operations per second.

    Attributes:
        baseline: the mean rate.
        usual: the standard deviation of the middle half of the samples.
        scatter: that of all samples.
    """

    baseline: float
    usual: float
    scatter: float


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


def _changed(load: LoadRates, delays: GeneratorDelays, band: _Band, first: int) -> bool:
    """Whether the rate has changed in a sample.

    It is far out alone, or it begins a row of samples that are out on the same side. Either by more
    than the generator's own delays can have made of it.
    """
    lengths_s, beyond = load.lengths_s, load.counts / load.lengths_s - band.baseline
    side = math.copysign(1.0, beyond[first])
    out_ops = side * beyond * lengths_s
    made_s = delays.ahead_s if side > 0 else delays.lacking_s
    alone = out_ops[first] - band.baseline * made_s(first, first)
    if alone > BAND_ALONE_SD * band.scatter * lengths_s[first]:
        return True
    is_out = side * beyond > BAND_SD * band.usual
    if not is_out[first]:
        return False
    for last in range(first + 1, min(first + ROW_MAX, len(lengths_s))):
        if not is_out[last]:
            return False
        row = slice(first, last + 1)
        left = out_ops[row].sum() - band.baseline * made_s(first, last)
        if left > BAND_SD * band.usual * lengths_s[row].sum():
            return True
    return False


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


def _unseen(workload: str, baseline_s: float, pause_s: float) -> LoadResponse:
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


def _usual_scatter(rates: Floats) -> float:
    """The standard deviation that the middle half of the samples stands for.

    Source: of a normal distribution the median distance from the median is 0.6745 of it.
    """
    return float(np.median(np.abs(rates - np.median(rates)))) / 0.6745


def _longest_pause(load: LoadRates) -> float:
    """The longest time without a completed operation, less what the generator was late.

    Samples shorter pauses hide in are the least that can be told.
    """
    assert load.delays is not None
    starts_s = load.ends_s - load.lengths_s
    longest, position = 0.0, 0
    for idle, group in groupby(load.counts == 0):
        last = position + len(list(group)) - 1
        if idle:
            pause_s = float(load.ends_s[last] - starts_s[position])
            longest = max(longest, pause_s - load.delays.lacking_s(position, last))
        position = last + 1
    return longest


def _recovered_s(
    load: LoadRates, delays: GeneratorDelays, band: _Band, detected: int | None
) -> float | None:
    """When the rate of the next ten seconds is back at what it was, beginning with a sample that is
    within the band or above.
    """
    lengths_s, counts = load.lengths_s, load.counts
    starts_s = load.ends_s - lengths_s
    # What had waited comes at once: it makes up for nothing that was lacking before.
    made = np.minimum(counts, (band.baseline + band.usual) * lengths_s)
    for first in range(len(counts) if detected is None else detected, len(counts)):
        behind = load.ends_s >= starts_s[first] + RECOVERED_S - ROUNDING_S
        if not behind.any():
            return None
        last = int(np.argmax(behind))
        lacking_s = (1.0 - RECOVERED_SHARE) * (load.ends_s[last] - starts_s[first])
        is_up = counts[first] / lengths_s[first] >= band.baseline - BAND_SD * band.usual
        lacked_s = lengths_s[first : last + 1].sum() - made[first : last + 1].sum() / band.baseline
        if is_up and lacked_s - delays.lacking_s(first, last) <= lacking_s + ROUNDING_S:
            return float(starts_s[first])
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


def rates_of(workload: str, ask: Query) -> LoadRates:
    """What one load completed in every sample, also in those in which it completed nothing."""
    rows = ask(
        "SELECT end_ns::BIGINT AS end_ns, max(interval_ns)::BIGINT AS length_ns,"
        " coalesce(sum(count) FILTER (WHERE workload = $workload AND list_contains($metrics, "
        "metric)), 0)::BIGINT AS count,"
        " coalesce(sum(latency_ns_sum) FILTER (WHERE workload = $workload AND "
        "list_contains($metrics, metric)), 0)::DOUBLE AS ns"
        " FROM sample GROUP BY end_ns ORDER BY end_ns",
        {"workload": workload, "metrics": list(OPERATIONS)},
    )
    ends, lengths, counts, total_ns = (
        np.array([row[name] for row in rows], dtype=np.float64)
        for name in ("end_ns", "length_ns", "count", "ns")
    )
    return LoadRates(
        workload,
        ends / NS_PER_S,
        lengths / NS_PER_S,
        counts,
        total_ns / NS_PER_MS,
        delays_of(workload, ask),
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
    return event.replace(
        is_proved=proved,
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
    if load.baseline_per_s is None:
        return f"{load.baseline_s:.3g} s before it are too short to tell what it changed"
    if load.detected_s is None:
        late_s = load.generator_late_s or 0.0
        late = f"; the load generator was late by up to {late_s:.2g} s" if late_s >= TOLD_S else ""
        return f"nothing changed; {load.baseline_per_s:,.1f} operations per second before{late}"
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
