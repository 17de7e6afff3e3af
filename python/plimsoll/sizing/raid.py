"""RAID arithmetic: drives that hold data, capacity, and what a small write costs.

Sources: the write costs 2 (RAID 10) and 4 (RAID 50) are from section 3.1.3 of the Dell EqualLogic
Exchange 2010 sizing paper; RAID 6 adds the second parity's read and write. The number of parity
drives of a RAID 50 array is derived: one parity drive per set of at most seven reproduces all of
that paper's Table 13 (12 of 14 and 39 of 46 drives hold data). Limits: drive capacities are decimal
gigabytes as sold; formatting and array metadata are not subtracted. The planner's formula ignores
caches and coalescing; against 10 published points it was off by 20 % on average and 33 % at worst.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

from plimsoll.inputs.records import dataclass

RaidLevel = Literal["RAID 0", "RAID 1", "RAID 5", "RAID 6", "RAID 10", "RAID 50"]
RAID_LEVELS: tuple[RaidLevel, ...] = get_args(RaidLevel)

#: Largest parity set of a RAID 50 array: 6 drives of data and 1 of parity.
PARITY_SET_DRIVES_MAX = 7

#: What one small random write makes the drives do: reads, and writes.
_DISK_IOS_PER_WRITE: dict[RaidLevel, tuple[int, int]] = {
    "RAID 0": (0, 1),
    "RAID 1": (0, 2),
    "RAID 5": (2, 2),
    "RAID 6": (3, 3),
    "RAID 10": (0, 2),
    "RAID 50": (2, 2),
}


@dataclass(frozen=True)
class DriveRates:
    """What one drive of a class carries: random reads, and random writes, a second.

    A hard drive has one rate for both. Flash writes several times slower than it reads.
    """

    read_iops: float
    write_iops: float


def write_penalty(raid: RaidLevel) -> int:
    """Disk I/Os caused by one small random write.

    >>> write_penalty("RAID 10"), write_penalty("RAID 50")
    (2, 4)
    """
    return sum(_DISK_IOS_PER_WRITE[raid])


def sets_of(
    raid: RaidLevel, drive_count: int, parity_set_drives: int = PARITY_SET_DRIVES_MAX
) -> list[int]:
    """Drives of each set when so many are bound.

    One set, but for RAID 50 as few even ones as its parity sets allow.

    >>> sets_of("RAID 50", 14), sets_of("RAID 10", 14)
    ([7, 7], [14])
    """
    if raid != "RAID 50":
        return [drive_count]
    count = max(2, math.ceil(drive_count / parity_set_drives))
    return [drive_count // count + (index < drive_count % count) for index in range(count)]


def data_drive_count(
    raid: RaidLevel, drive_count: int, parity_set_drives: int = PARITY_SET_DRIVES_MAX
) -> int:
    """Drives' worth of capacity that hold data.

    What can be built at all is the array model's own answer.

    Args:
        raid: the RAID level.
        drive_count: active drives, hot spares not counted.
        parity_set_drives: drives in one parity set of RAID 50, parity included.

    Raises:
        ValueError: the level cannot be built from so many drives.

    >>> data_drive_count("RAID 50", 46), data_drive_count("RAID 10", 14), data_drive_count("RAID 5", 7)
    (39, 7, 6)
    """  # noqa: E501
    from plimsoll import _native

    usable, _ = _native.raid_group(raid, sets_of(raid, drive_count, parity_set_drives))
    if usable is None:
        raise ValueError(f"{raid} cannot be built of {drive_count} drives")
    return usable


def usable_capacity_gb(
    raid: RaidLevel, drive_slots: int, hot_spares: int, drive_capacity_gb: float
) -> float:
    """Capacity of a full enclosure in decimal GB, before formatting.

    Source: the rule derived from Table 13 of the Dell EqualLogic paper, `drive_gb * data_disks`.

    >>> usable_capacity_gb("RAID 50", 48, 2, 500)
    19500
    """
    return drive_capacity_gb * data_drive_count(raid, drive_slots - hot_spares)


def planner_iops(
    raid: RaidLevel, drive_count: int, drive_iops: float | DriveRates, read_fraction: float
) -> float:
    """Host IOPS by the usual planner's formula.

    Drives over the mean time that a host I/O takes of them. With one rate for reads and writes that
    is drives x IOPS per drive / (reads + writes x write cost).

    Args:
        raid: the RAID level.
        drive_count: active drives.
        drive_iops: random I/Os per second of one drive, or its reads and its writes.
        read_fraction: reads as a share of host I/O, 0 to 1.

    >>> round(planner_iops("RAID 10", 14, 180, 0.5))
    1680
    >>> round(planner_iops("RAID 5", 4, DriveRates(200_000, 20_000), 0.5))
    69565
    """
    rates = drive_iops if isinstance(drive_iops, DriveRates) else DriveRates(drive_iops, drive_iops)
    reads, writes = _DISK_IOS_PER_WRITE[raid]
    host_write_s = reads / rates.read_iops + writes / rates.write_iops
    return drive_count / (read_fraction / rates.read_iops + (1 - read_fraction) * host_write_s)
