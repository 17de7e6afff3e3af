"""Loads of a plan that begin one after the other."""

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options

PHASES = [{"kind": "prepare"}, {"kind": "measure", "duration_s": 100}, {"kind": "stop"}]


def phases(*workloads):
    plan = plan_of_options(
        {
            "target": [{"name": "disk", "path": "/nowhere"}],
            "instance": [{"name": "one"}, {"name": "two"}],
            "workload": list(workloads),
            "phase": PHASES,
        }
    )
    return plan.run.phases


def test_ORC_03_loads_begin_one_after_the_other() -> None:
    """What is measured counts from the last start; whoever has begun goes on."""
    found = phases(
        {"name": "mail", "instances": ["one"]},
        {"name": "orders", "instances": ["two"], "start_after_s": 10},
        {"name": "more", "instances": ["two"], "start_after_s": 25},
    )
    shape = [
        (phase.action.kind, getattr(phase.action, "duration_s", None), list(phase.workloads))
        for phase in found
    ]
    assert shape == [
        ("prepare", None, []),
        ("soak", 10, ["mail"]),
        ("soak", 15, ["mail", "orders"]),
        ("measure", 100, ["mail", "orders", "more"]),
        ("stop", None, []),
    ]
    assert len({phase.name for phase in found}) == len(found)


def test_loads_that_begin_together_need_no_further_phase() -> None:
    assert [phase.action.kind for phase in phases({"name": "mail"}, {"name": "orders"})] == [
        "prepare",
        "measure",
        "stop",
    ]


def test_a_start_that_cannot_be_kept_is_a_mistake() -> None:
    """Loads begin where the first of them runs; a later one would begin with its own phase."""
    with pytest.raises(InputError) as found:
        plan_of_options(
            {
                "target": [{"name": "disk", "path": "/nowhere"}],
                "instance": [{"name": "one"}, {"name": "two"}],
                "workload": [
                    {"name": "mail", "instances": ["one"]},
                    {"name": "orders", "instances": ["two"], "start_after_s": 10},
                ],
                "phase": [
                    {"kind": "prepare"},
                    {"kind": "warm_up", "workloads": ["mail"], "timeout_s": 60},
                    {"kind": "measure", "duration_s": 100},
                ],
            }
        )
    (mistake,) = found.value.mistakes
    assert mistake.where == "workload[2].start_after_s"
    assert mistake.message == "cannot be kept: it does not run in warm_up, where loads begin"


def test_a_start_far_behind_the_others_delays_what_is_measured() -> None:
    """Longer than the measured phase: that one begins with the last start all the same."""
    found = phases(
        {"name": "mail", "instances": ["one"]},
        {"name": "orders", "instances": ["two"], "start_after_s": 500},
    )
    assert [(phase.action.kind, list(phase.workloads)) for phase in found[1:3]] == [
        ("soak", ["mail"]),
        ("measure", ["mail", "orders"]),
    ]
