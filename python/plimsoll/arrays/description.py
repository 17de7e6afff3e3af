"""From an array as people write it to the description that Rust simulates.

Bytes and nanoseconds, nothing left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from plimsoll.arrays.faults import timed_faults
from plimsoll.arrays.neighbours import native_neighbours
from plimsoll.arrays.pools import DATABASES, LEVELS, LOGS, PLACES, Group, pools_of
from plimsoll.arrays.presets import POLICIES, shipped_drives
from plimsoll.documents import array_spec as spec
from plimsoll.documents.array_sheet import ArraySheet, DriveSheet
from plimsoll.units import NS_PER_MS, NS_PER_S, NS_PER_US

KIB, MIB, GB = 1024, 1024 * 1024, 1_000_000_000


def array_description(
    array: ArraySheet,
    volumes: Sequence[tuple[str, float]],
    measuring_from_s: float | None = None,
    log_volumes: Collection[str] = (),
) -> spec.ArraySpec:
    """The array with these volumes, as the door takes it.

    Args:
        array: a preset or an array of the same fields.
        volumes: name and size in decimal GB, from the outer rim inward.
        log_volumes: the names of those on the drives of the logs, where the array has such drives.
        measuring_from_s: when measuring begins; None where the faults of the measurement are told
            apart from the array.
    """
    member_count = int(array["member_count"])
    pools = pools_of(array)
    # By pool and then by box, so that the first drives are those of the databases in the first box.
    groups = [
        (pool, group, member)
        for pool in pools
        for group in pools[pool]
        for member in range(member_count)
    ]
    sheets = {group.sheet["name"]: group.sheet for _, group, _ in groups}
    names = list(pools)
    logs = names.index(LOGS) if LOGS in pools else 0
    others = array.get("volumes") or []
    return spec.ArraySpec(
        drives=[_drive(sheet, array["seek_scale"]) for sheet in sheets.values()],
        members=[_member(array) for _ in range(member_count)],
        groups=[_group(array, group, member) for _, group, member in groups],
        pools=[
            _pool(
                "pool" if name == DATABASES else name,
                array,
                [n for n, row in enumerate(groups) if row[0] == name],
            )
            for name in names
        ],
        volumes=[
            _volume(array, name, size_gb, logs if name in log_volumes else 0, "host")
            for name, size_gb in volumes
        ]
        + [
            _volume(
                array,
                row["name"],
                row["capacity_gb"],
                names.index(row["pool"]),
                PLACES[row["place"]],
            )
            for row in others
        ],
        neighbours=native_neighbours(
            array, {row["name"]: len(volumes) + n for n, row in enumerate(others)}
        ),
        path=_path(array),
        faults=timed_faults(array)
        + ([] if measuring_from_s is None else timed_faults(array, measuring_from_s)),
    )


def with_logs_on(
    array: spec.ArraySpec, drives: ArraySheet, log_volumes: Collection[str]
) -> spec.ArraySpec:
    """An array whose logs lie on the drives of another preset, in a pool of their own.

    Args:
        array: as from `array_description`.
        drives: a preset or an array of the same fields; its drives are taken.
        log_volumes: the names of the volumes that hold logs.
    """
    log = array_description(drives, [])
    own = [log.drives[0].replace(name="log drive"), *log.drives[1:]]
    groups = [log.groups[0].replace(drive="log drive"), *log.groups[1:]]
    numbers = [len(array.groups) + number for number in range(len(groups))]
    return array.replace(
        drives=[*array.drives, *own],
        groups=[*array.groups, *groups],
        pools=[*array.pools, log.pools[0].replace(name="log", groups=numbers)],
        volumes=[
            volume.replace(pool=len(array.pools)) if volume.name in log_volumes else volume
            for volume in array.volumes
        ],
    )


def _volume(
    array: ArraySheet, name: str, size_gb: float, pool: int, tenant: spec.Tenant
) -> spec.VolumeSpec:
    return spec.VolumeSpec(
        name=name,
        pool=pool,
        capacity_bytes=int(size_gb * GB),
        shift_bytes=int(array["shift_kib"] * KIB),
        tenant=tenant,
    )


def _pool(name: str, array: ArraySheet, groups: list[int]) -> spec.PoolSpec:
    return spec.PoolSpec(
        name=name,
        groups=groups,
        page_bytes=int(array["page_mib"] * MIB),
        page_order="spread" if array.get("spread_volumes") else "volume_by_volume",
    )


def drive_description(name: str, seek_scale: float = 1.0) -> spec.DriveSpec:
    """A shipped drive, with its seek times scaled."""
    return _drive(shipped_drives()[name], seek_scale)


def _drive(drive: DriveSheet, seek_scale: float) -> spec.DriveSpec:
    """A drive from its sheet, with its seek times scaled."""
    is_hard = "rotation_rpm" in drive
    kind = (
        spec.HddKind(hdd=_hard_drive(drive, seek_scale))
        if is_hard
        else spec.SsdKind(ssd=_flash_drive(drive))
    )
    return spec.DriveSpec(
        name=drive["name"], capacity_bytes=int(drive["capacity_gb"] * GB), kind=kind
    )


def _hard_drive(drive: DriveSheet, seek_scale: float) -> spec.HddSpec:
    return spec.HddSpec(
        rotation_rpm=drive["rotation_rpm"],
        read_seek_ns=drive["read_seek_ms"] * NS_PER_MS * seek_scale,
        write_seek_ns=drive["write_seek_ms"] * NS_PER_MS * seek_scale,
        outer_bytes_per_second=drive["outer_mb_per_s"] * 1e6,
        inner_bytes_per_second=drive["inner_mb_per_s"] * 1e6,
        interface_bytes_per_second=drive["interface_mb_per_s"] * 1e6,
        overhead_ns=int(drive["overhead_ms"] * NS_PER_MS),
        buffer_bytes=int(drive["buffer_mib"] * MIB),
        queue_count_max=int(drive["queue_count"]),
        scheduling="shortest_positioning",
    )


def _flash_drive(drive: DriveSheet) -> spec.SsdSpec:
    return spec.SsdSpec(
        die_count=int(drive["die_count"]),
        unit_bytes=int(drive["unit_kib"] * KIB),
        units_per_block=int(drive["units_per_block"]),
        read_ns=int(drive["read_us"] * NS_PER_US),
        program_ns=int(drive["program_us"] * NS_PER_US),
        erase_ns=int(drive["erase_us"] * NS_PER_US),
        channel_bytes_per_second=drive["channel_mb_per_s"] * 1e6,
        bus_bytes_per_second=drive["bus_mb_per_s"] * 1e6,
        overhead_ns=int(drive["overhead_us"] * NS_PER_US),
        write_amplification=float(drive["write_amplification"]),
        buffer_bytes=int(drive["buffer_mib"] * MIB),
    )


def _member(array: ArraySheet) -> spec.MemberSpec:
    prefetch = spec.PrefetchSpec(
        chunk_bytes=int(array["chunk_kib"] * KIB),
        ahead_count=int(array["ahead_count"]),
        run_count_min=int(array["run_count"]),
        pause_ns_max=int(array["pause_ms"] * NS_PER_MS),
    )
    return spec.MemberSpec(
        controller_count=int(array["controller_count"]),
        slot_count=int(array["slot_count"]),
        read_latency_ns=int(array["read_latency_ms"] * NS_PER_MS),
        write_latency_ns=int(array["write_latency_ms"] * NS_PER_MS),
        latency_ns_per_byte=array["us_per_kib"] * NS_PER_US / KIB,
        processor_ns=int(array["processor_us"] * NS_PER_US),
        processor_count=int(array["processor_count"]),
        failover_ns=int(array["failover_s"] * NS_PER_S),
        cache=spec.CacheSpec(
            write_back=array["write_back"],
            dirty_bytes_max=int(array["dirty_mib"] * MIB),
            destage_start_share=float(array["destage_start"]),
            destage_full_share=float(array["destage_full"]),
            destage_rows_per_drive=float(array["destage_rows_per_drive"]),
            read_preference_ns=int(array["read_preference_ms"] * NS_PER_MS),
            old_data_share=float(array["old_data_share"]),
            recent_bytes=int(array["recent_mib"] * MIB),
            prefetch=prefetch if array["chunk_kib"] else None,
        ),
    )


def _group(array: ArraySheet, group: Group, member: int) -> spec.GroupSpec:
    return spec.GroupSpec(
        name=f"group {member}",
        member=member,
        drive=group.sheet["name"],
        level=LEVELS[group.level],
        sets=[int(count) for count in group.sets],
        spare_count=group.spare_count,
        element_bytes=int(array["element_kib"] * KIB),
        rebuild_bytes_per_second=array["rebuild_mb_per_s"] * 1e6,
    )


def _path(array: ArraySheet) -> spec.PathSpec:
    cap, host_mb_per_s = None, array.get("host_mb_per_s")
    if base := array.get("cap_iops"):
        cap = spec.CapSpec(
            operations_per_second=float(base),
            burst_operations_per_second=float(array.get("cap_burst_iops") or base),
            credit_count_max=float(array.get("cap_credits") or 0),
            bytes_per_second=float(array.get("cap_mb_per_s") or 1e6) * 1e6,
        )
    return spec.PathSpec(
        link_count=int(array["link_count"]),
        link_bytes_per_second=array["link_mb_per_s"] * 1e6,
        link_latency_ns=int(array["link_latency_ms"] * NS_PER_MS),
        host_bytes_per_second=host_mb_per_s * 1e6 if host_mb_per_s else None,
        host_latency_ns=int(array["host_latency_ms"] * NS_PER_MS),
        policy=POLICIES[array.get("path_policy") or "round robin"],
        path_timeout_ns=int(
            (1 if array.get("path_timeout_s") is None else array["path_timeout_s"]) * NS_PER_S
        ),
        cap=cap,
        queue=_queue(array),
    )


def _queue(array: ArraySheet) -> spec.QueueSpec | None:
    """The queue of a virtual disk; None where requests go straight to a link."""
    request_us = array.get("queue_request_us")
    if request_us is None:
        return None
    return spec.QueueSpec(
        notice_ns=int((array.get("queue_notice_us") or 0) * NS_PER_US),
        request_ns=int(request_us * NS_PER_US),
        read_ns_per_byte=(array.get("queue_read_us_per_kib") or 0) * NS_PER_US / KIB,
        write_ns_per_byte=(array.get("queue_write_us_per_kib") or 0) * NS_PER_US / KIB,
        flush_ns=int((array.get("queue_flush_us") or 0) * NS_PER_US),
        durable_ns=int((array.get("queue_durable_us") or 0) * NS_PER_US),
    )
