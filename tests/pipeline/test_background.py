"""A run in the background: started, asked after, followed, stopped.

And what bounds a run on shared storage, end to end.
"""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from plimsoll.files import folder
from tests.support.places import PLIMSOLL, plimsoll

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
    while time.monotonic() < deadline and not (tmp_path / "run" / folder.PROGRESS).exists():
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
