"""Where such work lies: a directory of its own with the owner marker that `plimsoll clean` knows.

What a power cut left is evidence, so a directory that holds anything is never worked in again; it
is deleted by `plimsoll clean` and by nothing else. The marker is on stable storage before the first
commit: it says which run this is, and how its rings are laid out.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from plimsoll.databases import ownership
from plimsoll.databases.consent import Consent, refusals
from plimsoll.documents.document import DocumentError, checked
from plimsoll.documents.environment import DeviceFacts
from plimsoll.documents.powercut import PowercutWork, RunDescription, Sectors
from plimsoll.errors import PowercutError
from plimsoll.files.folder import FolderError, read_json, write_json_durably
from plimsoll.files.paths import StrPath, sync_directory
from plimsoll.host.boot import boot_id
from plimsoll.host.identity import identity_from, identity_of
from plimsoll.host.probe import StorageError, describe

#: The instance directory in the directory that the user names.
NAME = "powercut"
DATABASE, MARKS = "database001.edb", "marks.dat"
PARTITIONS = Path("/sys/dev/block")
SECTOR_BYTES = 512
#: Bytes that a row and its twin take with their keys, indexes and what splits leave free.
ROW_BYTES_IN_ALL = 1700
ROW_BYTES = 800
LANES, SLOTS = 8, 512
#: What the witness does not know yet; enough to keep a fast disk busy over a network.
UNWITNESSED_MAX = 4096
LOG_RESERVE_BYTES = 32 << 20


class PlaceError(PowercutError):
    """A place that is not fit, or somebody's; the message says why and what to do."""


@dataclass(frozen=True)
class PowercutWanted:
    """What the user wants.

    Attributes:
        directory: the one named.
        size_bytes: about what the database may hold.
        page_bytes: its page size.
        sessions: how many commit at once.
        io_method: as in a plan.
        seconds: after which the work ends by itself.
        allow_system_disk: whether the directory may lie on the root file system.
    """

    directory: StrPath
    size_bytes: int
    page_bytes: int
    sessions: int
    io_method: str = "auto"
    seconds: float | None = None
    allow_system_disk: bool = False


def work_of(wanted: PowercutWanted) -> PowercutWork:
    """The description of the work, as the native side takes it."""
    return {
        "directory": str(Path(wanted.directory).absolute() / NAME),
        "run": secrets.randbits(63),
        "page_bytes": wanted.page_bytes,
        "sessions": wanted.sessions,
        "rows": max(wanted.size_bytes // (wanted.sessions * ROW_BYTES_IN_ALL), 16),
        "row_bytes": ROW_BYTES,
        "lanes": LANES,
        "slots": SLOTS,
        "cache_bytes": max(wanted.size_bytes // 4, 4 << 20),
        "unwitnessed_max": UNWITNESSED_MAX,
        "io_method": wanted.io_method,
        "seconds": wanted.seconds,
    }


def run_name(work: PowercutWork) -> str:
    """How a run is called in markers, logs and messages."""
    return f"{work['run']:016x}"


def inspect(wanted: PowercutWanted) -> list[str]:
    """Look at the place; nothing is written. Returns what a reader of the result must know.

    Raises:
        PlaceError: it is not fit.
    """
    directory = Path(wanted.directory)
    place = directory / NAME
    if not directory.is_dir():
        raise PlaceError(
            f"{directory} is no directory; name one on the storage that will lose its power"
        )
    for refusal in refusals([directory], Consent(system_disk=wanted.allow_system_disk)):
        raise PlaceError(refusal)
    try:
        storage = describe(directory)
    except StorageError as error:
        raise PlaceError(str(error)) from error
    if storage.read_only or not os.access(directory, os.W_OK | os.X_OK):
        raise PlaceError(
            f"{directory} may not be written; remount it, change its owner or name another "
            f"directory"
        )
    if (directory / ownership.MARKER).exists():
        raise PlaceError(
            f"{directory} holds databases of Plimsoll, which may be evidence; name the directory "
            f"around it"
        )
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        raise PlaceError(
            f"{place} is something else; name another directory, nothing is overwritten"
        )
    if place.is_dir() and any(place.iterdir()):
        if ownership.find_databases(place):
            raise PlaceError(
                f"{place} holds what an earlier run left, which may be evidence; `plimsoll audit` "
                f"it, then "
                f"`plimsoll clean {place}`"
            )
        raise PlaceError(
            f"{place} is not empty and was not made by Plimsoll; name another directory"
        )
    needed = wanted.size_bytes * 2 + LOG_RESERVE_BYTES + LANES * SLOTS * 4096
    if storage.free_bytes < needed:
        raise PlaceError(
            f"{directory} has {storage.free_bytes >> 20} MiB free, but about {needed >> 20} MiB "
            f"are needed; "
            "take a smaller --size-mib"
        )
    return list(storage.warnings)


def describe_run(wanted: PowercutWanted, work: PowercutWork) -> RunDescription:
    """What marker and witness know of a run.

    Everything an audit needs, should the other be lost.
    """
    return {
        "run": run_name(work),
        "path": work["directory"],
        "work": work,
        "boot_id": boot_id(),
        "sectors": sectors_of(Path(wanted.directory)),
        "storage": identity_of(Path(wanted.directory)).as_data(),
    }


@contextmanager
def made(place: Path) -> Iterator[None]:
    """An empty directory that no other work takes meanwhile; gone again where nothing came into it.

    Raises:
        PlaceError: others work there or have left something.
    """
    is_new = not place.exists()
    place.mkdir(exist_ok=True)
    try:
        with held(place):
            if any(place.iterdir()):
                raise PlaceError(
                    f"{place} has just been taken by other work; name another directory"
                )
            yield
    finally:
        # Storage without power says nothing any more, and that is told by others.
        with suppress(OSError):
            if is_new and not any(place.iterdir()):
                place.rmdir()


@contextmanager
def held(place: Path) -> Iterator[None]:
    """A directory of work that nobody works in meanwhile.

    Where a file system knows no locks, nothing is looked for.

    Raises:
        PlaceError: somebody works there.
    """
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise PlaceError(
                    f"`plimsoll powercut` or an audit works in {place}; let the power be cut, or "
                    f"end it, first"
                ) from error
        yield
    finally:
        os.close(descriptor)


def take(wanted: PowercutWanted, description: RunDescription) -> Path:
    """Put the marker into the directory, both on stable storage."""
    place = Path(description["path"])
    instance: dict[str, object] = {
        "name": NAME,
        "backend": "engine",
        "page_bytes": wanted.page_bytes,
        # Beside the databases, wherever they are mounted: cleaning this place must never reach
        # another.
        "log_directory": ".",
        "log_framing": "segment_4096",
    }
    identity = ownership.Identity(instance, [{"file_name": DATABASE}])
    marker = ownership.Marker(place, ownership.IN_USE, None, identity)
    write_json_durably(place / ownership.MARKER, marker.content() | {NAME: description})
    sync_directory(Path(wanted.directory))
    return place


def close(place: Path) -> None:
    """Note that the work was ended by its user and not by a power cut."""
    marker = read_json(place / ownership.MARKER)
    write_json_durably(place / ownership.MARKER, marker | {"state": ownership.CLOSED})


def find(directory: Path) -> tuple[Path, RunDescription, bool]:
    """The directory of the work, its description and whether it was closed, by its marker.

    Raises:
        PlaceError: there is none.
    """
    for place in (directory / NAME, directory):
        if not (place / ownership.MARKER).is_file():
            continue
        try:
            marker = read_json(place / ownership.MARKER)
        except FolderError as error:
            raise PlaceError(str(error)) from error
        if not isinstance(marker, dict) or not isinstance(marker.get(NAME), dict):
            continue
        try:
            described = description_of(marker[NAME], str(place / ownership.MARKER))
        except DocumentError as error:
            raise PlaceError(f"{error}; restore the marker from a copy") from error
        return place, described, marker.get("state") == ownership.CLOSED
    raise PlaceError(
        f"{directory} holds nothing that `plimsoll powercut` has made; name the path it was given"
    )


def description_of(value: object, name: str) -> RunDescription:
    """The description of a run from plain data.

    Raises:
        DocumentError: it is none; with every mistake.
    """
    described: RunDescription = checked(RunDescription, value, name)
    return described


def sectors_of(directory: Path) -> Sectors:
    """What the device below a directory says of its sectors, the blocks of the file system on it,
    and where in a sector its partition begins.
    """
    device: DeviceFacts = describe(directory).facts.get("device") or {}
    number = directory.stat().st_dev
    try:
        text = (PARTITIONS / f"{os.major(number)}:{os.minor(number)}" / "start").read_text(
            encoding="ascii"
        )
        start_bytes = int(text) * SECTOR_BYTES
    except (OSError, ValueError):
        start_bytes = 0
    return {
        "logical_bytes": device.get("logical_block_bytes"),
        "physical_bytes": device.get("physical_block_bytes"),
        "block_bytes": os.statvfs(directory).f_frsize,
        "start_bytes": start_bytes,
    }


def whole_bytes(sectors: Sectors) -> int | None:
    """How large the pieces are that the storage promises to write whole, where blocks of files lie.

    None where it says nothing.

    A file's blocks begin with a sector only where the blocks of the file system are as large and
    its partition begins with one.

    >>> whole_bytes({"physical_bytes": 4096, "block_bytes": 4096, "start_bytes": 1048576})
    4096
    >>> whole_bytes({"physical_bytes": 4096, "block_bytes": 1024, "start_bytes": 0})
    1024
    >>> whole_bytes({"physical_bytes": 4096, "block_bytes": 4096, "start_bytes": 63 * 512})
    512
    """
    physical = sectors.get("physical_bytes")
    if physical is None:
        return None
    if (sectors.get("start_bytes") or 0) % physical:
        return min(physical, SECTOR_BYTES)
    return min(physical, sectors.get("block_bytes") or physical)


def missed_mount(directory: Path, described: RunDescription) -> str | None:
    """Why a directory is not on the storage of a run, in words.

    None if it is, as far as is known.
    """
    if not directory.is_dir():
        return f"{directory} is not there"
    was, now = identity_from(described["storage"]), identity_of(directory)
    both_known = was.is_known() and now.is_known()
    if was.same_as(now) if both_known else was.mount_point == now.mount_point:
        return None
    return (
        f"{directory} is on the file system of {now.mount_point}, and the work was on that of "
        f"{was.mount_point}"
    )
