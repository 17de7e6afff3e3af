"""What a killed run left degraded: undone once, forgotten where a restart has undone it."""

import errno
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import plimsoll
from plimsoll.documents.ready_actions import Step
from plimsoll.files import folder
from plimsoll.host import machine
from plimsoll.host.boot import boot_id
from plimsoll.run.pending_undo import PendingUndos, pending_of, undo_pending
from tests.support.places import plimsoll as program


def say_otherwise(run_folder: Path, **said: str | None) -> None:
    """Change what the file says of where its events began; None leaves a key out."""
    path = run_folder / folder.UNDO_PENDING
    content = json.loads(path.read_text())
    for item in content["pending"]:
        for key, value in said.items():
            assert item.pop(key)
            item |= {} if value is None else {key: value}
    path.write_text(json.dumps(content))


def restart(run_folder: Path) -> None:
    """What the file says once the machine was started again."""
    assert f'"boot_id": "{boot_id()}"' in (run_folder / folder.UNDO_PENDING).read_text()
    say_otherwise(run_folder, boot_id="another")


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that names this machine."""
    path = tmp_path / "machine-id"
    path.write_text("a1b2c3\n")
    monkeypatch.setattr(machine, "MACHINE_ID", path)
    return path


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


def test_an_undo_that_a_killed_clean_left_is_waited_for_and_the_others_are_undone(tmp_path):
    """Two of the same at once may come to nothing, and what is told of the second is not true."""
    undos = PendingUndos(tmp_path)
    undos.add(pending_of("quick", ["touch", str(tmp_path / "quick")], 9, (), None))
    undo = ["sh", "-c", f"touch {tmp_path}/begun; sleep 3"]
    undos.add(pending_of("slow", (), 9, [Step(kind="run", argv=undo)], None))
    first = subprocess.Popen(
        [sys.executable, "-m", "plimsoll.cli", "clean", str(tmp_path), "--allow-commands"]
    )
    while not (tmp_path / "begun").exists():
        time.sleep(0.05)
    time.sleep(0.3)
    first.kill()
    first.wait(30)
    second = program("clean", tmp_path, "--allow-commands", cwd=tmp_path)
    assert second.returncode == 1, second.stderr
    assert 'event "slow" is not undone: process ' in second.stderr
    assert (tmp_path / "quick").exists()
    time.sleep(3)
    assert undo_pending(tmp_path) == []


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


def test_another_machine_undoes_nothing_and_forgets_nothing(degraded):
    """A folder that several hosts share: a restart of this one has undone nothing there."""
    say_otherwise(degraded, boot_id="another", machine_id="d4e5f6", host_name="array-test-2")
    before = (degraded / folder.UNDO_PENDING).read_text()
    for options in ((), ("--allow-commands",), ("--yes",)):
        refused = program("clean", degraded, *options, cwd=degraded)
        assert refused.returncode == 2, refused.stderr
        told = " ".join(refused.stderr.split())
        assert "staged on another machine, array-test-2 with the machine id d4e5f6" in told
        assert f"run `plimsoll clean {degraded}" in told and "restarted" not in told
    assert (degraded / folder.UNDO_PENDING).read_text() == before
    assert not (degraded / "done").exists()


@pytest.mark.parametrize("here", ["", "uninitialized\n", None])
def test_without_a_machine_id_the_host_name_tells_and_it_is_said(named, degraded, here):
    """As in a container, which may have none."""
    named.unlink() if here is None else named.write_text(here)
    say_otherwise(degraded, boot_id="another", host_name="array-test-2")
    with pytest.raises(folder.FolderError, match=r"as far as host names tell: .*machine-id"):
        undo_pending(degraded)
    say_otherwise(degraded, host_name=machine.host_name())
    assert undo_pending(degraded) == []


def test_one_start_of_the_kernel_is_one_machine_whatever_it_is_called(named, degraded):
    """Containers on one host have names and machine ids of their own."""
    say_otherwise(degraded, machine_id="d4e5f6", host_name="a-container")
    assert undo_pending(degraded) == []
    assert (degraded / "state").read_text().startswith("of then")


def test_files_of_earlier_versions_name_no_machine_and_are_undone(named, degraded):
    say_otherwise(degraded, boot_id="another", machine_id=None, host_name=None)
    assert undo_pending(degraded) == []
    assert (degraded / "done").exists()


DAMAGED = {
    "truncated": '{"schema_version": 1, "pending": [{"na',
    "empty": "",
    "of another kind": '{"pending": "all"}',
    "newer": '{"schema_version": 9, "pending": []}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_named_with_what_to_do_and_the_other_runs_are_undone(tmp_path, content):
    runs = [tmp_path / f"series/run-{number}" for number in (1, 2)]
    for home in runs:
        home.mkdir(parents=True)
        PendingUndos(home).add(pending_of("path", ["touch", f"{home}/done"], 9, (), None))
    damaged = runs[0] / folder.UNDO_PENDING
    damaged.write_text(content)
    done = program("clean", tmp_path / "series", "--allow-commands", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    told = " ".join(done.stderr.split())
    assert str(damaged) in told and "put back by hand" in told and f"delete {damaged}" in told
    assert damaged.read_text() == content
    assert (runs[1] / "done").exists() and not (runs[0] / "done").exists()


def test_what_cannot_be_noted_as_undone_keeps_nothing_else_from_being_undone(
    tmp_path, monkeypatch: pytest.MonkeyPatch
):
    """A run folder that became read-only: the first event that was undone ended the clean."""
    undos = PendingUndos(tmp_path / "run")
    (tmp_path / "run").mkdir()
    for name in ("first", "second"):
        undos.add(pending_of(name, ["touch", str(tmp_path / name)], 9, (), None))

    def refuses(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(PendingUndos, "_write", refuses)
    failed = undo_pending(tmp_path / "run")
    assert (tmp_path / "first").exists() and (tmp_path / "second").exists()
    assert [text.split(" is undone, but ")[0] for text in failed] == [
        'event "second"',
        'event "first"',
    ]
    assert all("read-only" in text.lower() and "still names it" in text for text in failed)


def test_an_event_of_which_no_one_says_how_it_is_undone_is_told(tmp_path):
    """`clean` has to say so, and not to end with a fault of its own."""
    PendingUndos(tmp_path).add(pending_of("one", (), 9, (), None))
    done = program("clean", tmp_path, "--allow-commands", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "does not say how" in done.stderr
    assert f"delete {tmp_path / folder.UNDO_PENDING}" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("number", "told"),
    [(errno.ENOENT, None), (errno.ENOTDIR, None), (errno.EACCES, "as a user who may read it")],
)
def test_a_file_that_is_gone_when_it_is_read_is_none_and_one_that_may_not_be_read_is_told(
    tmp_path, monkeypatch: pytest.MonkeyPatch, number: int, told: str | None
):
    """Another run undid the last of its events at that moment, or belongs to another user."""
    PendingUndos(tmp_path).add(pending_of("one", ["true"], 9, (), None))

    def fails(*_: object) -> str:
        raise OSError(number, "")

    monkeypatch.setattr(folder, "read_text", fails)
    if told is None:
        assert plimsoll.pending_undos(tmp_path) == ()
        return
    with pytest.raises(folder.FolderError, match=told):
        plimsoll.pending_undos(tmp_path)
