"""What the kernel says of the disks under test.

Its errors count, its chatter and other people's disks do not.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from plimsoll.host.kernel_log import KERNEL_LOG_PATH, KernelLog, disks_of, error_about
from tests.support.plain_stages import judge
from tests.verdict.test_verdict import ENVIRONMENT, PLAN, summary


@pytest.mark.parametrize(
    ("record", "counts"),
    [
        ("3,100,5,-;blk_update_request: I/O error, dev sda, sector 8 op 0x0:(READ)", True),
        ("2,100,5,-;EXT4-fs (sda1): Remounting filesystem read-only", True),
        ("11,100,5,-;Buffer I/O error on dev sda, logical block 1", True),
        ("4,100,5,-;sda: a warning is no error", False),
        ("6,100,5,-;sd 0:0:0:0: [sda] Attached SCSI disk", False),
        ("3,100,5,-;I/O error, dev sdab, sector 8", False),
        ("3,100,5,-;I/O error, dev sdb, sector 8", False),
        ("3,100,5,-;Out of memory: Killed process 7 (sdagent)", False),
        ("not a record", False),
    ],
)
def test_errors_about_our_disks_count(record: str, counts: bool) -> None:
    """A neighbour's broken disk must not fail this one, nor a log line that only looks alike."""
    assert (error_about(record, ["sda"]) is not None) == counts


def test_partitions_of_nvme_disks_are_theirs() -> None:
    """Their partitions have a letter before the number."""
    text = "nvme nvme0n1p2: I/O error, dev nvme0n1p2, sector 0"
    assert error_about(f"3,1,1,-;{text}", ["nvme0n1"]) == text


def test_disks_are_devices_and_what_they_are_built_on() -> None:
    """Errors of a volume show at the disks below it."""
    device = {"kernel_name": "dm-3", "bottom_disks": ["sda", "sdb"]}
    environment = {"targets": [{"device": device}, {"device": None}, {"device": device}]}
    assert disks_of(environment) == ["dm-3", "sda", "sdb"]


def test_a_log_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    """Silence must not look like a log without errors."""
    with KernelLog(tmp_path / "nothing") as log:
        found = log.errors_about(["sda"])
    assert not found.readable
    assert "No such file" in found.reason


@pytest.mark.skipif(
    os.geteuid() != 0 or not KERNEL_LOG_PATH.exists(), reason="only root writes to the kernel log"
)
def test_an_error_that_happens_during_the_run_is_found() -> None:
    """JST-15, planted into the real log under the name of a disk that nobody has.

    What came before does not count.
    """
    name = f"plimsolltest{os.getpid()}"
    write(f"<3>I/O error, dev {name}, sector 1 (before)")
    with KernelLog() as log:
        write(f"<6>{name}: all is well")
        write(f"<3>I/O error, dev {name}, sector 2 (during)")
        found = log.errors_about([name])
    assert found.readable
    assert found.lines == (f"I/O error, dev {name}, sector 2 (during)",)


@pytest.mark.skipif(
    os.geteuid() != 0 or not KERNEL_LOG_PATH.exists(), reason="only root writes to the kernel log"
)
def test_what_was_said_while_an_event_harmed_the_disk_is_told_apart() -> None:
    name = f"plimsollharm{os.getpid()}"
    with KernelLog() as log:
        write(f"<3>I/O error, dev {name}, sector 1 (before)")
        log.gather([name])
        write(f"<3>I/O error, dev {name}, sector 2 (meanwhile)")
        write(f"<3>md: {name} and {name}b failed (two)")
        log.gather([name, f"{name}b"], frozenset({name}))
        write(f"<3>I/O error, dev {name}, sector 3 (after)")
        found = log.errors_about([name])
    assert [line[-8:] for line in found.lines] == ["(before)", "ed (two)", " (after)"]
    assert [line[-11:] for line in found.of_events] == ["(meanwhile)"]
    given = summary()
    given["kernel_log"] = found.figures().plain()
    check = check_of(given)
    assert check["status"] == "fail" and "harmed the storage: I/O error" in check["reason"]
    given["kernel_log"]["lines"] = []
    assert check_of(given)["status"] == "pass"


def check_of(given: dict[str, Any]) -> dict[str, Any]:
    checks: list[dict[str, Any]] = judge(PLAN, given, ENVIRONMENT)["checks"]
    return next(check for check in checks if check["name"] == "kernel_log_errors")


def write(line: str) -> None:
    descriptor = os.open(KERNEL_LOG_PATH, os.O_WRONLY)
    # Without its end of line the kernel would keep the record open for more.
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


@pytest.mark.skipif(
    os.geteuid() != 0 or not KERNEL_LOG_PATH.exists(), reason="only root writes to the kernel log"
)
def test_a_run_that_goes_on_reads_from_where_it_began() -> None:
    """What the kernel said of a disk before the process was killed went with it."""
    name = f"plimsollgap{os.getpid()}"
    write(f"<3>I/O error, dev {name}, sector 1 (before)")
    with KernelLog() as first:
        write(f"<3>I/O error, dev {name}, sector 2 (during)")
    with KernelLog(since=first.mark) as second:
        write(f"<3>I/O error, dev {name}, sector 3 (after the gap)")
        found = second.errors_about([name])
    assert [line[-6:] for line in found.lines] == ["uring)", "e gap)"]
    assert second.mark == first.mark, "also after a second gap"
    with KernelLog(since={**first.mark, "boot_id": "another"}) as restarted:
        found = restarted.errors_about([name])
    assert (found.lines, found.readable) == ((), True)
    assert "restarted" in found.reason


def test_a_chatty_kernel_is_no_fault_of_the_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A firewall that logs fills the ring buffer in two hours: the storage failed by that."""
    answers: list[bytes | OSError] = [
        BlockingIOError(),
        BrokenPipeError(),
        b"3,9,9,-;I/O error, dev sdz, sector 1",
        BlockingIOError(),
        BrokenPipeError(),
        BlockingIOError(),
    ]

    def read(_descriptor: int, _most: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    (tmp_path / "kmsg").write_text("")
    monkeypatch.setattr(os, "read", read)
    with KernelLog(tmp_path / "kmsg") as log:
        log.gather(["sda"])
        found = log.errors_about(["sda"])
    monkeypatch.undo()
    assert (found.lines, found.readable) == ((), True)
    assert found.reason == "messages were lost: the kernel log overflowed"
    given = summary()
    given["kernel_log"] = found.figures().plain()
    verdict = judge(PLAN, given, ENVIRONMENT)
    assert (verdict["result"], verdict["qualifying"]) == ("pass", False)
    assert any("kernel log overflowed" in text for text in verdict["not_qualifying_because"])
