"""Steps that a person takes: asked for, waited for, and never waited for in vain."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import plimsoll
from plimsoll.documents.event import Event
from plimsoll.documents.staged_events import StagedEventsFile
from plimsoll.files import folder
from plimsoll.inputs.mistakes import InputError
from plimsoll.run.pending_undo import PendingUndo, pending_of
from plimsoll.run.staging import Stage

PLAN = """kind = "plan"
schema_version = 1
sample_interval_ms = 100
target = [{{ name = "disk", path = "{path}" }}]
instance = [{{ name = "one", backend = "files", files = 1, file_mib = 8 }}]
workload = [{{ name = "load", pattern = "file-server", outstanding = 1 }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = {seconds} }}]
[[event]]
name = "drive 3"
after_s = 0.5
manual = "pull drive 3"
{more}
"""
DONE = """
undo_after_s = 1.5
manual_undo = "put drive 3 back"
timeout_s = 20
"""


def command(tmp_path: Path, more: str, *options: str, seconds: float = 5) -> list[str]:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(path=tmp_path / "data", more=more, seconds=seconds))
    run = [sys.executable, "-m", "plimsoll.cli", "run", str(plan), "--create", "--yes"]
    return [*run, "--allow-system-disk", "--out", str(tmp_path / "run"), *options]


def event_of(tmp_path: Path):
    (found,) = StagedEventsFile.read(tmp_path / "run" / folder.STAGED_EVENTS).events
    return found


def test_at_a_terminal_Enter_says_that_it_is_done(tmp_path):
    ours, theirs = pty.openpty()
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command(tmp_path, DONE), stdin=theirs, stdout=output, stderr=output
        )
        os.close(theirs)
        pressed = 0
        while process.poll() is None:
            time.sleep(0.1)
            asked = log.read_bytes().count(b"press Enter")
            if asked > pressed:
                os.write(ours, b"\n")
                pressed += 1
    os.close(ours)
    found, text = event_of(tmp_path), log.read_text()
    assert pressed == 2, text
    assert found.kind == "manual" and found.error is None, text
    assert found.begun_s < found.applied_s < found.undo_begun_s < found.undone_s
    assert "pull drive 3" in text and "put drive 3 back" in text
    assert not (tmp_path / "run" / folder.UNDO_PENDING).exists()


def test_without_a_terminal_a_file_is_touched(tmp_path):
    file = tmp_path / "done"
    # An old one is no answer.
    file.touch()
    os.utime(file, (1, 1))
    more = DONE + f'confirm_file = "{file}"\n'
    process = subprocess.Popen(
        command(tmp_path, more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if "; then touch " in line:
            time.sleep(0.3)
            file.touch()
    process.wait(timeout=60)
    found = event_of(tmp_path)
    assert found.error is None and found.undone_s is not None, text
    assert "Enter" not in text
    assert found.applied_s - found.begun_s >= 0.25


def test_without_a_terminal_and_a_file_it_is_refused(tmp_path):
    refused = subprocess.run(
        command(tmp_path, DONE),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused.returncode == 2
    assert "pull drive 3" in refused.stderr and "confirm_file" in refused.stderr
    assert not (tmp_path / "run").exists()


def test_a_file_of_the_future_is_no_answer(tmp_path):
    """One that a machine with another clock has left."""
    file = tmp_path / "done"
    file.touch()
    os.utime(file, (time.time() + 86400,) * 2)
    more = f'timeout_s = 0.5\nconfirm_file = "{file}"\n'
    subprocess.run(
        command(tmp_path, more, seconds=3), stdin=subprocess.DEVNULL, timeout=60, check=False
    )
    assert event_of(tmp_path).error == 'was not applied: no one confirmed "pull drive 3"'


def test_nobody_is_waited_for_longer_than_is_stated(tmp_path):
    more = f'timeout_s = 0.5\nconfirm_file = "{tmp_path / "done"}"\n'
    done = subprocess.run(
        command(tmp_path, more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode in (1, 3), done.stderr
    assert event_of(tmp_path).error == 'was not applied: no one confirmed "pull drive 3"'


def test_what_nobody_put_back_is_named_by_clean_until_somebody_says_so(tmp_path):
    file, run = tmp_path / "done", tmp_path / "run"
    more = f'manual_undo = "put drive 3 back"\nconfirm_file = "{file}"\n'
    process = subprocess.Popen(
        command(tmp_path, more, seconds=60),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "; then touch " in line:
            file.touch()
        if "event drive 3 applied" in line:
            break
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    text = process.communicate(timeout=60)[0]
    assert time.monotonic() - began < 30
    assert "no one confirmed" in str(event_of(tmp_path).error), text
    clean = [sys.executable, "-m", "plimsoll.cli", "clean", str(run)]
    first = subprocess.run(clean, capture_output=True, text=True, check=False)
    assert first.returncode == 1 and "put drive 3 back" in first.stderr
    assert [item.name for item in plimsoll.pending_undos(run)] == ["drive 3"]
    second = subprocess.run([*clean, "--yes"], capture_output=True, text=True, check=False)
    assert second.returncode == 0 and plimsoll.pending_undos(run) == ()


def test_a_run_in_the_background_has_nobody_to_ask(tmp_path):
    ours, theirs = pty.openpty()
    refused = subprocess.run(
        command(tmp_path, DONE, "--detach"),
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=60,
    )
    os.close(ours)
    os.close(theirs)
    assert refused.returncode == 2 and "--detach" in refused.stderr
    assert not (tmp_path / "run").exists()


def test_every_mistake_of_manual_steps_is_reported_at_once(tmp_path):
    more = """undo = ["true"]
undo_after_s = 2
command = ["true"]
[[event]]
name = "two"
after_s = 1
command = ["true"]
manual_undo = "x"
"""
    with pytest.raises(InputError) as found:
        plimsoll.parse_plan(PLAN.format(path=tmp_path, more=more, seconds=9))
    text = str(found.value)
    for part in (
        "`event[1].manual` cannot be combined with `command`",
        "`event[1].undo` cannot be combined with `manual`",
        "`event[2].manual_undo` means nothing without `manual`",
    ):
        assert part in text, (part, text)


def test_Enter_answers_the_question_that_was_asked_first(tmp_path):
    """The plan states first what is asked for last: who presses Enter has done the other one."""
    step = {"phase": "measure", "timeout_s": 30}
    late = {**step, "name": "late", "after_s": 1, "manual": "pull drive 4"}
    early = {**step, "name": "early", "after_s": 0, "manual": "pull drive 3"}
    text = PLAN.format(path=tmp_path / "data", seconds=9, more="").split("[[event]]")[0]
    for event in (late, early):
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in event.items())
        text += f"[[event]]\n{lines}\n"
    begins = Event(
        time_ns=0,
        utc_ns=time.time_ns(),
        level="info",
        kind="phase_started",
        phase="measure",
        text="",
    )
    with Stage(plimsoll.parse_plan(text).events, tmp_path) as stage:
        stage.hear(begins)
        asked = []
        while len(asked) < 2:
            asked += [event.text for event in stage.news() if event.kind == "event_by_hand"]
        assert "pull drive 3" in asked[0]
        stage.confirm()
        time.sleep(0.5)
        assert [event.text for event in stage.news()] == ["event early applied"]


FLAG = pending_of("flag", ["true"], 9, (), None)
DRIVE = pending_of("drive 3", (), 9, (), "put drive 3 back")
BY_HAND = "drive 3 is put back by hand and not waited for any longer"


@pytest.mark.parametrize(
    ("pending", "said", "options"),
    [
        ([FLAG], "undoing flag", "--allow-commands"),
        ([DRIVE], BY_HAND, "--yes"),
        ([FLAG, DRIVE], f"undoing flag; {BY_HAND}", "--allow-commands --yes"),
    ],
)
def test_a_second_signal_names_the_clean_that_fits(
    tmp_path: Path, pending: list[PendingUndo], said: str, options: str
):
    """With consent to commands alone, `clean` would ask for a step of a person once more."""
    stage = Stage([], tmp_path)
    for item in pending:
        stage.note_undo(item)
    assert stage.hurry("Ctrl-C")
    (event,) = stage.news()
    assert event.text.startswith(f"{said}; a third Ctrl-C gives up")
    assert event.text.endswith(f"`plimsoll clean {tmp_path} {options}` finishes it")
