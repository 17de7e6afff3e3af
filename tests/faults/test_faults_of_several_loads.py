"""What goes wrong with several loads and events beside them, as the user meets it."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from plimsoll.files import folder
from plimsoll.run.pending_undo import pending_undos
from tests.support.places import PLIMSOLL, plimsoll

TOGETHER = """kind = "plan"
schema_version = 1
target = [{{ name = "disk", path = "{data}" }}, {{ name = "server" }}]
instance = [
  {{ name = "share", backend = "files", files = 1, file_mib = 8 }},
  {{ name = "shop", target = "server", store_address = "{address}" }},
]
workload = [
  {{ name = "files", instances = ["share"], pattern = "file-server", outstanding = 1 }},
  {{ name = "orders", instances = ["shop"], load = {{ sessions = 2 }} }},
]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 2 }}, {{ kind = "stop" }}]
"""
DEGRADED = """kind = "plan"
schema_version = 1
sample_interval_ms = 100
target = [{{ name = "disk", path = "{data}" }}]
instance = [{{ name = "share", backend = "files", files = 1, file_mib = 8 }}]
workload = [{{ name = "files", pattern = "file-server", outstanding = 1 }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 40 }}]
[[event]]
name = "flag"
after_s = 0.5
command = ["touch", "{flag}"]
undo = ["rm", "{flag}"]
"""
RECORDS = """kind = "plan"
schema_version = 1
target = [{{ name = "disk", path = "{data}" }}]
instance = [{{ name = "{name}", databases = 1, database_size_mib = {size} }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 1 }}, {{ kind = "stop" }}]
{more}
"""


def test_a_load_that_cannot_start_is_named_and_the_others_are_no_result(tmp_path: Path) -> None:
    """A server that nobody started: files alone would have the storage to themselves."""
    plan = tmp_path / "plan.toml"
    address = "postgres://nobody@127.0.0.1:1/ds2"
    plan.write_text(TOGETHER.format(data=tmp_path / "data", address=address))
    run = tmp_path / "run"
    done = plimsoll(
        "run", plan, "--yes", "--create", "--allow-system-disk", "--out", run, cwd=tmp_path
    )
    assert done.returncode in (2, 3), done.stdout + done.stderr
    told = done.stdout + done.stderr
    assert "127.0.0.1:1" in told and "shop" in told, told
    assert "Traceback" not in told
    assert not done.stdout.startswith(("Pass", "Fail")), done.stdout


def test_a_set_of_another_plan_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    """What is restored before each run must be what the plan describes, to the last figure."""
    first = tmp_path / "first.toml"
    first.write_text(RECORDS.format(data=tmp_path / "data", name="one", size=64, more=""))
    agreed = ("--yes", "--create", "--allow-system-disk")
    saved = tmp_path / "set"
    done = plimsoll("prepare", first, "--save", saved, *agreed, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*")}
    for name, size, phrase in (
        ("one", 128, "differs from the plan in"),
        ("two", 64, "holds one, but no two"),
    ):
        other = tmp_path / "other.toml"
        more = '[repeat]\nruns = 2\n[[workload]]\nname = "mix"\nload = { sessions = 1 }'
        text = RECORDS.format(data=tmp_path / "data", name=name, size=size, more=more)
        other.write_text(text.replace("target =", f'restore_from = "{saved}"\ntarget =', 1))
        refused = plimsoll("run", other, *agreed, "--out", tmp_path / name, cwd=tmp_path)
        assert refused.returncode == 2, refused.stdout + refused.stderr
        assert phrase in refused.stderr and "save the set from this plan" in refused.stderr
        assert not (tmp_path / name).exists()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*")} == before


def test_a_full_disk_of_the_run_folder_leaves_nothing_degraded(tmp_path: Path) -> None:
    """The folder cannot be written any more while something is degraded: it is undone all the
    same, and no storage is accused.
    """
    if os.geteuid() != 0:
        pytest.skip("wants root, for a small file system")
    small, flag = tmp_path / "small", tmp_path / "flag"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(small)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no small file system can be mounted here")
    try:
        plan = tmp_path / "plan.toml"
        plan.write_text(DEGRADED.format(data=tmp_path / "data", flag=flag))
        command = [*PLIMSOLL, "run", str(plan), "--yes", "--create", "--allow-system-disk"]
        command += ["--allow-commands", "--out", str(small / "run")]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        until = time.monotonic() + 120
        while not flag.exists():
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.05)
        with (small / "neighbour").open("wb", buffering=0) as file:
            while True:
                try:
                    file.write(b"\0" * 4096)
                except OSError:
                    break
        output, errors = process.communicate(timeout=240)
        assert not flag.exists(), errors
        assert process.returncode not in (0, 1), (process.returncode, output, errors)
        assert "space" in (output + errors).lower(), (output, errors)
        assert "Traceback" not in output + errors, errors
        assert not output.startswith(("Pass", "Fail")), output
        assert pending_undos(small / "run") == ()
        assert (small / "run" / folder.PLAN).exists()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False, capture_output=True)
