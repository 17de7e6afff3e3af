"""The program is killed or told to stop while a node is dead or being taken over: nothing of what
was acknowledged is lost, and the same plan runs again.
"""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from plimsoll.databases.ownership import read as marker_of
from plimsoll.files import folder
from plimsoll.run.pending_undo import pending_undos
from tests.support.places import PLIMSOLL, plimsoll

PLAN = """kind = "plan"
schema_version = 1
seed = 3
sample_interval_ms = 200
target = [{{ name = "disk", path = "{home}/target" }}]
node = [
  {{ name = "left", memory_mib = 64, processors = 2 }},
  {{ name = "right", memory_mib = 64, processors = 2 }},
]
[[instance]]
name = "records"
node = "left"
database_size_mib = 64
databases = 1
cache_mib_min = 1
cache_mib_max = 8
[[instance]]
name = "mail"
node = "left"
backend = "mail_store"
mailbox_mib = 1
cache_mib_min = 1
cache_mib_max = 8
[[workload]]
name = "records"
instances = ["records"]
load = {{ transactions_per_s = 40 }}
[[workload]]
name = "mail"
instances = ["mail"]
day_h = 0.05
load = {{ users = 5 }}
[[event]]
name = "left dies"
after_s = 3
do = "node killed"
node = "left"
to = "right"
[[phase]]
kind = "prepare"
[[phase]]
kind = "measure"
duration_s = {seconds}
[[phase]]
kind = "audit"
[[phase]]
kind = "stop"
"""


def command(home: Path, out: str, seconds: int) -> list[str]:
    (home / "target").mkdir(exist_ok=True)
    plan = home / f"{out}.toml"
    plan.write_text(PLAN.format(home=home, seconds=seconds))
    common = ["run", str(plan), "--yes", "--quiet", "--allow-system-disk"]
    return [*common, "--out", str(home / out)]


def until_told(run: Path, kind: str, process: subprocess.Popen[bytes]) -> None:
    events = run / folder.EVENTS
    for _ in range(1200):
        if events.exists() and f'"{kind}"' in events.read_text():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    pytest.fail(f"{kind} was not told")


def struck(home: Path, kind: str, number: signal.Signals) -> subprocess.Popen[bytes]:
    """A run that gets a signal as soon as something is told of it; it has ended."""
    started = [*PLIMSOLL, *command(home, "struck", 60)]
    process = subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until_told(home / "struck", kind, process)
    process.send_signal(number)
    process.wait(timeout=60)
    return process


def check_again(home: Path) -> None:
    """The same plan runs on what is there, and its audits find nothing wrong."""
    done = plimsoll(*command(home, "again", 8), cwd=home)
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    assert json.loads((home / "again" / folder.OUTCOME).read_text())["ending"] == "complete"
    summary = json.loads((home / "again" / folder.SUMMARY).read_text())
    audits = [*summary["records_audits"], *summary["mail_audits"]]
    assert {audit["instance"] for audit in audits} == {"records", "mail"}
    assert [audit["findings"] for audit in audits] == [[], []]
    (event,) = summary["events"]
    assert {item["instance"] for item in event["failovers"]} == {"records", "mail"}


@pytest.mark.parametrize("kind", ["node_died", "node_taken_over"])
def test_a_run_that_is_killed_while_a_node_is_dead_is_followed_by_another(
    tmp_path: Path, kind: str
) -> None:
    """There is nothing to undo: what died was the run's own, and it is recovered."""
    struck(tmp_path, kind, signal.SIGKILL)
    assert not pending_undos(tmp_path / "struck")
    for _ in range(2):
        cleaned = plimsoll("clean", tmp_path / "struck", "--yes", cwd=tmp_path)
        assert "Traceback" not in cleaned.stderr, cleaned.stderr
    check_again(tmp_path)


@pytest.mark.parametrize("kind", ["node_died", "node_taken_over"])
def test_a_run_that_is_told_to_stop_while_a_node_is_dead_closes_its_databases(
    tmp_path: Path, kind: str
) -> None:
    process = struck(tmp_path, kind, signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode not in (0, -signal.SIGINT), told
    assert b"Traceback" not in told
    outcome = json.loads((tmp_path / "struck" / folder.OUTCOME).read_text())
    assert outcome["ending"] == "interrupted", outcome["error"]
    for name in ("records", "mail"):
        marker = marker_of(tmp_path / "target" / name)
        assert marker is not None and marker.is_closed, name
    check_again(tmp_path)
