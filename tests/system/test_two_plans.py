"""Two runs at once: one on the databases of the other is refused, one beside them is named."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plimsoll.databases.idle import is_held
from plimsoll.files import folder

PLAN = """
kind = "plan"
schema_version = 1
name = "{name}"
target = [{{ name = "disk", path = "{home}/disk" }}]
instance = [{{ name = "{name}", {instance} }}]
workload = [{{ name = "mix", {load} }}]
[[phase]]
kind = "prepare"
[[phase]]
kind = "measure"
duration_s = {seconds}
[[phase]]
kind = "stop"
"""
RECORDS = "database_size_mib = 64, databases = 1, cache_mib_min = 1, cache_mib_max = 8"
KINDS = {
    "engine": (RECORDS, "load = { transactions_per_s = 20 }"),
    "store": ('backend = "store", store_size = "1MB"', "load = { transactions_per_s = 5 }"),
    "files": (
        'backend = "files", files = 1, file_mib = 16',
        'pattern = "file-server", load = { target_iops = 5 }',
    ),
}


def command(home: Path, kind: str, name: str, seconds: int, out: str) -> list[str]:
    instance, load = KINDS[kind]
    plan = home / f"{out}.toml"
    plan.write_text(
        PLAN.format(name=name, home=home, instance=instance, load=load, seconds=seconds)
    )
    run = [sys.executable, "-m", "plimsoll.cli", "run", str(plan), "--yes", "--allow-system-disk"]
    return [*run, "--out", str(home / out)]


def wait_for_lock(directory: Path, running: subprocess.Popen[str]) -> None:
    for _ in range(600):
        files = [file for file in directory.glob("*") if file.suffix in (".edb", ".dat", ".bin")]
        if any(is_held(file) for file in files):
            return
        assert running.poll() is None, running.communicate()
        time.sleep(0.1)
    pytest.fail("the first run has not begun")


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_on_databases_that_another_works_with_is_refused(tmp_path: Path, kind: str) -> None:
    """Nothing of the first one is touched, and its result is that of a run of its own."""
    (tmp_path / "disk").mkdir()
    first = command(tmp_path, kind, "one", 10, "first")
    text = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(first, **text) as running:
        wait_for_lock(tmp_path / "disk" / "one", running)
        second = subprocess.run(
            command(tmp_path, kind, "one", 1, "second"), capture_output=True, text=True
        )
        assert running.poll() is None, "the first one was over too soon"
        out, err = running.communicate()
    assert second.returncode not in (0, 1, 3), second.stdout
    assert "in use; stop the run that works with it first" in second.stderr
    assert not (tmp_path / "second" / folder.SUMMARY).exists()
    assert running.returncode in (0, 1, 3), out + err
    assert json.loads((tmp_path / "first" / folder.OUTCOME).read_text())["ending"] == "complete"


def test_two_runs_on_one_device_name_each_other(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    first = command(tmp_path, "engine", "one", 25, "first")
    text = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(first, **text) as running:
        wait_for_lock(tmp_path / "disk" / "one", running)
        second = subprocess.run(
            command(tmp_path, "engine", "two", 12, "second"), capture_output=True, text=True
        )
        out, err = running.communicate()
    assert second.returncode in (0, 1, 3) and running.returncode in (0, 1, 3), out + err
    assert f"has {tmp_path}/disk/one open; what either run measures is of both" in second.stderr
    for out_folder, other in (("first", "two"), ("second", "one")):
        verdict = json.loads((tmp_path / out_folder / folder.VERDICT).read_text())
        told = json.dumps(verdict)
        assert f"has {tmp_path}/disk/{other} open; what either run measures is of both" in told
