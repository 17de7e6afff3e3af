"""Before measuring: preconditioning until steady, soaking, and a load that is as skewed as the plan
says.
"""

from pathlib import Path
from typing import Any

import pytest

from plimsoll import settings
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options, read_plan
from tests.support.cloud_volume import run_on_cloud_volume
from tests.support.plain_stages import warnings_of


def modelled_run(
    path: Path, phases: list[dict[str, Any]], saved: float, **workload: Any
) -> dict[str, Any]:
    """The summary of a run in virtual time on a cloud volume that bursts from 300 to 900 requests a
    second on saved credit.
    """
    plan = plan_of_options(
        {
            "name": "conditioned",
            "target": [{"name": "volume", "modelled": "cloud-volume"}],
            "instance": [
                {"name": "one", "database_size_mib": 256, "cache_mib_max": 8, "maintenance": False}
            ],
            "workload": [{"name": "mix", "load": {"sessions": 16}, "sluggish": 0, **workload}],
            "phase": [
                {"kind": "prepare"},
                *phases,
                {"kind": "measure", "duration_s": 10},
                {"kind": "stop"},
            ],
        }
    ).plain()
    return run_on_cloud_volume(path, plan, saved)


ROUNDS = {
    "kind": "precondition",
    "round_s": 5,
    "window_rounds": 4,
    "range_percent": 20,
    "slope_percent": 10,
}


def test_a_storage_is_preconditioned_until_it_keeps_steady(tmp_path: Path) -> None:
    """JST-18: The burst must be over before the window is steady at the rate that lasts.

    What follows is measured without a step.
    """
    # The burst ends in the middle of a window, so a rule without a window would have stopped too
    # early.
    summary = modelled_run(
        tmp_path / "run", [{**ROUNDS, "rounds_max": 40, "window_rounds": 12}], saved=20_000.0
    )
    found = summary["conditioning"]["precondition"]
    assert found["is_steady"]
    assert 12 < len(found["rounds_iops"]) < 40
    window = found["rounds_iops"][-12:]
    mean = sum(window) / 12
    assert found["last_window"]["range_percent"] == pytest.approx(
        100 * (max(window) - min(window)) / mean
    )
    assert max(window) < 0.6 * max(found["rounds_iops"])
    assert summary["total"]["database_iops"] == pytest.approx(mean, rel=0.15)
    assert summary["plateaus"]["kind"] == "none"
    assert warnings_of(summary) == []


def test_a_storage_that_does_not_get_steady_is_measured_with_a_warning(tmp_path: Path) -> None:
    """Two hours later nobody wants to hear that nothing was measured, but everybody that it does
    not qualify.
    """
    phase = {**ROUNDS, "rounds_max": 4, "range_percent": 0.1, "slope_percent": 0.1}
    summary = modelled_run(tmp_path / "run", [phase], saved=0.0)
    assert len(summary["conditioning"]["precondition"]["rounds_iops"]) == 4
    assert not summary["conditioning"]["precondition"]["is_steady"]
    assert any("preconditioned and not steady" in text for text in warnings_of(summary))


def test_soaking_is_not_measured(tmp_path: Path) -> None:
    """Aging takes its time and leaves no figure behind.

    The hot set of the plan is found again in what was measured.
    """
    skew = {"hot_percent": 10, "hot_access_percent": 80}
    summary = modelled_run(
        tmp_path / "run", [{"kind": "soak", "duration_s": 20}], saved=0.0, **skew
    )
    assert summary["window"]["seconds"] == pytest.approx(10, abs=0.5)
    assert summary["conditioning"]["soaked_s"] == pytest.approx(20, abs=0.5)
    assert summary["conditioning"]["precondition"] is None
    (hot,) = summary["conditioning"]["hot_sets"]
    assert (hot["hot_percent"], hot["asked_access_percent"]) == (10, 80)
    # Sessions work in folders, so a few hundred folders decide.
    assert hot["access_percent"] == pytest.approx(80, abs=8)


def test_the_rule_is_the_published_one() -> None:
    """SNIA Solid State Storage Performance Test Specification 2.0.

    Five rounds, range 20 %, slope 10 %, 25 rounds at most.
    """
    rule = settings.PRECONDITION
    assert (rule["window_rounds"], rule["range_percent"], rule["slope_percent"]) == (5, 20.0, 10.0)
    assert (rule["round_s"], rule["rounds_max"]) == (60.0, 25)


def test_every_mistake_of_conditioning_is_told_at_once(tmp_path: Path) -> None:
    """With the line of each and what to write instead."""
    plan = tmp_path / "plan.toml"
    plan.write_text(
        """kind = "plan"
schema_version = 1
[[target]]
name = "disk"
path = "/data"
[[instance]]
name = "one"
[[workload]]
name = "a"
hot_percent = 20
[[workload]]
name = "b"
hot_percent = 80
hot_access_percent = 20
[[phase]]
kind = "prepare"
[[phase]]
kind = "precondition"
window_rounds = 30
duration_s = 5
[[phase]]
kind = "soak"
[[phase]]
kind = "measure"
duration_s = 10
round_s = 3
"""
    )
    with pytest.raises(InputError) as refused:
        read_plan(plan)
    told = {mistake.where: mistake for mistake in refused.value.mistakes}
    assert {
        "workload[1].hot_access_percent",
        "workload[2].hot_access_percent",
        "phase[2].window_rounds",
        "phase[2].duration_s",
        "phase[3].duration_s",
        "phase[4].round_s",
    } <= set(told)
    text = str(refused.value)
    assert ":14" in text and ":19" in text and "hint" in text
