"""How sure a figure of one run is: its time is cut into blocks, and the blocks are compared with each other.

Neighbouring samples of a storage resemble each other (caches fill, checkpoints come and go), so a standard error from single
samples is far too small. Here blocks do not overlap and are long enough that their means no longer follow each other: the
block length begins at the least below and doubles until the von Neumann statistic of the blocks no longer tells them from
independent ones at 10 % (batch means as Fishman chose them, 1978). Where fewer than ten blocks are left, the run says nothing
about its own confidence.

Every figure is a quotient of sums: operations by seconds, or nanoseconds by operations. Its error is that of a ratio estimate,
from what each block deviates from the quotient of the whole. Percentiles have no blocks: samples hold no distributions.

Limits: what differs from run to run (placement, day, neighbours) is not seen from within one run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

#: The least length of a block, in samples and in seconds, and the least number of blocks.
SAMPLES_MIN = 5
SECONDS_MIN = 5.0
BLOCKS_MIN = 10
#: One-sided 10 % of the normal distribution: neighbours that resemble each other more than this are not independent.
RESEMBLANCE = 1.2816


@dataclass(frozen=True)
class Moment:
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
    """

    value: float | None
    relative_error: float | None = None
    degrees: float = 0.0
    basis: str = ""
    count: int = 0
    block_s: float | None = None
    why_not: str = ""


def of_blocks(value: float | None, moments: Sequence[Moment], scale: float = 1.0) -> Estimate:
    """The confidence of a run's figure from blocks of its own time.

    Args:
        value: the figure as it is shown.
        moments: the samples of the measured time, in order.
        scale: from the quotients of the samples to the figure.
    """
    if not value or not moments:
        return Estimate(value, why_not="nothing was measured" if not value else "there are no samples")
    interval_s = sorted(moment.seconds for moment in moments)[len(moments) // 2]
    per_block = max(SAMPLES_MIN, math.ceil(SECONDS_MIN / interval_s - 1e-9))
    whole_s = sum(moment.seconds for moment in moments)
    if len(moments) // per_block < BLOCKS_MIN:
        least_s = BLOCKS_MIN * per_block * interval_s
        return Estimate(value, why_not=f"{whole_s:.0f} s are too short: ten blocks need {least_s:.0f} s")
    while len(moments) // per_block >= BLOCKS_MIN:
        deviations, mean_denominator = _deviations(moments, per_block)
        if _are_independent(deviations):
            count = len(deviations)
            variance = sum(deviation * deviation for deviation in deviations) / (count - 1)
            error = math.sqrt(variance / count) / mean_denominator
            return Estimate(value, error * scale / value, count - 1.0, "blocks", count, per_block * interval_s)
        per_block *= 2
    return Estimate(
        value, why_not=f"it drifts: no ten blocks within {whole_s:.0f} s are independent of their neighbours"
    )


def of_runs(values: Sequence[float]) -> Estimate:
    """The confidence of a figure from the runs of a repeated run."""
    count = len(values)
    mean = sum(values) / count
    if not mean:
        return Estimate(mean, why_not="nothing was measured")
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    return Estimate(mean, math.sqrt(variance / count) / mean, count - 1.0, "runs", count)


def _deviations(moments: Sequence[Moment], per_block: int) -> tuple[list[float], float]:
    """What each block's numerator is beside what the quotient of the whole expects of it, and the mean denominator.

    What is left over at the end is too short for a block and belongs to the last one.
    """
    count = len(moments) // per_block
    numerators, denominators = [0.0] * count, [0.0] * count
    for index, moment in enumerate(moments):
        block = min(index // per_block, count - 1)
        numerators[block] += moment.numerator
        denominators[block] += moment.denominator
    quotient = sum(numerators) / sum(denominators) if sum(denominators) else 0.0
    pairs = zip(numerators, denominators, strict=True)
    return [above - quotient * below for above, below in pairs], max(sum(denominators) / count, 1e-300)


def _are_independent(values: Sequence[float]) -> bool:
    """Whether neighbours resemble each other no more than chance allows: the von Neumann statistic, one-sided."""
    count = len(values)
    mean = sum(values) / count
    spread = sum((value - mean) ** 2 for value in values)
    if spread == 0:
        return True
    steps = sum((after - before) ** 2 for before, after in pairwise(values))
    return 1 - steps / (2 * spread) <= RESEMBLANCE * math.sqrt((count - 2) / (count * count - 1))
