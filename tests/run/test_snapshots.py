"""Snapshots of open databases: writes are held while a command takes one, and clones are opened.

The commands copy, which is what a snapshot of an array does in an instant: whatever they copy while
anything is written would be of no one moment.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from plimsoll.documents.staged_events import StagedEventsFile
from plimsoll.files import folder
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options, read_plan
from tests.support.places import PLIMSOLL, plimsoll

OPTIONS = ("--create", "--allow-system-disk", "--yes", "--allow-commands")


def plan_text(home: Path, command: object, *more: str, seconds: float = 5) -> str:
    """Two databases under load, a snapshot after 2 s, and its clones opened when all is closed."""
    return f"""kind = "plan"
schema_version = 1
sample_interval_ms = 200
target = [{{ name = "data", path = "{home}/volume/data" }}]
workload = [{{ name = "mix", load = {{ sessions = 4 }} }}]

[[instance]]
name = "one"
databases = 2
database_size_mib = 64
cache_mib_max = 16

[[phase]]
kind = "prepare"

[[phase]]
kind = "measure"
duration_s = {seconds}

[[phase]]
kind = "stop"

[[phase]]
kind = "restore"
clones = [{{ of = "{home}/volume", at = "{home}/clone" }}]

[[event]]
name = "snapshot"
after_s = 2
hold_writes = true
command = {json.dumps(command)}
undo = ["rm", "-rf", "{home}/clone"]
""" + "\n".join(more)


def copying(home: Path, then: str = "true") -> list[str]:
    return ["sh", "-c", f"cp -a {home}/volume {home}/clone && {then}"]


def run(home: Path, command: object, *more: str) -> subprocess.CompletedProcess[str]:
    (home / "plan.toml").write_text(plan_text(home, command, *more), encoding="utf-8")
    return plimsoll("run", home / "plan.toml", *OPTIONS, "--out", home / "run", cwd=home)


def event_of(home: Path):
    (found,) = StagedEventsFile.read(home / "run" / folder.STAGED_EVENTS).events
    return found


def checks_of(home: Path, name: str) -> list[tuple[str, str]]:
    verdict = json.loads((home / "run" / folder.VERDICT).read_text())
    return [(item["status"], item["reason"]) for item in verdict["checks"] if item["name"] == name]


def test_a_snapshot_under_load_is_opened_and_sound(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    files = f"{tmp_path}/volume/data/one"
    look = f"cksum {files}/* > {seen}.1; sleep 0.3; cksum {files}/* > {seen}.2"
    result = run(tmp_path, copying(tmp_path, look))
    assert result.returncode in (0, 1, 3), result.stderr
    assert Path(f"{seen}.1").read_text() == Path(f"{seen}.2").read_text(), "something was written"
    event = event_of(tmp_path)
    assert event.error is None, event
    assert event.proved
    assert 0.3 < event.held_s < 10
    summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    (restored,) = summary["restores"]
    assert restored["kept_in"] == f"{tmp_path}/clone/data/one"
    assert restored["findings"] == []
    assert restored["databases_count"] == 2
    assert restored["bytes"] >= 128 << 20
    assert restored["logs_count"] >= 1, "they were open when they were copied"
    assert [status for status, _ in checks_of(tmp_path, "backup_restored")] == ["pass"]
    assert [status for status, _ in checks_of(tmp_path, "event_staged")] == ["pass"]
    assert f"writes go on after {event.held_s:.2f} s" in result.stderr
    page = (tmp_path / "run" / folder.REPORT).read_text()
    assert "Writes held, s" in page
    assert "Clones</" in page, "the clones have a table"
    # The clone went after it was opened, and nothing is left of the snapshot.
    assert not (tmp_path / "clone").exists()
    assert not (tmp_path / "run" / folder.UNDO_PENDING).exists()
    # What the clone replayed is no recovery of the databases.
    assert not summary.get("recoveries")


@pytest.mark.parametrize(
    ("then", "why"),
    [
        pytest.param(
            "rm {home}/clone/data/one/database002.edb",
            "database002.edb cannot be read",
            id="missing",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "rm -r {home}/clone && ln -s {home}/volume {home}/clone",
            "itself and no clone of it",
            id="itself",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "rm {home}/clone/data/one/*.log",
            "is needed for recovery and missing",
            id="without log",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "dd if=/dev/urandom of={home}/clone/data/one/database001.edb bs=4096 seek=8 count=2500 "
            "conv=notrunc status=none",
            "",
            id="damaged",
        ),
    ],
)
def test_a_clone_that_cannot_be_opened_fails(tmp_path: Path, then: str, why: str) -> None:
    """The run goes on to its end, and the databases themselves are none the worse for it."""
    result = run(tmp_path, copying(tmp_path, then.format(home=tmp_path)))
    assert result.returncode == 1, result.stderr
    ((status, reason),) = checks_of(tmp_path, "backup_restored")
    assert status == "fail"
    assert why in reason
    summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    assert summary["ending"] == "complete"
    (restored,) = summary["restores"]
    assert any(why in finding for finding in restored["findings"])
    checked = plimsoll("verify", "--deep", *tmp_path.glob("volume/data/one/*.edb"), cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.slow
def test_who_takes_too_long_has_a_snapshot_of_no_one_moment(tmp_path: Path) -> None:
    result = run(tmp_path, copying(tmp_path, "sleep 1.5"), "hold_s_max = 0.6")
    event = event_of(tmp_path)
    assert "is of no one moment" in event.error
    assert event.applied_s is None
    assert event.undone_s is not None, "what was begun is removed"
    assert not (tmp_path / "clone").exists()
    assert [status for status, _ in checks_of(tmp_path, "event_staged")] == ["not_evaluated"]
    assert result.returncode == 1
    assert "no clone" in result.stdout or "cannot be read" in result.stdout


def test_a_command_that_fails_lets_the_writes_go_on(tmp_path: Path) -> None:
    begun = time.monotonic()
    run(tmp_path, ["false"], "hold_s_max = 60")
    assert time.monotonic() - begun < 50, "nobody waited for the end of the hold"
    event = event_of(tmp_path)
    assert "ended with exit code 1" in event.error
    assert event.held_s < 5


def begun(home: Path, seconds: float) -> subprocess.Popen[str]:
    text = plan_text(home, copying(home, "sleep 6"), "hold_s_max = 40", seconds=seconds)
    (home / "plan.toml").write_text(text, encoding="utf-8")
    command = [*PLIMSOLL, "run", str(home / "plan.toml"), *OPTIONS, "--out", str(home / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until = time.monotonic() + 60
    while not (home / "clone/data/one/database002.edb").exists():
        assert time.monotonic() < until, "the copy never came"
        time.sleep(0.05)
    return process


def test_ctrl_c_while_writes_are_held(tmp_path: Path) -> None:
    """The databases are closed, for which they must be written."""
    process = begun(tmp_path, seconds=120)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=100)
    marker = json.loads((tmp_path / "volume/data/one/plimsoll-instance.json").read_text())
    assert marker["state"] == "closed", text
    assert not (tmp_path / "clone").exists()
    assert not (tmp_path / "run" / folder.UNDO_PENDING).exists()


def test_a_snapshot_of_a_killed_run_is_removed_by_clean(tmp_path: Path) -> None:
    process = begun(tmp_path, seconds=120)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    run_folder = tmp_path / "run"
    assert (run_folder / folder.UNDO_PENDING).exists()
    # The command outlives the run, and ends by itself.
    time.sleep(7)
    cleaned = plimsoll("clean", run_folder, "--allow-commands", "--yes", cwd=tmp_path)
    assert cleaned.returncode == 0, cleaned.stderr
    assert not (tmp_path / "clone").exists()


def mistakes(home: Path, old: str, new: str, *more: str) -> str:
    text = plan_text(home, ["true"], *more)
    assert old in text
    (home / "plan.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_plan(home / "plan.toml")
    return str(raised.value)


def test_what_no_snapshot_can_be_is_refused(tmp_path: Path) -> None:
    at = f'at = "{tmp_path}/clone"'
    inside = f'at = "{tmp_path}/volume/data/clone"'
    assert "overlaps target data" in mistakes(tmp_path, at, inside)
    above = f'at = "{tmp_path}"'
    assert "overlaps target data" in mistakes(tmp_path, at, above)
    other = f'of = "{tmp_path}/elsewhere"'
    assert "hold no clone of target data" in mistakes(tmp_path, f'of = "{tmp_path}/volume"', other)
    assert "no event takes a snapshot" in mistakes(tmp_path, "hold_writes = true", "")
    assert "means nothing without `hold_writes`" in mistakes(
        tmp_path, "hold_writes = true", "hold_s_max = 3"
    )
    by_hand = 'manual = "take a snapshot"\nmanual_undo = "remove it"'
    assert "means nothing without `command`" in mistakes(tmp_path, 'command = ["true"]', by_hand)
    assert "before restore has opened the clones" in mistakes(
        tmp_path, "after_s = 2", "after_s = 2\nundo_after_s = 3"
    )
    late = 'after_s = 2\nphase = "stop"'
    text = plan_text(tmp_path, ["true"]).replace("after_s = 2", late)
    (tmp_path / "plan.toml").write_text(text.replace('"stop"\n\n[[phase]]', '"stop"\n[[phase]]'))
    assert read_plan(tmp_path / "plan.toml").events[0].undo_in == "restore"
    last = 'after_s = 2\nphase = "restore"'
    assert "before their snapshot is taken" in mistakes(tmp_path, "after_s = 2", last)


def test_writes_of_others_are_not_held(tmp_path: Path) -> None:
    options = {
        "target": [{"name": "data", "path": str(tmp_path / "data")}],
        "instance": [{"name": "shop", "backend": "sqlite", "store_size": "10MB"}],
        "event": [{"name": "snapshot", "after_s": 1, "hold_writes": True, "command": ["true"]}],
    }
    with pytest.raises(InputError, match="those of a server are not ours to hold"):
        plan_of_options(options)


def test_consent_names_what_is_run_while_writes_are_held(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(plan_text(tmp_path, ["take", "it"]), encoding="utf-8")
    options = [option for option in OPTIONS if option != "--allow-commands"]
    refused = plimsoll("run", tmp_path / "plan.toml", *options, cwd=tmp_path)
    assert refused.returncode == 2
    assert "with all writes held, at most 10 s `take it`" in refused.stderr
    shutil.rmtree(tmp_path / "volume", ignore_errors=True)
