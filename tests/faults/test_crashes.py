"""What a killed run leaves is recovered or made anew by the next one.

Nobody has to clean up first.
"""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.support.places import PLIMSOLL, plimsoll

SMALL = ["--databases", "1", "--size-mib", "128", "--cache-mib", "16", "--yes"]


def kill_when(command: list[str], home: Path, seen: str, extra_s: float) -> None:
    """Start the program, wait until its events say `seen`, and kill it as the kernel's memory
    killer would.
    """
    process = subprocess.Popen(
        command, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    log = home / "killed" / folder.EVENTS
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (log.exists() and seen in log.read_text()):
        time.sleep(0.02)
    time.sleep(extra_s)
    process.send_signal(signal.SIGKILL)
    process.wait()


def performance(home: Path, *more: str) -> list[str]:
    return ["test", "performance", str(home / "disk"), *SMALL, *more]


def test_a_killed_run_is_recovered_by_the_next(tmp_path: Path) -> None:
    """Preparing a terabyte takes hours; a killed process must not cost them."""
    command = [
        *PLIMSOLL,
        *performance(tmp_path, "--minutes", "5", "--out", str(tmp_path / "killed")),
    ]
    kill_when(command, tmp_path, "measure started", 1.5)
    marker = json.loads((tmp_path / "disk/instance1/plimsoll-instance.json").read_text())
    assert marker["state"] == "in_use"
    result = plimsoll(
        *performance(tmp_path, "--minutes", "0.05", "--out", str(tmp_path / "next")), cwd=tmp_path
    )
    assert result.returncode in (0, 1, 3), result.stderr
    assert "instance1 was not closed by its last run; it will be recovered" in result.stderr
    kinds = [event["kind"] for event in folder.read_events(tmp_path / "next")]
    assert "recovered" in kinds
    assert "prepared" not in kinds
    outcome = json.loads((tmp_path / "next" / folder.OUTCOME).read_text())
    assert outcome["ending"] == "complete", outcome["error"]
    assert outcome["phases"][-1]["checksums"][0]["bad"] == 0
    third = plimsoll(*performance(tmp_path, "--minutes", "0.05"), cwd=tmp_path)
    assert "will be recovered" not in third.stderr, "the second run closed it"


@pytest.mark.slow
def test_instances_on_several_threads_are_all_recovered(tmp_path: Path) -> None:
    """A kill meets every thread in the middle of its own instances.

    The next run recovers all of them, on other threads.
    """
    plan = tmp_path / "plan.toml"
    instances = "".join(
        f'[[instance]]\nname = "i{number}"\ndatabase_size_mib = 64\ncache_mib_max = 16\n'
        for number in range(4)
    )
    head = (
        f'kind = "plan"\nschema_version = 1\nthreads = 2\n[[target]]\nname = "disk"\npath = '
        f'"{tmp_path / "disk"}"\n'
    )
    phases = (
        '[[phase]]\nkind = "prepare"\n[[phase]]\nkind = "measure"\nduration_s = '
        '{0}\n[[phase]]\nkind = "stop"\n'
    )
    checksum = '[[phase]]\nkind = "checksum"\n'
    plan.write_text(head + instances + phases.format(300), encoding="utf-8")
    kill_when(
        [*PLIMSOLL, "run", str(plan), "--yes", "--out", str(tmp_path / "killed")],
        tmp_path,
        "measure started",
        1.5,
    )
    plan.write_text(head + instances + phases.format(2) + checksum, encoding="utf-8")
    result = plimsoll(
        "run", str(plan), "--yes", "--threads", "3", "--out", str(tmp_path / "next"), cwd=tmp_path
    )
    assert result.returncode in (0, 1, 3), result.stderr
    outcome = json.loads((tmp_path / "next" / folder.OUTCOME).read_text())
    assert outcome["ending"] == "complete", outcome["error"]
    assert [item["instance"] for item in outcome["phases"][0]["recoveries"]] == [0, 1, 2, 3]
    assert [(item["instance"], item["bad"]) for item in outcome["phases"][-1]["checksums"]] == [
        (n, 0) for n in range(4)
    ]
    assert [item["instances"] for item in outcome["threads"]] == [["i0", "i3"], ["i1"], ["i2"]]
    summary = json.loads((tmp_path / "next" / folder.SUMMARY).read_text())
    busy = [item["busy_mean"] for item in summary["generator"]["threads"]]
    assert len(busy) == 3 and 0 < max(busy) <= summary["generator"]["executor_busy_mean"] + 1e-9
    assert (
        "Thread 1, busy, mean of samples (i0, i3)"
        in (tmp_path / "next" / folder.REPORT).read_text()
    )


def test_lost_logs_of_a_killed_run_are_damage_and_nothing_is_made_in_their_place(
    tmp_path: Path,
) -> None:
    """Acknowledged commits were in them.

    Who finds them again has lost nothing by having tried without.
    """
    command = [
        *PLIMSOLL,
        *performance(tmp_path, "--minutes", "5", "--out", str(tmp_path / "killed")),
    ]
    kill_when(command, tmp_path, "measure started", 1.0)
    place, aside = tmp_path / "disk/instance1", tmp_path / "aside"
    aside.mkdir()
    for log in place.glob("E00*.log"):
        log.rename(aside / log.name)
    before = (place / "database001.edb").read_bytes()
    without = plimsoll(
        *performance(tmp_path, "--minutes", "0.02", "--out", str(tmp_path / "without")),
        cwd=tmp_path,
    )
    assert without.returncode == 1, without.stderr
    assert without.stdout.strip().startswith("Fail"), without.stdout
    assert "is needed for recovery and missing" in without.stdout
    assert (place / "database001.edb").read_bytes() == before
    for log in aside.iterdir():
        log.rename(place / log.name)
    found = plimsoll(
        *performance(tmp_path, "--minutes", "0.02", "--out", str(tmp_path / "found")), cwd=tmp_path
    )
    assert found.returncode in (0, 1, 3), found.stderr
    assert "recovered" in [event["kind"] for event in folder.read_events(tmp_path / "found")]


@pytest.mark.slow
def test_a_killed_preparation_is_made_anew(tmp_path: Path) -> None:
    """The beginning of a database is no database; it carries our marker, so nobody is asked."""
    large = [
        item if item != "128" else "1024"
        for item in performance(tmp_path, "--out", str(tmp_path / "killed"))
    ]
    kill_when([*PLIMSOLL, *large], tmp_path, "prepare started", 0.3)
    begun = tmp_path / "disk/instance1/database001.edb"
    assert begun.exists()
    assert begun.read_bytes()[:4096] == bytes(4096), "its header is written last"
    # Of the size it had, because another size is another database.
    again = [item if item != "128" else "1024" for item in performance(tmp_path, "--dry-run")]
    look = plimsoll(*again, cwd=tmp_path)
    assert look.returncode == 0, look.stderr
    assert f"{begun} was begun by an earlier run and not finished" in look.stderr
    prepared = plimsoll(
        *[item for item in again if item != "--dry-run"], "--minutes", "0.02", cwd=tmp_path
    )
    assert prepared.returncode in (0, 1, 3), prepared.stderr
    assert "an earlier preparation was not finished; it is made again" in prepared.stderr


@pytest.mark.parametrize(
    "test",
    [
        ("test", "store", "disk", "--scale", "1MB", "--sessions", "4", "--yes"),
        (
            *("test", "mail", "disk", "--users", "10", "--day-h", "0.01"),
            *("--sizes", "loadsim-light", "--mailbox-mib", "0.3", "--yes"),
        ),
    ],
    ids=["store", "mail"],
)
def test_a_killed_store_is_recovered_and_judged(tmp_path: Path, test: Sequence[str]) -> None:
    """The run that went on came to its end, and its result to a traceback.

    What was to be recovered was said to be made again.
    """
    command = [*PLIMSOLL, *test, "--minutes", "0.1", "--out", str(tmp_path / "killed")]
    kill_when(command, tmp_path, "measure started", 1.5)
    shutil.copytree(tmp_path / "disk", tmp_path / "before")
    resumed = plimsoll("resume", tmp_path / "killed", cwd=tmp_path)
    assert resumed.returncode in (0, 1, 3), resumed.stderr
    assert "was not closed by its last run; it will be recovered" in resumed.stderr
    summary = json.loads((tmp_path / "killed" / folder.SUMMARY).read_text())
    assert summary["recoveries"][0]["logs_count"] > 0
    shutil.rmtree(tmp_path / "disk")
    (tmp_path / "before").rename(tmp_path / "disk")
    following = plimsoll(*test, "--minutes", "0.05", "--out", tmp_path / "next", cwd=tmp_path)
    assert following.returncode in (0, 1, 3), following.stderr
    assert "was not closed by its last run; it will be recovered" in following.stderr
    assert "prepared again" not in following.stderr
    summary = json.loads((tmp_path / "next" / folder.SUMMARY).read_text())
    assert summary["recoveries"][0]["logs_count"] > 0
