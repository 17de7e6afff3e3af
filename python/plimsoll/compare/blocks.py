"""How sure a figure of one run is, from what its samples say of each other.

Neighbouring samples of a storage resemble each other (caches fill, checkpoints come and go), so a
standard error from single samples is far too small. Samples are put together to blocks of 1, 2, 4
... of them, as long as thirty blocks are left. At each length the variance of the mean follows from
the spread of the blocks and from how much neighbours resemble each other (lag 1, with what a short
series shows too little of it): for a series that remembers by a constant share it is the spread
times (1 + r) / (1 - r), by the number of blocks. The largest of these variances counts, so that
what only long blocks see is not lost.

A run that holds fewer than thirty times in which it resembles itself says nothing about its own
confidence: by then the correlation itself is not known well enough. It is taken at its upper bound
for that, two standard errors above what was found. Of runs that are hardly long enough, those get
through that happen to look calm, with a spread as much too small. So the error grows by what few
times leave unknown: by four fifths at thirty times, by a quarter at a hundred, by 2 % at a
thousand.

Every figure is a quotient of sums: operations by seconds, or nanoseconds by operations. Its error
is that of a ratio estimate, from what each block deviates from the quotient of the whole.
Percentiles have no blocks: samples hold no distributions.

Limits: what differs from run to run (placement, day, neighbours) is not seen from within one run.
`docs/statistics.md` has the coverage, with the commands that simulate it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

#: The least that is looked at, in seconds and in samples.
SECONDS_MIN = 50.0
BLOCKS_MIN = 30
#: So many times the time in which a run resembles itself it must have been measured for.
TIMES_MIN = 30
#: How far above what was found the correlation may be: standard errors for the bound that decides,
#: and for the error of a run that is long enough.
BOUND_ERRORS, LIKELY_ERRORS = 2.0, 0.5
CORRELATION_MAX = 0.999
#: The error of so many times in which a run resembles itself is larger by this many of them.
UNKNOWN_TIMES = 24


class Moment(NamedTuple):
    """One sample of a figure: what is divided, by what, and how long it took."""

    seconds: float
    numerator: float
    denominator: float


@dataclass(frozen=True)
class Estimate:
    """A figure with its standard error.

    Attributes:
        value: the figure.
        relative_error: its standard error as a share of it; None where nothing can be said.
        degrees: degrees of freedom of that error.
        basis: "runs" or "blocks".
        count: how many runs or blocks.
        block_s: length of a block.
        why_not: why nothing can be said.
        is_open: whether runs of our own could say more: such a figure is called neither better nor
            worse. Of what others print once, only the direction will ever be known.
        withheld: the largest share of it that a load generator without a processor can be.
    """

    value: float | None
    relative_error: float | None = None
    degrees: float = 0.0
    basis: str = ""
    count: int = 0
    block_s: float | None = None
    why_not: str = ""
    is_open: bool = False
    withheld: float = 0.0


def of_blocks(value: float | None, moments: Sequence[Moment], scale: float = 1.0) -> Estimate:
    """The confidence of a run's figure from blocks of its own time.

    Args:
        value: the figure as it is shown.
        moments: the samples of the measured time, in order.
        scale: from the quotients of the samples to the figure.
    """
    if not value or not moments:
        return Estimate(
            value, why_not="nothing was measured" if not value else "there are no samples"
        )
    interval_s = sorted(moment.seconds for moment in moments)[len(moments) // 2]
    whole_s = sum(moment.seconds for moment in moments)
    least_s = max(SECONDS_MIN, BLOCKS_MIN * interval_s)
    if whole_s < least_s * 0.999 or len(moments) < BLOCKS_MIN:
        return Estimate(
            value,
            why_not=f"{whole_s:.0f} s are too short: {least_s:.0f} s are needed",
            is_open=True,
        )
    deviations, mean_denominator = _deviations(moments)
    bound = _correlation(deviations, BOUND_ERRORS)
    times = len(deviations) * (1 - bound) / (1 + bound)
    if times < TIMES_MIN:
        return Estimate(
            value,
            why_not=f"it drifts, or follows itself for long: {whole_s:.0f} s may hold only "
            f"{times:.0f} times in which it "
            f"resembles itself, {TIMES_MIN} are needed",
            is_open=True,
        )
    # Who is only just long enough may be so because its correlation looks smaller than it is.
    errors = LIKELY_ERRORS if times >= 2 * TIMES_MIN else BOUND_ERRORS
    per_block, variance, degrees, count = _widest(deviations, errors)
    error = math.sqrt(variance) / mean_denominator * (1 + UNKNOWN_TIMES / times)
    return Estimate(value, error * scale / value, degrees, "blocks", count, per_block * interval_s)


def of_runs(values: Sequence[float]) -> Estimate:
    """The confidence of a figure from the runs of a repeated run."""
    count = len(values)
    mean = sum(values) / count
    if not mean:
        return Estimate(mean, why_not="nothing was measured")
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    return Estimate(mean, math.sqrt(variance / count) / mean, count - 1.0, "runs", count)


def _deviations(moments: Sequence[Moment]) -> tuple[list[float], float]:
    """What each sample's numerator is beside what the quotient of the whole expects of it, and the
    mean denominator.
    """
    numerator, denominator = (
        sum(item.numerator for item in moments),
        sum(item.denominator for item in moments),
    )
    quotient = numerator / denominator if denominator else 0.0
    found = [item.numerator - quotient * item.denominator for item in moments]
    return found, max(denominator / len(moments), 1e-300)


def _widest(deviations: Sequence[float], errors: float) -> tuple[int, float, float, int]:
    """The block length with the largest variance of the mean.

    That length, the variance, its degrees of freedom, the blocks.
    """
    found = (1, 0.0, float(len(deviations) - 1), len(deviations))
    per_block = 1
    while len(deviations) // per_block >= BLOCKS_MIN:
        count = len(deviations) // per_block
        # What is left over at the end is too short for a block.
        blocks = [
            sum(deviations[at : at + per_block]) / per_block
            for at in range(0, count * per_block, per_block)
        ]
        alike = _correlation(blocks, errors if per_block == 1 else 0.0)
        mean = sum(blocks) / count
        factor = (1 + alike) / (1 - alike)
        variance = sum((block - mean) ** 2 for block in blocks) / (count - 1) / count * factor
        if variance > found[1]:
            found = (per_block, variance, max(count / factor, 3.0), count)
        per_block *= 2
    return found


def _correlation(values: Sequence[float], errors: float) -> float:
    """How much neighbours resemble each other, so many standard errors above what was found, and
    never below zero.

    The mean that is taken off makes the correlation look smaller by (1 + 3 r) / n (Kendall,
    Biometrika 41, 1954).
    """
    count = len(values)
    mean = sum(values) / count
    squares = sum((value - mean) ** 2 for value in values)
    if squares == 0:
        return 0.0
    shown = sum((one - mean) * (other - mean) for one, other in pairwise(values)) / squares
    likely = min(max(shown + (1 + 3 * max(shown, 0.0)) / count, 0.0), CORRELATION_MAX)
    return min(likely + errors * math.sqrt((1 - likely * likely) / count), CORRELATION_MAX)
