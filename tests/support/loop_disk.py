"""A loop disk with ext4 for tests that throttle or break a disk of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

BLKIO = Path("/sys/fs/cgroup/blkio")


def skip_without_throttle() -> None:
    """Skip where no disk can be made or no control group can limit it."""
    if os.geteuid() != 0:
        pytest.skip("wants root, for a loop disk and control groups")
    if not BLKIO.is_dir() and "io" not in _controllers():
        pytest.skip("no control groups for I/O are mounted")
    if shutil.which("mkfs.ext4") is None or shutil.which("losetup") is None:
        pytest.skip("wants mkfs.ext4 and losetup")


def _controllers() -> list[str]:
    try:
        return Path("/sys/fs/cgroup/cgroup.controllers").read_text().split()
    except OSError:
        return []


@contextmanager
def loop_disk(place: Path, mib: int) -> Iterator[Path]:
    """A mounted loop disk of so many MiB; gone afterwards."""
    image, mount = place / "disk", place / "mount"
    image.touch()
    os.truncate(image, mib << 20)
    command = ["losetup", "--show", "-f", "--direct-io=on", str(image)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no loop disk can be made: {made.stderr.strip()}")
    device = made.stdout.strip()
    mount.mkdir()
    try:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
        subprocess.run(["mount", device, str(mount)], check=True)
        yield mount
    finally:
        # A server that was killed may leave processes that end a moment later.
        if subprocess.run(["umount", str(mount)], check=False, capture_output=True).returncode:
            subprocess.run(["umount", "--lazy", str(mount)], check=False, capture_output=True)
        subprocess.run(["losetup", "-d", device], check=False)
