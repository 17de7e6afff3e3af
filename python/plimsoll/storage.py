"""What the operating system knows about the storage under a path; nothing here writes.

Read from /proc/self/mountinfo and /sys. Where the kernel does not say, the field is None, never a guess.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MEMORY_FILE_SYSTEMS = {"tmpfs", "ramfs"}
NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "ceph", "fuse.sshfs", "glusterfs", "9p", "lustre"}
COPY_ON_WRITE_FILE_SYSTEMS = {"btrfs", "zfs", "bcachefs"}
OVERLAY_FILE_SYSTEMS = {"overlay", "aufs", "fuse.fuse-overlayfs"}


@dataclass(frozen=True)
class Storage:
    """The storage under one path.

    Attributes:
        path: the path that was asked about, or its nearest existing parent.
        mount_point: where its file system is mounted.
        file_system: its type.
        source: device or export it comes from.
        read_only: whether it is mounted read-only.
        size_bytes: size of the file system.
        free_bytes: what an unprivileged user may still write.
        device: kernel name of the block device, if there is one.
        model: the device's own name for itself.
        rotational: whether the kernel thinks it is a spinning disk.
        write_cache: "write back" or "write through", as the kernel handles it.
        logical_block_bytes: smallest unit of I/O.
        physical_block_bytes: unit the device writes without tearing.
        scheduler: the I/O scheduler in use.
        holds_system: whether the root file system is on the same device.
    """

    path: str
    mount_point: str
    file_system: str
    source: str
    read_only: bool
    size_bytes: int
    free_bytes: int
    device: str | None = None
    model: str | None = None
    rotational: bool | None = None
    write_cache: str | None = None
    logical_block_bytes: int | None = None
    physical_block_bytes: int | None = None
    scheduler: str | None = None
    holds_system: bool | None = None

    def as_json(self) -> dict[str, Any]:
        """The facts as plain data."""
        return asdict(self)

    def warnings(self) -> list[str]:
        """What a reader of results from this storage must know, in sentences."""
        found = []
        if self.file_system in MEMORY_FILE_SYSTEMS:
            found.append(f"{self.mount_point} is {self.file_system}: it lives in memory, so no disk is being tested")
        if self.file_system in NETWORK_FILE_SYSTEMS:
            found.append(f"{self.mount_point} is {self.file_system}: the network and the server's cache are part of it")
        if self.file_system in COPY_ON_WRITE_FILE_SYSTEMS:
            found.append(f"{self.mount_point} is {self.file_system}: copy on write turns overwrites into new extents")
        if self.file_system in OVERLAY_FILE_SYSTEMS:
            found.append(f"{self.mount_point} is an {self.file_system} file system: a layer of a container, not a disk")
        if self.holds_system:
            found.append("the operating system is on the same device and adds its own I/O")
        blocks = (self.logical_block_bytes, self.physical_block_bytes)
        if blocks == (512, 4096):
            found.append("the device emulates 512-byte sectors on 4096-byte ones: a torn write can lose its neighbours")
        return found


def nearest_existing(path: Path) -> Path:
    """The path itself or the closest of its parents that exists."""
    path = path.expanduser().absolute()
    while not path.exists():
        path = path.parent
    return path


def describe(path: Path) -> Storage:
    """What is known about the storage under a path that may not exist yet.

    >>> describe(Path("/proc")).file_system
    'proc'
    """
    existing = nearest_existing(path)
    number = existing.stat().st_dev
    mount = _mount_of(existing, number)
    space = os.statvfs(existing)
    device = _device_of(mount["number"])
    root = _mount_of(Path("/"), Path("/").stat().st_dev)
    return Storage(
        path=str(existing),
        mount_point=mount["mount_point"],
        file_system=mount["file_system"],
        source=mount["source"],
        read_only=bool(space.f_flag & os.ST_RDONLY),
        size_bytes=space.f_blocks * space.f_frsize,
        free_bytes=space.f_bavail * space.f_frsize,
        **_device_facts(device),
        holds_system=None if device is None else _device_of(root["number"]) == device,
    )


def _mount_of(path: Path, number: int) -> dict[str, str]:
    """The mount a path lies in: among those with its device number, the one with the longest matching mount point."""
    best = {"mount_point": "/", "file_system": "unknown", "source": "unknown", "number": ""}
    wanted = f"{os.major(number)}:{os.minor(number)}"
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if len(fields) < 5 or len(kinds) < 2:
            continue
        mount_point = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), fields[4])
        # btrfs reports a number of its own for each subvolume, so the number alone does not decide.
        inside = path.is_relative_to(mount_point)
        better = len(mount_point) >= len(best["mount_point"]) or best["file_system"] == "unknown"
        if inside and better and (fields[2] == wanted or kinds[0] == "btrfs"):
            best = {"mount_point": mount_point, "file_system": kinds[0], "source": kinds[1], "number": fields[2]}
    return best


def _device_of(number: str) -> str | None:
    """The whole disk behind a device number, through partitions."""
    link = Path("/sys/dev/block") / number
    if not number or not link.exists():
        return None
    folder = link.resolve()
    if (folder / "partition").exists():
        folder = folder.parent
    return folder.name


def _device_facts(device: str | None) -> dict[str, Any]:
    if device is None:
        return {}
    folder = Path("/sys/block") / device

    def text(name: str) -> str | None:
        try:
            return (folder / name).read_text(encoding="utf-8", errors="replace").strip() or None
        except OSError:
            return None

    def number(name: str) -> int | None:
        value = text(name)
        return int(value) if value and value.isdigit() else None

    scheduler = text("queue/scheduler") or ""
    chosen = re.search(r"\[(.+?)\]", scheduler)
    rotational = number("queue/rotational")
    return {
        "device": device,
        "model": text("device/model"),
        "rotational": None if rotational is None else bool(rotational),
        "write_cache": text("queue/write_cache"),
        "logical_block_bytes": number("queue/logical_block_size"),
        "physical_block_bytes": number("queue/physical_block_size"),
        "scheduler": chosen[1] if chosen else scheduler or None,
    }
