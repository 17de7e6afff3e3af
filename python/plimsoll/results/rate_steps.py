"""Whether the rate stood on two levels while it was measured: a burst that ended, or a start that was slower than the rest.

A volume that saves up credit, a drive whose write cache fills, a cache that warms: each shows as a step of the rate. The measured
time is cut into equal blocks; of all ways to cut it in two, the one is taken that parts the block means best (the largest
t statistic of two means with one spread). It counts as a step only where

- each part has at least a tenth of the blocks, and five;
- the means are a quarter apart;
- the statistic is at least ten: neighbouring blocks resemble each other, so it must be far above what independent ones need;
- two levels leave less than half of the squares that a straight line leaves: a steady drift is no step.

Source: change of a mean at an unknown point by maximum likelihood, D. V. Hinkley, Biometrika 57 (1970). The figures of the rule are
ours, tried on planted steps and on runs without any.

Limits: one step; a run whose rate is fixed from outside shows none while the storage keeps up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from plimsoll.documents.outcome import PhaseOutcome
from plimsoll.documents.summary import RateSteps
from plimsoll.files.parquet import Query

BLOCKS_MAX = 120
#: Fewer blocks cannot tell a step from chance.
BLOCKS_MIN = 20
PART_BLOCKS_MIN = 5
PART_SHARE_MIN = 0.1
RATIO_MIN = 1.25
STATISTIC_MIN = 10.0
LINE_SHARE_MAX = 0.5
MIB = 1024 * 1024


@dataclass(frozen=True)
class Step:
    """Where a rate changed its level.

    Attributes:
        index: the first block of the second level.
        before: mean of the blocks before.
        after: mean of the blocks from there on.
        statistic: how far apart both are, in standard errors.
    """

    index: int
    before: float
    after: float
    statistic: float


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
    splits = [_step_at(values, index) for index in range(part, count - part + 1)]
    best = max(splits, key=lambda step: step.statistic)
    low, high = sorted((best.before, best.after))
    if best.statistic < STATISTIC_MIN or high < RATIO_MIN * low:
        return None
    residual = _squares(values[: best.index]) + _squares(values[best.index :])
    return best if residual <= LINE_SHARE_MAX * _squares_about_a_line(values) else None


def _step_at(values: list[float], index: int) -> Step:
    before, after = values[:index], values[index:]
    means = sum(before) / len(before), sum(after) / len(after)
    spread = (_squares(before) + _squares(after)) / (len(values) - 2)
    error = sqrt(spread * (1 / len(before) + 1 / len(after)))
    # A series without any spread that has a step is as clear as can be.
    floor = 1e-9 * max(abs(means[0]), abs(means[1]), 1e-12)
    return Step(index, *means, abs(means[0] - means[1]) / max(error, floor))


def _squares(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)


def _squares_about_a_line(values: list[float]) -> float:
    middle = (len(values) - 1) / 2
    mean = sum(values) / len(values)
    across = sum((place - middle) ** 2 for place in range(len(values)))
    slope = sum((place - middle) * (value - mean) for place, value in enumerate(values)) / across
    return sum((value - mean - slope * (place - middle)) ** 2 for place, value in enumerate(values))


def plateaus(query: Query, phases: Sequence[PhaseOutcome]) -> RateSteps:
    """What was found for database IOPS and for their bytes over what was measured: kind, levels, when, and a sentence.

    `kind` is `burst` where the rate fell, `slow_start` where it rose, `none` where it kept one level.
    """
    series = block_means(query, phases)
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
        f"{found.first:.0f} {found.unit} for {found.first_s:.0f} s, then {found.then:.0f} for the remaining "
        f"{found.then_s:.0f} s"
    )
    sustained = f"{found.sustained_iops:.0f} database IOPS"
    if found.kind == "burst":
        return f"measured while bursting: {levels}; sustained are {sustained}, and nothing says that they are the last level"
    return f"the rate rose while it was measured: {levels}; measure again after a longer warm-up, by then {sustained}"


def block_means(query: Query, phases: Sequence[PhaseOutcome]) -> list[dict[str, float]]:
    """Rates of equal blocks of whole samples over the measured phases, in order; no block for a crumb at the end."""
    blocks: list[dict[str, float]] = []
    for phase in phases:
        rows = query(
            "SELECT end_ns::BIGINT AS end_ns, any_value(interval_ns)::DOUBLE / 1e9 AS seconds,"
            " sum(count)::DOUBLE AS operations, sum(bytes)::DOUBLE AS size"
            " FROM sample WHERE metric IN ('database_read', 'database_write') AND phase = $phase"
            " AND end_ns > $start AND end_ns <= $end AND interval_ns > 0"
            " GROUP BY end_ns ORDER BY end_ns",
            {"phase": phase.name, "start": phase.start_ns, "end": phase.end_ns},
        )
        whole_s = sum(row["seconds"] for row in rows)
        width_s = whole_s / BLOCKS_MAX
        block = {"seconds": 0.0, "operations": 0.0, "size": 0.0}
        for row in rows:
            block = {name: block[name] + row[name] for name in block}
            if block["seconds"] >= width_s * 0.999:
                blocks.append(block)
                block = dict.fromkeys(block, 0.0)
    usual = sorted(block["seconds"] for block in blocks)[len(blocks) // 2] if blocks else 0.0
    return [
        {
            "seconds": block["seconds"],
            "iops": block["operations"] / block["seconds"],
            "bytes_per_s": block["size"] / block["seconds"],
        }
        for block in blocks
        if block["seconds"] >= usual / 2
    ]
