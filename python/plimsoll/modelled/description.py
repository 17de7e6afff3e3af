"""From an array as people write it to the description that Rust simulates: bytes and nanoseconds, nothing left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from plimsoll.modelled.faults import timed_faults
from plimsoll.modelled.presets import LEVELS, POLICIES, shipped_drives

NS_PER_US, NS_PER_MS, NS_PER_S = 1_000, 1_000_000, 1_000_000_000
KIB, MIB, GB = 1024, 1024 * 1024, 1_000_000_000


def array_description(
    array: dict[str, Any],
    volumes: Sequence[tuple[str, float]],
    measuring_from_s: float | None = None,
    log_volumes: Collection[str] = (),
) -> dict[str, Any]:
    """The array with these volumes.

    Args:
        array: a preset or an array of the same fields.
        volumes: name and size in decimal GB, from the outer rim inward.
        log_volumes: the names of those on the drives of the logs, where the array has such drives.
        measuring_from_s: when measuring begins; None where the faults of the measurement are told apart from the array.

    Returns:
        What the door takes as `array`.
    """
    members = range(int(array["member_count"]))
    logs = _log_array(array)
    sheets = {item["drive_sheet"]["name"]: item["drive_sheet"] for item in (array, logs) if item}
    return {
        "drives": [sheet_description(sheet, array["seek_scale"]) for sheet in sheets.values()],
        "members": [_member(array) for _ in members],
        "groups": [_group(array, number) for number in members] + [_group(logs, number) for number in members if logs],
        "pools": [_pool("pool", array, list(members))]
        + ([_pool("logs", array, [number + len(members) for number in members])] if logs else []),
        "volumes": [
            {
                "name": name,
                "pool": 1 if logs and name in log_volumes else 0,
                "capacity_bytes": int(size_gb * GB),
                "shift_bytes": int(array["shift_kib"] * KIB),
            }
            for name, size_gb in volumes
        ],
        "path": _path(array),
        "faults": timed_faults(array) + ([] if measuring_from_s is None else timed_faults(array, measuring_from_s)),
    }


def _log_array(array: dict[str, Any]) -> dict[str, Any] | None:
    """The drives of the logs as an array of their own in the same boxes; None where the logs share the others."""
    if not array.get("log_sets"):
        return None
    sheet = array["log_drive_sheet"]
    level = array.get("log_level") or array["level"]
    own = {"sets": array["log_sets"], "level": level, "drive_sheet": sheet, "drive": sheet["name"], "spare_count": 0}
    return array | own


def _pool(name: str, array: dict[str, Any], groups: list[int]) -> dict[str, Any]:
    return {
        "name": name,
        "groups": groups,
        "page_bytes": int(array["page_mib"] * MIB),
        "page_order": "spread" if array.get("spread_volumes") else "volume_by_volume",
    }


def drive_description(name: str, seek_scale: float = 1.0) -> dict[str, Any]:
    """A shipped drive, with its seek times scaled."""
    return sheet_description(shipped_drives()[name], seek_scale)


def sheet_description(drive: dict[str, Any], seek_scale: float) -> dict[str, Any]:
    """A drive from its sheet, with its seek times scaled."""
    kind = {"hdd": _hard_drive(drive, seek_scale)} if "rotation_rpm" in drive else {"ssd": _flash_drive(drive)}
    return {"name": drive["name"], "capacity_bytes": int(drive["capacity_gb"] * GB), "kind": kind}


def _hard_drive(drive: dict[str, Any], seek_scale: float) -> dict[str, Any]:
    return {
        "rotation_rpm": drive["rotation_rpm"],
        "read_seek_ns": drive["read_seek_ms"] * NS_PER_MS * seek_scale,
        "write_seek_ns": drive["write_seek_ms"] * NS_PER_MS * seek_scale,
        "outer_bytes_per_second": drive["outer_mb_per_s"] * 1e6,
        "inner_bytes_per_second": drive["inner_mb_per_s"] * 1e6,
        "interface_bytes_per_second": drive["interface_mb_per_s"] * 1e6,
        "overhead_ns": int(drive["overhead_ms"] * NS_PER_MS),
        "buffer_bytes": int(drive["buffer_mib"] * MIB),
        "queue_count_max": int(drive["queue_count"]),
        "scheduling": "shortest_positioning",
    }


def _flash_drive(drive: dict[str, Any]) -> dict[str, Any]:
    return {
        "die_count": int(drive["die_count"]),
        "unit_bytes": int(drive["unit_kib"] * KIB),
        "units_per_block": int(drive["units_per_block"]),
        "read_ns": int(drive["read_us"] * NS_PER_US),
        "program_ns": int(drive["program_us"] * NS_PER_US),
        "erase_ns": int(drive["erase_us"] * NS_PER_US),
        "channel_bytes_per_second": drive["channel_mb_per_s"] * 1e6,
        "bus_bytes_per_second": drive["bus_mb_per_s"] * 1e6,
        "overhead_ns": int(drive["overhead_us"] * NS_PER_US),
        "write_amplification": float(drive["write_amplification"]),
        "buffer_bytes": int(drive["buffer_mib"] * MIB),
    }


def _member(array: dict[str, Any]) -> dict[str, Any]:
    prefetch = {
        "chunk_bytes": int(array["chunk_kib"] * KIB),
        "ahead_count": int(array["ahead_count"]),
        "run_count_min": int(array["run_count"]),
        "pause_ns_max": int(array["pause_ms"] * NS_PER_MS),
    }
    return {
        "controller_count": int(array["controller_count"]),
        "slot_count": int(array["slot_count"]),
        "read_latency_ns": int(array["read_latency_ms"] * NS_PER_MS),
        "write_latency_ns": int(array["write_latency_ms"] * NS_PER_MS),
        "latency_ns_per_byte": array["us_per_kib"] * NS_PER_US / KIB,
        "processor_ns": int(array["processor_us"] * NS_PER_US),
        "processor_count": int(array["processor_count"]),
        "failover_ns": int(array["failover_s"] * NS_PER_S),
        "cache": {
            "write_back": array["write_back"],
            "dirty_bytes_max": int(array["dirty_mib"] * MIB),
            "destage_start_share": float(array["destage_start"]),
            "destage_full_share": float(array["destage_full"]),
            "destage_rows_per_drive": float(array["destage_rows_per_drive"]),
            "read_preference_ns": int(array["read_preference_ms"] * NS_PER_MS),
            "old_data_share": float(array["old_data_share"]),
            "recent_bytes": int(array["recent_mib"] * MIB),
            "prefetch": prefetch if array["chunk_kib"] else None,
        },
    }


def _group(array: dict[str, Any], member: int) -> dict[str, Any]:
    return {
        "name": f"group {member}",
        "member": member,
        "drive": array["drive_sheet"]["name"],
        "level": LEVELS[array["level"]],
        "sets": [int(count) for count in array["sets"]],
        "spare_count": int(array["spare_count"]),
        "element_bytes": int(array["element_kib"] * KIB),
        "rebuild_bytes_per_second": array["rebuild_mb_per_s"] * 1e6,
    }


def _path(array: dict[str, Any]) -> dict[str, Any]:
    cap = None
    if array.get("cap_iops"):
        cap = {
            "operations_per_second": float(array["cap_iops"]),
            "burst_operations_per_second": float(array.get("cap_burst_iops") or array["cap_iops"]),
            "credit_count_max": float(array.get("cap_credits") or 0),
            "bytes_per_second": float(array.get("cap_mb_per_s") or 1e6) * 1e6,
        }
    return {
        "link_count": int(array["link_count"]),
        "link_bytes_per_second": array["link_mb_per_s"] * 1e6,
        "link_latency_ns": int(array["link_latency_ms"] * NS_PER_MS),
        "host_bytes_per_second": array["host_mb_per_s"] * 1e6 if array.get("host_mb_per_s") else None,
        "host_latency_ns": int(array["host_latency_ms"] * NS_PER_MS),
        "policy": POLICIES[array.get("path_policy") or "round robin"],
        "path_timeout_ns": int((1 if array.get("path_timeout_s") is None else array["path_timeout_s"]) * NS_PER_S),
        "cap": cap,
    }
