"""Beginning a plan by answers, and completing commands in a shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll.plan.complete import read_plan

PLIMSOLL = [sys.executable, "-m", "plimsoll.cli"]


def asked(home: Path, *answers: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PLIMSOLL, "plan", "init", "plan.toml", "--ask"],
        cwd=home, input="\n".join(answers) + "\n", capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_answers_make_a_plan(tmp_path: Path) -> None:
    """What was answered is what will run."""
    result = asked(tmp_path, "/mnt/array", "2013", "3", "10", "200", "30")
    assert result.returncode == 0, result.stderr
    plan = read_plan(tmp_path / "plan.toml")
    assert (len(plan.run.instances), len(plan.run.phases)) == (3, 5)
    assert plan.run.instances[2].databases[0].size_bytes == 10 << 30
    assert plan.judgement.required_iops == 200
    assert plan.run.phases[2].action.duration_s == 1800


def test_a_device_is_asked_for_its_logs_and_holds_one_database(tmp_path: Path) -> None:
    """The one question that only a device needs."""
    result = asked(tmp_path, "/dev/disk/by-id/nvme-x", "/mnt/logs", "2010", "10", "0", "120")
    assert result.returncode == 0, result.stderr
    (instance,) = read_plan(tmp_path / "plan.toml").run.instances
    assert instance.log_directory == "/mnt/logs/instance1"
    assert instance.databases[0].file_name == "/dev/disk/by-id/nvme-x"


def test_answers_that_make_no_plan_write_none(tmp_path: Path) -> None:
    """A file that `run` refuses would only move the trouble."""
    result = asked(tmp_path, "/mnt/array", "2020", "1", "10", "0", "30")
    assert result.returncode == 2
    assert 'write one of "2003", "2007", "2010", "2013", "2016", "2019"' in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "position", "expected"),
    [("plimsoll st", 1, "status"), ("plimsoll run --st", 2, "--stop-if")],
)
def test_the_shell_completes_commands_and_options(words: str, position: int, expected: str) -> None:
    """Commands are loaded lazily; completion must find them all the same."""
    environment = {
        **os.environ,
        "_PLIMSOLL_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(position),
    }
    program = "from plimsoll.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert expected in result.stdout.split(), result.stderr
