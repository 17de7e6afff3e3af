"""What a run read for backups and replayed for recovery, from its samples, wherever either happened in it.

Times run from the beginning of the first sample with such transfers to the end of the last, so they are as coarse as the
samples. A log generation is 1 MiB; logs are counted by what was read of them, because a paper's count of logs has been
seen to disagree with its bytes by a factor of two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Query = Callable[[str, dict[str, Any]], list[dict[str, Any]]]
MIB = 1048576

_SPAN = "(max(end_ns) - min(end_ns - interval_ns)) / 1e9"


def backups(query: Query) -> list[dict[str, Any]]:
    """Size, time and rate of the backup of each database."""
    rows = query(
        f"SELECT instance, database, sum(bytes)::BIGINT AS bytes, {_SPAN} AS seconds, sum(count)::BIGINT AS reads_count,"
        " sum(latency_ns_sum)::DOUBLE / sum(count) / 1e6 AS read_latency_ms_mean FROM sample"
        " WHERE metric = 'backup' AND count > 0 GROUP BY instance, database ORDER BY instance, database",
        {},
    )
    return [{**row, "mib_per_s": row["bytes"] / MIB / row["seconds"]} for row in rows]


def recoveries(query: Query) -> list[dict[str, Any]]:
    """Log read, time and rate of each instance that was recovered."""
    rows = query(
        f"SELECT instance, phase, coalesce(sum(bytes) FILTER (metric = 'log_read'), 0)::BIGINT AS log_bytes, {_SPAN} AS seconds,"
        " sum(count) FILTER (metric = 'redo')::BIGINT AS pages_count FROM sample"
        " WHERE metric IN ('log_read', 'redo') AND count > 0 GROUP BY instance, phase"
        " HAVING sum(count) FILTER (metric = 'redo') > 0 ORDER BY instance, phase",
        {},
    )
    return [
        {
            **row,
            "logs_count": row["log_bytes"] / MIB,
            "seconds_per_log": row["seconds"] * MIB / row["log_bytes"] if row["log_bytes"] else None,
            "mib_per_s": row["log_bytes"] / MIB / row["seconds"],
        }
        for row in rows
    ]
