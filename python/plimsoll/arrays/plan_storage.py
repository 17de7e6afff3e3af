"""The storage of a plan that names a modelled array.

Its volumes, what lies on which, and what the run is given.

Each instance has a volume for its databases, a quarter larger than they are as the published tests
reserved, and one for its logs; they lie one behind the other from the outer rim inward. What other
applications have on the same drives, the array says itself (`pools`, `neighbours`); it takes its
space first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.arrays.description import GB, array_description
from plimsoll.arrays.faults import timed_faults
from plimsoll.arrays.pools import LOGS, ROOM_GB, free_gb, has_log_pool
from plimsoll.documents.array_sheet import ArraySheet
from plimsoll.documents.run_spec import InstanceSpec, ModelledSpec, PlaceSpec
from plimsoll.units import NS_PER_US

#: Volume over databases: the published tests reserved a quarter for growth.
VOLUME_SHARE = 1.25
#: Log volume over databases: 80 GB for 1,044 in the EMC report; enough for the live generations in
#: any case.
LOG_SHARE, LOG_GB_MIN = 0.08, 4.0
#: Databases over usable capacity where nobody says how large they are: the published tests filled
#: 46 to 80 %.
USED_SHARE = 0.6
#: A file of the modelled disk ends at 16 TiB; a database grows by up to a quarter.
DATABASE_MIB_MAX = 12 * 1024 * 1024
#: Processors of the modelled host, and what one transaction of the engine occupies one of them for:
#: 13 us for each I/O on a disk that answers at once (docs/benchmarks.md), and a 2010 transaction
#: makes about one and a half.
PROCESSOR_COUNT, TRANSACTION_PROCESSOR_US = 4, 20
#: Its page writes and log writes, whose processor time nobody waits for in line; that of a read is
#: part of its latency.
BACKGROUND_IO_COUNT = 0.6


def stored_bytes(instances: Sequence[InstanceSpec]) -> dict[str, int]:
    """What the databases of each instance take, by its name."""
    return {
        item.name: sum(database.size_bytes for database in item.databases) for item in instances
    }


def volumes_of(stored: Mapping[str, int]) -> list[tuple[str, float]]:
    """Name and decimal GB of each volume, in their order on the drives."""
    volumes = []
    for name, size_bytes in stored.items():
        stored_gb = size_bytes / GB
        volumes.append((f"{name} data", stored_gb * VOLUME_SHARE))
        volumes.append((f"{name} log", max(stored_gb * LOG_SHARE, LOG_GB_MIN)))
    return volumes


def log_volumes_of(stored: Mapping[str, int]) -> set[str]:
    """The names of those volumes that hold logs."""
    return {f"{name} log" for name in stored}


def lacking_gb(array: ArraySheet, stored: Mapping[str, int]) -> tuple[float, float] | None:
    """What the volumes need and the array holds, when that is too little."""
    volumes, logs = volumes_of(stored), log_volumes_of(stored)
    if has_log_pool(array):
        log_held = free_gb(array, LOGS)
        log_needed = sum(size_gb + ROOM_GB for name, size_gb in volumes if name in logs)
        if log_needed > log_held:
            return log_needed, log_held
        volumes = [(name, size_gb) for name, size_gb in volumes if name not in logs]
    needed = sum(size_gb + ROOM_GB for _, size_gb in volumes)
    held = free_gb(array)
    return (needed, held) if needed > held else None


def filling_mib(array: ArraySheet, database_count: int) -> int:
    """The size of a database when so many fill the array as far as a design does."""
    share = free_gb(array) * GB * USED_SHARE / database_count
    return max(int(min(share / 2**20, DATABASE_MIB_MAX)), 64)


def modelled_storage(array: ArraySheet, instances: Sequence[InstanceSpec]) -> ModelledSpec:
    """What the run is given in the place of real storage."""
    places, stored = [], stored_bytes(instances)
    for index, instance in enumerate(instances):
        places.append(PlaceSpec(directory=instance.directory, volume=2 * index))
        places.append(PlaceSpec(directory=instance.log_directory, volume=2 * index + 1))
    return ModelledSpec(
        array=array_description(array, volumes_of(stored), log_volumes=log_volumes_of(stored)),
        places=places,
        processor_count=_processor_count(array, len(instances)),
        transaction_processor_ns=int(
            (TRANSACTION_PROCESSOR_US + BACKGROUND_IO_COUNT * (array.get("host_io_us") or 0))
            * NS_PER_US
        ),
        faults_while_measuring=timed_faults(array, 0.0),
    )


def _processor_count(array: ArraySheet, instance_count: int) -> int:
    """An instance works on one processor of the host.

    A host that nobody described has enough of them.
    """
    stated = array.get("host_processor_count")
    return min(int(stated), instance_count) if stated else PROCESSOR_COUNT
