"""Stress and maximum as a user starts them; what each of the named tests says of itself."""

import copy
import json
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.support.places import plimsoll
from tests.support.plain_stages import judge
from tests.verdict.test_verdict import ENVIRONMENT, PLAN, summary

SMALL = ["--databases", "1", "--size-mib", "128", "--cache-mib", "8", "--sessions", "2"]


def plan_of(home: Path, *command: str) -> dict[str, object]:
    result = plimsoll("test", *command, home / "disk", "--dry-run", "--json", cwd=home)
    assert result.returncode == 0, result.stderr
    found: dict[str, object] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("name", "kinds", "limits"),
    [
        ("stress", ["prepare", "warm_up", "measure", "stop", "checksum"], "lenient"),
        ("max", ["prepare", "warm_up", "search", "measure", "stop", "checksum"], "strict"),
        ("backup", ["prepare", "backup", "stop"], "strict"),
        ("recovery", ["prepare", "generate_logs", "recover", "stop", "checksum"], "strict"),
    ],
)
def test_what_a_named_test_does(tmp_path: Path, name: str, kinds: list[str], limits: str) -> None:
    """The phases and limits that the published tests of these names had.

    Nothing is written to say so.
    """
    found = plan_of(tmp_path, name)
    assert [phase["action"]["kind"] for phase in found["run"]["phases"]] == kinds  # type: ignore[index]
    assert found["judgement"]["limits"] == limits  # type: ignore[index]
    assert list(tmp_path.iterdir()) == []


def test_a_day_of_stress_is_what_it_takes(tmp_path: Path) -> None:
    """JST-02: 24 hours unless told otherwise, and a recovery holds its checkpoint without being
    told.
    """
    measure = plan_of(tmp_path, "stress")["run"]["phases"][2]  # type: ignore[index]
    assert measure["action"]["duration_s"] == 86400
    held = [
        item["hold_checkpoint"]
        for name in ("recovery", "stress")
        for item in plan_of(tmp_path, name)["run"]["instances"]
    ]  # type: ignore[index]
    assert held == [True, True, False, False]


def test_JST_03_a_maximum_is_compared_with_the_rate_of_a_performance_run() -> None:
    """The published report: 329.489 became 462.483, 40 % more."""
    plan, found = copy.deepcopy(PLAN), summary()
    plan["judgement"] |= {"test": "maximum", "required_iops": 329.489}
    found["total"]["database_iops"] = 462.483
    verdict = judge(plan, found, ENVIRONMENT)
    assert verdict["headroom"] == pytest.approx(1.40, abs=0.005)
    assert verdict["result"] == "pass"


def test_JST_04_the_highest_rate_is_found_and_measured(tmp_path: Path) -> None:
    """Every rate tried is on record, and what is judged ran at the highest that passed."""
    minutes = ["--minutes", "0.05", "--search-minutes", "0.25"]
    result = plimsoll(
        "test", "max", tmp_path / "disk", *SMALL, *minutes, "--out", tmp_path / "run", cwd=tmp_path
    )
    assert result.returncode in (0, 1, 3), result.stderr
    found = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    assert found["ending"] == "complete", found["error"]
    assert len(found["load"]["searches"]) == 1
    assert found["window"]["seconds"] == pytest.approx(3, abs=1)
    assert (tmp_path / "run" / folder.POINTS).exists()


@pytest.mark.slow
def test_the_most_sessions_are_found_and_measured(tmp_path: Path) -> None:
    """As the published tool tunes its threads: whole sessions, and a run with what passed."""
    options = ["max", "--by", "sessions", "--minutes", "2", "--search-minutes", "60"]
    workloads = plan_of(tmp_path, *options, *SMALL)["run"]["workloads"]  # type: ignore[index]
    assert workloads[0]["load"]["search"] == "max_sessions"
    plan = tmp_path / "plan.toml"
    plan.write_text(
        """
        kind = "plan"
        schema_version = 1
        test = "maximum"
        target = [{ name = "array", modelled = "emc-vnxe3300" }]
        [[instance]]
        name = "one"
        target = "array"
        database_size_mib = 128
        cache_mib_max = 8
        [[workload]]
        name = "mix"
        load = { search = "max_sessions", sessions = 2, step_s = 30, settle_s = 5 }
        [[phase]]
        kind = "prepare"
        [[phase]]
        kind = "warm_up"
        [[phase]]
        kind = "search"
        duration_s = 3600
        [[phase]]
        kind = "measure"
        duration_s = 120
        [[phase]]
        kind = "stop"
        """
    )
    result = plimsoll("run", plan, "--out", tmp_path / "run", cwd=tmp_path)
    assert result.returncode in (0, 1), result.stderr
    found = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    (search,) = found["load"]["searches"]
    assert (search["search"], search["end"]) == ("max_sessions", "narrow")
    passed, failed = search["passed_sessions"], search["failed_sessions"]
    assert 1 <= passed < failed <= max(passed + 1, 1.05 * passed)
    assert f"most sessions of mix: {passed} with" in result.stdout
    steps = json.loads((tmp_path / "run" / folder.POINTS).read_text())["searches"][0]["steps"]
    assert {step["sessions"] for step in steps} >= {passed, failed}


def test_JST_02_stress_in_short(tmp_path: Path) -> None:
    """All layers are looked at, and hours that were not spent are not claimed."""
    result = plimsoll(
        "test",
        "stress",
        tmp_path / "disk",
        *SMALL,
        "--hours",
        "0.001",
        "--out",
        tmp_path / "run",
        cwd=tmp_path,
    )
    assert result.returncode in (0, 1, 3), result.stderr
    assert (tmp_path / "run" / folder.DEVICE_ERRORS).exists()
    said = (tmp_path / "run" / folder.VERDICT).read_text()
    assert "a qualification by the stress test takes 24 hours" in said
    verdict = json.loads((tmp_path / "run" / folder.VERDICT).read_text())
    assert verdict["limits"] == "lenient"
    assert {"io_errors", "hung_io", "bad_pages"} <= {check["name"] for check in verdict["checks"]}


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("performance", "--limits", "s4"), "is not one of 'strict', 'lenient'"),
        (("performance", "--backend", "sqlite"), "is not one of 'engine', 'raw_files'"),
        (("mail", "--limits", "strict"), "is not one of 's4'"),
    ],
)
def test_limits_and_backends_of_another_test_are_refused(
    tmp_path: Path, command: tuple[str, ...], told: str
) -> None:
    """Judged by the limits of mail, a test of storage passes whatever its latencies."""
    name, *options = command
    result = plimsoll("test", name, "disk", *options, "--dry-run", cwd=tmp_path)
    assert result.returncode == 2
    assert told in result.stderr
