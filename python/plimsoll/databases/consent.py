"""What the user has agreed to for one run.

A new directory, the system disk, devices that are overwritten.

A mistyped path, or a mount point whose storage is not mounted, leads to a directory on the root
file system. Such a run would measure the system disk and call it the array, so both need a word of
the user, given for each run and never read from a plan. For scripts that always mean it the
environment says so: `PLIMSOLL_CREATE=1`, `PLIMSOLL_ALLOW_SYSTEM_DISK=1`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from plimsoll.host.block_devices import is_device
from plimsoll.host.probe import nearest_existing

CREATE_VARIABLE = "PLIMSOLL_CREATE"
SYSTEM_DISK_VARIABLE = "PLIMSOLL_ALLOW_SYSTEM_DISK"
ROOT = Path("/")


@dataclass(frozen=True)
class Consent:
    """What may be done without asking again.

    Attributes:
        destroy_serials: the block devices that may be overwritten.
        create: whether directories named as targets may be made.
        system_disk: whether targets may lie on the root file system.
    """

    destroy_serials: tuple[str, ...] = ()
    create: bool = False
    system_disk: bool = False

    def may_create(self) -> bool:
        """Whether the user has agreed to new directories, here or for all runs."""
        return self.create or os.environ.get(CREATE_VARIABLE) == "1"

    def may_use_system_disk(self) -> bool:
        """Whether the user has agreed to the system disk, here or for all runs."""
        return self.system_disk or os.environ.get(SYSTEM_DISK_VARIABLE) == "1"


def refusals(places: Iterable[Path], consent: Consent) -> list[str]:
    """Why these directories, which a run was told to work in, need a consent that was not given."""
    problems = []
    for place in dict.fromkeys(places):
        if is_device(place):
            continue
        if is_missing(place) and not consent.may_create():
            problems.append(
                f"{place} does not exist; mount its storage or correct the path, or give --create "
                f"to make it{_no_address(place)}"
            )
        elif on_root_file_system(place) and not consent.may_use_system_disk():
            problems.append(
                f"{place} is on the root file system: the system disk would be tested; mount the "
                f"storage you mean, or give "
                "--allow-system-disk"
            )
    return problems


def _no_address(place: Path) -> str:
    """What is said of a mistyped address, which was taken for a path."""
    if not any(":" in part for part in place.parts):
        return ""
    return "; for an address begin with sqlite:, postgresql://, mysql:// or imap://"


def is_missing(place: Path) -> bool:
    """Whether nothing is there. Where nobody may look, preflight says so."""
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def on_root_file_system(place: Path) -> bool:
    """Whether a directory, or where it would be made, is on the file system of `/`."""
    try:
        return nearest_existing(place).stat().st_dev == ROOT.stat().st_dev
    except OSError:
        return False  # preflight says that it may not be looked into
