"""The device's own view beside the engine's.

The block layer counts the same reads and writes, and should say the same.

Where both disagree beyond the stated tolerance (`config.DEVICE_VIEW`), something stands between
them: a cache that answers, somebody else who uses the disk, a file system that writes more than it
is given, or a wait above the device. Bytes are compared, not transfers, because the kernel splits
and merges them.

Limits: the block layer counts for everybody, so a disk below a server of the plan is not compared;
recovery and headers are counted without their direction and give only a range; file systems on
several devices, in memory or on the network have no counters and do not appear.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from plimsoll import settings
from plimsoll.documents.outcome import InstanceDevices
from plimsoll.documents.summary import DeviceView
from plimsoll.files.parquet import Query
from plimsoll.results.digits import shown

#: What the engine counts, by direction; what has none stands under both.
READS = ("database_read", "maintenance", "log_read", "log_replication", "backup", "checksum")
WRITES = ("database_write", "log_write", "log_format", "prepare")
EITHER = ("redo", "header")
#: What a disk carries.
ROLES = ("databases", "log")
MIB = 1024 * 1024


def device_view(
    query: Query,
    devices: Sequence[InstanceDevices],
    phases: list[str],
    servers: Collection[str] = (),
) -> list[DeviceView]:
    """For each disk and direction what both counted, and in words where they disagree.

    Args:
        query: asks the samples of a run.
        devices: the disks of each instance.
        phases: the names of the phases in which is compared.
        servers: instances whose I/O their own server does, which nobody here counts.
    """
    places: dict[str, list[tuple[str, str]]] = {}
    for device in devices:
        for role in ROLES:
            name = device.log if role == "log" else device.databases
            if name:
                places.setdefault(name, []).append((device.instance, role))
    if not places:
        return []
    sums = _sums(query, phases)
    return [
        row
        for name, where in places.items()
        if not any(instance in servers for instance, _ in where)
        for row in _disk(sums, name, where)
    ]


#: Instance, whether the row is that of the log, metric; to count, bytes, latencies and values added
#: up.
Sums = dict[tuple[str, bool, str], dict[str, float]]


def _sums(query: Query, phases: list[str]) -> Sums:
    """Everything that is compared, added up in one look.

    What a disk counted stands in the row of the first database.
    """
    rows = query(
        "SELECT instance, database = 0 AS is_log, metric, sum(count)::DOUBLE AS count, "
        "sum(bytes)::DOUBLE AS bytes,"
        " sum(latency_ns_sum)::DOUBLE AS time_ns, sum(value) AS value FROM sample"
        " WHERE (list_contains($metrics, metric) OR starts_with(metric, 'device_')) AND "
        "list_contains($phases, phase)"
        " GROUP BY instance, is_log, metric",
        {"metrics": [*READS, *WRITES, *EITHER], "phases": phases},
    )
    return {(row.pop("instance"), bool(row.pop("is_log")), row.pop("metric")): row for row in rows}


def _disk(sums: Sums, name: str, places: list[tuple[str, str]]) -> list[DeviceView]:
    instance, role = places[0]
    counted = {
        metric: row["value"]
        for (of, is_log, metric), row in sums.items()
        if of == instance and is_log == (role == "log") and metric.startswith("device_")
    }
    if not counted:
        return []
    either = _engine(sums, places, EITHER)["bytes"]
    found = []
    for direction, metrics in (("read", READS), ("write", WRITES)):
        engine = _engine(sums, places, metrics)
        device = {
            figure: counted.get(f"device_{direction}{suffix}", 0.0)
            for figure, suffix in (("count", "s"), ("bytes", "_bytes"), ("time_ns", "_time"))
        }
        if direction == "write":
            # A durable write of the engine is a write and the flush behind it.
            device["time_ns"] += counted.get("device_flush_time", 0.0)
        row = DeviceView(
            device=name,
            carries=[f"{role} of {instance}" for instance, role in places],
            direction=direction,
            engine_bytes=engine["bytes"],
            engine_bytes_either=either,
            device_bytes=device["bytes"],
            engine_latency_ms_mean=_mean_ms(engine),
            device_latency_ms_mean=_mean_ms(device),
        )
        found.append(
            row.replace(disagreements=disagreements(row, min(engine["count"], device["count"])))
        )
    return found


def _mean_ms(sums: dict[str, float]) -> float | None:
    return sums["time_ns"] / sums["count"] / 1e6 if sums["count"] else None


def _engine(
    sums: Sums, places: list[tuple[str, str]], metrics: tuple[str, ...]
) -> dict[str, float]:
    """What the instances asked of a disk."""
    found = {"count": 0.0, "bytes": 0.0, "time_ns": 0.0}
    for instance, role in places:
        for metric in metrics:
            row = sums.get((instance, role == "log", metric))
            if row:
                found = {name: found[name] + row[name] for name in found}
    return found


def disagreements(row: DeviceView, transfers: float) -> list[str]:
    """Where both views of a direction differ beyond the tolerance, in sentences."""
    limits, found = settings.DEVICE_VIEW, []
    word, verb = ("reads", "read") if row.direction == "read" else ("writes", "wrote")
    least, most = row.engine_bytes, row.engine_bytes + row.engine_bytes_either
    device = row.device_bytes
    if max(device, least) >= limits["bytes_min"]:
        if device < least * (1 - limits["bytes_share"]):
            found.append(
                f"disk {row.device} {verb} {device / MIB:.0f} MiB of the {least / MIB:.0f} MiB the "
                f"engine's {word} "
                "moved: something above the disk, such as a cache, did the rest, and the figures "
                "are not the disk's alone"
            )
        elif device > most * (1 + limits["bytes_share"]):
            found.append(
                f"disk {row.device} {verb} {device / MIB:.0f} MiB where the engine's {word} moved "
                f"{most / MIB:.0f} MiB: "
                "others used it, or the file system moves more than it is given"
            )
    engine_ms, device_ms = row.engine_latency_ms_mean, row.device_latency_ms_mean
    if engine_ms is not None and device_ms is not None and transfers >= limits["count_min"]:
        difference = engine_ms - device_ms
        if abs(difference) > limits["latency_ms"] and abs(difference) > limits[
            "latency_share"
        ] * max(engine_ms, device_ms):
            meaning = (
                "the rest is waited above the disk (queues of the kernel, its scheduler's limits, "
                "a late generator)"
                if difference > 0
                else "the I/O of others on the disk is slower, or most of ours never reaches it"
            )
            found.append(
                f"the engine's {word} on disk {row.device} took {shown(engine_ms, 'ms')} on "
                f"average, by the disk's counters {shown(device_ms, 'ms')}: {meaning}"
            )
    return found
