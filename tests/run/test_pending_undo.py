"""What a killed run left degraded: undone once, forgotten where a restart has undone it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import plimsoll
from plimsoll.documents.ready_actions import Step
from plimsoll.files import folder
from plimsoll.host.boot import boot_id
from plimsoll.run.pending_undo import PendingUndos, pending_of, undo_pending
from tests.support.places import plimsoll as program


def restart(run_folder: Path) -> None:
    """What the file says once the machine was started again."""
    path = run_folder / folder.UNDO_PENDING
    content = json.loads(path.read_text())
    for item in content["pending"]:
        assert item["boot_id"] == boot_id()
        item["boot_id"] = "another"
    path.write_text(json.dumps(content))


@pytest.fixture
def degraded(tmp_path: Path) -> Path:
    """A run folder with a state of the kernel to bring back, and a command."""
    undos = PendingUndos(tmp_path)
    state = tmp_path / "state"
    state.write_text("of today")
    step = Step(kind="write", path=str(state), text="of then")
    undos.add(pending_of("throttle", (), 9, [step], None, ends_with_boot=True))
    undos.add(pending_of("ours", ["touch", str(tmp_path / "done")], 9, (), None))
    return tmp_path


def test_what_a_restart_has_undone_is_forgotten_and_commands_still_count(degraded):
    restart(degraded)
    told = [plimsoll.pending_undo_in_words(item) for item in plimsoll.pending_undos(degraded)]
    assert told[0] == 'event "throttle" was undone when this machine was restarted'
    assert told[1].endswith("done`; this machine was restarted since")
    done = program("clean", degraded, "--allow-commands", cwd=degraded)
    assert done.returncode == 0, done.stderr
    assert "was undone when this machine was restarted" in done.stderr
    assert (degraded / "state").read_text() == "of today"
    assert (degraded / "done").exists()
    assert plimsoll.pending_undos(degraded) == ()


def test_what_was_not_restarted_is_undone(degraded):
    assert undo_pending(degraded) == []
    assert (degraded / "state").read_text().startswith("of then")


def test_a_second_clean_is_told_of_the_first(tmp_path):
    undo = ["sh", "-c", f"touch {tmp_path}/begun; sleep 4"]
    PendingUndos(tmp_path).add(pending_of("one", undo, 9, (), None))
    first = subprocess.Popen(
        [sys.executable, "-m", "plimsoll.cli", "clean", str(tmp_path), "--allow-commands"]
    )
    while not (tmp_path / "begun").exists():
        time.sleep(0.05)
    second = program("clean", tmp_path, "--allow-commands", cwd=tmp_path)
    assert first.wait(30) == 0
    assert second.returncode == 2, second.stderr
    assert "another `plimsoll clean` is undoing" in second.stderr


def test_what_a_restart_has_undone_wants_no_consent(tmp_path):
    step = Step(kind="write", path=str(tmp_path / "state"), text="of then")
    PendingUndos(tmp_path).add(pending_of("one", (), 9, [step], None, ends_with_boot=True))
    restart(tmp_path)
    done = program("clean", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert plimsoll.pending_undos(tmp_path) == ()


def test_clean_of_a_series_undoes_all_of_its_runs_and_names_what_fails(tmp_path):
    """One undo fails: those of the other runs are carried out, and it is said how to go on."""
    runs = [tmp_path / f"series/run-{number}" for number in (1, 2)]
    for home, undo in zip(runs, (["false"], ["touch", str(tmp_path / "done")]), strict=True):
        home.mkdir(parents=True)
        PendingUndos(home).add(pending_of("path", undo, 9, (), None))
    asked = program("clean", tmp_path / "series", cwd=tmp_path)
    assert asked.returncode == 2 and "give --allow-commands" in asked.stderr
    assert not (tmp_path / "done").exists()
    done = program("clean", tmp_path / "series", "--allow-commands", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "done").exists()
    assert [len(plimsoll.pending_undos(home)) for home in runs] == [1, 0]
    assert 'event "path" is not undone' in done.stderr
    assert f"delete {runs[0] / folder.UNDO_PENDING}" in " ".join(done.stderr.split())
