"""Whether all loads of a run worked over all of the measured time.

A load that could not start, came to an end before the others, or stopped in between, was no
neighbour to them: what they showed then is not what the plan asks for. What a load did not do while
it answered an event is judged as that answer. Where nobody did anything the storage is to blame.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

import numpy as np

from plimsoll.documents.event_figures import EventFigures
from plimsoll.documents.outcome import PhaseOutcome
from plimsoll.documents.run_spec import FilesWorkload, WorkloadSpec
from plimsoll.plan.load import has_stages
from plimsoll.results.events import ROUNDING_S, LoadRates, answered_span
from plimsoll.results.generator_delays import Floats
from plimsoll.units import NS_PER_S

#: Nothing for so many times the mean time between two operations is no chance.
GAPS_MIN = 10


def overlaps(
    rates: Sequence[LoadRates],
    phases: Sequence[PhaseOutcome],
    running: Mapping[str, Collection[str]],
    events: Sequence[EventFigures] = (),
    uneven: Collection[str] = (),
) -> dict[str, float]:
    """For each load, the share of the time in which it was to work beside others that it worked.

    A load that the plan never measures beside another is left out.

    Args:
        rates: what each load completed in every sample, the same samples for all.
        phases: the measured phases.
        running: the loads of each phase, by its name.
        events: how the loads answered what was staged.
        uneven: loads that rest by plan, whose gaps say nothing.
    """
    found = {}
    for load in rates:
        spans = [
            (phase.start_ns / NS_PER_S, phase.end_ns / NS_PER_S)
            for phase in phases
            if load.workload in running[phase.name] and len(running[phase.name]) > 1
        ]
        total = sum(last - first for first, last in spans)
        others = sum((other.counts for other in rates if other is not load), load.counts * 0)
        answers = [span for event in events if (span := answered_span(load.workload, event))]
        if load.workload in uneven:
            others = others * 0
        if total > 0:
            worked = [_share(load, span, others, answers) * (span[1] - span[0]) for span in spans]
            found[load.workload] = sum(worked) / total
    return found


def _share(
    load: LoadRates,
    span: tuple[float, float],
    others: Floats,
    answers: Sequence[tuple[float, float]],
) -> float:
    begins = load.ends_s - load.lengths_s
    inside = (begins >= span[0] - ROUNDING_S) & (load.ends_s <= span[1] + ROUNDING_S)
    busy = np.flatnonzero(inside & (load.counts > 0))
    if not len(busy):
        return 0.0
    first, last = int(busy[0]), int(busy[-1])
    count = int(load.counts[inside].sum())
    share = overlap_share(float(begins[first]), float(load.ends_s[last]), count, span)
    length = span[1] - span[0]
    idle_s, position = 0.0, first
    for is_idle, group in groupby(load.counts[first : last + 1] == 0):
        end = position + len(list(group))
        gap = float(begins[position]), float(load.ends_s[end - 1])
        lasts_s = gap[1] - gap[0]
        answering = any(begun < gap[1] and gap[0] < back for begun, back in answers)
        alone = others[position:end].sum() > 0
        if is_idle and alone and not answering and lasts_s > GAPS_MIN * length / count:
            idle_s += lasts_s
        position = end
    return max(share - idle_s / length, 0.0)


def overlap_share(first_s: float, last_s: float, count: int, span: tuple[float, float]) -> float:
    """The share of the measured time in which a load worked, from its first to its last operation.

    Args:
        first_s: begin of the first sample in which an operation completed, in seconds.
        last_s: end of the last such sample.
        count: how many there were.
        span: when was measured.

    >>> overlap_share(1.0, 60.0, 600, (0.0, 60.0)) > 0.98
    True
    """
    length = span[1] - span[0]
    if not count or length <= 0:
        return 0.0
    # A load with few operations has some time before its first and after its last.
    slack = 2 * length / count
    return min((last_s - first_s + slack) / length, 1.0)


def rests(load: WorkloadSpec) -> bool:
    """Whether a load does little or nothing for some of its time, as the plan says."""
    delays = isinstance(load, FilesWorkload) and any(line.delay_ms for line in load.access)
    return delays or has_stages(load)
