"""What is known about the storage under a path, asked of the native side once; nothing here writes.

Where the operating system does not say, a field is None, never a guess.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from plimsoll import _native
from plimsoll.documents.environment import FileSystemFacts, StorageFacts
from plimsoll.errors import PlimsollError


class StorageError(PlimsollError):
    """A path about which nothing can be found out."""


@dataclass(frozen=True)
class Storage:
    """The storage under one path.

    Attributes:
        facts: everything the probe found.
        mount_point: where its file system is mounted, or the device itself.
        read_only: whether the file system is mounted read-only.
        free_bytes: what an unprivileged user may still write.
        warnings: what a reader of results from this storage must know, in sentences.
    """

    facts: StorageFacts
    mount_point: str
    read_only: bool
    free_bytes: int
    warnings: tuple[str, ...]


def describe(path: Path) -> Storage:
    """What is known about the storage under a path that may not exist yet.

    Raises:
        StorageError: not even a parent of the path can be looked at.

    >>> describe(Path("/proc")).facts["file_system"]["kind"]
    'proc'
    """
    try:
        facts: StorageFacts = json.loads(_native.probe(path.expanduser().absolute()))
    except (_native.DiskError, _native.ConfigError) as error:
        raise StorageError(str(error)) from error
    file_system: FileSystemFacts = facts["file_system"] or {}
    return Storage(
        facts=facts,
        mount_point=file_system.get("mount_point", facts["looked_at"]),
        read_only="ro" in file_system.get("options", []),
        free_bytes=file_system.get("free_bytes", 0),
        warnings=tuple(facts["warnings"]),
    )


def nearest_existing(path: Path) -> Path:
    """The path itself or the closest of its parents that exists."""
    path = path.expanduser().absolute()
    while not path.exists():
        path = path.parent
    return path
