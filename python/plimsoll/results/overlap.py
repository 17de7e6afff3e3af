"""Whether all loads of a run worked over all of the measured time.

A load that could not start, or came to an end before the others, was no neighbour to them: what
they showed then is not what the plan asks for.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.documents.outcome import PhaseOutcome
from plimsoll.results.events import LoadRates
from plimsoll.units import NS_PER_S


def overlaps(rates: Sequence[LoadRates], phases: Sequence[PhaseOutcome]) -> dict[str, float]:
    """For each load, the share of the measured time from its first to its last operation.

    Args:
        rates: what each load completed in every sample.
        phases: the measured phases.
    """
    spans = [(phase.start_ns / NS_PER_S, phase.end_ns / NS_PER_S) for phase in phases]
    total = sum(last - first for first, last in spans)
    return {
        load.workload: sum(_share(load, span) * (span[1] - span[0]) for span in spans) / total
        for load in rates
        if total > 0
    }


def _share(load: LoadRates, span: tuple[float, float]) -> float:
    begins = load.ends_s - load.lengths_s
    inside = (begins >= span[0] - 1e-6) & (load.ends_s <= span[1] + 1e-6) & (load.counts > 0)
    if not inside.any():
        return 0.0
    count = int(load.counts[inside].sum())
    return overlap_share(begins[inside][0], load.ends_s[inside][-1], count, span)


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
