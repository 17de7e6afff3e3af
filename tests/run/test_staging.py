"""Events of a plan: applied, proved and undone on every way out, and what becomes of those that go
wrong.
"""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import plimsoll
from plimsoll.documents.event import Event
from plimsoll.documents.staged_events import EventLimits, EventPlan, StagedEventsFile
from plimsoll.documents.verdict import read_verdict
from plimsoll.files import folder
from plimsoll.inputs.mistakes import InputError
from plimsoll.run import event_command
from plimsoll.run.event_command import OUTPUT_BYTES_MAX, carry_out
from plimsoll.run.pending_undo import (
    PendingUndoFile,
    PendingUndos,
    pending_of,
    undo_pending,
)
from plimsoll.run.staging import Stage


def same_twice(home: Path) -> list[object]:
    """What two runs of one modelled plan leave to the byte.

    Events of a plan are written when they are heard of, so that their place in the log is open.
    """
    events = sorted((home / folder.EVENTS).read_bytes().splitlines())
    return [
        (home / folder.STAGED_EVENTS).read_bytes(),
        (home / folder.OUTCOME).read_bytes(),
        events,
    ]


def plan_text(path: Path, *events: str, seconds: float = 3) -> str:
    head = f"""kind = "plan"
schema_version = 1
sample_interval_ms = 100
target = [{{ name = "disk", path = "{path}" }}]
instance = [{{ name = "one", backend = "files", files = 1, file_mib = 8 }}]
workload = [{{ name = "load", pattern = "file-server", outstanding = 1 }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = {seconds} }}]
"""
    return head + "".join(f"[[event]]\n{event}\n" for event in events)


def degrading(flag: Path, undo: str = '["rm", "{flag}"]', more: str = "") -> str:
    return (
        f'name = "flag"\nafter_s = 0.5\ncommand = ["touch", "{flag}"]\nprove = ["test", "-e", '
        f'"{flag}"]\n'
        f"undo = {undo.format(flag=flag)}\n{more}"
    )


def started(tmp_path: Path, *events: str, seconds: float = 3) -> subprocess.Popen[str]:
    plan = tmp_path / "plan.toml"
    plan.write_text(plan_text(tmp_path / "data", *events, seconds=seconds), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "plimsoll.cli",
        "run",
        str(plan),
        "--create",
        "--allow-system-disk",
        "--yes",
    ]
    command += ["--allow-commands", "--out", str(tmp_path / "run")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for(path: Path, seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path} never came"
        time.sleep(0.05)


def event_of(tmp_path: Path):
    (found,) = StagedEventsFile.read(tmp_path / "run" / folder.STAGED_EVENTS).events
    return found


def test_an_event_is_applied_proved_and_undone_at_its_times(tmp_path):
    flag = tmp_path / "flag"
    process = started(
        tmp_path, degrading(flag, more="undo_after_s = 1.5\njudge = { pause_s_max = 3 }")
    )
    text, _ = process.communicate(timeout=120)
    found = event_of(tmp_path)
    events = [
        json.loads(line) for line in (tmp_path / "run" / folder.EVENTS).read_text().splitlines()
    ]
    begin_s = (
        next(
            e["time_ns"] for e in events if e["kind"] == "phase_started" and e["phase"] == "measure"
        )
        / 1e9
    )
    assert found.proved, text
    assert found.error is None
    assert found.begun_s - begin_s == pytest.approx(0.5, abs=0.4)
    assert found.undo_begun_s - begin_s == pytest.approx(1.5, abs=0.4)
    assert found.judge.pause_s_max == 3
    assert not flag.exists()
    assert not (tmp_path / "run" / folder.UNDO_PENDING).exists()
    assert {"event_applied", "event_undone"} <= {event["kind"] for event in events}


@pytest.mark.parametrize("step_s", [3600, 0, -3600])
def test_a_step_of_the_wall_clock_moves_no_event(tmp_path, step_s):
    """A phase begins 30 s into the run, and UTC is put right before anybody hears of it."""
    begins = Event(
        time_ns=30 * 10**9,
        utc_ns=time.time_ns() - step_s * 10**9,
        level="info",
        kind="phase_started",
        phase="measure",
        text="",
    )
    with Stage([], tmp_path) as stage:
        stage.hear(begins)
        assert stage.now_s() == pytest.approx(30.5, abs=0.7)


@pytest.mark.parametrize(
    ("kind", "ended", "undo_in"),
    [
        ("phase_ended", "measure", None),
        ("phase_ended", "later", "later"),
        ("run_ended_early", None, "later"),
    ],
)
def test_an_event_is_undone_before_its_io_is_waited_for(tmp_path, kind, ended, undo_in):
    """A throttle was held while the stopped run waited for I/O behind it, which never came."""
    flag = tmp_path / "flag"
    staged = EventPlan(
        name="flag",
        phase="measure",
        kind="command",
        after_s=0,
        undo_after_s=None,
        command=["touch", str(flag)],
        undo=["rm", str(flag)],
        prove=[],
        do=None,
        timeout_s=10,
        judge=EventLimits(),
        undo_in=undo_in,
    )

    def heard(at_s: float, kind: str, phase: str | None) -> Event:
        utc_ns = time.time_ns()
        at_ns = int(at_s * 1e9)
        return Event(time_ns=at_ns, utc_ns=utc_ns, level="info", kind=kind, phase=phase, text=kind)

    with Stage([staged], tmp_path) as stage:
        stage.hear(heard(0, "phase_started", "measure"))
        wait_for(flag)
        if undo_in is not None:
            stage.hear(heard(1, "phase_ended", "measure"))
            assert stage.is_undoing()
        stage.hear(heard(2, kind, ended))
        until = time.monotonic() + 20
        while flag.exists():
            assert time.monotonic() < until, "it is held until the run is over"
            time.sleep(0.05)


def test_ctrl_c_while_degraded_undoes(tmp_path):
    flag = tmp_path / "flag"
    process = started(tmp_path, degrading(flag, more="judge = { errors_max = 0 }"), seconds=60)
    wait_for(flag)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert not flag.exists()
    assert event_of(tmp_path).undone_s is not None
    checks = read_verdict(tmp_path / "run" / folder.VERDICT).checks
    (errors,) = [check for check in checks if check.name == "event_errors"]
    assert errors.status == "not_evaluated"
    assert "when a person ended the run" in errors.reason
    assert errors.reason.endswith("let the run come to its end")


SLOWLY = '["sh", "-c", "touch {{flag}}.undoing; sleep {seconds}; rm {{flag}}"]'


def test_a_proof_that_hangs_keeps_nothing_degraded_beyond_its_time(tmp_path):
    """It may take a minute, but what the plan undoes after 1 s is undone then, and not proved."""
    flag = tmp_path / "degraded"
    event = f'name = "flag"\nafter_s = 0.5\nundo_after_s = 1\ncommand = ["touch", "{flag}"]\n'
    process = started(tmp_path, event + f'undo = ["rm", "{flag}"]\nprove = ["sleep", "60"]')
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 3, text
    assert not flag.exists()
    found = event_of(tmp_path)
    assert found.undone_s - found.begun_s < 1.5
    assert found.proved is False
    assert "`sleep 60` had not ended" in found.error


def test_ctrl_c_ends_a_command_that_hangs_and_undoes(tmp_path):
    """A run that is to stop waits for no event that is still being applied."""
    flag, begun = tmp_path / "degraded", tmp_path / "begun"
    event = f'name = "flag"\nafter_s = 0.5\nundo = ["rm", "-f", "{flag}"]\n'
    slow = f'command = ["sh", "-c", "touch {flag} {begun}; sleep 60"]'
    process = started(tmp_path, event + slow, seconds=60)
    wait_for(begun)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=30)
    assert not flag.exists(), text
    assert "was not applied" in event_of(tmp_path).error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT])
def test_a_second_signal_is_answered_and_undoing_goes_on(tmp_path, number):
    flag = tmp_path / "flag"
    process = started(tmp_path, degrading(flag, SLOWLY.format(seconds=2)), seconds=60)
    wait_for(flag)
    process.send_signal(number)
    wait_for(Path(f"{flag}.undoing"))
    process.send_signal(number)
    text, _ = process.communicate(timeout=60)
    name = "Ctrl-C" if number == signal.SIGINT else number.name
    clean = f"`plimsoll clean {tmp_path / 'run'} --allow-commands`"
    said = f"undoing flag; a third {name} gives up and leaves undo-pending.json; {clean} finishes"
    assert said in " ".join(text.split()), text
    assert not flag.exists()
    assert event_of(tmp_path).undone_s is not None
    assert plimsoll.pending_undos(tmp_path / "run") == ()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_third_signal_gives_up_and_leaves_what_is_to_be_undone(tmp_path, number):
    flag = tmp_path / "flag"
    process = started(tmp_path, degrading(flag, SLOWLY.format(seconds=20)), seconds=60)
    wait_for(flag)
    process.send_signal(number)
    wait_for(Path(f"{flag}.undoing"))
    process.send_signal(number)
    time.sleep(1)
    assert process.poll() is None
    began = time.monotonic()
    process.send_signal(number)
    process.wait(timeout=60)
    assert time.monotonic() - began < 10
    assert [item.name for item in plimsoll.pending_undos(tmp_path / "run")] == ["flag"]


def test_what_a_killed_run_left_degraded_is_undone_by_clean(tmp_path):
    flag, run = tmp_path / "flag", tmp_path / "run"
    process = started(tmp_path, degrading(flag), seconds=60)
    wait_for(flag)
    process.kill()
    process.communicate(timeout=60)
    clean = [sys.executable, "-m", "plimsoll.cli", "clean", str(run)]
    again = [sys.executable, "-m", "plimsoll.cli", "resume", str(run)]
    told = subprocess.run(again, capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 2 and "undo what is left of them with" in told.stderr
    refused = subprocess.run(clean, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2
    assert "--allow-commands" in refused.stderr
    assert flag.exists()
    done = subprocess.run(
        [*clean, "--allow-commands"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not flag.exists()
    assert plimsoll.pending_undos(run) == ()
    for verb in ("resume", "report"):
        words = [sys.executable, "-m", "plimsoll.cli", verb, str(run)]
        resumed = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert resumed.returncode == 2 and "begin a new run" in resumed.stderr, resumed.stderr
        assert "nothing of them is left to undo" in resumed.stderr
        assert "plimsoll clean" not in resumed.stderr
    second = subprocess.run(clean, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 0, second.stderr
    assert f"{run}: nothing is left to undo" in second.stdout


def test_an_undo_is_told_a_run_folder_that_it_finds_from_where_it_runs(tmp_path, monkeypatch):
    """`clean` with a relative folder."""
    (tmp_path / "run").mkdir()
    script = 'cd "$PLIMSOLL_RUN_FOLDER" && pwd > here'
    PendingUndos(tmp_path / "run").add(pending_of("one", ["sh", "-c", script], 9, (), None))
    monkeypatch.chdir(tmp_path)
    assert undo_pending("run") == []
    assert (tmp_path / "run" / "here").read_text() == f"{tmp_path / 'run'}\n"


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_loses_no_undo_and_notes_none_of_what_never_began(tmp_path, monkeypatch):
    undos = PendingUndos(tmp_path)
    done = tmp_path / "done"
    for name in ("X", "Y", "Z"):
        undos.add(pending_of(name, ["sh", "-c", f"echo {name} >> {done}"], 9, (), None))
    with monkeypatch.context() as patched:
        patched.setattr(PendingUndoFile, "write_durably", full_disk)
        with pytest.raises(OSError, match="No space"):
            undos.add(pending_of("never", ["touch", str(tmp_path / "never")], 9, (), None))
        names = [item.name for item in plimsoll.pending_undos(tmp_path)]
        assert names == ["X", "Y", "Z"]
        # `clean` writes the file again when one is undone, which fails here and holds up none.
        # Once all are undone the file is deleted, which takes no space: nothing is left to say.
        assert undo_pending(tmp_path) == []
    assert done.read_text().split() == ["Z", "Y", "X"] and not (tmp_path / "never").exists()
    assert plimsoll.pending_undos(tmp_path) == ()


def test_an_undo_is_on_stable_storage_before_its_event_begins(tmp_path, monkeypatch):
    """A machine that loses its power keeps its file, and the name of the file."""
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    PendingUndos(tmp_path).add(pending_of("one", ["true"], 9, (), None))
    assert synced[-1:] == [str(tmp_path)], synced
    assert any(Path(path).parent == tmp_path for path in synced), synced


def test_two_at_once_do_not_undo_the_same(tmp_path):
    PendingUndos(tmp_path).add(pending_of("one", ["true"], 9, (), None))
    with folder.kept([tmp_path]), pytest.raises(folder.FolderError, match="goes on"):
        undo_pending(tmp_path)
    assert undo_pending(tmp_path) == []


def test_an_event_whose_undo_cannot_be_forgotten_says_so(tmp_path, monkeypatch):
    flag = tmp_path / "flag"
    plan = plimsoll.parse_plan(plan_text(tmp_path / "data", degrading(flag), seconds=1.5))
    found = plimsoll.check(plan, create=True, allow_system_disk=True, allow_commands=True)
    monkeypatch.setattr(PendingUndos, "remove", full_disk)
    plimsoll.qualify(plan, tmp_path / "run", found=found)
    event = event_of(tmp_path)
    assert event.undone_s is not None and "may still name it" in str(event.error)


def test_who_says_that_a_thing_is_put_back_has_not_said_that_databases_may_go(tmp_path):
    program = [sys.executable, "-m", "plimsoll.cli"]
    (tmp_path / "plan.toml").write_text(plan_text(tmp_path / "run", seconds=1))
    agreed = ["--yes", "--create", "--allow-system-disk"]
    subprocess.run([*program, "prepare", str(tmp_path / "plan.toml"), *agreed], check=True)
    PendingUndos(tmp_path / "run").add(pending_of("drive 3", (), 9, (), "put drive 3 back"))
    clean = [*program, "clean", str(tmp_path / "run"), "--yes"]
    done = subprocess.run(clean, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "no databases were deleted" in done.stderr, done.stderr
    assert plimsoll.find_databases(tmp_path / "run")
    done = subprocess.run(clean, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "1 instance deleted" in done.stdout, done.stderr


def test_every_run_of_a_series_stages_its_events(tmp_path):
    flag = tmp_path / "flag"
    plan = plimsoll.parse_plan(plan_text(tmp_path / "data", degrading(flag), seconds=1.5))
    found = plimsoll.check(plan, create=True, allow_system_disk=True, allow_commands=True)
    series = plimsoll.repeat(plan, 2, tmp_path / "series", found=found)
    assert len(series.results) == 2
    for result in series.results:
        (event,) = StagedEventsFile.read(result.folder / folder.STAGED_EVENTS).events
        assert event.proved and event.undone_s is not None
    assert not flag.exists()


def test_an_undo_that_fails_is_an_error_and_stays_to_be_done(tmp_path):
    flag = tmp_path / "flag"
    process = started(tmp_path, degrading(flag, '["false", "{flag}"]', "undo_after_s = 1"))
    process.communicate(timeout=120)
    found = event_of(tmp_path)
    assert found.undone_s is None
    assert f"`false {flag}` ended with exit code 1" in found.error
    assert [item.name for item in plimsoll.pending_undos(tmp_path / "run")] == ["flag"]
    clean = [
        sys.executable,
        "-m",
        "plimsoll.cli",
        "clean",
        str(tmp_path / "run"),
        "--allow-commands",
    ]
    failed = subprocess.run(clean, capture_output=True, text=True, timeout=60, check=False)
    assert failed.returncode == 1
    assert "`false" in failed.stderr


def test_programs_that_are_not_there_are_refused_before_the_run(tmp_path):
    """What undoes an event above all: it would be missed when something is degraded."""
    no_program = tmp_path / "no-program"
    no_program.write_text("#!/bin/sh\n")
    relative = 'name = "two"\nafter_s = 1\ncommand = ["./here"]'
    plan = plimsoll.parse_plan(
        plan_text(
            tmp_path / "data",
            'name = "flag"\nafter_s = 0.5\ncommand = ["no-such-program", "x"]\n'
            f'undo = ["{no_program}"]\nprove = ["true"]',
            relative,
            'name = "dies"\nafter_s = 1\naction = "server killed"\npid_file = "/no/pid"\n'
            'start = ["no-server"]',
        )
    )
    with pytest.raises(plimsoll.PreflightError) as refused:
        plimsoll.check(plan, create=True, allow_system_disk=True, allow_commands=True)
    told = "\n".join(refused.value.problems)
    for part in (
        f'event "flag" is undone with `{no_program}`, but {no_program} is not executable',
        'event "flag" runs `no-such-program x`, but no-such-program is not on the PATH',
        'event "two" runs `./here`, but ./here is looked for in the run folder',
        'event "dies" is undone with `no-server`, but no-server is not on the PATH',
    ):
        assert part in told, (part, told)
    assert "`true`" not in told
    assert told.index("is undone with") < told.index("runs `no-such-program")


def test_without_consent_nothing_is_started(tmp_path):
    flag = tmp_path / "flag"
    (tmp_path / "data").mkdir()
    plan = plimsoll.parse_plan(plan_text(tmp_path / "data", degrading(flag)))
    with pytest.raises(plimsoll.PreflightError, match="--allow-commands") as refused:
        plimsoll.check(plan, allow_system_disk=True)
    assert f"runs `touch {flag}`" in str(refused.value.problems)
    found = plimsoll.check(plan, allow_system_disk=True, allow_commands=True)
    assert f"undoes with `rm {flag}`" in "\n".join(plimsoll.forecast(plan, found).lines())


def test_a_command_that_hangs_or_forks_leaves_no_process(tmp_path):
    number = tmp_path / "number"
    script = f"sleep 60 & echo $! > {number}; echo begun; "
    hung = carry_out(["sh", "-c", script + "sleep 60"], 0.5, {}, tmp_path)
    assert "did not end within 0.5 s" in hung.error
    assert hung.output == "begun\n"
    forked = carry_out(["sh", "-c", script], 30, {}, tmp_path)
    assert forked.error is None
    time.sleep(0.2)
    with pytest.raises(ProcessLookupError):
        _must_live(int(number.read_text()))


def test_a_command_that_may_not_be_killed_is_given_up(tmp_path, monkeypatch):
    """The kernel refuses to kill what `sudo` started as another user."""

    def refused(group: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(event_command.os, "killpg", refused)
    monkeypatch.setattr(event_command, "KILLED_WITHIN_S", 0.3, raising=False)
    began = time.monotonic()
    lives = carry_out(["sleep", "4"], 0.2, {}, tmp_path)
    assert time.monotonic() - began < 3
    assert "did not end within 0.2 s and could not be killed" in lives.error
    # It ran, so it has to be undone.
    assert lives.exit_code is not None


def _must_live(process_id: int) -> None:
    state = Path(f"/proc/{process_id}/stat")
    if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
        raise ProcessLookupError
    os.kill(process_id, 0)


def test_a_command_sees_little_and_its_output_is_bounded(tmp_path, monkeypatch):
    for name in ("SECRET", "PLIMSOLL_SECRET"):
        monkeypatch.setenv(name, "1")
    seen = carry_out(["env"], 10, {"PLIMSOLL_EVENT": "one"}, tmp_path)
    assert {line.split("=")[0] for line in seen.output.splitlines()} == {"PATH", "PLIMSOLL_EVENT"}
    much = carry_out(["head", "-c", "300000", "/dev/zero"], 10, {}, tmp_path)
    assert much.error is None
    assert len(much.output) == OUTPUT_BYTES_MAX
    absent = carry_out(["no-such-program", "a b"], 10, {}, tmp_path)
    assert absent.exit_code is None
    assert "`no-such-program 'a b'` cannot be started" in absent.error


def test_every_mistake_of_events_is_reported_at_once(tmp_path):
    wrong = (
        'name = "late"\nafter_s = 5\nundo_after_s = 4\ncommand = ["true"]',
        'name = "drive"\nafter_s = 1\ndo = "drive fails"',
        'name = "where"\nphase = "lunch"\nafter_s = 1\ncommand = ["true"]',
    )
    with pytest.raises(InputError) as found:
        plimsoll.parse_plan(plan_text(tmp_path, *wrong))
    text = str(found.value)
    for part in (
        "is not after the event begins",
        "its phase lasts 3 s",
        "breaks nothing but",
        '"lunch"',
        "`undo` is missing",
    ):
        assert part in text.replace("event[1].undo`", "`undo`").replace("``", "`"), (part, text)


MODELLED = """kind = "plan"
schema_version = 1
target = [{ name = "array", modelled = "dell-md3000i" }]
instance = [{ name = "one", database_size_mib = 64 }]
phase = [{ kind = "prepare" }, { kind = "measure", duration_s = 12 }, { kind = "stop" }]
[[event]]
name = "drive 3"
after_s = 4
do = "drive fails"
number = 3
"""


def test_a_modelled_drive_fails_in_virtual_time_the_same_twice(tmp_path):
    runs = []
    for number in (1, 2):
        plan = plimsoll.parse_plan(MODELLED)
        result = plimsoll.qualify(plan, tmp_path / f"run-{number}")
        assert result.ending == "complete"
        runs.append(same_twice(result.folder))
        (event,) = StagedEventsFile.read(result.folder / folder.STAGED_EVENTS).events
    assert runs[0][0] == runs[1][0]
    assert event.kind == "modelled"
    assert event.applied_s == event.begun_s >= 4
    faults = plan.run.modelled.faults_while_measuring
    assert [fault.at_ns for fault in faults] == [4_000_000_000]
    with pytest.raises(InputError, match="number 300"):
        plimsoll.parse_plan(MODELLED.replace("number = 3", "number = 300"))


TOGETHER = """kind = "plan"
schema_version = 1
target = [{ name = "array", modelled = "dell-md3000i" }]
instance = [
 { name = "db", database_size_mib = 64 },
 { name = "shop", backend = "store", store_size = "10MB" },
 { name = "fs1", backend = "files", files = 1, file_mib = 64 },
]
workload = [
 { name = "records", instances = ["db"], load = { sessions = 2 } },
 { name = "orders", instances = ["shop"], load = { sessions = 2 } },
 { name = "files", instances = ["fs1"], pattern = "file-server", outstanding = 1 },
]
phase = [{ kind = "prepare" }, { kind = "measure", duration_s = 8 }, { kind = "audit" }, { kind = "stop" }]
event = [{ name = "path", do = "path fails", number = 2, after_s = 2, undo_after_s = 6 }]
"""  # noqa: E501


def test_records_a_store_and_files_run_together_on_one_modelled_array_the_same_twice(tmp_path):
    runs = []
    for number in (1, 2):
        result = plimsoll.qualify(plimsoll.parse_plan(TOGETHER), tmp_path / f"run-{number}")
        assert result.ending == "complete"
        assert result.report is not None
        runs.append(same_twice(result.folder))
    assert runs[0] == runs[1]
    (event,) = StagedEventsFile.read(result.folder / folder.STAGED_EVENTS).events
    assert event.undone_s - event.applied_s == pytest.approx(4)


def test_a_command_that_outlives_a_killed_run_is_waited_for_before_clean_undoes(tmp_path):
    """What it still does would come after the undo; a server that it leaves is not waited for."""
    flag, begun, server = (tmp_path / name for name in ("flag", "begun", "server"))
    script = (
        f"setsid sleep 300 >{begun}.out 2>&1 & echo $! > {server}; touch {begun}; sleep 4; "
        f"touch {flag}"
    )
    event = f"name = 'slow'\nafter_s = 0.2\ncommand = ['sh', '-c', '{script}']\n"
    process = started(tmp_path, f"{event}undo = ['rm', '{flag}']\n", seconds=30)
    try:
        wait_for(begun)
        wait_for(tmp_path / "run" / folder.UNDO_PENDING)
        time.sleep(0.3)
        process.kill()
        process.communicate(timeout=30)
        (refused,) = undo_pending(tmp_path / "run")
        (item,) = plimsoll.pending_undos(tmp_path / "run")
        assert f"process {item.commands[0].process} of a command" in refused and "wait" in refused
        wait_for(flag)
        time.sleep(0.2)
        assert undo_pending(tmp_path / "run") == []
        assert not flag.exists()
    finally:
        process.kill()
        os.kill(int(server.read_text()), signal.SIGKILL)


def test_an_undo_is_kept_while_a_command_that_could_not_be_killed_goes_on(tmp_path, monkeypatch):
    """What it does after the undo is for `clean` to undo: no one else would."""
    flag = tmp_path / "flag"

    def refused(group: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(event_command.os, "killpg", refused)
    monkeypatch.setattr(event_command, "KILLED_WITHIN_S", 0.2)
    event = (
        f"name = 'slow'\nafter_s = 0.2\ntimeout_s = 0.5\nundo = ['rm', '-f', '{flag}']\n"
        f"command = ['sh', '-c', 'sleep 6; touch {flag}']\n"
    )
    plan = plimsoll.parse_plan(plan_text(tmp_path / "data", event, seconds=1.5))
    found = plimsoll.check(plan, create=True, allow_system_disk=True, allow_commands=True)
    plimsoll.qualify(plan, tmp_path / "run", found=found)
    assert "still goes on" in str(event_of(tmp_path).error)
    assert event_of(tmp_path).undone_s is None
    (told,) = undo_pending(tmp_path / "run")
    assert "still goes on" in told
    wait_for(flag)
    time.sleep(0.2)
    assert undo_pending(tmp_path / "run") == []
    assert not flag.exists()
