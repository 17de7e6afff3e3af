"""How many threads a plan asks for.

What is refused, what is said, and that one thread leaves no word behind.
"""

import json
import os

import pytest

import plimsoll
from plimsoll.pipeline import forecast
from plimsoll.plan.threads import threads_of


def plan_of(instances: int = 3, **more: object) -> plimsoll.Plan:
    """A plan with so many instances of one database."""
    one = {"database_size_mib": 64}
    return plimsoll.build_plan(
        {
            "target": [{"name": "disk", "path": "/mnt/none"}],
            "instance": [{"name": f"i{number}", **one} for number in range(instances)],
            **more,
        }
    )


def test_one_thread_is_the_default_and_leaves_no_key() -> None:
    """Files of earlier versions and of this one stay the same."""
    plan = plan_of()
    assert plan.run.thread_count == 1
    assert not {"threads", "pin"} & set(plan.run.plain())
    assert plan_of(threads=1).run.plain() == plan.run.plain()


def test_threads_and_pinning_reach_the_run_spec() -> None:
    run = plan_of(threads=2, pin=True).run
    assert (run.threads, run.pin, run.thread_count) == (2, True, 2)
    assert threads_of(run.instances, 2) == [0, 1, 0]


def test_auto_is_one_for_each_instance_and_at_most_the_processors_less_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for processors, expected in ((1, 1), (2, 1), (3, 2), (64, 3)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, count=processors: set(range(count)))
        assert plan_of(threads="auto").run.thread_count == expected


@pytest.mark.parametrize(
    ("threads", "text"),
    [(0, "must lie between 1 and 1,024"), ("many", 'must be a number or "auto"'), (1.5, "whole")],
)
def test_what_is_no_count_is_refused(threads: object, text: str) -> None:
    with pytest.raises(plimsoll.InputError, match=text):
        plan_of(threads=threads)


def test_a_pool_with_fewer_sessions_than_threads_is_refused() -> None:
    pool = [{"name": "mix", "load": {"sessions": 2, "shared": True}}]
    plan_of(threads=2, workload=pool)
    with pytest.raises(plimsoll.InputError, match="take at least 3 sessions, or fewer threads"):
        plan_of(threads=3, workload=pool)
    with pytest.raises(plimsoll.RefusedError, match="--threads: workload mix shares 2 sessions"):
        plimsoll.bounded(plan_of(workload=pool), threads="3")


def test_the_option_takes_the_place_of_the_plan() -> None:
    plan = plan_of(threads=3)
    assert plimsoll.bounded(plan).run.threads == 3
    assert plimsoll.bounded(plan, threads="2").run.threads == 2
    assert "threads" not in json.dumps(plimsoll.bounded(plan, threads=1).run.plain())
    with pytest.raises(plimsoll.RefusedError, match="--threads: is two; write auto"):
        plimsoll.bounded(plan, threads="two")


def test_the_forecast_says_how_many_threads_carry_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    assert forecast.threads(plan_of()) == ["1 carries 3 instances; this machine has 4 processors"]
    assert forecast.threads(plan_of(threads=2)) == [
        "2 carry 3 instances, 1 to 2 each; this machine has 4 processors"
    ]
    assert "one instance is carried by one thread: use several" in forecast.threads(plan_of(1))[1]
    assert "8 were asked for" in forecast.threads(plan_of(threads=8))[1]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(2)))
    assert "3 threads on 2 processors wait" in forecast.threads(plan_of(threads=3))[1]
