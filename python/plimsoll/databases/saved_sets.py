"""Saved sets: closed databases with their logs, copied aside to be restored before each run.

A published series of tests began each run from databases of the same size by restoring them. A set
is a folder with a manifest that names every file with its length and hash, and the identity of
every instance. Where databases are deleted for a set, all of it is read and compared with the
hashes first; it is compared again while it is copied. A set may be restored to another place than
it was saved from. Holds on the log stay with the log they were asked for and are no part of a set.
Files are copied byte by byte and share nothing with their source: a storage that shares blocks
between copies would place them unlike databases.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from plimsoll.databases.holds import is_holds
from plimsoll.databases.ownership import MARKER, Identity, Marker, identity_from
from plimsoll.documents.document import Document, DocumentError
from plimsoll.documents.run_spec import InstanceSpec
from plimsoll.files.folder import FolderError, read_json
from plimsoll.files.paths import StrPath

MANIFEST = "plimsoll-saved-set.json"
KIND = "plimsoll_saved_set"
SCHEMA_VERSION = 1
CHUNK_BYTES = 4 << 20
Place = Literal["databases", "logs"]
PLACES: tuple[Place, ...] = ("databases", "logs")
_MISSING = "is missing from the saved set; save the set again"
_CHANGED = "is not what was saved: its bytes have changed since; save the set again"

Say = Callable[[str], None]


class SavedFile(Document):
    """A file of an instance: in which of its places, called what, and what was saved."""

    place: Place
    name: str
    bytes: int
    sha256: str


class SavedInstance(Document):
    """An instance: what must agree before its databases are used (`ownership.Identity`), the
    records of each, and its files.
    """

    identity: Mapping[str, object]
    records: Sequence[int]
    files: Sequence[SavedFile]


class SavedSet(Document):
    """The manifest of a set."""

    kind: str
    schema_version: int
    saved_utc: str
    instances: Mapping[str, SavedInstance]


def read_set(directory: Path) -> SavedSet:
    """The manifest of a set.

    Raises:
        FolderError: there is none.
    """
    place = directory / MANIFEST
    if not place.is_file():
        raise FolderError(
            f"{directory} holds no saved set; make one with `plimsoll prepare PLAN --save "
            f"{directory}`"
        )
    content = read_json(place)
    known = isinstance(content, dict) and content.get("kind") == KIND
    if not known or content.get("schema_version") != SCHEMA_VERSION:
        raise FolderError(f"{place} is no manifest of this version")
    try:
        found = SavedSet.from_plain(content, str(place))
    except DocumentError as error:
        raise FolderError(
            f"{place} is damaged, or leads out of the set; save the set again"
        ) from error
    for item in found.instances.values():
        identity = identity_from(item.identity)
        in_place = all(Path(file.name).name == file.name for file in item.files)
        if identity is None or len(item.records) != len(identity.databases) or not in_place:
            raise FolderError(f"{place} is damaged, or leads out of the set; save the set again")
    return found


def identity_of(saved: SavedInstance) -> Identity:
    """What must agree before the databases of a set that was read are used."""
    identity = identity_from(saved.identity)
    assert identity is not None, "`read_set` has looked"
    return identity


def may_save(directory: StrPath) -> None:
    """Look whether a set can be saved there.

    Raises:
        FolderError: something is there already; nothing is overwritten.
    """
    directory = Path(directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise FolderError(
            f"{directory} is not empty; name another folder for the set, nothing is overwritten"
        )


def save(
    instances: Sequence[InstanceSpec], markers: Sequence[Marker], directory: Path, say: Say
) -> None:
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


def _fill(
    instances: Sequence[InstanceSpec], markers: Sequence[Marker], directory: Path, say: Say
) -> None:
    found = {}
    for instance, marker in zip(instances, markers, strict=True):
        files = []
        for place, source in _sources(instance).items():
            for path in sorted(item for item in source.iterdir() if _belongs(item)):
                say(f"saving {path}")
                size, digest = _copy(path, directory / instance.name / place / path.name)
                files.append(SavedFile(place=place, name=path.name, bytes=size, sha256=digest))
        said = marker.identity.plain()
        found[instance.name] = SavedInstance(
            identity=said, records=marker.records or (), files=files
        )
    _manifest_of(found).write(directory / MANIFEST)


def declare(
    directory: Path, identities: Mapping[str, Identity], records: Mapping[str, Sequence[int]]
) -> None:
    """Make a set of closed databases that already lie in a folder in its order.

    Args:
        directory: with `NAME/databases` and `NAME/logs` of every instance.
        identities: what must agree before the databases of each instance are used.
        records: those of each of its databases.

    Raises:
        FolderError: there is a manifest already.
        OSError: it cannot be read, or written.
    """
    if (directory / MANIFEST).exists():
        raise FolderError(f"{directory} holds a saved set already; nothing is overwritten")
    found = {}
    for name, identity in identities.items():
        files = []
        for place in PLACES:
            for path in sorted(item for item in (directory / name / place).iterdir()):
                if _belongs(path):
                    size, digest = _digest(path)
                    files.append(SavedFile(place=place, name=path.name, bytes=size, sha256=digest))
        found[name] = SavedInstance(identity=identity.plain(), records=records[name], files=files)
    _manifest_of(found).write(directory / MANIFEST)


def _manifest_of(instances: Mapping[str, SavedInstance]) -> SavedSet:
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return SavedSet(kind=KIND, schema_version=SCHEMA_VERSION, saved_utc=when, instances=instances)


def _digest(path: Path) -> tuple[int, str]:
    """The bytes of a file and their hash."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as reading:
        while chunk := reading.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
        os.posix_fadvise(reading.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return size, digest.hexdigest()


def require_whole(directory: Path, name: str) -> None:
    """Refuse an instance of a set that lacks a file, or has one of another length.

    Raises:
        FolderError: with the first such file.
    """
    for file, path in _files_of(directory, name):
        if not path.is_file():
            raise FolderError(f"{path} {_MISSING}")
        size = path.stat().st_size
        if size != file.bytes:
            raise FolderError(
                f"{path} is not what was saved: it has {size} bytes and had {file.bytes}; save the "
                f"set again"
            )


def require_sound(directory: Path, names: Sequence[str], say: Say) -> None:
    """Read instances of a set whole, and refuse what is not what was saved.

    Args:
        directory: of the set.
        names: of the instances.
        say: told of each file.

    Raises:
        FolderError: with the first file that is missing or has changed.
    """
    for name in names:
        require_whole(directory, name)
    for name in names:
        for file, path in _files_of(directory, name):
            say(f"checking {path} before databases are deleted; it is read again to be restored")
            if _digest(path) != (file.bytes, file.sha256):
                raise FolderError(f"{path} {_CHANGED}")


def restore(instance: InstanceSpec, directory: Path, say: Say) -> Sequence[int]:
    """Copy an instance of a set to where a run wants it; answers the records of each database.

    Raises:
        FolderError: a file of the set is missing or not what was saved.
    """
    for file, path in _files_of(directory, instance.name):
        say(f"restoring {path}")
        target = _places(instance)[file.place] / file.name
        try:
            copied = _copy(path, target)
        except FileNotFoundError as error:
            raise FolderError(f"{path} {_MISSING}") from error
        if copied != (file.bytes, file.sha256):
            target.unlink()
            raise FolderError(f"{path} {_CHANGED}")
    return read_set(directory).instances[instance.name].records


def _files_of(directory: Path, name: str) -> list[tuple[SavedFile, Path]]:
    """The files of an instance that are restored, and where each lies in the set.

    A set of an earlier version has holds on the log. Nobody would release them here, and all log
    would be kept for ever.
    """
    return [
        (file, directory / name / file.place / file.name)
        for file in read_set(directory).instances[name].files
        if not is_holds(file.name)
    ]


def _belongs(item: Path) -> bool:
    """Whether a file of an instance is saved with it."""
    return item.is_file() and item.name != MARKER and not is_holds(item.name)


def _places(instance: InstanceSpec) -> dict[Place, Path]:
    """The two directories of an instance."""
    return {"databases": Path(instance.directory), "logs": Path(instance.log_directory)}


def _sources(instance: InstanceSpec) -> dict[Place, Path]:
    """The same; where they are one, everything is in the first."""
    places = _places(instance)
    if places["logs"] == places["databases"]:
        del places["logs"]
    return places


def _copy(source: Path, target: Path) -> tuple[int, str]:
    """Copy a file whole, durably; answers its bytes and their hash."""
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
    return size, digest.hexdigest()
