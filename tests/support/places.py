"""Places for tests that need more than a directory.

Loop devices and small file systems, for root only, removed afterwards.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.warm_program import COLD, run_warm

#: What starts the program from nothing, where that is what is tested, or to have its process.
PLIMSOLL = COLD


def plimsoll(
    *arguments: str | Path, cwd: Path, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """The program as a user starts it, without a terminal, but with its modules imported already.

    Raises:
        subprocess.TimeoutExpired: it took longer than `timeout` seconds, and was killed.
    """
    return run_warm([str(argument) for argument in arguments], cwd, timeout)


def _tool(*command: str) -> str:
    if os.geteuid() != 0:
        pytest.skip(f"{command[0]} needs root")
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        pytest.skip(f"{' '.join(command)} is not possible here: {result.stderr.strip()}")
    return result.stdout.strip()


@contextmanager
def loop_device(backing: Path, mebibytes: int, sector_bytes: int = 512) -> Iterator[str]:
    """A block device made of a file."""
    with backing.open("wb") as file:
        file.truncate(mebibytes << 20)
    sectors = ("--sector-size", str(sector_bytes)) if sector_bytes != 512 else ()
    device = _tool("losetup", *sectors, "--find", "--show", str(backing))
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=False, capture_output=True)


@contextmanager
def mounted(source: str, point: Path, *options: str) -> Iterator[Path]:
    """A mounted file system; a process that just ended may hold it for a moment."""
    point.mkdir(exist_ok=True)
    _tool("mount", *options, source, str(point))
    try:
        yield point
    finally:
        for _ in range(50):
            if (
                subprocess.run(["umount", str(point)], check=False, capture_output=True).returncode
                == 0
            ):
                break
            time.sleep(0.1)


@contextmanager
def file_system(
    home: Path, mebibytes: int, kind: str = "ext4", *options: str, block_bytes: int | None = None
) -> Iterator[Path]:
    """A small file system of its own.

    Small ones have blocks of 1 KiB unless `block_bytes` says otherwise.
    """
    with loop_device(home / "backing", mebibytes) as device:
        blocks = [] if block_bytes is None else ["-b", str(block_bytes)]
        _tool(f"mkfs.{kind}", "-q", *blocks, device)
        with mounted(device, home / "disk", *options) as point:
            yield point
