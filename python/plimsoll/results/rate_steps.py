"""Whether the rate stood on two levels while it was measured.

A burst that ended, or a start that was slower than the rest.

A volume that saves up credit, a drive whose write cache fills, a cache that warms: each shows as a
step of the rate. The measured time is cut into equal blocks; of all ways to cut it in two, the one
is taken that parts the block means best (the largest t statistic of two means with one spread). It
counts as a step only where

- each part has at least a tenth of the blocks, and five; a first part twice as fast as the rest may
  be as short as two blocks;
- the means are a quarter apart;
- the statistic, less what neighbours that resemble each other add to it, is at least ten. For a
  lag-1 correlation r of what the two levels leave over, a mean is as sure as that of (1 - r) / (1 +
  r) as many independent blocks;
- two levels leave less than six tenths of the squares that a straight line leaves: a steady drift
  is no step;
- neither part steps back again: a rate that goes down and up is a cycle, and no level of it ends.

Source: change of a mean at an unknown point by maximum likelihood, D. V. Hinkley, Biometrika 57
(1970). The figures of the rule are ours, tried on planted steps and on runs without any.

Limits: one step; a run whose rate is fixed from outside shows none while the storage keeps up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

from plimsoll.documents.evenness import RateSteps
from plimsoll.results.sustained import Beat, blocks_of

BLOCKS_MAX = 120
#: Fewer blocks cannot tell a step from chance.
BLOCKS_MIN = 20
PART_BLOCKS_MIN = 5
PART_SHARE_MIN = 0.1
RATIO_MIN = 1.25
STATISTIC_MIN = 10.0
#: The first part may be shorter where it is so much faster.
SHORT_BURST_BLOCKS_MIN = 2
SHORT_BURST_RATIO_MIN = 2.0
#: A step back inside a part is found more easily than the step itself, so that in doubt a cycle is
#: one.
BACK_STATISTIC_MIN = 5.0
BACK_SHARE_MIN = 0.5
#: A few blocks show less correlation than there is; more than this cannot be told from a drift.
CORRELATION_MAX = 0.98
LINE_SHARE_MAX = 0.6
MIB = 1024 * 1024


@dataclass(frozen=True)
class Step:
    """Where a rate changed its level.

    Attributes:
        index: the first block of the second level.
        before: mean of the blocks before.
        after: mean of the blocks from there on.
        statistic: how far apart both are, in standard errors.
        left: the squares that two levels leave over.
    """

    index: int
    before: float
    after: float
    statistic: float
    left: float = 0.0


def find_step(values: list[float]) -> Step | None:
    """The step of a series of block means, None where it has none.

    >>> find_step([100.0, 102.0, 98.0] * 10 + [40.0, 41.0, 39.0] * 10).index
    30
    >>> find_step([100.0, 102.0, 98.0] * 20) is None
    True
    """
    count = len(values)
    if count < BLOCKS_MIN:
        return None
    part = max(PART_BLOCKS_MIN, int(count * PART_SHARE_MIN))
    splits = [_step_at(values, index) for index in range(SHORT_BURST_BLOCKS_MIN, count - part + 1)]
    wide = (
        step
        for step in splits
        if step.index >= part or step.before >= SHORT_BURST_RATIO_MIN * step.after
    )
    best = min(wide, key=lambda step: step.left, default=None)
    if best is None:
        return None
    low, high = sorted((best.before, best.after))
    if best.statistic < STATISTIC_MIN or high < RATIO_MIN * low:
        return None
    parts = values[: best.index], values[best.index :]
    if best.left > LINE_SHARE_MAX * _squares_about_a_line(values):
        return None
    return None if any(_steps_back(one, best.after - best.before) for one in parts) else best


def _steps_back(values: list[float], change: float) -> bool:
    """Whether a part of a series has a step against the one that bounds it, and a good part as
    high.
    """
    if len(values) < 2 * SHORT_BURST_BLOCKS_MIN:
        return False
    indices = range(SHORT_BURST_BLOCKS_MIN, len(values) - SHORT_BURST_BLOCKS_MIN + 1)
    steps = [_step_at(values, index) for index in indices]
    against = [
        step
        for step in steps
        if (step.after - step.before) * change < -BACK_SHARE_MIN * change * change
    ]
    return any(step.statistic >= BACK_STATISTIC_MIN for step in against)


def _step_at(values: list[float], index: int) -> Step:
    before, after = values[:index], values[index:]
    means = sum(before) / len(before), sum(after) / len(after)
    left = [value - means[0] for value in before] + [value - means[1] for value in after]
    squares = sum(value * value for value in left)
    alike = _correlation(left, squares)
    spread = squares / (len(values) - 2) * (1 + alike) / (1 - alike)
    error = sqrt(spread * (1 / len(before) + 1 / len(after)))
    # A series without any spread that has a step is as clear as can be.
    floor = 1e-9 * max(abs(means[0]), abs(means[1]), 1e-12)
    return Step(index, *means, abs(means[0] - means[1]) / max(error, floor), squares)


def _correlation(left: list[float], squares: float) -> float:
    """How much neighbours resemble each other.

    Lag 1, with what a short series shows too little of it, none below zero.
    """
    count = len(left)
    if squares <= 0:
        return 0.0
    shown = sum(one * other for one, other in pairwise(left)) / squares
    return (
        min(max(shown + (1 + 3 * max(shown, 0.0)) / count, 0.0), CORRELATION_MAX)
        if shown > 2 / sqrt(count)
        else 0.0
    )


def _squares_about_a_line(values: list[float]) -> float:
    middle = (len(values) - 1) / 2
    mean = sum(values) / len(values)
    across = sum((place - middle) ** 2 for place in range(len(values)))
    slope = sum((place - middle) * (value - mean) for place, value in enumerate(values)) / across
    return sum((value - mean - slope * (place - middle)) ** 2 for place, value in enumerate(values))


def plateaus(phases: Sequence[Sequence[Beat]]) -> RateSteps:
    """What was found for database IOPS and for their bytes over what was measured.

    Kind, levels, when, and a sentence.

    `kind` is `burst` where the rate fell, `slow_start` where it rose, `none` where it kept one
    level.
    """
    width_s = sum(row.seconds for rows in phases for row in rows) / BLOCKS_MAX
    series = [
        {
            "seconds": block.seconds,
            "iops": block.operations / block.seconds,
            "bytes_per_s": block.size / block.seconds,
        }
        for block in blocks_of(phases, width_s)
    ]
    for name, unit, scale in (("iops", "database IOPS", 1.0), ("bytes_per_s", "MiB/s", 1 / MIB)):
        step = find_step([block[name] for block in series])
        if step is None:
            continue
        seconds = sum(block["seconds"] for block in series[: step.index])
        rest = sum(block["seconds"] for block in series[step.index :])
        first, second = step.before * scale, step.after * scale
        rates = [block["iops"] for block in series[step.index :]]
        found = RateSteps(
            kind="burst" if second < first else "slow_start",
            of=name,
            unit=unit,
            first=first,
            first_s=seconds,
            then=second,
            then_s=rest,
            statistic=step.statistic,
            sustained_iops=sum(rates) / len(rates),
        )
        return found.replace(text=_text(found))
    return RateSteps(kind="none", blocks_count=len(series))


def _text(found: RateSteps) -> str:
    levels = (
        f"{found.first:.0f} {found.unit} for {found.first_s:.0f} s, then {found.then:.0f} for the "
        f"remaining "
        f"{found.then_s:.0f} s"
    )
    sustained = f"{found.sustained_iops:.0f} database IOPS"
    if found.kind == "burst":
        return (
            f"measured while bursting: {levels}; sustained are {sustained}, and nothing says that "
            f"they are the last level"
        )
    return (
        f"the rate rose while it was measured: {levels}; measure again after a longer warm-up, by "
        f"then {sustained}"
    )
