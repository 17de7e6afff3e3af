"""Loads whose rate goes through stages: what is planned, what came, and what is concluded."""

from pathlib import Path
from typing import Any

import pytest

import plimsoll
from plimsoll.documents.summary import StageFigures
from plimsoll.verdict.stages import lacking_percent

WAY = {"transactions_per_s": 60, "stages": [{"rate_percent": 50, "for_s": 20}]}


def plan_of(load: dict[str, Any], seconds: float = 40, **more: Any) -> plimsoll.Plan:
    return plimsoll.build_plan(
        {
            "name": "day",
            "target": [{"name": "array", "modelled": "emc-vnxe3300"}],
            "instance": [
                {
                    "name": "one",
                    "database_size_mib": 2048,
                    "cache_mib_max": 16,
                    "cache_mib_min": 4,
                }
            ],
            "workload": [{"name": "mix", "load": load}],
            "phase": [
                {"kind": "prepare"},
                {"kind": "warm_up"},
                {"kind": "measure", "duration_s": seconds},
                {"kind": "stop"},
            ],
            **more,
        }
    )


def test_a_stage_that_the_storage_does_not_carry_fails(tmp_path: Path) -> None:
    """On average over the day, this array carries the load; at its busiest hour it does not."""
    stages = [
        {"rate_percent": 1, "for_s": 40},
        {"rate_percent": 100, "for_s": 20},
        {"rate_percent": 1, "for_s": 60},
    ]
    plan = plan_of({"transactions_per_s": 10000, "stages": stages}, 120)
    result = plimsoll.qualify(plan, tmp_path / "run")
    (load,) = result.summary.load.workloads
    assert [stage.stage for stage in load.stages] == [1, 2, 3]
    assert [stage.offered_per_s for stage in load.stages] == [100, 10000, 100]
    calm, busy, after = load.stages
    assert calm.completed_per_s == pytest.approx(100, rel=0.2)
    assert calm.response_ms_mean is not None and busy.response_ms_mean is not None
    assert busy.response_ms_mean > 10 * calm.response_ms_mean
    # What the busy stage left undone is completed behind it.
    assert after.completed_per_s is not None and after.completed_per_s > 1.5 * 100
    (check,) = [check for check in result.verdict.checks if check.name == "stage_carried"]
    assert check.status == "fail"
    assert check.reason.startswith("stage 2, ")
    assert result.result == "fail"
    assert "Stages of mix" in (result.folder / "report.html").read_text()
    # The day itself is no burst, and no latency that rises.
    assert result.summary.plateaus.kind == "none"
    assert not result.summary.rising


def test_users_need_the_mean_of_their_stages(tmp_path: Path) -> None:
    """A day at 60 % of its busiest hour asks for 60 % of what all users make."""
    load = {"users": 1000, "iops_per_user": 0.1}
    stages = [{"rate_percent": 20, "for_s": 20}, {"rate_percent": 100, "for_s": 20}]
    assert plan_of(load).judgement.required_iops == 100
    plan = plan_of(load | {"stages": stages})
    assert plan.judgement.required_iops == pytest.approx(60)
    result = plimsoll.qualify(plan, tmp_path / "run")
    (check,) = [check for check in result.verdict.checks if check.name == "stage_carried"]
    assert check.status == "pass"
    assert not result.verdict.user_equivalents
    (check,) = [check for check in result.verdict.checks if check.name == "required_iops"]
    assert "on average over the stages" in check.reason


def test_a_day_has_twenty_four_hours() -> None:
    """Pressed together, or as long as a day is."""
    for hour_s, stated in ((3600, {}), (60, {"hour_s": 60})):
        plan = plan_of({"transactions_per_s": 10, "day_curve": "office", **stated})
        load: Any = plan.run.workloads[0].plain()["load"]
        assert [stage["for_s"] for stage in load["stages"]] == [hour_s] * 24
        assert max(stage["rate_percent"] for stage in load["stages"]) == 100


@pytest.mark.parametrize(
    ("load", "more", "words"),
    [
        (WAY | {"day_curve": "office"}, {}, "says stages and day_curve"),
        (WAY | {"hour_s": 60}, {}, "means nothing without day_curve"),
        ({"sessions": 3, "stages": WAY["stages"]}, {}, "means nothing together with `sessions`"),
        ({"search": "max", "stages": WAY["stages"]}, {}, "means nothing together with `search`"),
        ({"transactions_per_s": 1, "stages": []}, {}, "needs at least 1"),
        ({"transactions_per_s": 1, "stages": [{"for_s": 9}]}, {}, "rate_percent"),
        (WAY, {"sample_interval_ms": 10_000}, "shorter than 3 samples, 30 s"),
        ({"transactions_per_s": 1, "day_curve": "holiday"}, {}, "not one of the known values"),
        (
            WAY,
            {
                "event": [
                    {
                        "name": "pull",
                        "phase": "measure",
                        "after_s": 10,
                        "kind": "drive_fails",
                        "undo_after_s": 5,
                    }
                ]
            },
            "which stages change",
        ),
    ],
)
def test_what_means_nothing_is_refused(
    load: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    with pytest.raises(plimsoll.InputError) as raised:
        plan_of(load, **more)
    assert words in str(raised.value)


def test_chance_is_no_shortfall() -> None:
    """Of a hundred independent arrivals ten more or fewer say nothing, of ten thousand they do."""

    def lacking(offered_per_s: float, completed_per_s: float) -> float | None:
        stage = StageFigures(
            stage=1,
            rate_percent=100,
            start_s=0,
            seconds=10,
            offered_per_s=offered_per_s,
            completed_per_s=completed_per_s,
            response_ms_mean=1,
            database_iops=1,
            database_read_ms_mean=1,
            log_write_ms_mean=1,
        )
        return lacking_percent(stage)

    assert lacking(10, 8) == 0
    assert lacking(1000, 800) == pytest.approx(17)
