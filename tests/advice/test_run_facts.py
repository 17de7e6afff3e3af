"""Rules over a plan and over the folder of a finished run, as their files are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.sizing.advice.engine import Advice, advise
from plimsoll.sizing.advice.rules import read_rules
from plimsoll.sizing.advice.run_facts import DESCRIBED_BY_PLAN, DESCRIBED_BY_RUN, plan_subject, read_json, run_subjects
from plimsoll.sizing.mistakes import InputError

PLAN: dict[str, Any] = {
    "schema_version": 1,
    "instances": [
        {
            "name": "one",
            "directory": "/data/one",
            "log_directory": "/log/one",
            "databases": [{"size_bytes": 2**30}, {"size_bytes": 2**30}],
            "copies_count": 1,
            "circular_log": True,
            "maintenance": {"throttle_ms": 20, "read_bytes": 262144},
        }
    ],
    "phases": [
        {"name": "prepare", "action": {"kind": "prepare"}},
        {"name": "measure", "action": {"kind": "measure", "duration_s": 7200}},
        {"name": "checksum", "action": {"kind": "checksum"}},
    ],
}
VERDICT: dict[str, Any] = {
    "result": "pass",
    "qualifying": True,
    "checks": [{"name": "db_read_latency_ms", "status": "pass", "measured": 12.7, "limit": 20}],
}
RULES = read_rules()


def folder(tmp_path: Path, plan: dict[str, Any], verdict: dict[str, Any]) -> Path:
    """A run folder with a plan, a verdict and a summary."""
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "verdict.json").write_text(json.dumps(verdict))
    (tmp_path / "summary.json").write_text(json.dumps({"capacity_utilisation_fraction": 0.25, "databases": []}))
    return tmp_path


def advice_for(path: Path) -> Advice:
    """All rules over a run folder."""
    return advise(RULES, run_subjects(path), DESCRIBED_BY_RUN)


def found(advice: Advice) -> set[str]:
    """Ids of the rules with findings."""
    return {finding.rule.id for finding in advice.findings}


def test_ADV_01_a_finished_run_is_looked_at(tmp_path: Path) -> None:
    """A run at a quarter of the capacity passes its checks and still gets the warning of the ESRP note."""
    advice = advice_for(folder(tmp_path, PLAN, VERDICT))
    assert "BP-E11" in found(advice)
    assert {"BP-S02", "BP-E14", "RUN-failed", "RUN-not-evaluated", "BP-Q62"} <= set(advice.met)
    assert "BP-E10" in advice.met


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("BP-S02", lambda plan, verdict: plan["phases"][1]["action"].update(duration_s=60)),
        ("BP-E14", lambda plan, verdict: plan["instances"][0].update(maintenance=None)),
        ("BP-E10", lambda plan, verdict: plan["instances"][0].update(log_directory="/data/one")),
        ("RUN-failed", lambda plan, verdict: verdict["checks"][0].update(status="fail")),
        ("RUN-not-evaluated", lambda plan, verdict: verdict["checks"][0].update(status="not_evaluated")),
        ("BP-Q62", lambda plan, verdict: verdict.update(qualifying=False)),
        ("BP-S04", lambda plan, verdict: verdict.update(limit_set="lenient")),
    ],
)
def test_ADV_01_each_fault_of_a_run_is_found(tmp_path: Path, rule: str, change: Any) -> None:
    """One change to a sound run must show under the rule that speaks of it."""
    plan, verdict = json.loads(json.dumps(PLAN)), json.loads(json.dumps(VERDICT))
    change(plan, verdict)
    assert rule in found(advice_for(folder(tmp_path, plan, verdict)))


def test_a_plan_written_by_a_person_has_the_same_facts() -> None:
    """A plan file names its lists in the singular and puts the kind into the phase."""
    plan = {
        "kind": "plan",
        "instance": [{"name": "one", "database": [{"size_bytes": 1}], "maintenance": {}}],
        "phase": [{"kind": "measure", "duration_s": 3600}],
    }
    facts = plan_subject(plan, "plan.toml").facts
    assert (facts["measured_h"], facts["database_count"], facts["maintenance_enabled"]) == (1.0, 1, True)
    advice = advise(RULES, [plan_subject(plan, "plan.toml")], DESCRIBED_BY_PLAN)
    assert "BP-S02" in found(advice)


def test_bad_run_folders_are_refused(tmp_path: Path) -> None:
    """An empty folder, broken JSON, and JSON that is no object."""
    with pytest.raises(InputError, match="none of its files is there"):
        run_subjects(tmp_path)
    (tmp_path / "verdict.json").write_text('{\n"result": }')
    with pytest.raises(InputError, match=r"verdict.json:2: is not valid JSON"):
        run_subjects(tmp_path)
    (tmp_path / "verdict.json").write_text("[]")
    with pytest.raises(InputError, match="not an object"):
        run_subjects(tmp_path)
    (tmp_path / "verdict.json").write_bytes(b"\xff")
    with pytest.raises(InputError, match="not UTF-8"):
        read_json(tmp_path / "verdict.json")
    (tmp_path / "verdict.json").write_text('{"checks": [3, {"name": "x"}], "result": 7, "qualifying": "perhaps"}')
    assert run_subjects(tmp_path)[0].facts["checks_failed_count"] == 0
