"""One value of a plan that is wrong is told as that, and not as what it makes of the others."""

import copy
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.inputs.toml_lines import LocatedFile
from plimsoll.plan.complete import complete_plan

PAGE = Path(__file__).parents[2] / "docs" / "combined.md"
Place = tuple[str | int, ...]


def plan_of_page() -> dict[str, Any]:
    """The first plan of the page."""
    text = PAGE.read_text(encoding="utf-8")
    begin = text.index('    kind = "plan"')
    shown = text[begin : text.index("    plimsoll run three.toml")]
    return tomllib.loads(re.sub("^    ", "", shown, flags=re.MULTILINE))


def values(of: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every value of a plan and every table in it, with its place."""
    if place:
        yield place, of
    for key, item in of.items() if isinstance(of, dict) else ():
        yield from values(item, (*place, key))
    for number, item in enumerate(of if isinstance(of, list) else ()):
        yield from values(item, (*place, number))


def other_values(value: Any) -> Iterator[Any]:
    """What a slip of one letter, or of one type, makes of a value."""
    yield from (True, [value], {}, 7)
    if isinstance(value, str):
        yield from (value[:-1], f"{value}x", f"{value[:-1]}x", value.swapcase())
    elif isinstance(value, int | float):
        yield from (str(value), -1, 0.5, 1e12)


def mistakes_of(plan: dict[str, Any], place: Place, value: Any) -> list[tuple[str, str]]:
    """What is said of a plan with another value at a place."""
    changed = copy.deepcopy(plan)
    within: Any = changed
    for key in place[:-1]:
        within = within[key]
    within[place[-1]] = value
    try:
        complete_plan(LocatedFile("plan.toml", changed, {}))
    except InputError as error:
        return [(mistake.where, mistake.message) for mistake in error.mistakes]
    return []


def misspelt(plan: dict[str, Any], place: Place) -> list[tuple[str, str]]:
    """What is said of a plan in which a key has a letter too many, with the hints."""
    changed = copy.deepcopy(plan)
    within: Any = changed
    for key in place[:-1]:
        within = within[key]
    within[f"{place[-1]}x"] = within.pop(place[-1])
    with pytest.raises(InputError) as found:
        complete_plan(LocatedFile("plan.toml", changed, {}))
    return [(mistake.where, mistake.hint) for mistake in found.value.mistakes]


def shown(place: Place) -> str:
    """A place as mistakes name it."""
    text = ""
    for key in place:
        text += f"[{key + 1}]" if isinstance(key, int) else f".{key}" if text else key
    return text


PLAN = plan_of_page()
PLACES = [(place, value) for place, value in values(PLAN) if place[0] != "kind"]


@pytest.mark.parametrize(("place", "value"), PLACES, ids=[shown(place) for place, _ in PLACES])
def test_a_wrong_value_is_told_at_its_place_and_nothing_else_is(place: Place, value: Any) -> None:
    """Whoever reads that `iops_per_user` needs users, and has written them, mends the wrong key."""
    entry, is_one_value = shown(place[:2]), not isinstance(value, dict | list)
    for other in other_values(value):
        found = mistakes_of(PLAN, place, other)
        # A name that nothing has is told where it is used.
        renamed = [where for where, message in found if message.startswith("names ")]
        if place[-1] == "name" and renamed:
            assert len(found) == len(renamed), (other, found)
            continue
        assert all(
            where.startswith(entry) or entry.startswith(f"{where}[") for where, _ in found
        ), (other, found)
        assert len(found) <= 1 or not is_one_value, (other, found)


@pytest.mark.parametrize(
    ("place", "other", "where"),
    [
        (("workload", 1, "load", "users"), "200", "workload[2].load.users"),
        (("workload", 2, "load", "users"), "200", "workload[3].load.users"),
        (("workload", 2, "load", "iops_per_user"), True, "workload[3].load.iops_per_user"),
        (("workload", 1, "instances", 0), "shpo", "workload[2].instances"),
        (("instance", 1, "name"), "shpo", "workload[2].instances"),
        (("instance", 1, "backend"), "stroe", "instance[2].backend"),
        (("instance", 0, "name"), 7, "instance[1].name"),
        (("phase", 1, "duration_s"), "1800", "phase[2].duration_s"),
        (("workload", 0, "load"), "200", "workload[1].load"),
    ],
)
def test_one_slip_is_one_mistake(place: Place, other: Any, where: str) -> None:
    """Each of these was told together with others that are none."""
    assert [told for told, _ in mistakes_of(PLAN, place, other)] == [where]


def test_mistakes_that_are_there_by_themselves_are_all_told() -> None:
    """A mistyped load of one workload hides nothing of another one."""
    plan = copy.deepcopy(PLAN)
    plan["workload"][1]["load"]["users"] = "200"
    plan["workload"][2]["think_s"] = 1
    plan["instance"][0]["files"] = 2
    with pytest.raises(InputError) as found:
        complete_plan(LocatedFile("plan.toml", plan, {}))
    assert {mistake.where for mistake in found.value.mistakes} == {
        "workload[2].load.users",
        "workload[3].think_s",
        "instance[1].files",
    }


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("target", 0, "modelled"), "dell-md3001", 'is "dell-md3001", no preset'),
        (("event", 0, "do"), "path fail", 'is "path fail", which is not one of the known values'),
        (("workload", 1, "window"), {"orders_per_min": 700}, "is 700, but must be a list"),
    ],
)
def test_a_mistake_of_an_array_an_event_or_a_window_is_told_once(
    place: Place, value: Any, message: str
) -> None:
    """An array that is mistyped is no real storage, on which events would want commands."""
    plan = plan_of_page()
    plan["target"] = [{"name": "array", "modelled": "dell-md3000i"}]
    plan["event"] = [
        {"name": "path", "after_s": 5, "undo_after_s": 9, "do": "path fails", "number": 2}
    ]
    plan["workload"][1]["window"] = {"orders_per_min": [700, 800]}
    found = mistakes_of(plan, place, value)
    assert [text for _, text in found] == [message]


def test_an_action_that_is_mistyped_is_told_alone() -> None:
    plan = plan_of_page()
    throttle = {"action": "throttle", "target": "array", "iops": 200}
    plan["event"] = [{"name": "slow", "after_s": 5, "undo_after_s": 9, **throttle}]
    assert [where for where, _ in mistakes_of(plan, ("event", 0, "action"), "throtle")] == [
        "event[1].action"
    ]


KEYS = [place for place, _ in PLACES if isinstance(place[-1], str) and place != ("schema_version",)]


@pytest.mark.parametrize("place", KEYS, ids=map(shown, KEYS))
def test_a_misspelt_key_is_told_once_with_the_key_that_was_meant(place: Place) -> None:
    """It was told as unknown, and what it says as missing."""
    ((where, hint),) = misspelt(PLAN, place)
    assert where == f"{shown(place)}x"
    assert f"`{place[-1]}`" in hint


@pytest.mark.parametrize(
    ("event", "key"),
    [
        ({"action": "throttle", "target": "array", "iops": 200}, "action"),
        ({"action": "throttle", "target": "array", "iops": 200}, "target"),
        ({"action": "throttle", "target": "array", "iops": 200}, "iops"),
        ({"action": "throttle", "mib_per_s": 20}, "mib_per_s"),
        ({"action": "server killed", "pid_file": "/run/x", "start": ["true"]}, "pid_file"),
        ({"action": "server killed", "pid_file": "/run/x", "start": ["true"]}, "start"),
        ({"action": "disk slow", "device": "x", "delay_ms": 9}, "delay_ms"),
        ({"command": ["true"], "undo": ["true"]}, "command"),
        ({"command": ["true"], "undo": ["true"]}, "undo"),
        ({"manual": "pull it", "manual_undo": "put it back"}, "manual"),
        ({"manual": "pull it", "manual_undo": "put it back"}, "manual_undo"),
        ({"command": ["true"], "undo": ["true"]}, "after_s"),
        ({"command": ["true"], "undo": ["true"]}, "name"),
    ],
)
def test_a_misspelt_key_of_an_event_is_told_once(event: dict[str, Any], key: str) -> None:
    plan = plan_of_page()
    plan["event"] = [{"name": "slow", "after_s": 5, "undo_after_s": 9, **event}]
    ((where, hint),) = misspelt(plan, ("event", 0, key))
    assert where == f"event[1].{key}x"
    assert f"`{key}`" in hint
    if isinstance(event.get(key), int):
        found = mistakes_of(plan, ("event", 0, key), "many")
        assert [where for where, _ in found] == [f"event[1].{key}"]
