"""Pools of an array: which drives each is made of, what it holds, and the volumes that others have
on it.

The drives of `sets` make the pool of the databases, those of `log_sets` that of the logs. What else
there is a file says:

    [[arrays.groups]]                # further drives in each box
    pool = "databases"               # they join a pool; any other name makes one of its own
    drive = "nearline-7k2-6tb"
    level = "RAID 6"
    sets = [8]

    [[arrays.volumes]]               # of other applications
    name = "erp"
    capacity_gb = 300
    pool = "databases"
    place = "before"                 # they were there first, nearer the outer rim; or "behind"

Limit: blocks go round all drives of a pool in turn, so that unlike sets hold no more than the
smallest of their drives each, and the slowest set decides; nothing moves between them, as in arrays
with tiers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plimsoll.documents.array_sheet import ArraySheet, Drives, DriveSheet, sheet_of
from plimsoll.documents.array_spec import Level, Tenant
from plimsoll.inputs.mistakes import nearest_names
from plimsoll.inputs.schema import Field, ListOf, Number, Text
from plimsoll.inputs.toml_lines import KeyPath

DATABASES, LOGS = "databases", "logs"
LEVELS: dict[str, Level] = {
    "RAID 0": "raid0",
    "RAID 1": "raid1",
    "RAID 5": "raid5",
    "RAID 6": "raid6",
    "RAID 10": "raid10",
    "RAID 50": "raid50",
}
#: Where the volumes of others lie against those of the databases and logs, and what the native side
#: calls it.
PLACES: dict[str, Tenant] = {"behind": "neighbour_behind", "before": "neighbour_before"}
_PARITY_DRIVES = {"RAID 0": 0, "RAID 5": 1, "RAID 6": 2, "RAID 50": 1}
#: What the native side adds to each volume, decimal GB.
ROOM_GB = 0.003

GROUP = {
    "pool": Field(
        Text(), default=DATABASES, meaning="the pool they join or, by a name of its own, make"
    ),
    "sets": Field(
        ListOf(Number(1, 1000, whole=True), 1),
        required=True,
        meaning="drives of each set, in each box",
    ),
    "drive": Field(Text(), meaning="the name of a drive, if it is another than the array's"),
    "level": Field(Text(tuple(LEVELS)), meaning="their RAID level, if it is another"),
    "spare_count": Field(
        Number(0, 100, whole=True), default=0, meaning="spares for these drives alone"
    ),
}
VOLUME = {
    "name": Field(Text(), required=True, meaning="the name neighbours use"),
    "capacity_gb": Field(Number(0.1, 1e7), required=True, meaning="its size, decimal GB"),
    "pool": Field(Text(), default=DATABASES, meaning="databases, logs, or a pool of `groups`"),
    "place": Field(
        Text(tuple(PLACES)),
        default="behind",
        meaning="before the databases, nearer the outer rim, or behind",
    ),
}


@dataclass(frozen=True)
class Group:
    """Drives bound together, the same in each box."""

    sheet: DriveSheet
    level: str
    sets: tuple[int, ...]
    spare_count: int

    @property
    def columns(self) -> int:
        """Drives' worth of data of one box."""
        if self.level in ("RAID 1", "RAID 10"):
            return sum(count // 2 for count in self.sets)
        return sum(count - _PARITY_DRIVES[self.level] for count in self.sets)


def pools_of(array: ArraySheet) -> dict[str, list[Group]]:
    """The groups of each pool, the databases' first and the logs' second where they have drives of
    their own.

    Args:
        array: a preset or an array of the same fields, with its drive sheets.
    """
    level, sheet = array["level"], array["drive_sheet"]
    pools = {
        DATABASES: [Group(sheet, level, tuple(array["sets"]), int(array.get("spare_count") or 0))]
    }
    if log_sets := array.get("log_sets"):
        own = Group(array["log_drive_sheet"], array.get("log_level") or level, tuple(log_sets), 0)
        pools[LOGS] = [own]
    for row in array.get("groups") or []:
        group = Group(
            row["drive_sheet"], row["level"] or level, tuple(row["sets"]), int(row["spare_count"])
        )
        pools.setdefault(row["pool"], []).append(group)
    if LOGS in pools:
        pools = {DATABASES: pools[DATABASES], LOGS: pools[LOGS]} | pools
    return pools


def with_group_sheets(array: ArraySheet, drives: Drives) -> ArraySheet:
    """The array with the sheet of its drive next to each further group.

    None where there is no such drive.
    """
    rows = [
        {**row, "drive_sheet": drives.get(row["drive"] or array["drive"])}
        for row in array.get("groups") or []
    ]
    return sheet_of({**array, "groups": rows})


def pool_gb(array: ArraySheet, pool: str = DATABASES) -> float:
    """What a pool holds for its volumes, in decimal GB, without what is kept for snapshots, clones
    and replicas.

    Example:
        >>> sheet = {"capacity_gb": 600}
        >>> pool_gb({"level": "RAID 5", "sets": [7], "member_count": 1, "drive_sheet": sheet})
        3600.0
    """
    groups = pools_of(array)[pool]
    columns = sum(group.columns for group in groups)
    least_gb = min(group.sheet["capacity_gb"] for group in groups)
    return float(columns * array["member_count"] * least_gb) * (
        1 - float(array.get("reserve_share") or 0)
    )


def others_gb(array: ArraySheet, pool: str = DATABASES) -> float:
    """What the volumes of others take of a pool, decimal GB.

    Nothing where a size is wrong, which was told by itself.
    """
    mine = [row for row in array.get("volumes") or [] if row["pool"] == pool]
    return float(sum((row["capacity_gb"] or 0) + ROOM_GB for row in mine))


def free_gb(array: ArraySheet, pool: str = DATABASES) -> float:
    """What a pool has left for databases or logs, decimal GB."""
    return pool_gb(array, pool) - others_gb(array, pool)


def has_log_pool(array: ArraySheet) -> bool:
    """Whether the logs have drives of their own."""
    return bool(array.get("log_sets")) or any(
        row["pool"] == LOGS for row in array.get("groups") or []
    )


def impossible_volumes(array: ArraySheet) -> Iterator[tuple[KeyPath, str, str]]:
    """Key, message and hint of each volume of others that lies in no pool."""
    if "groups" not in array or "log_sets" not in array:
        return
    pools = {DATABASES} | ({LOGS} if has_log_pool(array) else set())
    pools |= {row["pool"] for row in array["groups"] or [] if row["pool"]}
    for number, row in enumerate(array.get("volumes") or []):
        if row["pool"] is not None and row["pool"] not in pools:
            hint = nearest_names(row["pool"], pools)
            yield ("volumes", number, "pool"), f'is "{row["pool"]}", no pool of this array', hint


def overfilled_pools(array: ArraySheet) -> Iterator[tuple[KeyPath, str, str]]:
    """Key, message and hint of each pool that the volumes of others alone fill.

    For arrays that are right otherwise.
    """
    for pool in pools_of(array):
        if others_gb(array, pool) > pool_gb(array, pool):
            message = (
                f"ask for {others_gb(array, pool):,.0f} GB of the pool {pool}, which holds "
                f"{pool_gb(array, pool):,.0f} GB"
            )
            yield ("volumes",), message, "make the volumes smaller, or use larger or more drives"


def group_words(array: ArraySheet) -> list[str]:
    """Each further group in words.

    >>> sheet = {"name": "nearline"}
    >>> row = {"pool": "databases", "sets": [8], "level": "RAID 6", "drive_sheet": sheet}
    >>> group_words({"level": "RAID 5", "groups": [row]})
    ['8 x nearline, RAID 6, in the pool databases']
    """
    words = []
    for row in array.get("groups") or []:
        sets = " + ".join(str(count) for count in row["sets"])
        words.append(
            f"{sets} x {row['drive_sheet']['name']}, {row['level'] or array['level']}, in the pool "
            f"{row['pool']}"
        )
    return words


def volume_words(array: ArraySheet) -> list[str]:
    """Each volume of others in words.

    >>> volume_words({"volumes": [{"name": "erp", "capacity_gb": 300, "pool": "databases", "place": "behind"}]})
    ['erp: 300 GB in the pool databases, behind']
    """  # noqa: E501
    return [
        f"{row['name']}: {row['capacity_gb']:,g} GB in the pool {row['pool']}, {row['place']}"
        for row in array.get("volumes") or []
    ]
