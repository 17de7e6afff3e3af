"""What an array cannot be, whatever its figures.

Found before anything is simulated, so that each mistake has its line.

What drives can form is the native side's answer, as everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll import _native
from plimsoll.arrays.faults import impossible_faults
from plimsoll.arrays.links import shipped_links
from plimsoll.arrays.neighbours import impossible_neighbours
from plimsoll.arrays.pools import impossible_volumes, overfilled_pools
from plimsoll.documents.array_sheet import ArraySheet, Drives
from plimsoll.inputs.mistakes import nearest_names
from plimsoll.inputs.toml_lines import KeyPath

#: Where a mistake stands below the array, what it is, and what to do.
Impossible = tuple[KeyPath, str, str]


def impossibilities(array: ArraySheet, drives: Drives) -> Iterator[Impossible]:
    """Key path, message and hint of everything an array cannot be.

    Keys with a wrong value of their own are None and skipped; of keys that are not there at all
    nothing is known, and nothing said.

    Args:
        array: a row of a file of arrays, or what is known of one.
        drives: the drives that are known, by name.

    Example:
        >>> list(impossibilities({"level": "RAID 5", "sets": [2]}, {}))[0][1]
        'has 2 drives, of which no RAID 5 can be made'
    """
    yield from _impossible_drives(array, drives)
    start, full = array.get("destage_start"), array.get("destage_full")
    if start is not None and full is not None and start >= full:
        yield (
            ("destage_full",),
            f"is {full}, not above destage_start",
            "the cache could never be emptied; 0.1 and 0.8 are usual",
        )
    base, burst = array.get("cap_iops"), array.get("cap_burst_iops")
    if base and burst and burst < base:
        yield (
            ("cap_burst_iops",),
            f"is {burst:g}, below cap_iops",
            "a burst is at least the base rate",
        )
    sets, failed = array.get("sets"), array.get("failed_drive_count") or 0
    if sets and failed > sum(sets):
        yield (
            ("failed_drive_count",),
            f"is {failed}, but there are {sum(sets)} drives",
            "fail fewer drives",
        )
    link = array.get("link")
    if link is not None and link not in shipped_links():
        yield ("link",), f'is "{link}", no link', nearest_names(link, shipped_links())
    yield from impossible_faults(array)
    yield from impossible_volumes(array)
    yield from impossible_neighbours(array)


def overfilled(array: ArraySheet) -> Iterator[Impossible]:
    """What asks for more than there is, of an array that has all its drives and no other
    impossibility.
    """
    yield from overfilled_pools(array)


def _impossible_drives(array: ArraySheet, drives: Drives) -> Iterator[Impossible]:
    """What the drives of databases, logs and further groups cannot be, and whether there are slots
    for them.
    """
    drive = array.get("drive")
    if drive is not None and drive not in drives:
        yield ("drive",), f'is "{drive}", no drive', nearest_names(drive, drives)
    yield from _impossible_sets(("sets",), array.get("level"), array.get("sets") or [])
    yield from _impossible_log_sets(array, drives)
    groups = array.get("groups") or []
    for number, group in enumerate(groups):
        drive = group["drive"]
        if drive is not None and drive not in drives:
            yield (
                ("groups", number, "drive"),
                f'is "{drive}", no drive',
                nearest_names(drive, drives),
            )
        yield from _impossible_sets(
            ("groups", number, "sets"), group["level"] or array.get("level"), group["sets"] or []
        )
    sets, slots = array.get("sets"), array.get("slot_count")
    spares = (array.get("spare_count") or 0) + sum(group["spare_count"] or 0 for group in groups)
    count = (
        sum(sets or [])
        + sum(array.get("log_sets") or [])
        + sum(sum(group["sets"] or []) for group in groups)
    )
    if sets and slots is not None and count + spares > slots:
        message = f"is {slots}, but {count} drives and {spares} spares are placed there"
        yield ("slot_count",), message, "use fewer drives or a larger box"


def _impossible_log_sets(array: ArraySheet, drives: Drives) -> Iterator[Impossible]:
    """What the drives of the logs cannot be."""
    drive = array.get("log_drive")
    if drive is not None and drive not in drives:
        yield ("log_drive",), f'is "{drive}", no drive', nearest_names(drive, drives)
    for key in ("log_drive", "log_level"):
        if array.get(key) is not None and "log_sets" in array and not array["log_sets"]:
            yield (
                (key,),
                "means nothing without log_sets",
                "say how many drives the logs have: log_sets = [2]",
            )
    level = array.get("log_level") or array.get("level")
    yield from _impossible_sets(("log_sets",), level, array.get("log_sets") or [])


def _impossible_sets(path: KeyPath, level: str | None, sets: list[int]) -> Iterator[Impossible]:
    if level not in _native.raid_levels() or not sets:
        return
    for message, hint in _native.raid_group(level, sets)[1]:
        yield path, message, hint
