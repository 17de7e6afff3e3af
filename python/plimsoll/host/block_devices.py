"""Whole block devices as targets: what must be true before one is written.

The native side refuses a device again when it opens it, whatever happens here: without the typed
serial, while anybody uses it, or while it carries anybody's signature. Asking first gives all
reasons at once, and before anything else was done.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from plimsoll import _native
from plimsoll.documents.environment import DeviceFacts
from plimsoll.documents.run_spec import FilesInstance, InstanceSpec, RunSpec, TargetSpec
from plimsoll.files.folder import FolderError
from plimsoll.files.paths import StrPath
from plimsoll.host.probe import StorageError, describe

#: The magic number of an ESE database header, at its place.
_MAGIC_AT, _MAGIC = 4, bytes.fromhex("efcdab89")
#: Names here lead to devices, also to one that is not plugged in.
_DEVICE_NAMES = Path("/dev/disk")
GROWTH_SHARE = 0.25


def is_device(path: StrPath) -> bool:
    """Whether a path means a whole block device rather than a directory."""
    path = Path(path)
    try:
        return path.is_block_device() or path.is_relative_to(_DEVICE_NAMES)
    except OSError:  # a name that is too long names nothing
        return False


def settle(target: TargetSpec, run: RunSpec) -> tuple[RunSpec, list[str]]:
    """The run with a target's device called by its lasting name, and what keeps it from being
    written.

    Args:
        target: a target of the run whose path is a device.
        run: databases on the device are renamed with it.
    """
    given = target.path
    if not Path(given).exists():
        return run, [
            f"{given} does not exist; `lsblk -o NAME,SERIAL,SIZE` lists the devices of this machine"
        ]
    try:
        device = describe(Path(given)).facts["device"]
    except StorageError as error:
        return run, [str(error)]
    if device is None:
        return run, [f"{given} is not a block device of this machine"]
    name = device["by_id"] or f"/dev/{device['kernel_name']}"
    needed = [
        _need_of(instance, database.size_bytes)
        for instance in run.instances
        for database in instance.databases
        if database.file_name == given
    ]
    settled = run.replace(
        targets=[item.replace(path=name) if item == target else item for item in run.targets],
        instances=[
            instance.replace(
                databases=[
                    database.replace(file_name=name) if database.file_name == given else database
                    for database in instance.databases
                ]
            )
            for instance in run.instances
        ],
    )
    return settled, [
        f"{name} cannot be used: {reason}"
        for reason in _obstacles(device, run.destroy_serials, needed)
    ]


def _need_of(instance: InstanceSpec, size: int) -> tuple[int, str]:
    """What a file or database of so many bytes takes of a device, and why, for where it is too
    much. Files keep the size they were made with.
    """
    if isinstance(instance, FilesInstance):
        return size, f"{size >> 20} MiB are asked for; lower file_mib (--size-mib)"
    grown = int(size * (1 + GROWTH_SHARE))
    return grown, (
        f"a database of {size >> 20} MiB and its growth need {grown >> 20} MiB; lower "
        f"database_size_mib"
    )


def _obstacles(
    device: DeviceFacts, destroy_serials: Sequence[str], needed: Sequence[tuple[int, str]]
) -> list[str]:
    found = list(device["obstacles"])
    serial = device["consent_token"]
    if serial not in destroy_serials:
        given = f", not {', '.join(destroy_serials)}" if destroy_serials else ""
        found.append(
            f"everything on it would be lost, and no one has agreed to that; its serial is "
            f"{serial}{given}: "
            f"give --destroy {serial} if this is the device you mean"
        )
    capacity = device["size_bytes"] or 0
    return found + [
        f"it holds {capacity >> 20} MiB, but {why}" for size, why in needed if size > capacity
    ]


def holds_database(path: Path) -> bool:
    """Whether a file or device begins with the header of a database."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.pread(descriptor, len(_MAGIC), _MAGIC_AT) == _MAGIC
    except OSError:
        return False
    finally:
        os.close(descriptor)


def erase(device: str, destroy_serials: Sequence[str]) -> None:
    """Blank the header of a database of ours on a device, so that the device counts as empty.

    Raises:
        FolderError: the device may not be written.
    """
    known = describe(Path(device)).facts["device"] if Path(device).exists() else None
    serial = known["consent_token"] if known else None
    if serial is None:
        raise FolderError(
            f"{device} does not exist; plug it in, or delete the directory of its logs yourself"
        )
    if serial not in destroy_serials:
        raise FolderError(
            f"the database on {device} is deleted only with --destroy {serial}, its serial"
        )
    try:
        _native.erase_device(device, list(destroy_serials))
    except (_native.DiskError, _native.ConfigError) as error:
        raise FolderError(str(error)) from error
