"""What a sizing asks of the arrays of one copy."""

from __future__ import annotations

from plimsoll.sizing.design import Sizing
from plimsoll.sizing.raid import RAID_LEVELS
from plimsoll.sizing.selection import GB_PER_GIB, Need


def need_of(sizing: Sizing) -> Need:
    """What the arrays of one copy must hold and carry.

    Reserves are part of the capacity the sizing gives.
    """
    figures = sizing.results
    raid = sizing.requirements.storage.raid
    return Need(
        volumes_gb=figures["total_capacity_gb"].value * GB_PER_GIB,
        database_iops=figures["database_iops"].value,
        copies=sizing.requirements.copies.count,
        log_iops=figures["log_iops"].value,
        databases=int(figures["database_count"].value),
        raid_levels=tuple(level for level in RAID_LEVELS if level == raid),
    )
