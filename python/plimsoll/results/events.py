"""How loads answered the events that a run staged, from its samples.

Of every load the completed operations of each sample are a rate. Before the event they give a
baseline: mean and standard deviation of up to 60 s. What leaves the band of four standard
deviations for two samples, or is far out in one, is detected, whether the rate falls or rises: a
degraded storage may be faster. The definitions are those of `docs/degraded.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plimsoll.documents.event import read_events
from plimsoll.documents.event_figures import EventFigures, LoadResponse
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.staged_events import StagedEvent, StagedEventsFile
from plimsoll.files import folder
from plimsoll.files.parquet import Query
from plimsoll.units import NS_PER_MS, NS_PER_S
from plimsoll.workloads.families import OPERATIONS

BASELINE_S = 60.0
#: Fewer samples before the event are no baseline.
BASELINE_SAMPLES_MIN = 5
#: Standard deviations of the baseline: one sample so far out has changed, or two samples running
#: that are out on the same side.
BAND_ALONE_SD, BAND_SD = 8.0, 4.0
#: A load is back once its rate over so long is so much of what it was.
RECOVERED_S, RECOVERED_SHARE = 10.0, 0.95

#: Times are nanoseconds as fractions of seconds.
ROUNDING_S = 1e-6

Floats = npt.NDArray[np.float64]
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
    """

    workload: str
    ends_s: Floats
    lengths_s: Floats
    counts: Floats
    response_ms: Floats


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
    events = [_figures(event) for event in _staged(run_folder, plan)]
    if not events:
        return []
    rates = [rates_of(load.name, ask) for load in plan.run.workloads]
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
        ]
        errors = sum(event.begun_s <= time_ns / NS_PER_S <= span[1] for time_ns in errors_ns)
        found.append(
            event.replace(loads=[load for load in loads if load is not None], io_errors=errors)
        )
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
    begun_s, undone_s = event
    workload, ends_s, lengths_s, counts = load.workload, load.ends_s, load.lengths_s, load.counts
    inside = (
        (ends_s - lengths_s >= span[0] - ROUNDING_S)
        & (ends_s <= span[1] + ROUNDING_S)
        & (lengths_s > 0)
    )
    ends_s, lengths_s, counts = ends_s[inside], lengths_s[inside], counts[inside]
    if not len(ends_s):
        return None
    rates = counts / lengths_s
    starts_s = ends_s - lengths_s
    before = (ends_s <= begun_s) & (starts_s >= begun_s - BASELINE_S)
    after = starts_s >= begun_s - lengths_s / 2
    has_baseline = int(before.sum()) >= BASELINE_SAMPLES_MIN
    pause_s = _longest_pause(starts_s[after], ends_s[after], counts[after])
    if not has_baseline or not after.any():
        return _unseen(workload, float(lengths_s[before].sum()), pause_s)
    baseline = float(counts[before].sum() / lengths_s[before].sum())
    # Counts of independent events scatter by their root; a baseline that happens to be flatter
    # proves no narrower band.
    chance = math.sqrt(max(baseline * float(lengths_s.mean()), 1.0)) / float(lengths_s.mean())
    scatter = max(float(np.std(rates[before], ddof=1)), chance)
    # What most samples scatter by: one stall before the event must not hide the event.
    usual = max(min(scatter, _usual_scatter(rates[before])), chance)
    distance = rates - baseline
    side = np.sign(distance) * (np.abs(distance) > BAND_SD * usual)
    in_a_row = (side != 0) & (side == np.append(side[1:], 0))
    changed = after & (in_a_row | (np.abs(distance) > BAND_ALONE_SD * scatter))
    detected = int(np.argmax(changed)) if changed.any() else None
    least = float(rates[after].min())
    recovered_s = _recovered_s(load, inside, baseline, usual, detected)
    degraded = _mean(rates, lengths_s, starts_s, detected, undone_s or span[1])
    back_s = undone_s if undone_s is not None else recovered_s
    later = (
        starts_s >= back_s
        if back_s is not None and detected is not None
        else np.zeros(len(rates), bool)
    )
    return LoadResponse(
        workload=workload,
        baseline_per_s=baseline,
        baseline_s=float(lengths_s[before].sum()),
        detected_s=None if detected is None else max(float(starts_s[detected]) - begun_s, 0.0),
        pause_s=pause_s,
        least_per_s=least,
        # Where nothing changed, the lowest of many samples is chance.
        dip_percent=None
        if not baseline
        else 0.0
        if detected is None
        else max(100.0 * (1.0 - least / baseline), 0.0),
        recovered_s=None if recovered_s is None else max(recovered_s - begun_s, 0.0),
        degraded_per_s=degraded,
        degraded_change_percent=None
        if degraded is None or not baseline
        else 100.0 * (degraded / baseline - 1.0),
        surge_per_s=float(rates[later].max()) if later.any() else None,
        before_ms_mean=_mean_ms(load.response_ms[inside], counts, before),
        lasting_ms_mean=_mean_ms(
            load.response_ms[inside], counts, after & (ends_s <= (undone_s or span[1]) + ROUNDING_S)
        ),
    )


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


def _longest_pause(starts_s: Floats, ends_s: Floats, counts: Floats) -> float:
    """The longest time without a completed operation.

    Samples shorter pauses hide in are the least that can be told.
    """
    longest, position = 0.0, 0
    for idle, group in groupby(counts == 0):
        length = len(list(group))
        if idle:
            longest = max(longest, float(ends_s[position + length - 1] - starts_s[position]))
        position += length
    return longest


def _recovered_s(
    load: LoadRates, inside: Chosen, baseline: float, scatter: float, detected: int | None
) -> float | None:
    """When the rate of the next ten seconds is back at what it was, beginning with a sample that is
    within the band or above.
    """
    ends_s, lengths_s, counts = load.ends_s[inside], load.lengths_s[inside], load.counts[inside]
    starts_s = ends_s - lengths_s
    # What had waited comes at once: it makes up for nothing that was lacking before.
    made = np.minimum(counts, (baseline + scatter) * lengths_s)
    for first in range(len(ends_s) if detected is None else detected, len(ends_s)):
        behind = ends_s >= starts_s[first] + RECOVERED_S - ROUNDING_S
        if not behind.any():
            return None
        last = int(np.argmax(behind))
        seconds = ends_s[last] - starts_s[first]
        is_up = counts[first] / lengths_s[first] >= baseline - BAND_SD * scatter
        if is_up and made[first : last + 1].sum() / seconds >= RECOVERED_SHARE * baseline:
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
    return LoadRates(workload, ends / NS_PER_S, lengths / NS_PER_S, counts, total_ns / NS_PER_MS)


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
    )


def in_words(figures: Sequence[EventFigures]) -> list[str]:
    """Lines for the printed result."""
    lines = []
    for event in figures:
        if event.problem is not None:
            lines.append(f"event {event.name}: {event.problem}")
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
        return f"nothing changed; {load.baseline_per_s:,.1f} operations per second before"
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
