"""Loads whose rate goes through stages: what is planned, what came, and what is concluded."""

import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest

import plimsoll
from plimsoll.documents.summary import WorkloadFigures
from plimsoll.verdict.stages import stage_checks
from tests.support.plain_stages import filled, summary_of

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
        {"rate_percent": 1, "for_s": 20},
        {"rate_percent": 100, "for_s": 6},
        {"rate_percent": 1, "for_s": 24},
    ]
    plan = plan_of({"transactions_per_s": 10000, "stages": stages}, 50)
    result = plimsoll.qualify(plan, tmp_path / "run")
    (load,) = result.summary.load.workloads
    assert [stage.stage for stage in load.stages] == [1, 2, 3]
    assert [stage.offered_per_s for stage in load.stages] == [100, 10000, 100]
    calm, busy, after = load.stages
    # What was under way when measuring began is completed in it.
    assert calm.completed_per_s == pytest.approx(115, rel=0.25)
    assert calm.response_ms_mean is not None and busy.response_ms_mean is not None
    assert busy.response_ms_mean > 10 * calm.response_ms_mean
    # What the busy stage left undone is completed behind it.
    assert after.completed_per_s is not None and after.completed_per_s > 1.5 * 100
    (check,) = [check for check in result.verdict.checks if check.name == "stage_carried"]
    assert check.status == "fail"
    assert check.reason.startswith("stage 2 completed ")
    assert result.result == "fail"
    assert "Stages of mix" in (result.folder / "report.html").read_text()
    # The day itself is no burst, and no latency that rises.
    assert result.summary.plateaus.kind == "none"
    assert not result.summary.rising


def test_the_stages_that_came_are_judged_and_the_others_named(tmp_path: Path) -> None:
    """A night that is calm says nothing of the day."""
    load = {"users": 1000, "iops_per_user": 0.1}
    stages = [{"rate_percent": 100, "for_s": 30}, {"rate_percent": 90, "for_s": 30}]
    assert plan_of(load).judgement.required_iops == 100
    plan = plan_of(load | {"stages": stages}, 60)
    assert plan.judgement.required_iops is None
    result = plimsoll.qualify(plan, tmp_path / "whole")
    (check,) = [check for check in result.verdict.checks if check.name == "stage_carried"]
    assert (check.status, check.predicted) == ("pass", None)
    assert check.reason == "2 of 2 stages completed what was due in them"
    assert not result.verdict.user_equivalents
    plan = plan_of(load | {"stages": stages}, 30)
    result = plimsoll.qualify(plan, tmp_path / "half")
    assert any("1 of its 2 stages" in text for text in result.verdict.warnings)


def test_an_interrupted_run_tells_the_stages_that_came(tmp_path: Path) -> None:
    """What was found until then is worth as much as that of a whole run."""
    stop = threading.Event()

    class InTheSecond(plimsoll.Listener):
        def event(self, event: Any) -> None:
            if event.kind == "stage_began" and "stage 2" in event.text:
                stop.set()

    stages = [{"rate_percent": 100, "for_s": 60}, {"rate_percent": 50, "for_s": 500_000}]
    plan = plan_of({"transactions_per_s": 100, "stages": stages}, 500_060)
    result = plimsoll.qualify(plan, tmp_path / "run", listener=InTheSecond(), stop=stop)
    assert result.ending == "interrupted"
    (load,) = result.summary.load.workloads
    assert [stage.stage for stage in load.stages] == [1, 2]
    assert load.stages[1].scheduled_s < 500_000


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
        (WAY, {"required_iops": 100}, "each stage must complete"),
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


def checked(
    offered_per_s: float,
    completed_per_s: float,
    *,
    spacing: str = "poisson",
    count: int = 1,
    seconds: float = 10,
) -> Any:
    """The check of stages of one second each, all alike."""
    load = {"transactions_per_s": offered_per_s, "spacing": spacing}
    stages = [{"rate_percent": 100, "for_s": seconds}] * count
    plan = plan_of(load | {"stages": stages})
    stage = {
        "rate_percent": 100.0,
        "start_s": 0.0,
        "scheduled_s": seconds,
        "seconds": seconds,
        "offered_per_s": offered_per_s,
        "completed_per_s": completed_per_s,
        "response_ms_mean": 1.0,
        "database_iops": 1.0,
        "database_read_ms_mean": 1.0,
        "log_write_ms_mean": 1.0,
    }
    shown = filled(
        WorkloadFigures,
        {"name": "mix", "stages": [{"stage": number + 1, **stage} for number in range(count)]},
    )
    summary = summary_of({"load": {"workloads": [shown]}})
    (check,) = stage_checks(plan, summary)
    return check


def test_chance_is_no_shortfall_and_excuses_none() -> None:
    """Of a thousand independent arrivals fifty more or fewer say nothing, of ten thousand they
    do; regular ones are counted.
    """
    assert checked(100, 93).status == "pass"
    assert checked(1000, 930).status == "fail"
    assert checked(100, 93, spacing="regular").status == "fail"
    # Nine arrivals may all be missing by chance: nothing is told of them.
    assert checked(0.9, 0).status == "not_evaluated"
    # A queue that grows a little in every stage shows in all of them together.
    assert checked(100, 93, count=40).status == "fail"
    assert "all stages together" in checked(100, 93, count=40).reason


def test_more_stages_fail_no_sound_storage() -> None:
    """Among 2,400 stages some are far out by chance."""
    assert checked(22, 22 - 4 * (22 / 3) ** 0.5, count=1, seconds=300).status == "fail"
    random = Random(1)
    for _ in range(20):
        worst = min(random.gauss(660, 660**0.5) for _ in range(400)) / 30
        assert checked(22, worst, count=400, seconds=30).reason.startswith("all stages together")
