"""Other runs of this machine that work on the same storage while a run goes on.

A run locks its databases and has a marker beside them, so that the kernel's list of locks leads to
it. Two runs on one device are neighbours: what either measures is of both. Runs of other users are
not seen by a user who may not look at their processes, and those of other machines by nobody.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from plimsoll.databases.ownership import MARKER
from plimsoll.files.claims import PROC
from plimsoll.host.probe import StorageError, describe, nearest_existing
from plimsoll.host.processes import process_of

#: Looked for so often while a run goes on.
EVERY_S = 10.0


class OtherRuns:
    """Looks for runs on the storage under some paths, again and again.

    Args:
        paths: what this run works on, which may not exist yet.
        proc: where the process file system is mounted.
        clock: seconds, for how often is looked.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        proc: Path = PROC,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = {name for path in paths for name in storage_under(path)}
        self._proc, self._clock = proc, clock
        self._next_s = clock()
        self._found: dict[Path, int] = {}

    def look(self) -> None:
        """See who is there, unless that was done a moment ago."""
        now = self._clock()
        if now < self._next_s or not self._storage:
            return
        self._next_s = now + EVERY_S
        for pid in _lockers(self._proc):
            if pid == os.getpid() or _is_child(self._proc, pid):
                continue
            for directory in _databases_of(self._proc, pid):
                if directory not in self._found and self._storage & storage_under(directory):
                    self._found[directory] = pid

    @property
    def sentences(self) -> list[str]:
        """Who was there, one sentence for each directory of databases."""
        return [
            f"another run works on the same storage: process {pid} has {directory} open; what "
            f"either run measures is of both"
            for directory, pid in self._found.items()
        ]


def _lockers(proc: Path) -> list[int]:
    """The processes that have a file locked for writing."""
    try:
        lines = (proc / "locks").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    words = [line.split() for line in lines]
    found = {int(row[4]) for row in words if row[1:4] == ["FLOCK", "ADVISORY", "WRITE"]}
    return sorted(pid for pid in found if pid > 0)


def _is_child(proc: Path, pid: int) -> bool:
    """Whether this process has started it: a neighbour that the plan asks for."""
    process = process_of(pid, proc)
    while process is not None:
        if process.parent == os.getpid():
            return True
        process = process_of(process.parent, proc)
    return False


def _databases_of(proc: Path, pid: int) -> Iterator[Path]:
    """The directories of databases that a process has files of open."""
    seen = set()
    try:
        handles = list((proc / str(pid) / "fd").iterdir())
    except OSError:
        return
    for handle in handles:
        try:
            directory = handle.readlink().parent
        except OSError:
            continue
        if directory not in seen and directory.is_absolute():
            seen.add(directory)
            if (directory / MARKER).is_file():
                yield directory


def storage_under(path: Path) -> set[str]:
    """What two paths share that lie on the same storage: disks, or the file system."""
    try:
        place = nearest_existing(path)
        found = {f"file system {place.stat().st_dev}"}
        device = describe(place).facts["device"]
    except (OSError, StorageError):
        return set()
    if device:
        found |= {device["kernel_name"], *device["bottom_disks"]}
    return found
