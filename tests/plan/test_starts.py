"""Loads of a plan that begin one after the other."""

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
