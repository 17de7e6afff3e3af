"""Events are carried out at their time and undone on every way out."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plimsoll.documents.event import Event
from plimsoll.documents.staged import EventLimits, EventsDone, StagedEvent
from plimsoll.files import folder
from plimsoll.run.staging import OUTPUT_BYTES_MAX, Staging, carry_out, events_left_behind, undo_left_behind


def staged(place: Path, **further) -> StagedEvent:
    """An event that makes a file and whose undo takes it away again."""
    event = StagedEvent(
        name="pull",
        phase="measure",
        after_s=0.0,
        undo_after_s=None,
        command=["touch", str(place / "pulled")],
        manual=None,
        prove=["test", "-e", str(place / "pulled")],
        undo=["rm", str(place / "pulled")],
        timeout_s=5.0,
        judge=EventLimits(),
    )
    return event.replace(**further)


def heard(kind: str) -> Event:
    return Event(time_ns=10**9, utc_ns=time.time_ns(), level="info", kind=kind, phase="measure", text="")


def until(condition, seconds=5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.01)


def done(place: Path):
    return EventsDone.read(place / folder.STAGED).events[0]


def test_an_event_is_done_proved_and_undone_when_its_phase_ends(tmp_path: Path) -> None:
    with Staging([staged(tmp_path)], tmp_path, print) as staging:
        staging.hear(heard("phase_started"))
        until((tmp_path / "pulled").exists)
        assert events_left_behind(tmp_path) == [("pull", f"rm {tmp_path}/pulled")]
        time.sleep(0.1)
        staging.hear(heard("phase_ended"))
        until(lambda: not (tmp_path / "pulled").exists())
    found = done(tmp_path)
    assert found.applied.error is found.proved.error is found.undone.error is None
    assert 10**9 <= found.applied.begun_ns <= found.proved.begun_ns <= found.undone.begun_ns < 4 * 10**9
    assert not (tmp_path / folder.TO_UNDO).exists()


def test_a_failing_run_leaves_nothing_degraded(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Staging([staged(tmp_path)], tmp_path, print) as staging:
        staging.hear(heard("phase_started"))
        until((tmp_path / "pulled").exists)
        raise KeyboardInterrupt
    assert not (tmp_path / "pulled").exists() and done(tmp_path).undone.exit_code == 0


def test_an_event_that_the_run_did_not_come_to_is_not_done(tmp_path: Path) -> None:
    with Staging([staged(tmp_path, after_s=60.0)], tmp_path, print) as staging:
        staging.hear(heard("phase_started"))
    found = done(tmp_path)
    assert found.applied is None and found.undone is None and not (tmp_path / "pulled").exists()


def test_an_undo_that_fails_is_told_with_its_command_and_stays_noted(tmp_path: Path) -> None:
    said: list[str] = []
    with Staging([staged(tmp_path, undo=["false"])], tmp_path, said.append) as staging:
        staging.hear(heard("phase_started"))
        until((tmp_path / "pulled").exists)
    assert "NOT undone" in said[-1] and "false" in said[-1]
    assert done(tmp_path).undone.error == "false ended with exit code 1"
    assert events_left_behind(tmp_path) == [("pull", "false")]


def test_a_command_that_hangs_is_killed_with_all_it_started(tmp_path: Path) -> None:
    script = f"sleep 300 & echo $! > {tmp_path}/child; sleep 300"
    begun = time.monotonic()
    code, _, problem, _ = carry_out(["sh", "-c", script], 0.5, {})
    assert code is None and "took longer than 0.5 s" in str(problem) and time.monotonic() - begun < 3
    child = int((tmp_path / "child").read_text())
    until(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2])


def test_what_a_command_leaves_running_ends_with_the_event(tmp_path: Path) -> None:
    """It may hold the output open, which keeps nobody waiting."""
    command = ["sh", "-c", f"sleep 300 & echo $! > {tmp_path}/child"]
    with Staging([staged(tmp_path, command=command, prove=[], undo=["true"])], tmp_path, print) as staging:
        staging.hear(heard("phase_started"))
        until((tmp_path / "child").exists)
        time.sleep(0.8)
        child = int((tmp_path / "child").read_text())
        os.kill(child, 0)
    until(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2])


def test_much_output_is_read_and_cut_and_steers_no_terminal() -> None:
    code, output, problem, _ = carry_out(
        ["sh", "-c", "printf '\\033[2J'; head -c 10000000 /dev/zero | tr '\\0' x"], 20, {}
    )
    assert (code, problem) == (0, None) and len(output) <= OUTPUT_BYTES_MAX and "\x1b" not in output


def test_a_command_sees_its_event_and_little_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_MINE", "1")
    _, output, _, _ = carry_out(["env"], 5, {"EVENT": "pull", "STEP": "undo"})
    names = {line.partition("=")[0] for line in output.splitlines()}
    assert {"PATH", "PLIMSOLL_EVENT", "PLIMSOLL_STEP"} <= names and "SECRET_OF_MINE" not in names


def test_a_program_that_is_not_there_is_a_problem_and_no_crash() -> None:
    assert "cannot be started" in str(carry_out(["/no/such/program"], 5, {})[2])


def test_a_killed_run_leaves_a_note_that_clean_carries_out(tmp_path: Path) -> None:
    code = f"""
import time
from pathlib import Path
from tests.run.test_staging import heard, staged
from plimsoll.run.staging import Staging
place = Path({str(tmp_path)!r})
with Staging([staged(place)], place, print) as staging:
    staging.hear(heard("phase_started"))
    time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    until((tmp_path / "pulled").exists, 20)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert undo_left_behind(tmp_path) == [("pull", None)]
    assert not (tmp_path / "pulled").exists() and not (tmp_path / folder.TO_UNDO).exists()
    assert events_left_behind(tmp_path) == []
