"""A node of a cluster dies and its instances come back on the survivor, by the command line."""

import json
import subprocess
from pathlib import Path

from plimsoll.files import folder
from tests.support.warm_program import run_warm

HEAD = """
kind = "plan"
schema_version = 1
name = "a node dies"
seed = 3
sample_interval_ms = 500
target = [{target}]
quorum = "{quorum}"
node = [
  {{ name = "left", memory_mib = 64, processors = 2 }},
  {{ name = "right", memory_mib = 48, processors = 4 }},
]
"""

MODELLED = """
instance = [
  { name = "mail", node = "left", database_size_mib = 64, databases = 1, cache_mib_min = 1, cache_mib_max = 16 },
  { name = "shop", node = "left", backend = "store", store_size = "10MB", cache_mib_min = 1, cache_mib_max = 16 },
  { name = "other", node = "right", database_size_mib = 64, databases = 1, cache_mib_min = 1, cache_mib_max = 16 },
]
workload = [
  { name = "mail", instances = ["mail"], load = { transactions_per_s = 20 } },
  { name = "orders", instances = ["shop"], load = { transactions_per_s = 5 } },
  { name = "other", instances = ["other"], load = { transactions_per_s = 20 } },
]
phase = [{ kind = "prepare" }, { kind = "measure", duration_s = 60 }, { kind = "audit" }, { kind = "stop" }, { kind = "checksum" }]
[[event]]
name = "left dies"
after_s = 30
do = "node killed"
node = "left"
to = "right"
judge = { failover_s_max = 30 }
"""  # noqa: E501

REAL = """
instance = [
  { name = "mail", node = "left", database_size_mib = 64, databases = 1, cache_mib_min = 1, cache_mib_max = 8 },
  { name = "other", node = "right", database_size_mib = 64, databases = 1, cache_mib_min = 1, cache_mib_max = 44 },
]
workload = [{ name = "mix", load = { transactions_per_s = 40 } }]
phase = [{ kind = "prepare" }, { kind = "measure", duration_s = 8 }, { kind = "audit" }, { kind = "stop" }, { kind = "checksum" }]
[[event]]
name = "left dies"
after_s = 4
do = "node killed"
node = "left"
to = "right"
fit = "reported"
"""  # noqa: E501


def plimsoll(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_warm(arguments, Path.cwd())


def head(target: str, quorum: str = "nodes and disk") -> str:
    return HEAD.format(target=target, quorum=quorum)


def read(run: Path, name: str):
    return json.loads((run / name).read_text())


def checks_of(run: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for check in read(run, folder.VERDICT)["checks"]:
        found.setdefault(check["name"], []).append(check["status"])
    return found


def test_HA_02_a_dead_node_of_a_modelled_cluster_comes_back_and_again_to_the_same_bytes(
    tmp_path: Path,
) -> None:
    """The load of the node waits, all that was acknowledged is there, and no byte is chance."""
    plan = tmp_path / "plan.toml"
    plan.write_text(head('{ name = "array", modelled = "nearline-raid6" }') + MODELLED)
    for name in ("one", "two"):
        done = plimsoll("run", str(plan), "--yes", "--out", str(tmp_path / name))
        assert done.returncode in (0, 1, 3), done.stderr
    run = tmp_path / "one"
    (event,) = read(run, folder.SUMMARY)["events"]
    assert event["is_proved"]
    came = {item["instance"]: item for item in event["failovers"]}
    assert set(came) == {"mail", "shop"}
    for item in came.values():
        assert 0 < item["opened_s"] < item["served_s"]
        assert (item["node"], item["to"], item["cache_mib_max"]) == ("left", "right", 16)
    loads = {load["workload"]: load for load in event["loads"]}
    assert loads["other"]["pause_s"] < came["mail"]["served_s"]
    checks = checks_of(run)
    assert checks["event_failover"] == ["pass", "pass"]
    assert checks["node_fit"] == checks["records_audit"] == checks["store_audit"] == ["pass"]
    page = (run / folder.REPORT).read_text()
    assert "What came back after left dies" in page
    assert "right needs 48 (other 16, mail 16, shop 16) of 48 MiB of memory" in page
    first, second = (read(tmp_path / name, folder.OUTCOME) for name in ("one", "two"))
    assert first["phases"] == second["phases"]
    assert read(run, folder.SUMMARY)["events"] == read(tmp_path / "two", folder.SUMMARY)["events"]


def test_HA_02_a_dead_node_on_real_storage_comes_back_with_the_cache_that_is_left(
    tmp_path: Path,
) -> None:
    """The survivor is short of memory: the plan lets it be, and the result says so."""
    (tmp_path / "target").mkdir()
    plan = tmp_path / "plan.toml"
    plan.write_text(head(f'{{ name = "disk", path = "{tmp_path}/target" }}') + REAL)
    common = ("run", str(plan), "--yes", "--allow-system-disk", "--out", str(tmp_path / "run"))
    shown = plimsoll(*common, "--dry-run")
    assert "node left dies, right takes over" in shown.stdout
    done = plimsoll(*common)
    assert done.returncode in (0, 1, 3), done.stderr
    (event,) = read(tmp_path / "run", folder.SUMMARY)["events"]
    (came,) = event["failovers"]
    assert (came["instance"], came["cache_mib_max"]) == ("mail", 4)
    assert 0 < came["opened_s"] < came["served_s"]
    checks = checks_of(tmp_path / "run")
    assert checks["node_fit"] == checks["records_audit"] == ["pass"]
    assert checks["event_staged"] == ["pass"]
    (audit,) = read(tmp_path / "run", folder.SUMMARY)["records_audits"]
    assert audit["counts"]["records_acknowledged"] > 0
    assert "the survivor was short: right needs 52" in done.stdout


def test_HA_01_a_lost_quorum_stops_the_run_and_the_verdict_says_so(tmp_path: Path) -> None:
    """Two nodes without a witness: whoever is left alone cannot know that it is not cut off."""
    plan = tmp_path / "plan.toml"
    plan.write_text(head('{ name = "array", modelled = "nearline-raid6" }', "nodes") + MODELLED)
    done = plimsoll("run", str(plan), "--yes", "--out", str(tmp_path / "run"))
    assert "1 of 2 votes is left, and 2 are needed" in done.stdout + done.stderr
    outcome = read(tmp_path / "run", folder.OUTCOME)
    assert outcome["ending"] == "failed"
    verdict = json.dumps(read(tmp_path / "run", folder.VERDICT))
    assert "1 of 2 votes is left" in verdict
    # What stopped needs no command that proves it, and its instances did die.
    reasons = [
        check["reason"]
        for check in read(tmp_path / "run", folder.VERDICT)["checks"]
        if check["name"] in ("event_staged", "event_failover")
    ]
    assert [reason for reason in reasons if "so nothing came back" not in reason] == []
    assert reasons
