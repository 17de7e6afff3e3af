"""Whether all loads of a run worked over all of the measured time.

A load that could not start, came to an end before the others, or stopped in between, was no
neighbour to them: what they showed then is not what the plan asks for. What a load did not do while
it answered an event is judged as that answer. Where nobody did anything the storage is to blame.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np

from plimsoll.documents.event_figures import EventFigures
from plimsoll.documents.outcome import PhaseOutcome
from plimsoll.documents.run_spec import FilesWorkload, WorkloadSpec
from plimsoll.plan.load import has_stages
from plimsoll.results.event_pauses import GAPS_MIN
from plimsoll.results.event_spans import ROUNDING_S
from plimsoll.results.events import answered_span
from plimsoll.results.generator_delays import Floats
from plimsoll.results.load_rates import LoadRates
from plimsoll.units import NS_PER_S

#: From so many gaps on a load works in groups of operations.
GROUPS_MIN = 5


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
    # A sample that a phase only touches at an end counts with what of it lies in the phase.
    begins, ends = np.maximum(load.starts_s, span[0]), np.minimum(load.ends_s, span[1])
    inside = ends - begins > ROUNDING_S
    busy = np.flatnonzero(inside & (load.counts > 0))
    if not len(busy):
        return 0.0
    first, last = int(busy[0]), int(busy[-1])
    gaps = [(before + 1, after) for before, after in pairwise(busy) if after - before > 1]
    length = span[1] - span[0]
    lengths = [float(ends[end - 1] - begins[start]) for start, end in gaps]
    count = float(load.counts[inside].sum())
    longest_s = GAPS_MIN * _mean_gap_s(length / count, lengths)
    samples = np.flatnonzero(inside)
    edges = (
        (span[0], float(begins[first]), others[samples[0] : first]),
        (float(ends[last]), span[1], others[last + 1 : samples[-1] + 1]),
    )

    def is_answer(from_s: float, to_s: float) -> bool:
        return any(begun < to_s and from_s < back for begun, back in answers)

    idle_s = 0.0
    for from_s, to_s, meanwhile in edges:
        # So few operations have no gap that is too long, but they cannot stand for all of the time.
        edge_s = to_s - from_s
        is_most = count <= GAPS_MIN and edge_s > length / 2 and meanwhile.sum() > 0
        if (edge_s > longest_s or is_most) and not is_answer(from_s, to_s):
            idle_s += edge_s
    for (start, end), lasts_s in zip(gaps, lengths, strict=True):
        alone = others[start:end].sum() > 0
        answering = is_answer(float(begins[start]), float(ends[end - 1]))
        if alone and not answering and lasts_s > longest_s:
            idle_s += lasts_s
    return max(1 - idle_s / length, 0.0)


def _mean_gap_s(between_operations_s: float, idle_s: Sequence[float]) -> float:
    """The mean time between two operations, or between two groups of them.

    A user asks for a message in several operations and then nothing for long. The median of idle
    times is that of an exponential distribution, ln 2 of its mean: one hole does not move it.
    """
    if len(idle_s) < GROUPS_MIN:
        return between_operations_s
    return max(between_operations_s, float(np.median(idle_s)) / math.log(2))


def rests(load: WorkloadSpec) -> bool:
    """Whether a load does little or nothing for some of its time, as the plan says."""
    delays = isinstance(load, FilesWorkload) and any(line.delay_ms for line in load.access)
    return delays or has_stages(load)
