"""Rules over a plan and over the folder of a finished run, as their files are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.advice.engine import Advice, advise
from plimsoll.advice.rules import read_rules
from plimsoll.advice.run_facts import (
    DESCRIBED_BY_PLAN,
    DESCRIBED_BY_RUN,
    plan_subject,
    read_object,
    run_subjects,
)
from plimsoll.inputs.mistakes import InputError
from plimsoll.inputs.toml_lines import read_located
from plimsoll.plan.complete import complete_plan

PLAN: dict[str, Any] = {
    "kind": "plan",
    "schema_version": 1,
    "judgement": {"limits": "strict", "test": "performance", "required_iops": 900},
    "run": {
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
    },
}
VERDICT: dict[str, Any] = {
    "result": "pass",
    "limits": "strict",
    "qualifying": True,
    "not_qualifying_because": [],
    "achieved_iops": 1020.5,
    "checks": [
        {
            "name": "database_read_latency_mean",
            "scope": "one",
            "status": "pass",
            "measured": 12.7,
            "limit": 20,
        }
    ],
}
SUMMARY: dict[str, Any] = {
    "window": {"seconds": 7200.0},
    "total": {"errors_in_run": 0},
    "databases": [{"final_bytes": 2**30}, {"final_bytes": 2**30}],
    "checksums": [{"name": "one/1", "bad": 0, "correctable": 0, "wrong_page_number": 0}],
}
ENVIRONMENT: dict[str, Any] = {
    "targets": [
        {
            "mount_point": "/data",
            "size_bytes": 8 * 2**30,
            "rotational": False,
            "holds_system": False,
        }
    ]
}
RULES = read_rules()


def folder(tmp_path: Path, plan: dict[str, Any], verdict: dict[str, Any]) -> Path:
    """A run folder with a plan, a verdict and a summary."""
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "verdict.json").write_text(json.dumps(verdict))
    (tmp_path / "summary.json").write_text(json.dumps(SUMMARY))
    (tmp_path / "environment.json").write_text(json.dumps(ENVIRONMENT))
    return tmp_path


def advice_for(path: Path) -> Advice:
    """All rules over a run folder."""
    return advise(RULES, run_subjects(path), DESCRIBED_BY_RUN)


def found(advice: Advice) -> set[str]:
    """Ids of the rules with findings."""
    return {finding.rule.id for finding in advice.findings}


def test_ADV_01_a_finished_run_is_looked_at(tmp_path: Path) -> None:
    """A run at a quarter of the capacity passes its checks and still gets the warning of the ESRP
    note.
    """
    advice = advice_for(folder(tmp_path, PLAN, VERDICT))
    assert "BP-E11" in found(advice)
    assert {
        "BP-S02",
        "BP-E14",
        "BP-E10",
        "BP-E12",
        "BP-S04",
        "RUN-failed",
        "RUN-not-evaluated",
        "BP-Q62",
    } <= set(advice.met)
    assert "BP-S01" in found(advice), "solid-state storage wants conditioning first"
    (space,) = [finding for finding in advice.findings if finding.rule.id == "BP-E11"]
    assert space.evidence == {"capacity_utilisation_fraction": 0.25}


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("BP-S02", lambda plan, verdict: plan["run"]["phases"][1]["action"].update(duration_s=60)),
        ("BP-E14", lambda plan, verdict: plan["run"]["instances"][0].update(maintenance=None)),
        (
            "BP-E10",
            lambda plan, verdict: plan["run"]["instances"][0].update(log_directory="/data/one"),
        ),
        ("RUN-failed", lambda plan, verdict: verdict["checks"][0].update(status="fail")),
        (
            "RUN-not-evaluated",
            lambda plan, verdict: verdict["checks"][0].update(status="not_evaluated"),
        ),
        (
            "BP-Q62",
            lambda plan, verdict: verdict.update(
                qualifying=False, not_qualifying_because=["60 s were measured"]
            ),
        ),
        ("BP-S04", lambda plan, verdict: verdict.update(limits="lenient")),
        ("BP-E12", lambda plan, verdict: verdict.update(achieved_iops=700)),
    ],
)
def test_ADV_01_each_fault_of_a_run_is_found(tmp_path: Path, rule: str, change: Any) -> None:
    """One change to a sound run must show under the rule that speaks of it."""
    plan, verdict = json.loads(json.dumps(PLAN)), json.loads(json.dumps(VERDICT))
    change(plan, verdict)
    assert rule in found(advice_for(folder(tmp_path, plan, verdict)))


def test_a_plan_file_is_completed_before_it_is_looked_at(tmp_path: Path) -> None:
    """What a plan leaves out has the default it would be run with."""
    path = tmp_path / "plan.toml"
    path.write_text(
        'kind = "plan"\nschema_version = 1\n[[target]]\nname = "t"\npath = '
        '"/data"\n[[instance]]\nname = "one"\n'
    )
    subject = plan_subject(complete_plan(read_located(path)).plain(), str(path))
    assert (subject.facts["measured_h"], subject.facts["limit_set"]) == (2.0, "strict")
    advice = advise(RULES, [subject], DESCRIBED_BY_PLAN)
    assert "BP-E12" not in found(advice), (
        "no search for the maximum, so nobody is tempted to plan with it"
    )
    assert "BP-S02" in advice.met


def test_BP_E12_speaks_only_of_searches_for_the_maximum() -> None:
    """It fired on every plan without a required rate, whatever the plan was for, so that nobody
    read it any more.
    """
    plan = json.loads(json.dumps(PLAN))
    plan["judgement"].pop("required_iops", None)
    assert "BP-E12" not in found(
        advise(RULES, [plan_subject(plan, "plan.json")], DESCRIBED_BY_PLAN)
    )
    plan["judgement"]["test"] = "maximum"
    assert "BP-E12" in found(advise(RULES, [plan_subject(plan, "plan.json")], DESCRIBED_BY_PLAN))
    plan["judgement"]["required_iops"] = 500
    assert "BP-E12" in advise(RULES, [plan_subject(plan, "plan.json")], DESCRIBED_BY_PLAN).met


def test_BP_S01_is_met_by_a_run_that_conditions_its_drives(tmp_path: Path) -> None:
    """It was advice for a person, although the phases of the run say whether it was followed."""
    plan = json.loads(json.dumps(PLAN))
    plan["run"]["phases"].insert(1, {"name": "condition", "action": {"kind": "precondition"}})
    assert "BP-S01" in advice_for(folder(tmp_path, plan, VERDICT)).met


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"maintenance": None}, "met"),
        ({"maintenance": None, "circular_log": False}, "finding"),
        ({}, "finding"),
    ],
)
def test_BP_M11_is_decided_for_mail_stores(changes: dict[str, Any], outcome: str) -> None:
    """It was advice for a person, although the plan says how its mail store keeps logs."""
    plan = json.loads(json.dumps(PLAN))
    plan["run"]["instances"][0].update(backend="mail_store", **changes)
    advice = advise(RULES, [plan_subject(plan, "plan.json")], DESCRIBED_BY_PLAN)
    assert ("BP-M11" in found(advice), "BP-M11" in advice.met) == (
        outcome == "finding",
        outcome == "met",
    )
    other = advise(RULES, [plan_subject(PLAN, "plan.json")], DESCRIBED_BY_PLAN)
    assert "BP-M11" in {rule.id for rule in other.not_applicable}


LOG_CHECK = {"instance": "one", "findings": [], "unread": None}


@pytest.mark.parametrize(
    ("change", "is_found"),
    [
        ({}, False),
        ({"log_check": [LOG_CHECK | {"findings": ["E0000000001.log: damaged"]}]}, True),
        ({"kernel_log": {"readable": True, "lines": ["sda: I/O error"]}}, True),
        (
            {"checksums": [{"name": "one/1", "bad": 1, "correctable": 0, "wrong_page_number": 0}]},
            True,
        ),
        ({"total": {"errors_in_run": 2}}, True),
    ],
)
def test_BP_E15_looks_at_logs_and_the_kernel_log(
    tmp_path: Path, change: dict[str, Any], is_found: bool
) -> None:
    """Its sentence asks for databases, logs and the event log.

    Only the databases and our own errors were looked at.
    """
    path = folder(tmp_path, PLAN, VERDICT)
    day = SUMMARY | {
        "window": {"seconds": 86400.0},
        "log_check": [LOG_CHECK],
        "kernel_log": {"readable": True, "lines": []},
    }
    (path / "summary.json").write_text(json.dumps(day | change))
    advice = advice_for(path)
    assert ("BP-E15" in found(advice)) == is_found
    assert is_found or "BP-E15" in advice.met


@pytest.mark.parametrize("missing", ["log_check", "kernel_log"])
def test_BP_E15_is_open_where_logs_were_not_looked_at(tmp_path: Path, missing: str) -> None:
    """What nobody read is not free of errors."""
    path = folder(tmp_path, PLAN, VERDICT)
    unread = {
        "log_check": [LOG_CHECK | {"unread": "no such directory"}],
        "kernel_log": {"readable": False, "lines": []},
    }
    day = SUMMARY | {"log_check": [LOG_CHECK], "kernel_log": {"readable": True, "lines": []}}
    day |= {"window": {"seconds": 86400.0}, missing: unread[missing]}
    (path / "summary.json").write_text(json.dumps(day))
    advice = advice_for(path)
    assert "BP-E15" in {entry.rule.id for entry in advice.not_evaluated}
    assert "BP-E15" not in found(advice)


@pytest.mark.parametrize(("busy", "is_found"), [(0.35, False), (0.97, True)])
def test_BP_M08_decides_by_the_processors_of_the_run(
    tmp_path: Path, busy: float, is_found: bool
) -> None:
    """A run on a host without a free processor measures the host.

    The rule was left to the reader.
    """
    path = folder(tmp_path, PLAN, VERDICT)
    (path / "summary.json").write_text(
        json.dumps(SUMMARY | {"machine": {"cpu_busy": {"mean": busy}}})
    )
    advice = advice_for(path)
    assert ("BP-M08" in found(advice), "BP-M08" in advice.met) == (is_found, not is_found)


def test_a_plan_that_says_nothing_of_maintenance_is_not_accused_of_lacking_it(
    tmp_path: Path,
) -> None:
    """Silence is no statement: the rule stays open."""
    plan = json.loads(json.dumps(PLAN))
    del plan["run"]["instances"][0]["maintenance"]
    advice = advise(RULES, [plan_subject(plan, "plan.json")], DESCRIBED_BY_PLAN)
    assert "BP-E14" not in found(advice)
    assert "BP-E14" in {entry.rule.id for entry in advice.not_evaluated}


def test_STO_12_a_target_that_holds_the_system_is_flagged(tmp_path: Path) -> None:
    """The operating system's own I/O is in the figures."""
    path = folder(tmp_path, PLAN, VERDICT)
    assert "STO-12-run" in advice_for(path).met
    target = ENVIRONMENT["targets"][0] | {"holds_system": True}
    (path / "environment.json").write_text(json.dumps({"targets": [target]}))
    assert "STO-12-run" in found(advice_for(path))


def test_bad_run_folders_are_refused(tmp_path: Path) -> None:
    """An empty folder, broken JSON, and JSON that is no object."""
    with pytest.raises(InputError, match="holds no run"):
        run_subjects(tmp_path)
    (tmp_path / "verdict.json").write_text('{\n"result": }')
    with pytest.raises(InputError, match=r"verdict.json:2: is not valid JSON"):
        run_subjects(tmp_path)
    (tmp_path / "verdict.json").write_text("[]")
    with pytest.raises(InputError, match="not an object"):
        run_subjects(tmp_path)
    (tmp_path / "verdict.json").write_bytes(b"\xff")
    with pytest.raises(InputError, match="not UTF-8"):
        read_object(tmp_path / "verdict.json")
    (tmp_path / "verdict.json").write_text(
        '{"checks": [3, {"name": "x"}], "result": {}, "qualifying": null}'
    )
    for name in ("plan", "summary", "environment"):
        (tmp_path / f"{name}.json").write_text(
            '{"run": 3, "judgement": [], "window": 1, "total": "x", "targets": [null, {}]}'
        )
    facts = run_subjects(tmp_path)[-1].facts
    assert facts == {
        "checks_failed": [],
        "checks_failed_count": 0,
        "checks_not_evaluated": [],
        "checks_not_evaluated_count": 0,
    }
