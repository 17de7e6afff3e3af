"""The storages of the gallery and what befalls them.

Made below one temporary folder, undone on every way out.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.rogues.rogue import PLACE
from tests.support.disk_rules import Rule
from tests.support.places import file_system, loop_device, mounted
from tests.support.power_cut_lab import Machine, machine, needs

#: Room for two databases of 64 MiB, their logs and what they grow by.
MEBIBYTES = 1024
#: Two headers stand before the pages of a database.
HEADERS_BYTES = 2 * 32768
#: Seconds into the load at which something befalls it.
MISHAP_AFTER_S = 1.0
STOPPED_S = 4.0
#: Files by the word of a rule; `raw_files` keeps pages and log in files of its own.
PATTERNS = {
    "database": ("*.edb", "*.dat"),
    "first": ("instance1/*.edb",),
    "second": ("instance2/*.edb",),
    "log": ("E00*.log",),
    "files": ("*.dat",),
}
_FIEMAP, _EXTENTS_MAX = 0xC020660B, 512
_FIEMAP_SYNC = 1


@dataclass(frozen=True)
class Site:
    """A storage that is ready: where the databases go, and how rules reach it."""

    path: Path
    disk: Machine | None = None
    #: Put before the command, such as a cgroup to join.
    before: Callable[[], None] | None = None


def arm(site: Site, rules: Sequence[Rule]) -> None:
    """Give the disk its rules, for the places where files lie now."""
    if site.disk is not None:
        plain = [_placed(site.path, rule) for rule in rules]
        site.disk.tell(f"rules {json.dumps(plain)}")


def _placed(path: Path, rule: Rule) -> dict[str, Any]:
    """A rule as it is told to the disk; what lands crosswise lands in the same place of the other
    database.
    """
    if rule.where == "pages":
        places = places_of(path, "database")
        return rule.plain([(start + HEADERS_BYTES, end) for start, end in places[:1]] + places[1:])
    if rule.where != "crosswise":
        return rule.plain(places_of(path, rule.where))
    both = places_of(path, "first")[:1] + places_of(path, "second")[:1]
    if len(both) < 2:
        return rule.plain([])
    (start, end), (other, other_end) = both
    length = min(end - start, other_end - other)
    return replace(rule, by=other - start).plain([(start, start + length)])


def places_of(path: Path, kind: str) -> list[tuple[int, int]]:
    """Where on the disk the databases or the logs below a path lie."""
    if kind == "elsewhere":
        return _between(sorted(places_of(path, "database")))
    found: list[tuple[int, int]] = []
    for pattern in PATTERNS.get(kind, ()):
        for file in path.rglob(pattern):
            # A log may be renamed while it is looked for.
            with suppress(OSError):
                found += _extents(file)
    return found


def _between(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What lies between these places, before the first and behind the last."""
    starts = [0, *(end for _, end in places)]
    ends = [*(start for start, _ in places), MEBIBYTES << 20]
    return list(zip(starts, ends, strict=True))


def _extents(file: Path) -> list[tuple[int, int]]:
    request = bytearray(32 + 56 * _EXTENTS_MAX)
    struct.pack_into("<QQIIII", request, 0, 0, 2**64 - 1, 0, 0, _EXTENTS_MAX, 0)
    descriptor = os.open(file, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, _FIEMAP, request)
    finally:
        os.close(descriptor)
    count = struct.unpack_from("<I", request, 20)[0]
    rows = [struct.unpack_from("<QQQ", request, 32 + 56 * index) for index in range(count)]
    return [(physical, physical + length) for _, physical, length in rows]


@contextmanager
def _fuse(home: Path) -> Iterator[Site]:
    with _fuse_of(home, "honest") as site:
        yield site


@contextmanager
def _fuse_that_drops_flushes(home: Path) -> Iterator[Site]:
    with _fuse_of(home, "drops_flushes") as site:
        yield site


@contextmanager
def _fuse_of(home: Path, behaviour: str) -> Iterator[Site]:
    needs("ext4")
    with machine(home / "machine", "ext4", behaviour, 1, MEBIBYTES) as disk:
        disk.start()
        yield Site(disk.point / PLACE, disk)


@contextmanager
def _loop(home: Path) -> Iterator[Site]:
    with file_system(home, MEBIBYTES) as point:
        yield Site(point / PLACE)


@contextmanager
def _loop_of_4k(home: Path) -> Iterator[Site]:
    """A device whose smallest transfer is 4 KiB."""
    with loop_device(home / "backing", MEBIBYTES, sector_bytes=4096) as device:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
        with mounted(device, home / "disk") as point:
            yield Site(point / PLACE)


@contextmanager
def _loop_journalled(home: Path) -> Iterator[Site]:
    """The kernel takes direct I/O and carries it out through the page cache."""
    with file_system(home, MEBIBYTES, "ext4", "-o", "data=journal") as point:
        yield Site(point / PLACE)


@contextmanager
def _tmpfs(home: Path) -> Iterator[Site]:
    size = f"size={MEBIBYTES}m"
    with mounted("none", home / "disk", "-t", "tmpfs", "-o", size) as point:
        yield Site(point / PLACE)


@contextmanager
def _zram(home: Path) -> Iterator[Site]:
    """A compressed disk in memory, added for this and removed after it."""
    control = Path("/sys/class/zram-control")
    if os.geteuid() != 0 or not control.exists():
        pytest.skip("a zram disk needs root and a kernel with zram")
    number = (control / "hot_add").read_text().strip()
    try:
        Path(f"/sys/block/zram{number}/disksize").write_text(str(MEBIBYTES << 20))
        subprocess.run(["mkfs.ext4", "-q", f"/dev/zram{number}"], check=True)
        with mounted(f"/dev/zram{number}", home / "disk") as point:
            yield Site(point / PLACE)
    finally:
        for _ in range(50):
            with suppress(OSError):
                (control / "hot_remove").write_text(number)
                break
            time.sleep(0.1)


@contextmanager
def _throttled(home: Path) -> Iterator[Site]:
    """A cgroup that lets through so few reads and writes per second."""
    root = Path("/sys/fs/cgroup/blkio")
    if os.geteuid() != 0 or not (root / "blkio.throttle.read_iops_device").exists():
        pytest.skip("throttling by a cgroup needs root and the blkio controller of version 1")
    with file_system(home, MEBIBYTES) as point:
        device = point.stat().st_dev
        group = root / f"plimsoll-rogues-{os.getpid()}"
        group.mkdir()
        try:
            for name in ("read_iops", "write_iops"):
                rule = f"{os.major(device)}:{os.minor(device)} 30"
                (group / f"blkio.throttle.{name}_device").write_text(rule)
            yield Site(point / PLACE, None, lambda: _join(group))
        finally:
            for _ in range(50):
                with suppress(OSError):
                    group.rmdir()
                    break
                time.sleep(0.1)


def _join(group: Path) -> None:
    (group / "cgroup.procs").write_text("0")


@contextmanager
def _nothing(home: Path) -> Iterator[Site]:
    yield Site(home)


STORAGES = {
    "fuse": _fuse,
    "fuse that drops flushes": _fuse_that_drops_flushes,
    "loop": _loop,
    "loop, 4 KiB sectors": _loop_of_4k,
    "loop, journalled": _loop_journalled,
    "tmpfs": _tmpfs,
    "zram": _zram,
    "throttled": _throttled,
    "modelled": _nothing,
}


def _stop(site: Site, process: subprocess.Popen[str]) -> None:
    """What a paused machine does to a process."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    process.send_signal(signal.SIGCONT)


def _fill(site: Site, process: subprocess.Popen[str]) -> None:
    """A neighbour takes all space."""
    with (site.path.parent / "neighbour").open("wb") as file:
        free = os.statvfs(site.path)
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - (1 << 20))


def _truncate(site: Site, process: subprocess.Popen[str]) -> None:
    """A pulled drive: what backs the device is gone."""
    os.truncate(site.path.parents[1] / "backing", 0)


def _turn_read_only(site: Site, process: subprocess.Popen[str]) -> None:
    """What a file system does to itself when its journal cannot be written."""
    point = site.path.parent
    subprocess.run(["mount", "-o", "remount,abort", str(point)], check=False, capture_output=True)


def _terminate(site: Site, process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)


MISHAPS: dict[str, Callable[[Site, subprocess.Popen[str]], None]] = {
    "stopped": _stop,
    "filled": _fill,
    "pulled": _truncate,
    "read-only": _turn_read_only,
    "terminated": _terminate,
}


def possible(storage: str) -> None:
    """Skip, with the reason, where a storage cannot be made."""
    if storage != "modelled" and os.geteuid() != 0:
        pytest.skip("the gallery makes devices and mounts: it needs root")
    if storage.startswith("fuse"):
        needs("ext4")
    elif storage != "modelled" and shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed")
