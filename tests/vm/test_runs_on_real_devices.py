"""Whole runs that degrade real devices, and runs that are killed meanwhile: `make vmlab`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import plimsoll
from plimsoll.documents.staged_events import StagedEvent, StagedEventsFile
from plimsoll.files import folder
from tests.support.harm import wait_until
from tests.vm.devices import DEVICES, IN_VM, Degradable

pytestmark = pytest.mark.skipif(not IN_VM, reason="wants devices of another kernel: make vmlab")

PLAN = """kind = "plan"
schema_version = 1
sample_interval_ms = 500
target = [{{ name = "disk", path = "{path}" }}]
instance = [{{ name = "one", backend = "files", files = 1, file_mib = 32 }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = {seconds} }}]
[[workload]]
name = "load"
pattern = "4k-aligned-100read-100random"
load = {{ transactions_per_s = 60, spacing = "regular" }}
[[event]]
name = "broken"
after_s = {after_s}
undo_after_s = {undo_after_s}
judge = {{ recover_s_max = 20 }}
{event}
"""
#: The change of the load's rate, in percent, and its tolerance. 20 of 60 operations per second are
#: let through; a mirror, a path and a session have others; late answers are answers.
CHANGE = {
    "throttle": (-67, 10),
    "disk slow": (0, 10),
    "md drive fails": (0, 10),
    "path fails": (0, 10),
    "iscsi logout": (0, 10),
}


def started(
    made: Degradable, place: Path, *, seconds: int, after_s: int, undo_after_s: int
) -> subprocess.Popen[str]:
    """A run that degrades a device."""
    plan = place / "plan.toml"
    plan.write_text(
        PLAN.format(
            path=made.mount / "t",
            event=made.event,
            seconds=seconds,
            after_s=after_s,
            undo_after_s=undo_after_s,
        )
    )
    command = [sys.executable, "-m", "plimsoll.cli", "run", plan, "--yes", "--allow-commands"]
    command += ["--create", "--allow-system-disk", "--out", place / "run"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def staged(place: Path) -> StagedEvent:
    (found,) = StagedEventsFile.read(place / "run" / folder.STAGED_EVENTS).events
    return found


def clean(place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "plimsoll.cli", "clean", place / "run", "--allow-commands"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("what", CHANGE)
def test_a_run_degrades_its_device_judges_the_answer_and_puts_it_back(
    tmp_path: Path, what: str
) -> None:
    with DEVICES[what](tmp_path) as made:
        process = started(made, tmp_path, seconds=60, after_s=15, undo_after_s=30)
        wait_until(made.is_degraded, 120)
        text, _ = process.communicate(timeout=240)
        print(text)
        assert process.returncode in (0, 1, 3), text
        wait_until(made.is_well)
        found = staged(tmp_path)
        assert found.error is None and found.proved and found.undone_s is not None, text
        assert plimsoll.pending_undos(tmp_path / "run") == ()
        summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
        (load,) = summary["events"][0]["loads"]
        print(json.dumps(summary["events"][0], indent=1))
        change, tolerance = CHANGE[what]
        found_change = load["degraded_change_percent"] or 0.0  # none where nothing was found
        assert load["baseline_per_s"] == pytest.approx(60, rel=0.1), text
        assert found_change == pytest.approx(change, abs=tolerance), text


def test_a_disk_that_fails_ends_the_run_and_works_again(tmp_path: Path) -> None:
    with DEVICES["disk fails"](tmp_path) as made:
        process = started(made, tmp_path, seconds=60, after_s=5, undo_after_s=30)
        text, _ = process.communicate(timeout=240)
        print(text)
        assert process.returncode == 1 and "Fail by I/O errors" in text, text
        wait_until(made.is_well)
        assert staged(tmp_path).undone_s is not None
        assert plimsoll.pending_undos(tmp_path / "run") == ()


@pytest.mark.parametrize("what", DEVICES)
def test_what_a_killed_run_degraded_is_put_back_by_clean(tmp_path: Path, what: str) -> None:
    with DEVICES[what](tmp_path) as made:
        process = started(made, tmp_path, seconds=120, after_s=2, undo_after_s=110)
        wait_until(made.is_degraded, 120)
        process.kill()
        process.communicate(timeout=60)
        (pending,) = plimsoll.pending_undos(tmp_path / "run")
        print(pending)
        for _ in range(2):
            ended = clean(tmp_path)
            assert ended.returncode == 0, ended.stderr
            wait_until(made.is_well)
        assert plimsoll.pending_undos(tmp_path / "run") == ()


@pytest.mark.parametrize("what", DEVICES)
def test_what_an_interrupted_run_degraded_is_put_back_by_itself(tmp_path: Path, what: str) -> None:
    with DEVICES[what](tmp_path) as made:
        process = started(made, tmp_path, seconds=120, after_s=2, undo_after_s=110)
        wait_until(made.is_degraded, 120)
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=120)
        wait_until(made.is_well)
        assert plimsoll.pending_undos(tmp_path / "run") == (), text
