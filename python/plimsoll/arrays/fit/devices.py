"""The kinds of device a sweep is fitted to, each as an array of one drive with few constants.

A hard drive has an arm, and a lone small read shows it. What has none is flash behind a controller,
or a virtual disk whose one queue is worked off by one thread: there latency grows by the same time
with each request that is under way, because all of them are told of together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from plimsoll.arrays.description import GB, KIB
from plimsoll.documents.array_sheet import ArraySheet, DriveSheet, sheet_of

if TYPE_CHECKING:
    from plimsoll.arrays.fit.calibration import SweepPoint

Constants = dict[str, float]
Build = Callable[[Constants], ArraySheet]
#: A lone small read that takes longer than this can only have moved an arm.
ARM_MS = 2.0
#: Room for any test: how fast a flash drive is does not depend on it.
FLASH_GB = 10_000.0
#: Where the search for a constant begins that no single point shows.
FLUSH_US, US_PER_KIB_MIN = 10.0, 0.02


def kinds(
    points: Sequence[SweepPoint], size_bytes: int, name: str
) -> list[tuple[Constants, Build]]:
    """What the device of a sweep can be, each with the constants that single points show plainly.

    Args:
        points: the measured points that may be looked at; among them random reads and writes.
        size_bytes: of the file that was measured.
        name: what the array is called.
    """
    reads = [point for point in points if point.action == "read" and not point.sequential]
    first = min(reads, key=lambda point: (point.depth, point.block_kib))
    constants = _drive_constants(points, first)
    if first.latency_ms > ARM_MS:
        return [(constants, partial(hard_drive_array, size_bytes=size_bytes, name=name))]
    return [
        (constants, partial(flash_array, size_bytes=size_bytes, name=name)),
        (
            _queue_constants(points, constants),
            partial(virtual_disk_array, size_bytes=size_bytes, name=name),
        ),
    ]


def _drive_constants(training: Sequence[SweepPoint], first: SweepPoint) -> Constants:
    """What single points show plainly."""
    reads = [point for point in training if point.action == "read"]
    writes = [point for point in training if point.action == "write"]
    ordered = [point for point in writes if point.sequential] or writes
    scattered = [point for point in writes if not point.sequential] or writes
    most = max(point.per_second for point in reads if not point.sequential)
    return {
        "read_ms": first.latency_ms,
        "parallel": max(1.0, most * first.latency_ms / 1e3 * 0.5),
        "mb_per_s": max(point.per_second * point.block_kib * KIB for point in reads) / 1e6,
        "write_ms": min(point.latency_ms for point in ordered),
        "program_mb_per_s": max(point.per_second * point.block_kib * KIB for point in scattered)
        / 1e6,
        "fixed_share": 0.5,
        "us_per_kib": 0.5,
    }


def _queue_constants(training: Sequence[SweepPoint], drive: Constants) -> Constants:
    """Latency over depth is a line.

    Its slope is the work for a request, what it begins with the time to notice.
    """
    reads = [point for point in training if point.action == "read" and not point.sequential]
    small, large = min(point.block_kib for point in reads), max(point.block_kib for point in reads)
    noticed_us, small_us = _line([point for point in reads if point.block_kib == small])
    _, large_us = _line([point for point in reads if point.block_kib == large])
    per_kib = max((large_us - small_us) / max(large - small, 1), US_PER_KIB_MIN)
    writes = [
        point
        for point in training
        if point.action == "write" and not point.sequential and not point.durable
    ]
    request_us = max(small_us - small * per_kib, 0.5)
    _, write_us = _line(writes)
    kib = writes[0].block_kib if writes else large
    return {
        "notice_us": max(noticed_us / 2, 1.0),
        "request_us": request_us,
        "read_us_per_kib": per_kib,
        "write_us_per_kib": max((write_us - request_us) / kib, US_PER_KIB_MIN),
        "flush_us": FLUSH_US,
        "us_per_kib": US_PER_KIB_MIN,
        "mb_per_s": 4 * drive["mb_per_s"],
    }


def _line(points: Sequence[SweepPoint]) -> tuple[float, float]:
    """Mean latency over depth as a line: microseconds at depth 0, and for each request more."""
    depths = [float(point.depth) for point in points]
    latencies_us = [1e6 * point.depth / point.per_second for point in points]
    if len(set(depths)) < 2:
        return (latencies_us[0] / 2, latencies_us[0] / 2) if points else (1.0, 1.0)
    middle, mean = sum(depths) / len(depths), sum(latencies_us) / len(depths)
    spread = sum((depth - middle) ** 2 for depth in depths)
    slope = (
        sum((depth - middle) * (us - mean) for depth, us in zip(depths, latencies_us, strict=True))
        / spread
    )
    return max(mean - slope * middle, 1.0), max(slope, 0.1)


def _common(name: str, constants: Constants, fixed_ms: float) -> ArraySheet:
    """What all kinds of array share: one drive, one link, one controller that costs nothing."""
    return {
        "name": name,
        "title": f"the storage measured as {name}",
        "drive": f"{name}-drive",
        "level": "RAID 0",
        "sets": [1],
        "spare_count": 0,
        "slot_count": 1,
        "member_count": 1,
        "controller_count": 1,
        "processor_count": 1,
        "processor_us": 0,
        "failover_s": 0,
        "read_latency_ms": round(fixed_ms, 5),
        "write_latency_ms": round(constants["write_ms"], 5),
        "us_per_kib": round(constants["us_per_kib"], 4),
        "write_back": True,
        "dirty_mib": 64,
        "destage_start": 0.02,
        "destage_full": 0.5,
        "destage_rows_per_drive": 32.0,
        "read_preference_ms": 0.0,
        "old_data_share": 0.0,
        "recent_mib": 0,
        "chunk_kib": 0,
        "ahead_count": 0,
        "run_count": 1,
        "pause_ms": 0,
        "element_kib": 1024,
        "shift_kib": 0,
        "page_mib": 15,
        "rebuild_mb_per_s": 0,
        "seek_scale": 1.0,
        "link_count": 1,
        "link_mb_per_s": round(constants["mb_per_s"], 3),
        "link_latency_ms": 0.0,
        "host_latency_ms": 0.0,
    }


def flash_array(constants: Constants, size_bytes: int, name: str) -> ArraySheet:
    """Dies in parallel behind a fixed latency."""
    fixed_ms = constants["read_ms"] * constants["fixed_share"]
    die_us = max(1000 * (constants["read_ms"] - fixed_ms), 1.0)
    dies = max(1, min(round(constants["parallel"]), 4096))
    # Each die takes a unit of 32 KiB in the time that makes the rate of writes that go on.
    program_us = max(dies * 32 * KIB / max(constants["program_mb_per_s"], 0.01), 1.0)
    sheet: DriveSheet = {
        "name": f"{name}-drive",
        "capacity_gb": FLASH_GB,
        "die_count": dies,
        "unit_kib": 32,
        "units_per_block": 65536,
        "read_us": round(min(die_us, 10000.0), 3),
        "program_us": round(min(program_us, 1e5), 3),
        "erase_us": 1,
        "channel_mb_per_s": 100000,
        "bus_mb_per_s": 100000,
        "overhead_us": 0,
        "write_amplification": 1.0,
        "buffer_mib": 1,
    }
    return _common(name, constants, fixed_ms) | {"drive_sheet": sheet}


def hard_drive_array(constants: Constants, size_bytes: int, name: str) -> ArraySheet:
    """One arm: what takes longer than half a turn at 7,200 rpm is its seek."""
    fixed_ms = constants["read_ms"] * constants["fixed_share"] * 0.2
    seek_ms = max(constants["read_ms"] - fixed_ms - 4.17, 0.1)
    sheet: DriveSheet = {
        "name": f"{name}-drive",
        "capacity_gb": max(20 * size_bytes / GB, 100.0),
        "rotation_rpm": 7200,
        "read_seek_ms": round(seek_ms, 4),
        "write_seek_ms": round(seek_ms + 0.5, 4),
        "outer_mb_per_s": round(constants["mb_per_s"], 2),
        "inner_mb_per_s": round(constants["mb_per_s"] * 0.5, 2),
        "interface_mb_per_s": 300,
        "overhead_ms": 0.1,
        "buffer_mib": 16,
        "queue_count": 32,
    }
    return _common(name, constants | {"mb_per_s": constants["mb_per_s"] * 2}, fixed_ms) | {
        "drive_sheet": sheet
    }


def virtual_disk_array(constants: Constants, size_bytes: int, name: str) -> ArraySheet:
    """One queue that all requests go through; what lies below answers at once."""
    below = {
        "read_ms": 0.001,
        "fixed_share": 0.0,
        "parallel": 4096,
        "program_mb_per_s": 1e6,
        "write_ms": 0.0,
    }
    figures = {
        f"queue_{key}": round(constants[key], 4)
        for key in ("notice_us", "request_us", "read_us_per_kib", "write_us_per_kib", "flush_us")
    }
    return sheet_of({**flash_array(constants | below, size_bytes, name), **figures})
