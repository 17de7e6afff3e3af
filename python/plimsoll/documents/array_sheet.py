"""The rows of files of arrays, as types: an array, its drives, and what else it says.

Keys, units and meanings are those of the fields of `plimsoll.arrays` that check them; a test holds
both equal. A key may be absent where a row is only begun, and is null where nothing was stated. A
sheet is put together step by step, and so a dictionary.
"""

from collections.abc import Mapping
from typing import Literal, TypedDict, cast


class DriveSheet(TypedDict, total=False):
    """A hard drive or a flash drive; it has the figures of its kind."""

    name: str
    capacity_gb: float
    rotation_rpm: float
    read_seek_ms: float
    write_seek_ms: float
    outer_mb_per_s: float
    inner_mb_per_s: float
    interface_mb_per_s: float
    overhead_ms: float
    buffer_mib: float
    queue_count: int
    die_count: int
    unit_kib: int
    units_per_block: int
    read_us: float
    program_us: float
    erase_us: float
    channel_mb_per_s: float
    bus_mb_per_s: float
    overhead_us: float
    write_amplification: float
    sources: dict[str, str]


class GroupSheet(TypedDict, total=False):
    """Further drives of each box, and their sheet."""

    pool: str
    sets: list[int]
    drive: str | None
    level: str | None
    spare_count: int
    drive_sheet: DriveSheet


class VolumeSheet(TypedDict, total=False):
    """A volume of another application."""

    name: str
    capacity_gb: float
    pool: str
    place: str


class NeighbourSheet(TypedDict, total=False):
    """What another application does on its volume."""

    name: str
    volume: str | None
    iops: float
    read_percent: float
    block_kib: int
    pattern: Literal["random", "sequential"]
    outstanding_count: int
    shares_links: bool


class FaultSheet(TypedDict, total=False):
    """What breaks or returns, and when."""

    what: str
    number: int
    box: int
    after_s: float | None


class ArraySheet(TypedDict, total=False):
    """An array: a preset, or a row of a file of arrays, with the sheets of its drives."""

    name: str
    title: str
    drive: str
    level: str
    sets: list[int]
    spare_count: int
    slot_count: int
    member_count: int
    controller_count: int
    processor_count: int
    processor_us: float
    failover_s: float
    read_latency_ms: float
    write_latency_ms: float
    us_per_kib: float
    write_back: bool
    dirty_mib: float
    destage_start: float
    destage_full: float
    destage_rows_per_drive: float
    read_preference_ms: float
    old_data_share: float
    recent_mib: float
    chunk_kib: float
    ahead_count: int
    run_count: int
    pause_ms: float
    element_kib: float
    shift_kib: float
    page_mib: float
    spread_volumes: bool
    rebuild_mb_per_s: float
    seek_scale: float
    link_count: int
    link_mb_per_s: float
    link_latency_ms: float
    host_latency_ms: float
    log_sets: list[int] | None
    log_drive: str | None
    log_level: str | None
    link: str | None
    path_policy: str
    path_timeout_s: float
    host_mb_per_s: float | None
    queue_request_us: float | None
    queue_notice_us: float
    queue_read_us_per_kib: float
    queue_write_us_per_kib: float
    queue_flush_us: float
    queue_durable_us: float
    host_processor_count: int | None
    host_io_us: float
    cap_iops: float | None
    cap_burst_iops: float | None
    cap_credits: float | None
    cap_mb_per_s: float | None
    reserve_share: float
    failed_drive_count: int
    own_error_percent: float | None
    faults: list[FaultSheet]
    groups: list[GroupSheet]
    volumes: list[VolumeSheet]
    neighbours: list[NeighbourSheet]
    drive_sheet: DriveSheet
    log_drive_sheet: DriveSheet
    sources: dict[str, str]


Drives = Mapping[str, DriveSheet]


def sheet_of(values: Mapping[str, object]) -> ArraySheet:
    """An array that was checked before, as a plan keeps it or as one was changed."""
    return cast(ArraySheet, dict(values))
