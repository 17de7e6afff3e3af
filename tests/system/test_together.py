"""Several loads in one plan, and events beside them, by the command line."""

import json
import subprocess
from pathlib import Path

from pytest import approx

from plimsoll import build_plan, qualify
from plimsoll.files import folder
from tests.support.chart_schema import hold_charts
from tests.support.warm_program import run_warm

MODELLED = """
kind = "plan"
schema_version = 1
name = "three loads, two drives fail"
seed = 7
target = [{ name = "array", modelled = "nearline-raid6" }]
instance = [
  { name = "mail", database_size_mib = 1024 },
  { name = "shop", backend = "store", store_size = "10MB" },
  { name = "share", backend = "files", files = 1, file_mib = 1024 },
]
workload = [
  { name = "mail", instances = ["mail"], load = { transactions_per_s = 10 }, window = { transactions_per_s = [8, 12] } },
  { name = "orders", instances = ["shop"], start_after_s = 2, load = { transactions_per_s = 5 }, window = { orders_per_min = [200, 400], over_s = 20 } },
  { name = "files", instances = ["share"], start_after_s = 4, pattern = "file-server", load = { transactions_per_s = 20 }, window = { iops = [1, 19] } },
]
phase = [{ kind = "prepare" }, { kind = "measure", duration_s = 100 }, { kind = "audit" }, { kind = "stop" }]
event = [
  { name = "drive 2", after_s = 70, do = "drive fails", number = 2 },
  { name = "drive 3", after_s = 80, do = "drive fails", number = 3, judge = { pause_s_max = 5 } },
]
"""  # noqa: E501

REAL = """
kind = "plan"
schema_version = 1
name = "a file is pulled"
target = [{{ name = "disk", path = "{place}/target" }}]
instance = [{{ name = "share", backend = "files", files = 1, file_mib = 8 }}]
workload = [{{ name = "files", pattern = "file-server", load = {{ transactions_per_s = 50 }} }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 17 }}, {{ kind = "stop" }}]
[[event]]
name = "pull"
after_s = 6
undo_after_s = 7
command = ["touch", "{place}/pulled"]
prove = ["test", "-e", "{place}/pulled"]
undo = ["rm", "{place}/pulled"]
judge = {{ pause_s_max = 5, errors_max = 0 }}
"""


IN_TURNS = {
    "name": "one after the other",
    "target": [{"name": "array", "modelled": "dell-md3000i"}],
    "instance": [
        {"name": "one", "backend": "files", "file_mib": 64},
        {"name": "two", "backend": "files", "file_mib": 64},
    ],
    "workload": [
        {"name": "first", "instances": ["one"], "load": {"target_iops": 50}},
        {"name": "second", "instances": ["two"], "load": {"target_iops": 50}},
    ],
    "phase": [
        {"kind": "prepare"},
        {"kind": "measure", "name": "alone", "duration_s": 40, "workloads": ["first"]},
        {"kind": "measure", "name": "both", "duration_s": 40},
        {"kind": "stop"},
    ],
    "event": [
        {
            "name": "path 1",
            "after_s": 15,
            "undo_after_s": 25,
            "do": "path fails",
            "number": 1,
            "judge": {"pause_s_max": 5},
        }
    ],
}


def plimsoll(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_warm(arguments, Path.cwd())


def test_ORC_01_HA_01_three_kinds_of_load_share_a_modelled_array_whose_drives_fail(
    tmp_path: Path,
) -> None:
    (tmp_path / "plan.toml").write_text(MODELLED)
    done = plimsoll("run", str(tmp_path / "plan.toml"), "--yes", "--out", str(tmp_path / "run"))
    assert done.returncode in (0, 1, 3), done.stderr
    summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    assert [event["name"] for event in summary["events"]] == ["drive 2", "drive 3"]
    for event in summary["events"]:
        assert {load["workload"] for load in event["loads"]} == {"mail", "orders", "files"}
    first, second = (event["begun_s"] for event in summary["events"])
    assert second - first == 10
    # A baseline begins with the phase that measures, and that with the last start.
    assert 55 <= summary["events"][0]["loads"][0]["baseline_s"] <= 60
    kinds = [phase["kind"] for phase in summary["phases"]]
    assert kinds == ["prepare", "soak", "soak", "measure", "audit", "stop"]
    page = (tmp_path / "run" / folder.REPORT).read_text()
    assert "together-1" in hold_charts(page)
    checks = json.loads((tmp_path / "run" / folder.VERDICT).read_text())["checks"]
    windows = {check["scope"]: check for check in checks if check["name"] == "load_window"}
    assert {name: check["status"] for name, check in windows.items()} == {
        "mail": "pass",
        "orders": "pass",
        "files": "not_evaluated",
    }
    assert "the load was not as planned" in windows["files"]["reason"]
    assert page.index("Windows of the loads") > page.index("Loads next to each other")
    assert "Loads next to each other" in page and "Event 2, drive 3: answers of the loads" in page


def test_ORC_02_an_event_wants_consent_and_is_done_and_undone(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(REAL.format(place=tmp_path))
    (tmp_path / "target").mkdir()
    common = ("run", str(plan), "--yes", "--allow-system-disk", "--out", str(tmp_path / "run"))
    refused = plimsoll(*common)
    assert refused.returncode == 2 and f"touch {tmp_path}/pulled" in refused.stderr
    assert "--allow-commands" in refused.stderr and not (tmp_path / "run").exists()
    shown = plimsoll(*common, "--dry-run")
    assert shown.returncode == 0 and f"undoes with `rm {tmp_path}/pulled`" in shown.stdout
    done = plimsoll(*common, "--allow-commands")
    assert done.returncode in (0, 1, 3), done.stderr
    found = json.loads((tmp_path / "run" / folder.STAGED_EVENTS).read_text())["events"][0]
    assert found["proved"] and found["exit_code"] == found["undo_exit_code"] == 0
    assert not (tmp_path / "pulled").exists()
    began = json.loads((tmp_path / "run" / folder.OUTCOME).read_text())["phases"][1]["start_ns"]
    assert abs(found["begun_s"] - began / 1e9 - 6) < 0.5
    verdict = json.loads((tmp_path / "run" / folder.VERDICT).read_text())
    checks = {
        check["name"]: check["status"]
        for check in verdict["checks"]
        if check["name"].startswith("event")
    }
    assert checks == {"event_staged": "pass", "event_pause": "pass", "event_errors": "pass"}


def test_an_event_asks_nothing_of_loads_that_do_not_run_in_its_phase(tmp_path: Path) -> None:
    """A load that was measured later only was accused of a pause of all the phase."""
    result = qualify(build_plan(IN_TURNS), tmp_path / "run")
    (event,) = result.summary.events
    assert [load.workload for load in event.loads] == ["first"]
    checks = [check for check in result.verdict.checks if check.name == "event_pause"]
    assert [(check.scope, check.status) for check in checks] == [("path 1, first", "pass")]
    # Each has the rate of the time in which it ran, and no rate is required of both.
    assert [round(figures.iops) for figures in result.summary.files] == [50, 50]
    rates = [load.transactions_per_s for load in result.summary.load.workloads]
    assert rates == [approx(50, rel=0.01)] * 2
    assert result.verdict.required_iops is None and result.result != "fail"
    # Of the phase that both share, each worked all the time.
    assert result.summary.overlaps == {"first": approx(1), "second": approx(1)}
