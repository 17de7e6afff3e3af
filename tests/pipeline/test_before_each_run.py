"""What a plan wants done before each of its runs: commands, a server that answers, settling."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import plimsoll
from plimsoll.documents.plan import RepeatPlan
from plimsoll.documents.repeats import Repeats
from plimsoll.files import folder
from plimsoll.host import processes
from plimsoll.inputs.mistakes import InputError
from plimsoll.run.before_run import Prepared, commands_of, prepare_run

PLAN = """kind = "plan"
schema_version = 1
sample_interval_ms = 100
target = [{{ name = "disk", path = "{path}" }}]
instance = [{{ name = "one", backend = "files", files = 1, file_mib = 8 }}]
workload = [{{ name = "load", pattern = "file-server", outstanding = 1 }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 1 }}]
[repeat]
{repeat}
"""


def plan_of(path: Path, repeat: str) -> plimsoll.Plan:
    return plimsoll.parse_plan(PLAN.format(path=path, repeat=repeat))


def wanted(**changes: object) -> RepeatPlan:
    plain = {
        "runs": 2,
        "before": [],
        "timeout_s": 20.0,
        "ready": [],
        "ready_timeout_s": 20.0,
        "settle_s": 0.0,
    }
    return RepeatPlan.from_plain({**plain, **changes})


def prepared(place: Path, repeat: RepeatPlan, stop: threading.Event | None = None):
    noted: list[list[str | None]] = []
    found = prepare_run(
        repeat,
        place,
        2,
        lambda text: None,
        stop or threading.Event(),
        lambda done: noted.append([item.error for item in done]),
    )
    return found, noted


def problem_of(place: Path, repeat: RepeatPlan) -> str:
    found, _ = prepared(place, repeat)
    assert not found.may_begin and found.problem is not None
    return found.problem


def test_every_run_is_prepared_and_the_plan_says_how_often(tmp_path: Path) -> None:
    """Two runs without --repeat; before each the hook is run, with the number of the run."""
    noted = tmp_path / "noted"
    hook = f'["sh", "-c", "echo run $PLIMSOLL_RUN_NUMBER >> {noted}"]'
    plan = plan_of(tmp_path / "data", f"runs = 2\nbefore = [{hook}]\nsettle_s = 0.2")
    with pytest.raises(plimsoll.PreflightError, match="--allow-commands"):
        plimsoll.check(plan, create=True, allow_system_disk=True)
    assert not noted.exists()
    found = plimsoll.check(plan, create=True, allow_system_disk=True, allow_commands=True)
    shown = "\n".join(plimsoll.forecast(plan, found).lines())
    assert "repeated 2 times; before each it settles for 0.2 s" in shown and str(noted) in shown
    series = plimsoll.repeat(plan, out=tmp_path / "series", found=found)
    assert noted.read_text().splitlines() == ["run 1", "run 2"]
    assert [run.ending for run in series.content.runs] == ["complete", "complete"]
    for run in series.content.runs:
        (command,) = run.before
        assert command.exit_code == 0 and command.command[0] == "sh"


def test_a_hook_that_fails_ends_the_series_and_the_run_before_it_counts(tmp_path: Path) -> None:
    """The second restore fails: a run on what is left would be another test."""
    flag = tmp_path / "flag"
    hook = f'["mkdir", "{flag}"]'
    plan = tmp_path / "plan.toml"
    text = PLAN.format(path=tmp_path / "data", repeat=f"runs = 3\nbefore = [{hook}]")
    plan.write_text(text)
    command = [sys.executable, "-m", "plimsoll.cli", "run", str(plan), "--yes", "--create"]
    command += ["--allow-system-disk", "--allow-commands", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    content = Repeats.read(tmp_path / "out" / folder.REPEATS)
    assert [run.ending for run in content.runs] == ["complete", "not begun"], done.stderr
    (reason,) = content.runs[1].reasons
    assert "before run 2" in reason and "ended with exit code 1" in reason
    assert content.result in ("inconclusive", "fail") and content.finished
    assert not (tmp_path / "out" / "run-2" / folder.OUTCOME).exists()
    assert done.returncode in (1, 3)


def test_a_server_that_boots_is_waited_for_and_one_that_never_returns_ends_it(
    tmp_path: Path,
) -> None:
    count = tmp_path / "count"
    script = f"echo x >> {count}; test $(wc -l < {count}) -ge 3"
    found, noted = prepared(tmp_path, wanted(ready=["sh", "-c", script]))
    assert found == Prepared(may_begin=True) and noted == [[None]]
    assert count.read_text().count("x") == 3
    late = problem_of(tmp_path, wanted(ready=["false"], ready_timeout_s=0.1))
    assert "nobody was ready within 0.1 s: `false`" in late
    absent = problem_of(tmp_path, wanted(ready=["no-such-program"]))
    assert absent.startswith("before run 2: `no-such-program` cannot be started")


def test_a_question_gets_no_more_than_the_time_that_is_left(tmp_path: Path) -> None:
    """The second one hangs."""
    script = f"mkdir {tmp_path / 'asked'} && exit 1; sleep 30"
    began = time.monotonic()
    late = problem_of(tmp_path, wanted(ready=["sh", "-c", script], ready_timeout_s=2))
    assert "nobody was ready within 2 s" in late
    assert time.monotonic() - began < 2.6


def test_settling_ends_when_the_series_is_stopped(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    stopped = Prepared(may_begin=False)
    assert prepared(tmp_path, wanted(settle_s=3600.0), stop) == (stopped, [])
    touch = wanted(before=[["touch", str(tmp_path / "x")]])
    assert prepared(tmp_path, touch, stop)[0] == stopped
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_stops_the_series_leaves_no_command_behind(tmp_path: Path, number: int) -> None:
    noted, plan = tmp_path / "noted", tmp_path / "plan.toml"
    hook = f'["sh", "-c", "echo $$ > {noted}.new; mv {noted}.new {noted}; sleep 60; true"]'
    plan.write_text(PLAN.format(path=tmp_path / "data", repeat=f"runs = 2\nbefore = [{hook}]"))
    command = [sys.executable, "-m", "plimsoll.cli", "run", str(plan), "--yes", "--create"]
    command += ["--allow-system-disk", "--allow-commands", "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as series:
        until = time.monotonic() + 60
        while not noted.exists():
            assert time.monotonic() < until and series.poll() is None
            time.sleep(0.05)
        series.send_signal(number)
        told = series.communicate(timeout=60)[1]
    try:
        assert processes.process_of(int(noted.read_text())) is None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(int(noted.read_text()), signal.SIGKILL)
    content = Repeats.read(tmp_path / "out" / folder.REPEATS)
    (run,) = content.runs
    assert run.ending == "not begun" and "sleep 60; true'` was killed" in run.reasons[0], told
    assert "was killed; the series ends here" in told and series.returncode == 4


def test_a_hook_that_hangs_is_killed(tmp_path: Path) -> None:
    hung = problem_of(tmp_path, wanted(before=[["sleep", "60"]], timeout_s=0.2))
    assert "did not end within 0.2 s and was killed" in hung


def test_mistakes_and_virtual_time(tmp_path: Path) -> None:
    """All mistakes at once; on a modelled array nothing is restored or waited for."""
    with pytest.raises(InputError) as found:
        plan_of(tmp_path, 'runs = 0\nbefore = ["touch x"]\nsettle_s = -1')
    assert all(part in str(found.value) for part in ("runs", "before", "settle_s"))
    with pytest.raises(InputError, match="runs"):
        plan_of(tmp_path, "settle_s = 5")
    text = PLAN.format(path="x", repeat='runs = 2\nbefore = [["reboot"]]\nsettle_s = 600')
    modelled = plimsoll.parse_plan(text.replace('path = "x"', 'modelled = "nearline-raid6"'))
    assert modelled.repeat is not None and modelled.repeat.runs == 2
    assert commands_of(modelled.repeat) == [] and modelled.repeat.settle_s == 0
    assert json.loads(json.dumps(modelled.plain()))["repeat"]["runs"] == 2
