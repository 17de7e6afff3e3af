"""A disk with a volatile write cache under a real kernel.

What was not flushed when its power is cut is at risk, and it may lie.

    python -m tests.support.volatile_disk MOUNT_POINT DIRECTORY MEBIBYTES BEHAVIOUR SEED

It serves one file for a loop device and obeys lines on its standard input, each answered by one
line:

    cut [SECONDS]  the power is cut: what survives is decided, and all I/O fails from now on; it
    waits so long for writes at risk on             the power is back
    snapshot FILE  copy the disk as an array would: everything acknowledged, at one instant
    rules JSON     from now on these rules, and no others, spoil what passes:
    tests.support.disk_rules count          how often each rule was applied

Behaviours: `honest` makes durable what is flushed; at the cut every aligned 4 KiB of a write not
flushed survives or not. `tears` differs in that 512 bytes survive or not. `drops_flushes`
acknowledges flushes and destages in order when it finds time; at the cut all that is left in the
cache is gone. `reorders` does the same, but at the cut most of the cache is saved, without its
order.

`present` is what reads see, `durable` what is certain; between them lie the writes in the cache, in
their order."""

from __future__ import annotations

import errno
import os
import random
import select
import shutil
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.disk_rules import RuledDisk
from tests.support.fuse_file import FuseFile

BEHAVIOURS = ("honest", "drops_flushes", "tears", "reorders")
LIARS = ("drops_flushes", "reorders")
#: How long a liar keeps writes in its cache.
DESTAGE_AFTER_S = 0.4
#: Share of a reordering cache that is not saved.
FORGOTTEN_SHARE = 0.05
SECTOR_BYTES, BLOCK_BYTES = 512, 4096
#: A cut waits until so many writes are at risk, drawn anew for each, or for so long unless told
#: otherwise.
AT_RISK_MAX, CUT_PATIENCE_S = 16, 1.0


class Cached(NamedTuple):
    """A write in the cache."""

    at: float
    offset: int
    data: bytes


class VolatileDisk:
    """See the text of this file."""

    def __init__(self, directory: Path, size: int, behaviour: str, seed: int) -> None:
        self.size = size
        self._behaviour = behaviour
        self._random = random.Random(seed)
        self._present = _file_of(directory / "present", size)
        self._durable = _file_of(directory / "durable", size)
        self._cache: list[Cached] = []
        self._is_on = True
        self._cut_at_last: float | None = None
        self._at_risk_wanted = 0

    def read(self, offset: int, length: int) -> bytes:
        self._check()
        return os.pread(self._present, length, offset)

    def write(self, offset: int, data: bytes) -> None:
        self._check()
        os.pwrite(self._present, data, offset)
        self._cache.append(Cached(time.monotonic(), offset, data))

    def flush(self) -> None:
        self._check()
        if self._behaviour not in LIARS:
            self._destage(len(self._cache))

    def hold_s(self) -> float:
        return 0.0

    def destage_old(self) -> None:
        """What a liar does in its own time."""
        if self._is_on and self._behaviour in LIARS:
            before = time.monotonic() - DESTAGE_AFTER_S
            self._destage(
                next(
                    (i for i, cached in enumerate(self._cache) if cached.at > before),
                    len(self._cache),
                )
            )

    def want_cut(self, patience_s: float) -> None:
        """The power is to go as soon as enough is at risk, or when this was waited for in vain."""
        self._cut_at_last = time.monotonic() + patience_s
        self._at_risk_wanted = self._random.randint(1, AT_RISK_MAX)

    def is_time_for_cut(self) -> bool:
        """Whether enough is at risk, or was not for long enough."""
        if self._cut_at_last is None:
            return False
        return len(self._cache) >= self._at_risk_wanted or time.monotonic() > self._cut_at_last

    def cut(self) -> str:
        """Decide what survives; returns how much was at risk."""
        at_risk, lost = len(self._cache), 0
        severity = self._random.choice([0.0, 0.5, 1.0, self._random.random()])
        for cached in self._cache:
            for start, piece in _pieces(cached, self._unit(cached)):
                if self._survives(severity):
                    os.pwrite(self._durable, piece, start)
                else:
                    lost += 1
        self._cache.clear()
        self._is_on, self._cut_at_last = False, None
        return f"cut: {at_risk} writes at risk, {lost} pieces lost"

    def on(self) -> str:
        """What is durable is all there is."""
        _copy(self._durable, self._present, self.size)
        self._is_on = True
        return "on"

    def snapshot(self, path: Path) -> str:
        """Everything acknowledged, whether flushed or not."""
        target = _file_of(path, self.size)
        _copy(self._present, target, self.size)
        os.close(target)
        return "snapshot"

    def _unit(self, cached: Cached) -> int:
        if self._behaviour == "tears":
            return SECTOR_BYTES
        return len(cached.data) if self._behaviour in LIARS else BLOCK_BYTES

    def _survives(self, severity: float) -> bool:
        if self._behaviour == "drops_flushes":
            return False
        if self._behaviour == "reorders":
            return self._random.random() >= FORGOTTEN_SHARE
        return self._random.random() < (0.5 if self._behaviour == "tears" else severity)

    def _destage(self, count: int) -> None:
        for cached in self._cache[:count]:
            os.pwrite(self._durable, cached.data, cached.offset)
        del self._cache[:count]

    def _check(self) -> None:
        if not self._is_on:
            raise OSError(errno.EIO, "no power")


def _pieces(cached: Cached, unit: int) -> list[tuple[int, bytes]]:
    """A write cut at the multiples of a unit, or whole if the unit is as long."""
    if unit >= len(cached.data):
        return [(cached.offset, cached.data)]
    pieces, start = [], 0
    while start < len(cached.data):
        end = min(start + unit - (cached.offset + start) % unit, len(cached.data))
        pieces.append((cached.offset + start, cached.data[start:end]))
        start = end
    return pieces


def _file_of(path: Path, size: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.truncate(descriptor, size)
    return descriptor


def _copy(source: int, target: int, size: int) -> None:
    """Copy what there is of a sparse file."""
    os.truncate(target, 0)
    os.truncate(target, size)
    end = 0
    while end < size:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(source, start, os.SEEK_HOLE)
        for at in range(start, end, 1 << 20):
            os.pwrite(target, os.pread(source, min(1 << 20, end - at), at), at)


def main() -> None:
    """Serve until unmounted or the input ends."""
    point, directory, mebibytes, behaviour, seed = sys.argv[1:]
    disk = VolatileDisk(Path(directory), int(mebibytes) << 20, behaviour, int(seed))
    ruled = RuledDisk(disk, int(seed))
    file = FuseFile(Path(point), ruled)
    print("serving", flush=True)
    input_descriptor = sys.stdin.fileno()
    while True:
        due_s = file.send_due()
        wait_s = 0.02 if due_s is None else min(0.02, due_s)
        ready, _, _ = select.select([file.descriptor, input_descriptor], [], [], wait_s)
        disk.destage_old()
        if file.descriptor in ready and not file.serve_one():
            return
        if disk.is_time_for_cut():
            print(disk.cut(), flush=True)
        if input_descriptor in ready and not _obey(
            disk, ruled, file, sys.stdin.readline().split(maxsplit=1)
        ):
            return


def _obey(disk: VolatileDisk, ruled: RuledDisk, file: FuseFile, words: list[str]) -> bool:
    """Carry out a line; false when there are no more."""
    if not words:
        return False
    if words[0] == "rules":
        ruled.obey(words[1])
        if not ruled.has_rules:
            file.send_all()
        print("rules", flush=True)
    elif words[0].strip() == "count":
        print(ruled.told(), flush=True)
    elif words[0] == "cut":
        disk.want_cut(float(words[1]) if len(words) > 1 else CUT_PATIENCE_S)
    elif words[0] == "on":
        print(disk.on(), flush=True)
    elif words[0] == "snapshot":
        print(disk.snapshot(Path(words[1].strip())), flush=True)
    return True


if __name__ == "__main__":
    assert shutil.which("losetup"), "the file is meant for a loop device"
    main()
