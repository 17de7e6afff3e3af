"""A modelled array as the Rust side is given it, key by key as in
`crates/plimsoll-array/src/spec.rs`.

Sizes are bytes, times nanoseconds, rates bytes per second. Nothing has a default here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document

Level = Literal["raid0", "raid1", "raid5", "raid6", "raid10", "raid50"]
Tenant = Literal["neighbour_before", "host", "neighbour_behind"]
Policy = Literal["round_robin", "least_busy", "failover"]


class HddSpec(Document):
    """A rotating drive."""

    rotation_rpm: float
    read_seek_ns: float
    write_seek_ns: float
    outer_bytes_per_second: float
    inner_bytes_per_second: float
    interface_bytes_per_second: float
    overhead_ns: int
    buffer_bytes: int
    queue_count_max: int
    scheduling: Literal["in_order", "shortest_positioning"]


class SsdSpec(Document):
    """A drive of flash memory."""

    die_count: int
    unit_bytes: int
    units_per_block: int
    read_ns: int
    program_ns: int
    erase_ns: int
    channel_bytes_per_second: float
    bus_bytes_per_second: float
    overhead_ns: int
    write_amplification: float
    buffer_bytes: int


class HddKind(Document):
    """A kind of drive: rotating."""

    hdd: HddSpec


class SsdKind(Document):
    """A kind of drive: flash."""

    ssd: SsdSpec


class DriveSpec(Document):
    """A model of drive."""

    name: str
    capacity_bytes: int
    kind: HddKind | SsdKind


class PrefetchSpec(Document):
    """How an array reads ahead."""

    chunk_bytes: int
    ahead_count: int
    run_count_min: int
    pause_ns_max: int


class CacheSpec(Document):
    """The cache of an array's member."""

    write_back: bool
    dirty_bytes_max: int
    destage_start_share: float
    destage_full_share: float
    destage_rows_per_drive: float
    read_preference_ns: int
    old_data_share: float
    recent_bytes: int
    prefetch: PrefetchSpec | None = None


class MemberSpec(Document):
    """A pair of controllers with their cache."""

    controller_count: int
    slot_count: int
    read_latency_ns: int
    write_latency_ns: int
    latency_ns_per_byte: float
    processor_ns: int
    processor_count: int
    failover_ns: int
    cache: CacheSpec


class GroupSpec(Document):
    """Drives in RAID sets."""

    name: str
    member: int
    drive: str
    level: Level
    sets: Sequence[int]
    spare_count: int
    element_bytes: int
    rebuild_bytes_per_second: float


class PoolSpec(Document):
    """Groups that volumes are cut from."""

    name: str
    groups: Sequence[int]
    page_bytes: int
    page_order: Literal["volume_by_volume", "spread"]


class VolumeSpec(Document):
    """A volume and whose it is."""

    name: str
    pool: int
    capacity_bytes: int
    shift_bytes: int
    tenant: Tenant


class NeighbourSpec(Document):
    """Load that others put on the array."""

    name: str
    volume: int
    per_second: float
    read_share: float
    request_bytes: int
    pattern: Literal["random", "sequential"]
    outstanding_max: int
    shares_links: bool


class QueueSpec(Document):
    """The paravirtual queue between a guest and its host."""

    notice_ns: int
    request_ns: int
    read_ns_per_byte: float
    write_ns_per_byte: float
    flush_ns: int
    durable_ns: int


class CapSpec(Document):
    """The limits of a cloud volume."""

    operations_per_second: float
    burst_operations_per_second: float
    credit_count_max: float
    bytes_per_second: float


class PathSpec(Document):
    """Links between host and array."""

    link_count: int
    link_bytes_per_second: float
    link_latency_ns: int
    host_bytes_per_second: float | None = None
    host_latency_ns: int
    policy: Policy
    path_timeout_ns: int
    cap: CapSpec | None = None
    queue: QueueSpec | None = None


class DriveNumber(Document):
    """A drive of a group."""

    group: int
    drive: int


class LinkNumber(Document):
    """A link of the path."""

    link: int


class ControllerNumber(Document):
    """A controller of a member."""

    member: int
    controller: int


class MemberNumber(Document):
    """A member."""

    member: int


class DriveFails(Document):
    """A fault: a drive is lost."""

    drive_fails: DriveNumber


class LinkFails(Document):
    """A fault: a link is lost."""

    link_fails: LinkNumber


class LinkReturns(Document):
    """The end of a fault: a link is there again."""

    link_returns: LinkNumber


class ControllerFails(Document):
    """A fault: a controller is lost."""

    controller_fails: ControllerNumber


class CacheLost(Document):
    """A fault: a member writes through."""

    cache_lost: MemberNumber


class CacheReturns(Document):
    """The end of a fault: a member writes back again."""

    cache_returns: MemberNumber


Fault = DriveFails | LinkFails | LinkReturns | ControllerFails | CacheLost | CacheReturns


class TimedFault(Document):
    """A fault and its time."""

    at_ns: int
    fault: Fault


class ArraySpec(Document):
    """A whole array."""

    drives: Sequence[DriveSpec]
    members: Sequence[MemberSpec]
    groups: Sequence[GroupSpec]
    pools: Sequence[PoolSpec]
    volumes: Sequence[VolumeSpec]
    neighbours: Sequence[NeighbourSpec]
    path: PathSpec
    faults: Sequence[TimedFault]
