"""Where such work lies: a directory of its own with the owner marker that `plimsoll clean` knows.

What a power cut left is evidence, so a directory that holds anything is never worked in again; it is deleted by `plimsoll clean` and
by nothing else. The marker is on stable storage before the first commit: it says which run this is, and how its rings are laid out.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plimsoll import premises
from plimsoll.folder import FolderError, read_json, replacing
from plimsoll.storage import StorageError, describe

#: The instance directory in the directory that the user names.
NAME = "powercut"
DATABASE, MARKS = "database001.edb", "marks.dat"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
#: Bytes that a row and its twin take with their keys, indexes and what splits leave free.
ROW_BYTES_IN_ALL = 1700
ROW_BYTES = 800
LANES, SLOTS = 8, 512
#: What the witness does not know yet; enough to keep a fast disk busy over a network.
UNWITNESSED_MAX = 4096
LOG_RESERVE_BYTES = 32 << 20


class PlaceError(Exception):
    """A place that is not fit, or somebody's; the message says why and what to do."""


@dataclass(frozen=True)
class Wanted:
    """What the user wants.

    Attributes:
        directory: the one named.
        size_bytes: about what the database may hold.
        page_bytes: its page size.
        sessions: how many commit at once.
        io_method: as in a plan.
        seconds: after which the work ends by itself.
    """

    directory: Path
    size_bytes: int
    page_bytes: int
    sessions: int
    io_method: str = "auto"
    seconds: float | None = None


def work_of(wanted: Wanted) -> dict[str, Any]:
    """The description of the work, as the native side takes it."""
    return {
        "directory": str(wanted.directory.absolute() / NAME),
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


def run_name(work: dict[str, Any]) -> str:
    """How a run is called in markers, logs and messages."""
    return f"{work['run']:016x}"


def inspect(wanted: Wanted) -> list[str]:
    """Look at the place; nothing is written. Returns what a reader of the result must know.

    Raises:
        PlaceError: it is not fit.
    """
    directory, place = wanted.directory, wanted.directory / NAME
    if not directory.is_dir():
        raise PlaceError(f"{directory} is no directory; name one on the storage that will lose its power")
    try:
        storage = describe(directory)
    except StorageError as error:
        raise PlaceError(str(error)) from error
    if storage.read_only or not os.access(directory, os.W_OK | os.X_OK):
        raise PlaceError(f"{directory} may not be written; remount it, change its owner or name another directory")
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        raise PlaceError(f"{place} is something else; name another directory, nothing is overwritten")
    if place.is_dir() and any(place.iterdir()):
        if premises.instances_below(place):
            raise PlaceError(
                f"{place} holds what an earlier run left, which may be evidence; `plimsoll audit` it, then "
                f"`plimsoll clean {place}`"
            )
        raise PlaceError(f"{place} is not empty and was not made by Plimsoll; name another directory")
    needed = wanted.size_bytes * 2 + LOG_RESERVE_BYTES + LANES * SLOTS * 4096
    if storage.free_bytes < needed:
        raise PlaceError(
            f"{directory} has {storage.free_bytes >> 20} MiB free, but about {needed >> 20} MiB are needed; "
            "take a smaller --size-mib"
        )
    return list(storage.warnings)


def describe_run(wanted: Wanted, work: dict[str, Any]) -> dict[str, Any]:
    """What marker and witness know of a run: everything an audit needs, should the other be lost."""
    return {
        "run": run_name(work),
        "path": work["directory"],
        "work": work,
        "boot_id": boot_id(),
        "sectors": sectors_of(wanted.directory),
    }


def take(wanted: Wanted, description: dict[str, Any]) -> Path:
    """Make the directory and put the marker there, all of it on stable storage."""
    place = Path(description["path"])
    place.mkdir(exist_ok=True)
    marker = {
        "kind": premises.MARKER_KIND,
        "schema_version": premises.SCHEMA_VERSION,
        "state": premises.IN_USE,
        "records": None,
        "instance": {
            "name": NAME,
            "backend": "engine",
            "page_bytes": wanted.page_bytes,
            # Beside the databases, wherever they are mounted: cleaning this place must never reach another.
            "log_directory": ".",
            "log_framing": "segment_4096",
            "databases": [{"file_name": DATABASE}],
        },
        NAME: description,
    }
    _write_durably(place / premises.MARKER, marker)
    for directory in (place, wanted.directory):
        _sync(directory)
    return place


def close(place: Path) -> None:
    """Note that the work was ended by its user and not by a power cut."""
    marker = read_json(place / premises.MARKER)
    _write_durably(place / premises.MARKER, marker | {"state": premises.CLOSED})
    _sync(place)


def find(directory: Path) -> tuple[Path, dict[str, Any]]:
    """The directory of the work and its marker.

    Raises:
        PlaceError: there is none.
    """
    for place in (directory / NAME, directory):
        if not (place / premises.MARKER).is_file():
            continue
        try:
            marker = read_json(place / premises.MARKER)
        except FolderError as error:
            raise PlaceError(str(error)) from error
        if isinstance(marker, dict) and isinstance(marker.get(NAME), dict):
            return place, marker
    raise PlaceError(f"{directory} holds nothing that `plimsoll powercut` has made; name the path it was given")


def sectors_of(directory: Path) -> dict[str, int | None]:
    """What the device below a directory says of its sectors."""
    device = describe(directory).facts.get("device") or {}
    return {"logical_bytes": device.get("logical_block_bytes"), "physical_bytes": device.get("physical_block_bytes")}


def boot_id() -> str | None:
    """Which start of this machine it is."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def _write_durably(path: Path, value: dict[str, Any]) -> None:
    with replacing(path) as unfinished, unfinished.open("x", encoding="utf-8") as file:
        file.write(json.dumps(value, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
