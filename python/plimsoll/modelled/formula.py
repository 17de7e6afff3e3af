"""The closed-form planner's formula for a modelled array, to stand beside what the simulation says.

Drives times the planning rate of their class over the mean cost of a host I/O. It knows no caches, queues or strokes; against
the published results it was off by 20 % on average. Flash has no planning rate, so that there is no rule for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.sizing.catalogue import read_drive_classes
from plimsoll.sizing.raid import planner_iops

#: Revolutions per minute of the classes that have a planning rate.
CLASSES = {15000: "SAS 15k", 10000: "SAS 10k", 7200: "SATA 7.2k"}


def formula_iops(array: Mapping[str, Any], read_share: float) -> float | None:
    """Host IOPS by the planner's formula; None where its drives have no planning rate.

    Args:
        array: a preset or an array of the same fields, with its drive sheet.
        read_share: reads over all database I/O.

    Example:
        >>> from plimsoll.modelled.presets import array_preset
        >>> round(formula_iops(array_preset("emc-vnxe3300"), 0.62))
        589
    """
    name = CLASSES.get(array["drive_sheet"].get("rotation_rpm", 0))
    if name is None:
        return None
    drives = sum(array["sets"]) * array["member_count"]
    return planner_iops(array["level"], drives, read_drive_classes()[name], read_share)
