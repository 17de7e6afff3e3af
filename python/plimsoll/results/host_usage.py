"""What the machine did in some phases, from its samples.

Processor, memory, pressure, and the disks under each instance.

A level's mean is weighted by the length of its samples; its extremes are those of samples at least
half as long as the longest of their phase, because in the last milliseconds of a phase the kernel's
clocks have hardly moved. Where one disk carries databases and logs alike, its figures appear once
for each role. What the kernel does not say is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.documents.figures import Level
from plimsoll.documents.outcome import InstanceDevices
from plimsoll.documents.summary import DeviceRates
from plimsoll.files.parquet import Query, Row
from plimsoll.plan.limits import MACHINE_LEVELS

#: The row of a device's samples: under the databases, or under the log.
ROLES = {"databases": 1, "log": 0}


def machine_levels(query: Query, phases: list[str]) -> dict[str, Level]:
    """Mean, smallest and largest sample of each level of the machine in the named phases."""
    found = levels(query, "sample", MACHINE_LEVELS, phases)
    return {metric: found[metric, 0] for metric in MACHINE_LEVELS if (metric, 0) in found}


def levels(
    query: Query, table: str, metrics: Sequence[str], phases: list[str]
) -> dict[tuple[str, int], Level]:
    """Mean, smallest and largest sample of levels, by metric and the samples' `database`.

    Each sample counts for its time. A rest shorter than half an interval belongs to the interval
    before it, in the mean and in the extremes.
    """
    if not phases:
        return {}
    place = "metric, phase, database"
    rows = query(
        "SELECT metric, database, sum(level * seconds) / sum(seconds) AS mean, min(level) AS min,"
        " max(level) AS max FROM"
        " (SELECT metric, database, sum(value * interval_ns) / sum(interval_ns) AS level,"
        " sum(interval_ns) AS seconds FROM"
        f" (SELECT *, greatest(1, sum(whole::INTEGER) OVER (PARTITION BY {place} ORDER BY end_ns))"
        " AS number FROM"
        " (SELECT metric, phase, database, end_ns, value, interval_ns,"
        f" interval_ns * 2 >= max(interval_ns) OVER (PARTITION BY {place}) AS whole FROM {table}"
        " WHERE list_contains($levels, metric) AND list_contains($phases, phase)"
        " AND interval_ns > 0))"
        f" GROUP BY {place}, number) GROUP BY metric, database",
        {"levels": list(metrics), "phases": phases},
    )
    return {
        (row["metric"], row["database"]): Level(mean=row["mean"], min=row["min"], max=row["max"])
        for row in rows
    }


def device_rates(
    query: Query, devices: Sequence[InstanceDevices], phases: list[str]
) -> list[DeviceRates]:
    """Rates, sizes and times of the disk under each instance's databases and of the one under its
    log.
    """
    found = []
    for instance in devices if phases else ():
        for role, row in ROLES.items():
            sums = _device_sums(query, instance.instance, row, phases)
            if sums:
                name = instance.log if role == "log" else instance.databases
                found.append(DeviceRates(instance=instance.instance, role=role, name=name, **sums))
    return found


def _device_sums(query: Query, instance: str, row: int, phases: list[str]) -> Row | None:
    rows = query(
        "SELECT metric, sum(value) AS total, sum(value * interval_ns) / sum(interval_ns) AS mean,"
        " sum(interval_ns) / 1e9 AS seconds FROM sample WHERE starts_with(metric, 'device_')"
        " AND instance = $instance AND database = $row AND list_contains($phases, phase) AND "
        "interval_ns > 0"
        " GROUP BY metric",
        {"instance": instance, "row": row, "phases": phases},
    )
    total = {item["metric"].removeprefix("device_"): item for item in rows}
    if "reads" not in total or "writes" not in total:
        return None

    def each(sum_of: str, count_of: str, factor: float = 1.0) -> float | None:
        whole, count = total.get(sum_of), total[count_of]["total"]
        return whole["total"] / count * factor if whole and count else None

    return {
        "read_latency_ms_mean": each("read_time", "reads", 1e-6),
        "write_latency_ms_mean": each("write_time", "writes", 1e-6),
        "reads_per_s": total["reads"]["total"] / total["reads"]["seconds"],
        "writes_per_s": total["writes"]["total"] / total["writes"]["seconds"],
        "read_bytes_mean": each("read_bytes", "reads"),
        "write_bytes_mean": each("write_bytes", "writes"),
        "busy": total["busy"]["mean"] if "busy" in total else None,
        "queue_mean": total["queue"]["mean"] if "queue" in total else None,
    }
