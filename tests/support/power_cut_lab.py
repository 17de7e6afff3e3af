"""A machine for power cuts.

A volatile disk, a loop device with direct I/O on it, a file system, the program, and its witness.

Everything is removed at the end, whatever happens. What is not possible here is a skip that says
why."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLIMSOLL = [sys.executable, "-m", "plimsoll.cli"]
#: Small, so that many cuts fit into little time; the newer file system refuses anything smaller.
MEBIBYTES = {"ext4": 128, "xfs": 320}
MKFS = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
}
#: How long recovery may take to write something.
RECOVERY_S_MAX = 5.0
#: What the work is given: small rings, a database larger than its cache.
WORK = ["--size-mib", "8", "--page-kib", "8", "--sessions", "8"]


def needs(kind: str) -> None:
    """Skip where such a machine cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("a volatile disk under a real kernel needs root")
    for tool in ("losetup", "mount", MKFS[kind][0]):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        pytest.skip(f"/dev/fuse cannot be opened here: {error.strerror}")
    if not Path("/dev/loop-control").exists():
        pytest.skip("there are no loop devices here")
    if kind not in Path("/proc/filesystems").read_text().split():
        pytest.skip(f"this kernel has no {kind}")


def _run(*command: str | Path) -> str:
    found = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {found.stderr.strip()}")
    return found.stdout.strip()


def plimsoll(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The program as a user starts it."""
    command = [*PLIMSOLL, *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )


class Machine:
    """See the text of this file."""

    def __init__(
        self, home: Path, kind: str, behaviour: str, seed: int, mebibytes: int | None = None
    ) -> None:
        self.home, self.kind, self.behaviour = home, kind, behaviour
        self.point, self._fuse, self._content = home / "mnt", home / "fuse", home / "content"
        for directory in (self.point, self._fuse, self._content):
            directory.mkdir(parents=True)
        self.random = random.Random(seed)
        self.device: str | None = None
        self._is_mounted = False
        command = [
            sys.executable,
            "-m",
            "tests.support.volatile_disk",
            self._fuse,
            self._content,
            mebibytes or MEBIBYTES[kind],
            behaviour,
            seed,
        ]
        self._disk = subprocess.Popen(
            list(map(str, command)),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert self._hear() == "serving", "the volatile disk did not start"
        except BaseException:
            # Whoever interrupts here has nothing yet that could be removed.
            self._disk.kill()
            self._disk.wait()
            subprocess.run(["umount", self._fuse], check=False, capture_output=True)
            raise

    def tell(self, line: str) -> str:
        """Give the disk an order; its answer."""
        assert self._disk.stdin is not None
        self._disk.stdin.write(line + "\n")
        self._disk.stdin.flush()
        return self._hear()

    def _hear(self) -> str:
        assert self._disk.stdout is not None
        return self._disk.stdout.readline().strip()

    def make_file_system(self) -> None:
        """Once, on the disk in service."""
        self._attach()
        assert self.device is not None
        _run(*MKFS[self.kind], self.device)
        self._detach()

    def start(self) -> None:
        """Attach and mount; the kernel replays the journal if it has to."""
        self._attach()
        assert self.device is not None
        _run("mount", "-t", self.kind, self.device, self.point)
        self._is_mounted = True

    def stop(self) -> None:
        """Unmount and detach, also without power."""
        if self._is_mounted:
            _patiently("umount", self.point)
            self._is_mounted = False
        self._detach()

    def cut(self, patience_s: float = 1.0) -> str:
        """Cut the power once enough is at risk."""
        return self.tell(f"cut {patience_s}")

    def power_on(self) -> None:
        """What survived is all there is."""
        self.tell("on")

    def _attach(self) -> None:
        self.device = _run(
            "losetup",
            "--find",
            "--show",
            "--direct-io=on",
            "--sector-size",
            "4096",
            self._fuse / "disk",
        )

    def _detach(self) -> None:
        if self.device is not None:
            _patiently("losetup", "--detach", self.device)
            self.device = None

    def remove(self) -> None:
        """Take everything down."""
        try:
            # What is held back would hold the file system.
            self.tell("rules []")
            self.stop()
        finally:
            try:
                _patiently("umount", self._fuse)
                self._disk.wait(timeout=30)
            except (RuntimeError, subprocess.TimeoutExpired):
                # Who made mounts of its own meanwhile, as a container does, holds ours with them.
                self._disk.kill()
                self._disk.wait()
                subprocess.run(["umount", "--lazy", self._fuse], check=False, capture_output=True)


def _patiently(*command: str | Path) -> None:
    """A process that just ended may hold a file system or device for a moment."""
    for _ in range(100):
        found = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)
        if found.returncode == 0:
            return
        time.sleep(0.1)
    raise RuntimeError(f"{' '.join(map(str, command))}: {found.stderr.strip()}")


@contextmanager
def machine(
    home: Path, kind: str, behaviour: str, seed: int, mebibytes: int | None = None
) -> Iterator[Machine]:
    """A machine with a file system, not started."""
    made = Machine(home, kind, behaviour, seed, mebibytes)
    try:
        made.make_file_system()
        yield made
    finally:
        made.remove()


@contextmanager
def witness(log: Path) -> Iterator[str]:
    """A witness on this machine whose log loses no power; its address."""
    command = [*PLIMSOLL, "witness", "--log", str(log), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.readline()
    try:
        yield said.split("listening at ")[1].split(";")[0].split(",")[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)
        process.stderr.close()


def work_until_cut(made: Machine, address: str, log: Path, seconds: float) -> str:
    """Durable work for a while, then no power; returns what the disk says of the cut."""
    command = [*PLIMSOLL, "powercut", str(made.point), "--witness", address, *WORK]
    with (made.home / "powercut.err").open("w") as errors:
        process = subprocess.Popen(command, cwd=made.home, stdout=subprocess.DEVNULL, stderr=errors)
    try:
        _wait_for_lines(log, process)
        time.sleep(seconds)
        if process.poll() is not None:
            raise RuntimeError(f"the work ended by itself, exit code {process.poll()}")
        said = made.cut()
    finally:
        process.kill()
        process.wait()
    made.stop()
    return said


def recover_until_cut(made: Machine, log: Path) -> tuple[str, bool]:
    """Recovery in the place of the evidence, and again no power while it writes.

    Returns what the disk says of the cut, and whether it was under way.
    """
    command = [*PLIMSOLL, "audit", str(made.point), "--witness-log", str(log), "--in-place"]
    process = subprocess.Popen(
        command, cwd=made.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        said = made.cut(RECOVERY_S_MAX)
        under_way = process.poll() is None
    finally:
        process.kill()
        process.wait()
    made.stop()
    return said, under_way


def _wait_for_lines(log: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the witness, whose log holds this run alone, knows of a commit."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if b"\nc " in log.read_bytes():
            return
        time.sleep(0.05)
    raise RuntimeError(f"the work did not begin, exit code {process.poll()}")


def audit(made: Machine, log: Path) -> dict[str, Any]:
    """The audit of the started machine, as JSON with its exit code."""
    found = plimsoll(
        "audit",
        made.point,
        "--witness-log",
        log,
        "--work",
        made.home,
        "--cut-under-load",
        "--json",
        cwd=made.home,
    )
    if not found.stdout:
        return {
            "result": "none",
            "exit_code": found.returncode,
            "text": found.stderr,
            "findings": [],
        }
    return {**json.loads(found.stdout), "exit_code": found.returncode}


def snapshot_under_load(made: Machine, address: str, log: Path) -> dict[str, Any]:
    """Copy the disk at one instant while the work goes on, and audit the copy in the place of the
    original.
    """
    known = made.home / "known.log"
    command = [*PLIMSOLL, "powercut", str(made.point), "--witness", address, *WORK]
    process = subprocess.Popen(
        command, cwd=made.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    copy = made.home / "snapshot"
    try:
        _wait_for_lines(log, process)
        time.sleep(1)
        # What the witness knows before the copy is made must be in it.
        shutil.copy(log, known)
        made.tell(f"snapshot {copy}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
    made.stop()
    device = _run("losetup", "--find", "--show", "--sector-size", "4096", copy)
    try:
        _run("mount", "-t", made.kind, device, made.point)
        try:
            return audit(made, known)
        finally:
            _patiently("umount", made.point)
    finally:
        _patiently("losetup", "--detach", device)
