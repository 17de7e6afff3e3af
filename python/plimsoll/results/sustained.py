"""The rate that was sustained.

What nine tenths of the measured time reached, and how much of it saw no answer at all.

A mean adds a burst of seconds to a minute of nothing. What carries a load every hour of the day is
what the storage does when it does least, so the measured time is cut into blocks of at least the
published sample interval, and the tenth part of them that did least bounds the rate. Blocks of one
steady rate differ by chance: by as much as independent arrivals do, the bound is raised, and never
above the mean.

A time without an answer is a sample in which no database or log I/O of any kind was completed, with
I/O in flight at its end.

Limits: a block's length decides what counts as a dip; arrivals that come in heaps differ by more
than chance allows them here, so the figure errs to the low side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll import settings
from plimsoll.documents.evenness import StandStill, SustainedRate
from plimsoll.documents.outcome import PhaseOutcome
from plimsoll.files.parquet import Query

#: The share of blocks that may be slower than what is called sustained, and its quantile of the
#: normal distribution.
SLOWER_SHARE = 0.1
SLOWER_DEVIATIONS = 1.2816
BLOCKS_MAX = 120
#: Below a minute there are too few blocks of the published interval; shorter ones than these say
#: nothing.
BLOCKS_MIN = 4
BLOCK_S_MIN = 5.0
DATABASE_IO = ("database_read", "database_write")
ALL_IO = (*DATABASE_IO, "maintenance", "log_write", "log_read", "log_replication", "log_format")


@dataclass(frozen=True)
class Beat:
    """One sample of the whole run.

    When it ended, how long it took, what was done and what was left in flight.
    """

    end_ns: int
    seconds: float
    operations: float
    size: float = 0.0
    completed: float = 0.0
    in_flight: float = 0.0


def beats(query: Query, phases: Sequence[PhaseOutcome]) -> list[list[Beat]]:
    """The samples of each measured phase, also those in which nothing was done."""
    found = []
    for phase in phases:
        rows = query(
            "SELECT end_ns::BIGINT AS end_ns, max(interval_ns)::DOUBLE / 1e9 AS seconds,"
            " coalesce(sum(count) FILTER (WHERE list_contains($databases, metric)), 0)::DOUBLE AS "
            "operations,"
            " coalesce(sum(bytes) FILTER (WHERE list_contains($databases, metric)), 0)::DOUBLE AS "
            "size,"
            " coalesce(sum(count) FILTER (WHERE list_contains($any, metric) OR starts_with(metric, "
            "'file_io')), 0)::DOUBLE AS completed,"
            " coalesce(sum(value) FILTER (WHERE metric = 'in_flight'), 0)::DOUBLE AS in_flight"
            " FROM measured WHERE phase = $phase AND end_ns > $start AND end_ns <= $end AND "
            "interval_ns > 0"
            " GROUP BY end_ns ORDER BY end_ns",
            {
                "phase": phase.name,
                "start": phase.start_ns,
                "end": phase.end_ns,
                "databases": list(DATABASE_IO),
                "any": list(ALL_IO),
            },
        )
        found.append([Beat(**row) for row in rows])
    return found


def block_seconds(whole_s: float) -> float:
    """How long a block is.

    >>> block_seconds(7200.0), block_seconds(120.0), block_seconds(30.0), block_seconds(10.0)
    (60.0, 15.0, 7.5, 5.0)
    """
    shortest = min(
        float(settings.limits()["sample_interval_s"]), max(whole_s / BLOCKS_MIN, BLOCK_S_MIN)
    )
    return max(shortest, whole_s / BLOCKS_MAX)


def blocks_of(phases: Sequence[Sequence[Beat]], width_s: float) -> list[Beat]:
    """Whole samples put together to blocks of about a length.

    A rest shorter than half of one is left out.
    """
    blocks: list[Beat] = []
    for rows in phases:
        held: list[Beat] = []
        for row in rows:
            held.append(row)
            if sum(item.seconds for item in held) >= 0.999 * width_s:
                blocks.append(_together(held))
                held = []
        if held and sum(item.seconds for item in held) >= width_s / 2:
            blocks.append(_together(held))
    usual_s = sorted(block.seconds for block in blocks)[len(blocks) // 2] if blocks else 0.0
    return [block for block in blocks if block.seconds >= usual_s / 2]


def _together(rows: Sequence[Beat]) -> Beat:
    return Beat(
        end_ns=rows[-1].end_ns,
        seconds=sum(row.seconds for row in rows),
        operations=sum(row.operations for row in rows),
        size=sum(row.size for row in rows),
    )


def sustained_rate(phases: Sequence[Sequence[Beat]], mean: float) -> SustainedRate | None:
    """What nine tenths of the time reached; None where too little was measured for two blocks."""
    width_s = block_seconds(sum(row.seconds for rows in phases for row in rows))
    blocks = blocks_of(phases, width_s)
    if len(blocks) < 2:
        return None
    rates = sorted(block.operations / block.seconds for block in blocks)
    low = rates[int(SLOWER_SHARE * len(rates))]
    chance = SLOWER_DEVIATIONS * math.sqrt(low / width_s)
    return SustainedRate(
        database_iops=min(mean, low + chance),
        block_s=width_s,
        blocks_count=len(blocks),
        share=1 - SLOWER_SHARE,
    )


def stand_still(phases: Sequence[Sequence[Beat]]) -> StandStill | None:
    """How much of the time nothing was completed although I/O was waiting.

    None where that never was.
    """
    whole_s = sum(row.seconds for rows in phases for row in rows)
    found: list[float] = []
    for rows in phases:
        waited_s = 0.0
        for row in rows:
            is_still = not row.completed and row.in_flight > 0
            waited_s = waited_s + row.seconds if is_still else 0.0
            if is_still and waited_s > row.seconds:
                found[-1] = waited_s
            elif is_still:
                found.append(waited_s)
    if not found:
        return None
    return StandStill(
        seconds=sum(found), share=sum(found) / whole_s, longest_s=max(found), count=len(found)
    )
