"""A run in the background: started, asked after, followed, stopped.

And what bounds a run on shared storage, end to end.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from plimsoll.files import folder
from plimsoll.live.listener import Listener
from plimsoll.pipeline.background import state_of
from plimsoll.pipeline.catalogue import list_runs
from plimsoll.pipeline.resume import left_to_do
from plimsoll.run.resume import ResumeError
from tests.support.places import PLIMSOLL, plimsoll

GOLDEN = Path(__file__).parents[1] / "golden" / "run"
SMALL = ["--databases", "1", "--size-mib", "64", "--cache-mib", "4", "--yes"]


def performance(home: Path, *more: str, out: str = "run") -> subprocess.CompletedProcess[str]:
    return plimsoll(
        "test", "performance", home / "disk", *SMALL, "--out", home / out, *more, cwd=home
    )


def test_a_run_in_the_background_from_start_to_end(tmp_path: Path) -> None:
    """Closing the laptop must not end a test of two hours, and the result must be found again."""
    begun = time.monotonic()
    started = performance(tmp_path, "--minutes", "0.15", "--detach")
    assert started.returncode == 0, started.stderr
    assert time.monotonic() - begun < 8, "the prompt comes back at once"
    assert f"plimsoll watch {tmp_path / 'run'}" in started.stdout
    deadline = time.monotonic() + 60
    seen = set()
    while time.monotonic() < deadline and "ended" not in seen:
        state = plimsoll("status", tmp_path / "run", "--json", cwd=tmp_path)
        assert state.returncode == 0, state.stderr
        seen.add(json.loads(state.stdout)["state"])
        time.sleep(0.2)
    assert {"running", "ended"} <= seen
    watched = plimsoll("watch", tmp_path / "run", cwd=tmp_path)
    verdict = json.loads((tmp_path / "run" / folder.VERDICT).read_text())
    assert verdict["headline"] in watched.stdout
    assert f"report:     {tmp_path / 'run' / folder.REPORT}" in watched.stdout, (
        "it is written before the watching ends"
    )
    assert "measure started" in watched.stderr
    assert watched.returncode == {"pass": 0, "fail": 1, "inconclusive": 3}[verdict["result"]]
    assert not (tmp_path / "run" / folder.PROGRESS).exists()


def test_a_run_in_the_background_is_stopped_cleanly(tmp_path: Path) -> None:
    """`kill PID` is the only handle left; it must close the databases."""
    started = performance(tmp_path, "--minutes", "5", "--detach")
    process = int(re.findall(r"process (\d+)", started.stdout)[0])
    deadline = time.monotonic() + 60
    log = tmp_path / "run" / folder.EVENTS
    while time.monotonic() < deadline and not (
        log.exists() and "measure started" in log.read_text()
    ):
        time.sleep(0.1)
    os.kill(process, signal.SIGTERM)
    watched = plimsoll("watch", tmp_path / "run", cwd=tmp_path, timeout=60)
    assert watched.returncode == 4
    marker = json.loads((tmp_path / "disk/instance1/plimsoll-instance.json").read_text())
    assert marker["state"] == "closed"


def test_a_killed_run_is_told_from_a_running_one(tmp_path: Path) -> None:
    """Somebody who waits for a result that never comes wants to know."""
    started = performance(tmp_path, "--minutes", "5", "--detach")
    process = int(re.findall(r"process (\d+)", started.stdout)[0])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not folder.read_events(tmp_path / "run"):
        time.sleep(0.1)
    os.kill(process, signal.SIGKILL)
    time.sleep(0.5)
    state = plimsoll("status", tmp_path / "run", cwd=tmp_path)
    assert state.returncode == 3
    words = f"{tmp_path / 'run'} was killed; `plimsoll resume {tmp_path / 'run'}` goes on"
    assert words in state.stdout
    assert words in plimsoll("watch", tmp_path / "run", cwd=tmp_path).stderr
    assert words in plimsoll("report", tmp_path / "run", cwd=tmp_path).stderr
    assert words in plimsoll("runs", tmp_path, cwd=tmp_path).stdout
    assert words in plimsoll("compare", tmp_path / "run", tmp_path / "run", cwd=tmp_path).stderr


def test_a_run_whose_process_is_gone_is_never_said_to_start(tmp_path: Path) -> None:
    """After a second Ctrl-C `status` said "starting" for 30 s, and `resume` that the run goes on.

    Nothing but a process that lives tells that a run goes on, however new its files are.
    """
    one, series = tmp_path / "one", tmp_path / "series"
    for home in (one, series / "run-1"):
        home.mkdir(parents=True)
        for file in (folder.PLAN, folder.ENVIRONMENT, folder.EVENTS):
            shutil.copy(GOLDEN / file, home)
    folder.write_json(series / folder.REPEATS, {"finished": False, "runs": [{"folder": "run-1"}]})
    words = f"{one} was killed; `plimsoll resume {one}` goes on"
    assert [state_of(home)["state"] for home in (one, series)] == ["killed", "killed"]
    assert words in plimsoll("status", one, cwd=tmp_path).stdout
    assert words in plimsoll("runs", tmp_path, cwd=tmp_path).stdout
    assert left_to_do(one, again=False, listener=Listener())[1].completed
    with folder.kept([one, series]):
        assert [state_of(home)["state"] for home in (one, series)] == ["starting", "starting"]
        with pytest.raises(ResumeError, match="goes on; see"):
            left_to_do(one, again=False, listener=Listener())
        # What a run before left there says nothing of the one that is about to go on.
        folder.write_json(one / folder.PROGRESS, {"process_id": 2**22 + 1})
        assert state_of(one)["state"] == "starting"


def test_a_run_that_was_just_left_to_the_background_is_waited_for(tmp_path: Path) -> None:
    """It has a folder before it has claimed it; half a minute later nobody believes that."""
    log = tmp_path / folder.TERMINAL
    log.touch()
    assert state_of(tmp_path)["state"] == "starting"
    os.utime(log, (0, 0))
    assert state_of(tmp_path)["state"] == "killed"


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("complete", "prepared databases, complete; nothing was measured"),
        ("interrupted", "was to prepare databases and ended interrupted: stopped; see to that"),
    ],
)
def test_databases_that_were_prepared_are_no_killed_run(
    tmp_path: Path, ending: str, words: str
) -> None:
    """`runs` called every `prepare` killed, and `report` found it inconclusive.

    It has nothing to judge, and nothing to resume.
    """
    run = tmp_path / "made"
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'kind = "plan"\nschema_version = 1\nname = "p"\n[[target]]\nname = "t"\n'
        f'path = "{tmp_path / "disk"}"\n[[instance]]\nname = "one"\ndatabase_size_mib = 64\n'
        f'[[phase]]\nkind = "prepare"\n[[phase]]\nkind = "stop"\n'
    )
    made = plimsoll("prepare", plan, "--yes", "--out", run, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    outcome = folder.read_json(run / folder.OUTCOME)
    if ending != outcome["ending"]:
        error = {"family": "stopped", "text": "stopped"}
        folder.write_json(run / folder.OUTCOME, outcome | {"ending": ending, "error": error})
    state = plimsoll("status", run, cwd=tmp_path)
    assert (state.returncode, state.stdout.startswith(f"{run} {words}")) == (0, True), state
    [entry] = list_runs(tmp_path)
    assert entry.state == "prepared"
    assert plimsoll("watch", run, cwd=tmp_path).stdout == state.stdout
    for verb, refused in (
        ("report", "nothing to report"),
        ("resume", "nothing to resume"),
        ("compare", words),
    ):
        result = plimsoll(verb, run, *([run] if verb == "compare" else []), cwd=tmp_path)
        assert (result.returncode, refused in result.stderr) == (2, True), (verb, result.stderr)
    assert not (run / folder.VERDICT).exists()


def test_asking_after_nothing(tmp_path: Path) -> None:
    """A mistyped folder is a usage error, not a run that was killed."""
    for verb in ("status", "watch"):
        result = plimsoll(verb, tmp_path, cwd=tmp_path)
        assert result.returncode == 2
        assert "holds no run" in result.stderr


def test_a_condition_stops_the_run(tmp_path: Path) -> None:
    """On a shared array the neighbours come first.

    The run ends, says why, and its databases are closed.
    """
    begun = time.monotonic()
    result = performance(tmp_path, "--minutes", "5", "--stop-if", "log_write_per_s>0 for 2 s")
    assert result.returncode == 4, result.stderr
    assert time.monotonic() - begun < 60
    assert "stopped, because log_write_per_s>0 for 2 s: it was" in result.stderr
    kinds = [event["kind"] for event in folder.read_events(tmp_path / "run")]
    assert "stopped_by_condition" in kinds
    assert "closed" in kinds


def test_a_ceiling_holds_and_is_said(tmp_path: Path) -> None:
    """A throttled run must not be read as the storage's best."""
    result = performance(
        tmp_path, "--minutes", "0.05", "--max-iops", "150", "--backend", "raw_files"
    )
    assert result.returncode in (0, 1, 3), result.stderr
    assert "the run was held below 150 reads and writes per second" in result.stdout
    summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    assert 20 < summary["total"]["database_iops"] <= 165


def test_figures_come_as_plain_lines_without_a_terminal(tmp_path: Path) -> None:
    """In a log file no line may be drawn over another, and there is no colour."""
    result = performance(tmp_path, "--minutes", "0.2")
    assert "\x1b" not in result.stderr + result.stdout
    assert re.search(r"measure \d+%, \d+ s left, database reads \d+/s [\d.]+ ms", result.stderr), (
        result.stderr
    )
    quiet = performance(tmp_path, "--minutes", "0.02", "--quiet", "--json", out="quiet")
    assert json.loads(quiet.stdout)["run_folder"] == str(tmp_path / "quiet")
    assert not [line for line in quiet.stderr.splitlines() if "started" in line]


@pytest.mark.slow
def test_a_terminal_shows_figures_in_place_and_heeds_no_color(tmp_path: Path) -> None:
    """The same on a terminal: a bar, rates beside their limits; colour only where it is welcome."""
    arguments = [
        str(item)
        for item in ("test", "performance", tmp_path / "disk", *SMALL, "--minutes", "0.06")
    ]
    for no_color in (False, True):
        command = " ".join([*PLIMSOLL, *arguments, "--out", str(tmp_path / f"run-{no_color}")])
        environment = {
            **os.environ,
            "TERM": "xterm-256color",
            **({"NO_COLOR": "1"} if no_color else {}),
        }
        result = subprocess.run(
            ["script", "-qec", f"stty cols 100; {command}", "/dev/null"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        shown = result.stdout
        assert "━" in shown
        assert "database IOPS" in shown
        assert "20 ms" in shown, "the limit stands beside the figure"
        assert ("\x1b[1;36m" in shown or "\x1b[36m" in shown) is not no_color
