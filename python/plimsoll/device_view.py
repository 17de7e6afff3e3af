"""The device's own view beside the engine's: the block layer counts the same reads and writes, and should say the same.

Where both disagree beyond the stated tolerance (`config.DEVICE_VIEW`), something stands between them: a cache that answers,
somebody else who uses the disk, a file system that writes more than it is given, or a wait above the device. Bytes are
compared, not transfers, because the kernel splits and merges them.

Limits: the block layer counts for everybody; recovery and headers are counted without their direction and give only a range;
file systems on several devices, in memory or on the network have no counters and do not appear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plimsoll import config

Query = Callable[[str, dict[str, Any]], list[dict[str, Any]]]

#: What the engine counts, by direction; what has none stands under both.
READS = ("database_read", "maintenance", "log_read", "log_replication", "backup", "checksum")
WRITES = ("database_write", "log_write", "log_format", "prepare")
EITHER = ("redo", "header")
#: The rows of a disk, and which rows of the engine lie on it.
ROLES = {"databases": 1, "log": 0}
MIB = 1024 * 1024


def device_view(query: Query, devices: list[dict[str, Any]], phases: list[str]) -> list[dict[str, Any]]:
    """For each disk and direction what both counted, and in words where they disagree."""
    places: dict[str, list[tuple[str, str]]] = {}
    for device in devices:
        for role in ROLES:
            if device[role]:
                places.setdefault(device[role], []).append((device["instance"], role))
    return [found for name, where in places.items() for found in _disk(query, name, where, phases)]


def _disk(query: Query, name: str, places: list[tuple[str, str]], phases: list[str]) -> list[dict[str, Any]]:
    instance, role = places[0]
    counted = _device(query, instance, ROLES[role], phases)
    if not counted:
        return []
    either = _engine(query, places, EITHER, phases)["bytes"]
    found = []
    for direction, metrics in (("read", READS), ("write", WRITES)):
        engine = _engine(query, places, metrics, phases)
        device = {
            figure: counted.get(f"device_{direction}{suffix}", 0.0)
            for figure, suffix in (("count", "s"), ("bytes", "_bytes"), ("time_ns", "_time"))
        }
        if direction == "write":
            # A durable write of the engine is a write and the flush behind it.
            device["time_ns"] += counted.get("device_flush_time", 0.0)
        row: dict[str, Any] = {
            "device": name,
            "carries": [f"{role} of {instance}" for instance, role in places],
            "direction": direction,
            "engine_bytes": engine["bytes"],
            "engine_bytes_either": either,
            "device_bytes": device["bytes"],
            "engine_latency_ms_mean": _mean_ms(engine),
            "device_latency_ms_mean": _mean_ms(device),
        }
        row["disagreements"] = disagreements(row, min(engine["count"], device["count"]))
        found.append(row)
    return found


def _mean_ms(sums: dict[str, float]) -> float | None:
    return sums["time_ns"] / sums["count"] / 1e6 if sums["count"] else None


def _device(query: Query, instance: str, row: int, phases: list[str]) -> dict[str, float]:
    rows = query(
        "SELECT metric, sum(value) AS total FROM sample WHERE starts_with(metric, 'device_') AND instance = $instance"
        " AND database = $row AND list_contains($phases, phase) GROUP BY metric",
        {"instance": instance, "row": row, "phases": phases},
    )
    return {item["metric"]: float(item["total"]) for item in rows}


def _engine(
    query: Query, places: list[tuple[str, str]], metrics: tuple[str, ...], phases: list[str]
) -> dict[str, float]:
    sums = {"count": 0.0, "bytes": 0.0, "time_ns": 0.0}
    for instance, role in places:
        row = query(
            "SELECT coalesce(sum(count), 0)::DOUBLE AS count, coalesce(sum(bytes), 0)::DOUBLE AS bytes,"
            " coalesce(sum(latency_ns_sum), 0)::DOUBLE AS time_ns FROM sample WHERE instance = $instance"
            f" AND database {'= 0' if role == 'log' else '> 0'} AND list_contains($metrics, metric)"
            " AND list_contains($phases, phase)",
            {"instance": instance, "metrics": list(metrics), "phases": phases},
        )[0]
        sums = {name: sums[name] + row[name] for name in sums}
    return sums


def disagreements(row: dict[str, Any], transfers: float) -> list[str]:
    """Where both views of a direction differ beyond the tolerance, in sentences."""
    limits, found = config.DEVICE_VIEW, []
    word, verb = ("reads", "read") if row["direction"] == "read" else ("writes", "wrote")
    least, most = row["engine_bytes"], row["engine_bytes"] + row["engine_bytes_either"]
    device = row["device_bytes"]
    if max(device, least) >= limits["bytes_min"]:
        if device < least * (1 - limits["bytes_share"]):
            found.append(
                f"disk {row['device']} {verb} {device / MIB:.0f} MiB of the {least / MIB:.0f} MiB the engine's {word} "
                "moved: something above the disk, such as a cache, did the rest, and the figures are not the disk's alone"
            )
        elif device > most * (1 + limits["bytes_share"]):
            found.append(
                f"disk {row['device']} {verb} {device / MIB:.0f} MiB where the engine's {word} moved {most / MIB:.0f} MiB: "
                "others used it, or the file system moves more than it is given"
            )
    engine_ms, device_ms = row["engine_latency_ms_mean"], row["device_latency_ms_mean"]
    if engine_ms is not None and device_ms is not None and transfers >= limits["count_min"]:
        difference = engine_ms - device_ms
        if abs(difference) > limits["latency_ms"] and abs(difference) > limits["latency_share"] * max(
            engine_ms, device_ms
        ):
            meaning = (
                "the rest is waited above the disk (queues of the kernel, its scheduler's limits, a late generator)"
                if difference > 0
                else "the I/O of others on the disk is slower, or most of ours never reaches it"
            )
            found.append(
                f"the engine's {word} on disk {row['device']} took {engine_ms:.3g} ms on average, by the disk's counters "
                f"{device_ms:.3g} ms: {meaning}"
            )
    return found
