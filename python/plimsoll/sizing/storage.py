"""The provisioning plan: which volumes to make, where, how formatted, and over which paths they are
reached.

Sources: Dell EqualLogic paper, sections 3.1, 3.4 and 5; EMC VNXe3300 report, core storage
practices; PowerVault MD3000i testing, Figure 14; Microsoft's storage configuration options. One
database and its logs get a volume each; copies of a database never share a pool; without copies,
databases and logs go to different disk groups; volumes alternate between controllers, logs opposite
to their database.

Limit: a plan names volumes and pools, not drives; `plimsoll select` chooses the array. Volume sizes
are rounded up to whole GB, which the capacity figures are not.
"""

import math
from collections.abc import Sequence

from plimsoll.inputs.records import dataclass
from plimsoll.sizing.capacity import decimal_gb
from plimsoll.sizing.database_copies import Placement
from plimsoll.sizing.databases import Capacity
from plimsoll.sizing.guidance import Guidance
from plimsoll.sizing.traced import Amount, Expression, Step, amount, derive

ALIGNMENT_KB = 64


Paths = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class DriveClass:
    """A class of drives and the I/O it gives for the space it offers, by the published arrays.

    Attributes:
        name: The class.
        iops_per_tb: Measured IOPS for each usable decimal TB at the latency limit.
        source: The array it was computed from.
    """

    name: str
    iops_per_tb: float
    source: str


# Cheapest space first. Each figure is Table 12's IOPS over Table 13's usable space for the smallest
# drive tested.
DRIVE_CLASSES = (
    DriveClass(
        "7,200 rpm SATA or NL-SAS", 1800 / 19.5, "dell_eql, PS6500E with 500 GB drives, RAID 50"
    ),
    DriveClass("10,000 rpm SAS", 1100 / 3.6, "dell_eql, PS6000X with 300 GB drives, RAID 50"),
    DriveClass("15,000 rpm SAS", 1745 / 3.6, "dell_eql, PS6000XV with 300 GB drives, RAID 50"),
)
FLASH = DriveClass("solid-state", math.inf, "beyond every published array of drives")


@dataclass(frozen=True)
class Proposal:
    """A proposed drive class and RAID level, with the reason."""

    drive_class: str
    raid: str
    iops_per_tb: float
    reason: str


@dataclass(frozen=True)
class Volume:
    """A volume to make. Sizes are GB of 1024^3 bytes."""

    name: str
    server: str
    role: str
    active: bool
    size_gb: int
    pool: str
    raid: str
    controller: str
    partition_table: str
    file_system: str
    allocation_unit_kb: float
    partition_offset_kb: float
    mount_point: str
    multipath_policy: str
    paths: Paths


@dataclass(frozen=True)
class Formatting:
    """How volumes are formatted and reached."""

    raid: str
    file_system: str
    allocation_unit_kb: float
    partition_offset_kb: float
    controller_count: int
    port_count: int
    switch_count: int
    log_apart: bool


def propose_drives(database_iops: float, capacity_gb: float) -> Proposal:
    """Choose the drive class and RAID level that the need asks for.

    Args:
        database_iops: IOPS that one copy must carry.
        capacity_gb: Capacity of one copy, GB of 1024^3 bytes.

    Returns:
        The cheapest class whose published IOPS for each TB cover the need, with RAID 50 where space
        decides and RAID 10 where I/O does.

    Example:
        >>> propose_drives(900, 15768).drive_class
        '7,200 rpm SATA or NL-SAS'
    """
    density = database_iops / (decimal_gb(capacity_gb) / 1000)
    chosen = next((each for each in DRIVE_CLASSES if each.iops_per_tb >= density), FLASH)
    # Above two thirds of what the class gives, the head-room for a rebuild is better bought with
    # mirrors.
    raid = "RAID 10" if chosen is FLASH or density > chosen.iops_per_tb * 2 / 3 else "RAID 50"
    offered = "more than any published array of disks gives"
    if chosen is not FLASH:
        offered = f"this class gives {chosen.iops_per_tb:.0f} ({chosen.source})"
    reason = f"the design needs {density:,.0f} IOPS per TB; {offered}"
    return Proposal(chosen.name, raid, density, reason)


def is_aligned(partition_offset_kb: float, unit_kb: float = ALIGNMENT_KB) -> bool:
    """Whether a partition begins on a boundary of its allocation unit.

    Example:
        >>> is_aligned(1024), is_aligned(31.5)
        (True, False)
    """
    return partition_offset_kb % unit_kb == 0


def volume_plan(
    placements: Sequence[Placement],
    database_volume_size_gb: float,
    log_volume_size_gb: float,
    formatting: Formatting,
) -> list[Volume]:
    """List every volume of every copy.

    Args:
        placements: Which server holds which copy.
        database_volume_size_gb: Size of a database volume, GB.
        log_volume_size_gb: Size of a log volume, GB.
        formatting: How they are formatted and reached.

    Returns:
        A database and a log volume for each copy.
    """
    volumes = []
    servers = sorted({server for placement in placements for server in placement.servers})
    paths = {server: tuple(volume_paths(server, formatting)) for server in servers}
    for placement in placements:
        for order, server in enumerate(placement.servers):
            for role, size in (("database", database_volume_size_gb), ("log", log_volume_size_gb)):
                volumes.append(_volume(placement, order, role, size, formatting, paths[server]))
    return volumes


def _volume(
    placement: Placement,
    order: int,
    role: str,
    size_gb: float,
    formatting: Formatting,
    paths: Paths,
) -> Volume:
    server = placement.servers[order]
    number = placement.database + 1
    turn = placement.database + (1 if role == "log" else 0)
    controller = _letter(turn % formatting.controller_count)
    apart = "-log" if role == "log" and formatting.log_apart else ""
    windows = formatting.file_system in ("ntfs", "refs")
    folder = f"{'db' if role == 'database' else 'log'}{number:03d}"
    return Volume(
        name=f"{'DB' if role == 'database' else 'LOG'}{number:03d}-{server + 1}",
        server=f"server {server + 1}",
        role=role,
        active=order == 0,
        size_gb=math.ceil(round(size_gb, 6)),
        pool=f"pool {server + 1}{apart}",
        raid=formatting.raid,
        controller=f"controller {controller}",
        partition_table="GPT, basic disk" if windows else "GPT",
        file_system=formatting.file_system,
        allocation_unit_kb=formatting.allocation_unit_kb,
        partition_offset_kb=formatting.partition_offset_kb,
        mount_point=f"C:\\volumes\\{folder}" if windows else f"/srv/volumes/{folder}",
        multipath_policy="round robin over all paths",
        paths=paths,
    )


def volume_paths(server: int, formatting: Formatting) -> list[tuple[str, ...]]:
    """The paths from one server to its array.

    One session for each port, dealt over switches and controllers.

    With ports enough, each switch reaches each controller, so that losing one of each still leaves
    a path.
    """
    switches, controllers = formatting.switch_count, formatting.controller_count
    # Where the two numbers go round together, each new round over the switches begins one
    # controller further.
    shift = 1 if switches % controllers == 0 else 0
    return [
        (
            f"server {server + 1} port {port + 1}",
            f"switch {port % switches + 1}",
            f"controller {_letter((port + shift * (port // switches)) % controllers)}",
        )
        for port in range(formatting.port_count)
    ]


def _letter(index: int) -> str:
    return chr(ord("A") + index) if index < 26 else str(index + 1)


def physical_capacity(
    capacity: Capacity,
    database_count: Step,
    database_size_gb: Step,
    database_volume_size_gb: Step,
    guidance: Guidance,
    *,
    thin: bool,
    compression_ratio: Amount = 1,
    deduplication_ratio: Amount = 1,
) -> Step:
    """What the array must really hold for one copy, with thin provisioning and data reduction
    counted.

    Args:
        capacity: Volumes and reserves.
        database_count: Databases.
        database_size_gb: Size of one database, GB.
        database_volume_size_gb: Its volume, GB; the free space on it takes none where provisioning
            is thin.
        guidance: The content index, which does take space.
        thin: Whether empty space takes none.
        compression_ratio: How much the array compresses, 1 for not.
        deduplication_ratio: How much the array deduplicates, 1 for not.

    Returns:
        GB of 1024^3 bytes.
    """
    reduction = amount(
        compression_ratio, "compression_ratio", "Compression counted on", "requirements"
    ) * amount(
        deduplication_ratio, "deduplication_ratio", "Deduplication counted on", "requirements"
    )
    held: Expression = capacity.total
    if thin:
        index = guidance.step("content_index_factor")
        held = capacity.total - database_count * (
            database_volume_size_gb - database_size_gb * index
        )
    return derive(
        "physical_capacity_gb",
        held / reduction,
        "Physical space of one copy",
        "emc_esrp, platform features",
    )
