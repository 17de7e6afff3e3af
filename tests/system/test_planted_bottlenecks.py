"""Real bottlenecks on this machine.

Quotas and limits of control groups, and a neighbour on the same disk.

The arithmetic is tested without a machine in `test_guilt.py` and `test_doubts.py`; here the
kernel's own counters have to show what was planted. Needs root, control groups and a directory on a
block device; skipped with a reason elsewhere."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

GROUPS = Path("/sys/fs/cgroup")
COMMAND = [sys.executable, "-m", "plimsoll.cli", "test", "performance"]
#: Reads one mebibyte after another, sixteen at a time, past the page cache.
NEIGHBOUR = """
import mmap, os, random, sys, threading
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
size = os.fstat(fd).st_size >> 20
def work():
    buffer = mmap.mmap(-1, 1 << 20)
    while True:
        os.preadv(fd, [buffer], random.randrange(size) << 20)
threads = [threading.Thread(target=work, daemon=True) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""

Group = Callable[[str, dict[str, str]], Path]


@pytest.fixture
def group() -> Iterator[Group]:
    """Makes a control group of one controller with some files written; removes it afterwards."""
    made: list[Path] = []

    def make(controller: str, files: dict[str, str]) -> Path:
        if os.geteuid() != 0:
            pytest.skip("only root makes control groups")
        parent = GROUPS / controller
        if not (parent / "cgroup.procs").is_file():
            pytest.skip(f"there is no version 1 hierarchy of {controller} here")
        folder = parent / f"plimsoll-test-{os.getpid()}-{len(made)}"
        folder.mkdir()
        made.append(folder)
        for name, text in files.items():
            (folder / name).write_text(text)
        return folder

    yield make
    for folder in made:
        for _ in range(50):
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.1)


@pytest.fixture
def disk_number(tmp_path: Path) -> str:
    """The number of the whole disk under the temporary directory."""
    number = tmp_path.stat().st_dev
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not place.exists():
        pytest.skip(f"{tmp_path} is not on a block device")
    disk = place.resolve()
    disk = disk.parent if (disk / "partition").exists() else disk
    return (disk / "dev").read_text().strip()


def join(folder: Path) -> Callable[[], None]:
    """For a child process that is to begin in a group."""
    return lambda: (folder / "cgroup.procs").write_text("0") and None


def verdict(
    home: Path, *options: str, start_in: Path | None = None, measure_in: Path | None = None
) -> dict[str, Any]:
    """The verdict on a short run, moved into a control group from its start or when it begins to
    measure.
    """
    command = [
        *COMMAND,
        str(home / "disk"),
        "--databases",
        "1",
        "--out",
        str(home / "run"),
        "--quiet",
        *options,
    ]
    process = subprocess.Popen(
        command,
        preexec_fn=join(start_in) if start_in else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = home / "run" / "events.log"
    while measure_in and process.poll() is None:
        if log.exists() and "measure started" in log.read_text():
            (measure_in / "cgroup.procs").write_text(str(process.pid))
            break
        time.sleep(0.05)
    _, errors = process.communicate(timeout=300)
    assert process.returncode in (0, 1, 3), errors
    found: dict[str, Any] = json.loads((home / "run" / "verdict.json").read_text())
    return found


def accused(found: dict[str, Any], check: str) -> tuple[str, str, str]:
    """Layer, cause and evidence for a check."""
    entry = next(
        entry
        for entry in found["bottlenecks"]
        if entry["what"] == "check" and entry["check"] == check
    )
    return entry["layer"], entry["cause"], "; ".join(entry["evidence"])


def test_reads_that_a_group_holds_back_wait_in_the_kernel(
    tmp_path: Path, group: Group, disk_number: str
) -> None:
    """The device answers at once and is idle: the limit before it is guilty."""
    limit = group("blkio", {"blkio.throttle.read_iops_device": f"{disk_number} 40"})
    options = [
        "--backend",
        "raw_files",
        "--size-mib",
        "64",
        "--minutes",
        "0.1",
        "--limit",
        "db_read_latency_ms_mean<5",
    ]
    found = verdict(tmp_path, *options, measure_in=limit)
    layer, cause, evidence = accused(found, "database_read_latency_ms_mean<5")
    assert (found["result"], layer, cause) == ("fail", "kernel_queue", "queue"), evidence
    stalls = [entry for entry in found["bottlenecks"] if entry["what"] == "stall"]
    assert stalls[0]["layer"] == "kernel_queue", stalls[0]


def test_commits_that_wait_for_a_slow_log_are_laid_to_the_log(
    tmp_path: Path, group: Group, disk_number: str
) -> None:
    """Reads are fast, log writes are held back: what users lack is log."""
    limit = group("blkio", {"blkio.throttle.write_iops_device": f"{disk_number} 20"})
    options = [
        "--size-mib",
        "128",
        "--cache-mib",
        "32",
        "--minutes",
        "0.15",
        "--required-iops",
        "1000000",
    ]
    found = verdict(tmp_path, *options, measure_in=limit)
    layer, cause, evidence = accused(found, "required_iops")
    assert (layer, cause) == ("log_flush", "log"), evidence
    stalls = [entry for entry in found["bottlenecks"] if entry["what"] == "stall"]
    assert stalls[0]["layer"] == "log_flush", stalls[0]


def test_a_processor_quota_makes_a_failure_inconclusive(tmp_path: Path, group: Group) -> None:
    """The generator stood still nine tenths of the time: that says nothing of the storage."""
    quota = group("cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "10000"})
    options = [
        "--backend",
        "raw_files",
        "--size-mib",
        "64",
        "--minutes",
        "0.1",
        "--required-iops",
        "1000000",
    ]
    found = verdict(tmp_path, *options, start_in=quota)
    layer, cause, evidence = accused(found, "required_iops")
    assert (found["result"], layer, cause) == ("inconclusive", "engine", "cpu"), evidence
    assert "quota" in " ".join(found["doubts"])


def test_a_neighbour_on_the_same_disk_is_named(tmp_path: Path, disk_number: str) -> None:
    """The run asks for little; the disk is busy with somebody else's reads."""
    neighbour_file = tmp_path / "neighbour"
    block = os.urandom(1 << 20)
    with neighbour_file.open("wb") as file:
        for _ in range(512):
            file.write(block)
        os.fsync(file.fileno())
    neighbour = subprocess.Popen([sys.executable, "-c", NEIGHBOUR, str(neighbour_file)])
    try:
        options = [
            "--backend",
            "raw_files",
            "--size-mib",
            "64",
            "--minutes",
            "0.1",
            "--sessions",
            "1",
        ]
        found = verdict(tmp_path, *options, "--limit", "db_read_latency_ms_mean<0.001")
    finally:
        neighbour.kill()
        neighbour.wait()
    layer, cause, evidence = accused(found, "database_read_latency_ms_mean<0.001")
    assert cause == "neighbour", (layer, cause, evidence)
