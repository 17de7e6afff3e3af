"""The closed-form planner's formula for a modelled array, to stand beside what the simulation says.

Drives times the planning rate of their class over the mean cost of a host I/O. It knows no caches,
queues or strokes; against the published results it was off by 20 % on average. Of flash it knows
the classes of the 2020s by the names of their drives, and no others. Unlike sets of a pool are
added up. A neighbour that goes anywhere takes the share of the drives that its I/O makes of what
they could carry of it, a block of any size for one I/O; of one that goes in sequence the formula
knows nothing.
"""

from __future__ import annotations

from typing import Any

from plimsoll.arrays.pools import DATABASES, pools_of
from plimsoll.documents.array_sheet import ArraySheet
from plimsoll.sizing.catalogue import read_drive_classes
from plimsoll.sizing.raid import planner_iops

#: Revolutions per minute of the classes that have a planning rate.
CLASSES = {15000: "SAS 15k", 10000: "SAS 10k", 7200: "SATA 7.2k"}
#: The class of a flash drive, by the name of its sheet.
FLASH_CLASSES = {
    "nvme-tlc-7680gb": "NVMe TLC",
    "nvme-qlc-61440gb": "NVMe QLC",
    "sas-ssd-3840gb": "SAS SSD",
}


def formula_iops(array: ArraySheet, read_share: float) -> float | None:
    """Host IOPS by the planner's formula, less what neighbours take.

    None where its drives have no planning rate.

    Args:
        array: a preset or an array of the same fields, with its drive sheet.
        read_share: reads over all database I/O.

    Example:
        >>> from plimsoll.arrays.presets import array_preset
        >>> round(formula_iops(array_preset("emc-vnxe3300"), 0.62))
        589
    """
    alone = _iops_alone(array, read_share)
    return None if alone is None else alone * (1 - neighbours_share(array))


def neighbours_share(array: ArraySheet) -> float:
    """What neighbours that go anywhere take of the drives of the databases by the formula, at most
    all.

    >>> from plimsoll.arrays.presets import changed_array, array_preset
    >>> volume = {"name": "erp", "capacity_gb": 100, "pool": "databases", "place": "behind"}
    >>> load = {"name": "erp", "volume": None, "iops": 315, "read_percent": 50, "pattern": "random"}
    >>> round(neighbours_share(array_preset("emc-vnxe3300") | {"volumes": [volume], "neighbours": [load]}), 3)
    0.625
    """  # noqa: E501
    here = {row["name"] for row in array.get("volumes") or [] if row["pool"] == DATABASES}
    taken = 0.0
    for row in array.get("neighbours") or []:
        carried = _iops_alone(array, row["read_percent"] / 100)
        if row["pattern"] == "random" and (row["volume"] or row["name"]) in here and carried:
            taken += row["iops"] / carried
    return min(taken, 1.0)


def neighbours_remark(array: ArraySheet) -> str:
    """What the formula knows of the neighbours, to be put behind its figure.

    Empty where there are none.
    """
    neighbours = array.get("neighbours") or []
    if not neighbours:
        return ""
    share = neighbours_share(array)
    remark = f", {share:.0%} of the drives given to neighbours"
    return remark + (
        ", none to those in sequence"
        if any(row["pattern"] != "random" for row in neighbours)
        else ""
    )


def _iops_alone(array: ArraySheet, read_share: float) -> float | None:
    total = 0.0
    for group in pools_of(array)[DATABASES]:
        sheet = group.sheet
        name = CLASSES.get(round(sheet.get("rotation_rpm", 0))) or FLASH_CLASSES.get(sheet["name"])
        if name is None:
            return None
        level: Any = group.level
        drives = sum(group.sets) * array["member_count"]
        total += planner_iops(level, drives, read_drive_classes()[name], read_share)
    return total
