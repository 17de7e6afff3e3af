"""Saved sets: closed databases with their logs, copied aside to be restored before each run.

A published series of tests began each run from databases of the same size by restoring them. A set is a folder with a
manifest that names every file with its length and hash, and the identity of every instance. What is restored is compared
with the hashes while it is copied, so a damaged set is noticed before it is measured. A set may be restored to another
place than it was saved from. Files are copied byte by byte and share nothing with their source: a storage that shares
blocks between copies would place them unlike databases.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plimsoll.databases.ownership import MARKER, Marker
from plimsoll.files.folder import FolderError, read_json, write_json

MANIFEST = "plimsoll-saved-set.json"
KIND = "plimsoll_saved_set"
SCHEMA_VERSION = 1
CHUNK_BYTES = 4 << 20
#: The two directories of an instance; where they are one, everything is in the first.
PLACES = {"databases": "directory", "logs": "log_directory"}

Say = Callable[[str], None]


def read_set(directory: Path) -> dict[str, Any]:
    """The manifest of a set.

    Raises:
        FolderError: there is none.
    """
    if not (directory / MANIFEST).is_file():
        raise FolderError(f"{directory} holds no saved set; make one with `plimsoll prepare PLAN --save {directory}`")
    content: dict[str, Any] = read_json(directory / MANIFEST)
    if content.get("kind") != KIND or content.get("schema_version") != SCHEMA_VERSION:
        raise FolderError(f"{directory / MANIFEST} is no manifest of this version")
    instances = content.get("instances")
    if not isinstance(instances, dict) or not all(_is_saved(item) for item in instances.values()):
        raise FolderError(f"{directory / MANIFEST} is damaged, or leads out of the set; save the set anew")
    return content


def _is_saved(item: Any) -> bool:
    """Whether an instance of a manifest has the form of ours, and names no file outside of its directories."""
    if not isinstance(item, dict) or not isinstance(item.get("identity"), dict):
        return False
    files, records = item.get("files"), item.get("records")
    databases = item["identity"].get("databases")
    if not isinstance(files, list) or not isinstance(records, list) or not isinstance(databases, list):
        return False
    return len(records) == len(databases) and all(
        isinstance(file, dict)
        and file.get("place") in PLACES
        and isinstance(file.get("bytes"), int)
        and isinstance(name := file.get("name"), str)
        and Path(name).name == name
        for file in files
    )


def may_save(directory: Path) -> None:
    """Look whether a set can be saved there.

    Raises:
        FolderError: something is there already; nothing is overwritten.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise FolderError(f"{directory} is not empty; name another folder for the set, nothing is overwritten")


def save(instances: list[dict[str, Any]], markers: list[Marker], directory: Path, say: Say) -> None:
    """Copy closed databases into a new set.

    Args:
        instances: of the run that made them.
        markers: of the same, each of a closed instance.
        directory: an empty or absent folder.
        say: told of each file.

    Raises:
        FolderError: something is there already.
        OSError: it cannot be written; what was begun is gone again.
    """
    may_save(directory)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        _fill(instances, markers, directory, say)
    except BaseException:
        for begun in directory.iterdir():
            shutil.rmtree(begun) if begun.is_dir() else begun.unlink()
        raise


def _fill(instances: list[dict[str, Any]], markers: list[Marker], directory: Path, say: Say) -> None:
    found = {}
    for instance, marker in zip(instances, markers, strict=True):
        files = []
        for place, source in _sources(instance).items():
            for path in sorted(item for item in source.iterdir() if item.is_file() and item.name != MARKER):
                target = directory / instance["name"] / place / path.name
                say(f"saving {path}")
                files.append({"place": place, "name": path.name, **_copy(path, target)})
        found[instance["name"]] = {"identity": marker.instance, "records": marker.records, "files": files}
    content = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "saved_utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_json(directory / MANIFEST, {**content, "instances": found})


def restore(instance: dict[str, Any], directory: Path, say: Say) -> list[int]:
    """Copy an instance of a set to where a run wants it; answers the records of each database.

    Raises:
        FolderError: a file of the set is missing or not what was saved.
    """
    saved = read_set(directory)["instances"][instance["name"]]
    for item in saved["files"]:
        path = directory / instance["name"] / item["place"] / item["name"]
        say(f"restoring {path}")
        target = Path(instance[PLACES[item["place"]]]) / item["name"]
        try:
            copied = _copy(path, target)
        except FileNotFoundError as error:
            raise FolderError(f"{path} is missing from the saved set; save it anew") from error
        if copied != {"bytes": item["bytes"], "sha256": item["sha256"]}:
            target.unlink()
            raise FolderError(f"{path} is not what was saved: its bytes have changed since; save the set anew")
    records: list[int] = saved["records"]
    return records


def size_of(saved: dict[str, Any], name: str) -> int:
    """Bytes of an instance in a set."""
    return sum(item["bytes"] for item in saved["instances"][name]["files"])


def _sources(instance: dict[str, Any]) -> dict[str, Path]:
    places = {place: Path(instance[key]) for place, key in PLACES.items()}
    if places["logs"] == places["databases"]:
        del places["logs"]
    return places


def _copy(source: Path, target: Path) -> dict[str, Any]:
    """Copy a file whole, durably, and say what was read."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as reading, target.open("xb") as writing:
        while chunk := reading.read(CHUNK_BYTES):
            digest.update(chunk)
            writing.write(chunk)
            size += len(chunk)
        writing.flush()
        os.fsync(writing.fileno())
        for file in (reading, writing):
            # The machine's memory is for others; the run reads past it anyway.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    shutil.copymode(source, target)
    return {"bytes": size, "sha256": digest.hexdigest()}
