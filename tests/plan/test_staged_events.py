"""Events in a plan, and loads that begin one after the other."""

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from plimsoll.plan.staged import in_words, refused_events

PHASES = [{"kind": "prepare"}, {"kind": "measure", "duration_s": 100}, {"kind": "stop"}]
TRUE = {"name": "pull", "after_s": 40, "undo_after_s": 60, "command": ["true"], "undo": ["true"]}


def plan(events=(), workloads=None, **target):
    return plan_of_options(
        {
            "target": [{"name": "disk", **(target or {"path": "/nowhere"})}],
            "instance": [{"name": "one"}, {"name": "two"}],
            "workload": workloads or [{"name": "mix"}],
            "phase": PHASES,
            "event": list(events),
        }
    )


def mistakes(*events, **target):
    with pytest.raises(InputError) as found:
        plan(events, **target)
    return {mistake.where: mistake.message for mistake in found.value.mistakes}


def test_ORC_02_an_event_has_its_phase_its_time_and_its_limits() -> None:
    event = plan([{**TRUE, "judge": {"pause_s_max": 30}}]).events[0]
    assert (event.phase, event.after_s, event.undo_after_s, event.timeout_s) == ("measure", 40, 60, 60)
    assert event.judge.pause_s_max == 30 and event.judge.errors_max is None
    assert in_words([event]) == ["event pull, 40 s into measure until 60 s: true; undone by true"]


def test_every_mistake_of_events_is_told_at_once() -> None:
    found = mistakes(
        {"name": "both", "after_s": 1, "command": ["true"], "manual": "pull it"},
        {"name": "late", "after_s": 100, "command": ["true"]},
        {"name": "before", "after_s": 50, "undo_after_s": 50, "command": ["true"], "undo": ["true"]},
        {"name": "no undo", "after_s": 5, "undo_after_s": 50, "command": ["true"]},
        {"name": "where", "after_s": 5, "phase": "mesure", "command": ["true"]},
        {"name": "shell", "after_s": 5, "command": "rm -rf /"},
    )
    assert set(found) == {
        "event[1].command",
        "event[2].after_s",
        "event[3].undo_after_s",
        "event[4].undo_after_s",
        "event[5].phase",
        "event[6].command",
    }


def test_a_modelled_array_takes_no_commands() -> None:
    found = mistakes(TRUE, modelled="dell-md3000i")
    assert "modelled" in found["event[1].name"]


def test_commands_need_consent_and_programs() -> None:
    events = plan([TRUE, {**TRUE, "name": "odd", "command": ["no-such-program", "-x"]}]).events
    assert len(refused_events(events, allowed=False)) == 3
    assert [text for text in refused_events(events, allowed=True) if "no-such-program" in text]
    assert refused_events(events[:1], allowed=True) == []


def test_ORC_03_loads_begin_one_after_the_other() -> None:
    """What is measured counts from the last start; whoever has begun goes on."""
    workloads = [
        {"name": "mail", "instances": ["one"]},
        {"name": "orders", "instances": ["two"], "start_after_s": 10},
        {"name": "more", "instances": ["two"], "start_after_s": 25},
    ]
    phases = plan(workloads=workloads).run.phases
    shape = [(phase.action.kind, getattr(phase.action, "duration_s", None), list(phase.workloads)) for phase in phases]
    assert shape == [
        ("prepare", None, []),
        ("soak", 10, ["mail"]),
        ("soak", 15, ["mail", "orders"]),
        ("measure", 100, ["mail", "orders", "more"]),
        ("stop", None, []),
    ]
    assert len({phase.name for phase in phases}) == len(phases)
