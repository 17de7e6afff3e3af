"""What a storage is known by when its names may have changed.

The UUID of its file system, or the serial of its device.

After a restart a disk may have another name and a file system another place. The UUID is asked of
udev's links, and where there are none of the superblock itself, which takes privileges. Network
file systems are known by what they are mounted from. Where nothing is known the answer is None,
never a guess.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from plimsoll.documents.environment import DeviceFacts, FileSystemFacts, StorageIdentity
from plimsoll.host.probe import StorageError, describe

BY_UUID = Path("/dev/disk/by-uuid")
MOUNTS = Path("/proc/self/mounts")
#: Where the superblock of each file system has its magic number and its UUID.
SUPERBLOCKS = {
    "ext": (1080, b"\x53\xef", 1128),
    "xfs": (0, b"XFSB", 32),
    "btrfs": (65600, b"_BHRfS_M", 65568),
}


@dataclass(frozen=True)
class Identity:
    """What the storage under a path is known by.

    Attributes:
        file_system_uuid: of the file system, where it has one and it may be asked.
        device_serial: of the device, where it says one.
        source: what is mounted, for network file systems.
        mount_point: where, at the moment.
    """

    file_system_uuid: str | None
    device_serial: str | None
    source: str | None
    mount_point: str | None

    def as_data(self) -> StorageIdentity:
        """For `environment.json`."""
        return StorageIdentity(
            file_system_uuid=self.file_system_uuid,
            device_serial=self.device_serial,
            source=self.source,
            mount_point=self.mount_point,
        )

    def is_known(self) -> bool:
        """Whether anything tells it from another storage."""
        return bool(self.file_system_uuid or self.device_serial or self.source)

    def same_as(self, other: Identity) -> bool:
        """Whether both are the same storage: by the strongest sign that both have."""
        for mine, theirs in (
            (self.file_system_uuid, other.file_system_uuid),
            (self.device_serial, other.device_serial),
            (self.source, other.source),
        ):
            if mine and theirs:
                return mine == theirs
        return False


def identity_of(path: Path) -> Identity:
    """What the storage under a path is known by now."""
    try:
        facts = describe(path).facts
    except StorageError:
        return Identity(None, None, None, None)
    file_system: FileSystemFacts = facts["file_system"] or {}
    device: DeviceFacts = facts["device"] or {}
    source = file_system.get("source")
    return Identity(
        file_system_uuid=_uuid_of(source) if source else None,
        device_serial=device.get("serial"),
        source=source if file_system.get("is_network") else None,
        mount_point=file_system.get("mount_point"),
    )


def identity_from(data: StorageIdentity) -> Identity:
    """The identity that a run folder recorded."""
    return Identity(
        file_system_uuid=data.get("file_system_uuid"),
        device_serial=data.get("device_serial"),
        source=data.get("source"),
        mount_point=data.get("mount_point"),
    )


def mount_points() -> list[Path]:
    """Where file systems are mounted, in the order of the kernel's list."""
    lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    fields = [line.split() for line in lines]
    # Blanks in names are written in octal.
    names = [
        item[1].encode().decode("unicode_escape")
        for item in fields
        if len(item) > 2 and item[0].startswith("/")
    ]
    return [Path(name) for name in names]


def _uuid_of(source: str) -> str | None:
    device = os.path.realpath(source)
    for link in sorted(BY_UUID.iterdir()) if BY_UUID.is_dir() else []:
        if os.path.realpath(link) == device:
            return link.name.lower()
    return _uuid_in_superblock(Path(device))


def _uuid_in_superblock(device: Path) -> str | None:
    try:
        with device.open("rb") as file:
            for place, magic, at in SUPERBLOCKS.values():
                file.seek(place)
                if file.read(len(magic)) == magic:
                    file.seek(at)
                    return str(uuid.UUID(bytes=file.read(16)))
    except (OSError, ValueError):
        return None
    return None
