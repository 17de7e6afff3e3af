"""Error counters of devices.

One that grows fails the run, one that cannot be read is no absence of errors.
"""

from pathlib import Path

from plimsoll.files import folder
from plimsoll.host.error_counters import ErrorCounts, read_counters
from tests.support.plain_stages import judge, summarize
from tests.support.planted_run import ENVIRONMENT, run_folder


def tree(root: Path, content: dict[str, str]) -> Path:
    for name, text in content.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_JST_02_counters_are_read_where_the_kernel_keeps_them(tmp_path: Path) -> None:
    """A SCSI disk, its file system, a software array over it, btrfs.

    And not the disk whose name only begins alike.
    """
    root = tree(
        tmp_path,
        {
            "block/sda/device/ioerr_cnt": "0x2\n",
            "block/sdab/device/ioerr_cnt": "0x9\n",
            "fs/ext4/sda1/errors_count": "0\n",
            "fs/ext4/sdab1/errors_count": "7\n",
            "block/md0/md/dev-sda2/errors": "1\n",
            "fs/btrfs/abc/devinfo/1/error_stats": "write_errs 4\nread_errs 0\n",
        },
    )
    assert read_counters(["sda", "md0"], root) == {
        "block/sda/device/ioerr_cnt": 2,
        "fs/ext4/sda1/errors_count": 0,
        "block/md0/md/dev-sda2/errors": 1,
        "fs/btrfs/abc/devinfo/1/error_stats:write_errs": 4,
        "fs/btrfs/abc/devinfo/1/error_stats:read_errs": 0,
    }


def test_JST_02_a_counter_that_grew_fails_the_run(tmp_path: Path) -> None:
    """Whatever the latencies were: a repeated command is how a disk announces its end."""
    run = run_folder(tmp_path / "run", {}, test="stress", limits="lenient")
    found = {}
    for name, after in (("same", 2), ("grown", 3)):
        counts = ErrorCounts({"block/sda/device/ioerr_cnt": 2})
        counts.look({"block/sda/device/ioerr_cnt": after})
        counts.found().write(run / folder.DEVICE_ERRORS)
        found[name] = judge(folder.read_json(run / folder.PLAN), summarize(run), ENVIRONMENT)
    assert found["same"]["result"] == "pass", found["same"]["reasons"]
    assert found["grown"]["result"] == "fail"
    check = next(check for check in found["grown"]["checks"] if check["name"] == "device_errors")
    assert (check["status"], check["doubts"]) == ("fail", [])
    assert "block/sda/device/ioerr_cnt: 1 more error (2 before, 3 after)" in check["reason"]


def test_what_an_event_of_the_plan_did_is_no_fault_of_the_storage(tmp_path: Path) -> None:
    """It is told all the same, and what came before and after it counts."""
    run = run_folder(tmp_path / "run", {}, test="stress", limits="lenient")
    counts = ErrorCounts({"a": 2, "b": 0, "c": 0, "d": 0}, ["a", "b", "c", "d"])
    counts.look({"a": 5, "b": 0}, frozenset("abcd"))
    counts.look({"a": 5, "b": 0, "d": 1}, frozenset("abcd"))
    counts.look({"a": 5, "b": 0, "d": 1})
    counts.found().write(run / folder.DEVICE_ERRORS)
    found = judge(folder.read_json(run / folder.PLAN), summarize(run), ENVIRONMENT)
    (check,) = [check for check in found["checks"] if check["name"] == "device_errors"]
    assert check["status"] == "pass", check
    assert "events of the plan harmed the storage: a: 3 more errors (2 before" in check["reason"]
    assert "c: could be read before" in check["reason"] and "d: 1 more error (" in check["reason"]
    assert "d: could be" not in check["reason"]
    counts.look({"a": 5, "b": 1, "d": 1})
    counts.found().write(run / folder.DEVICE_ERRORS)
    found = judge(folder.read_json(run / folder.PLAN), summarize(run), ENVIRONMENT)
    (check,) = [check for check in found["checks"] if check["name"] == "device_errors"]
    assert check["status"] == "fail" and check["measured"] == 1, check


def test_errors_of_a_disk_that_the_event_left_alone_count() -> None:
    """A drive of the array was failed; another one fails meanwhile."""
    of_md, of_other = "block/md0/md/dev-vdc/errors", "block/vdd/device/ioerr_cnt"
    both = "block/md0/md/dev-vdd/errors"
    counts = ErrorCounts(dict.fromkeys((of_md, of_other, both), 0), ["md0", "vdc", "vdd"])
    counts.look({of_md: 2, of_other: 1, both: 4}, frozenset({"md0", "vdc"}))
    found = counts.found()
    assert [line.split(":")[0] for line in found.lines] == [of_other, both]
    assert [line.split(":")[0] for line in found.of_events] == [of_md]


def test_what_a_drive_counts_of_itself_is_no_event_of_the_plan(tmp_path: Path) -> None:
    """It is read when the run ends, so an event at that moment would excuse all of the run."""
    name = "smart/sda:pending_sectors"
    counts = ErrorCounts({name: 0, "a": 0}, ["sda", "a"])
    counts.look({name: 0, "a": 1}, frozenset({"sda", "a"}))
    counts.look({name: 3, "a": 1}, frozenset({"sda", "a"}))
    found = counts.found()
    assert [line.split(" (")[0] for line in found.lines] == [f"{name}: 3 more errors"]
    assert [line.split(" (")[0] for line in found.of_events] == ["a: 1 more error"]


def test_JST_02_a_stress_test_says_what_it_could_not_see(tmp_path: Path) -> None:
    """No counters are no pass of the counters.

    And a stress test of ten seconds is a rehearsal of one of a day.
    """
    run = run_folder(tmp_path / "run", {}, test="stress")
    ErrorCounts({}).found().write(run / folder.DEVICE_ERRORS)
    found = judge(folder.read_json(run / folder.PLAN), summarize(run), ENVIRONMENT)
    assert "device_errors" not in {check["name"] for check in found["checks"]}
    reasons = " ".join(found["not_qualifying_because"])
    assert "no device or file system under test has error counters" in reasons
    assert "takes 24 hours" in reasons
