"""Latencies that rose throughout the measured time.

A storage that becomes slower and slower is within its limits on average and will not stay so: how a
longer run ends, nobody has seen. The measured time of each phase is cut into fifths. Where the mean
of each is above that of the one before, the latency rose; by chance five means stand in this order
in one of 120 runs, and then only those matter whose last is beyond a limit.

Limits: what rises and falls again, or rises in steps shorter than a fifth, is no rise here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from plimsoll.documents.evenness import RisingLatency
from plimsoll.documents.outcome import PhaseOutcome
from plimsoll.files.parquet import Query

PARTS = 5
#: Fewer transfers have no mean worth a word.
COUNT_MIN = 20


def rising(query: Query, phases: Sequence[PhaseOutcome]) -> list[RisingLatency]:
    """Reads of databases and writes of logs that became slower in every fifth of a phase."""
    found = []
    for phase in phases:
        rows = query(
            "SELECT instance, database::INTEGER AS database, metric,"
            " least((end_ns - $start - 1) * $parts // ($end - $start), $parts - 1)::INTEGER"
            " AS part, sum(latency_ns_sum)::DOUBLE / sum(count) / 1e6 AS mean_ms,"
            " sum(count)::BIGINT AS count"
            " FROM measured WHERE phase = $phase AND end_ns > $start AND end_ns <= $end"
            " AND metric IN ('database_read', 'log_write') AND count > 0"
            " GROUP BY ALL ORDER BY instance, database, metric, part",
            {"phase": phase.name, "start": phase.start_ns, "end": phase.end_ns, "parts": PARTS},
        )
        places: dict[tuple[str, int, str], list[float]] = {}
        for row in rows:
            if row["count"] >= COUNT_MIN:
                place = (row["instance"], row["database"], row["metric"])
                places.setdefault(place, []).append(row["mean_ms"])
        found += [
            RisingLatency(
                instance=instance,
                database=database,
                metric=metric,
                first_ms=means[0],
                last_ms=means[-1],
            )
            for (instance, database, metric), means in places.items()
            if len(means) == PARTS and all(one < other for one, other in pairwise(means))
        ]
    return found
