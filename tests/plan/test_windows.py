"""Windows of loads: what a plan states for each family, what is usual, and what is nonsense."""

from typing import Any

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from plimsoll.plan.windows import WINDOW_FIELDS
from plimsoll.workloads.families import WINDOWS

INSTANCES: dict[str, dict[str, Any]] = {
    "records": {"name": "it", "database_size_mib": 64},
    "files": {"name": "it", "backend": "files"},
    "store": {"name": "it", "backend": "store"},
    "mail": {"name": "it", "backend": "mail_store"},
    "home_folders": {"name": "it", "backend": "home_folders"},
}


def complete(family: str, workload: dict[str, Any], *more: dict[str, Any], seconds: float = 1200):
    """A plan with one instance of a family, its load, and further loads on it."""
    phases: list[dict[str, Any]] = [{"kind": "prepare"}, {"kind": "warm_up", "timeout_s": 60}]
    phases = phases if family == "records" else phases[:1]
    return plan_of_options(
        {
            "target": [{"name": "disk", "path": "/nowhere"}],
            "instance": [INSTANCES[family]],
            "workload": [{"name": "load", **workload}, *more],
            "phase": [*phases, {"kind": "measure", "duration_s": seconds}, {"kind": "stop"}],
        }
    )


def mistakes(family: str, *workloads: dict[str, Any], seconds: float = 1200) -> dict[str, str]:
    with pytest.raises(InputError) as found:
        complete(family, *workloads, seconds=seconds)
    return {mistake.where: mistake.message for mistake in found.value.mistakes}


STATED: list[tuple[str, dict[str, Any], str, list[float], float, int | None]] = [
    ("records", {"transactions_per_s": 100}, "transactions_per_s", [95, 105], 60, None),
    ("records", {"target_iops": 200}, "iops", [180, 220], 60, None),
    ("records", {"users": 500, "iops_per_user": 0.18}, "iops_per_user", [0.15, 0.21], 60, 500),
    ("records", {"sessions": 3}, "transactions_per_s", [1, 1e6], 60, None),
    ("files", {"target_iops": 140}, "iops", [120, 150], 10, None),
    ("files", {"users": 200, "iops_per_user": 0.7}, "iops_per_user", [0.5, 0.9], 10, 200),
    ("store", {"users": 200}, "orders_per_user_per_min", [3.5, 4], 60, 200),
    ("store", {"sessions": 20}, "orders_per_min", [700, 800], 60, None),
    ("store", {"transactions_per_s": 10}, "orders_per_min", [550, 650], 60, None),
    ("mail", {"users": 200}, "tasks_per_user_per_day", [1, 1000], 600, 200),
    ("mail", {"users": 200}, "tasks_per_s", [0.01, 5], 600, None),
    ("home_folders", {"users": 60}, "scenarios_per_user_per_h", [55, 65], 60, 60),
    ("home_folders", {"users": 60}, "scenarios_per_s", [0.9, 1.1], 60, None),
]


@pytest.mark.parametrize(("family", "load", "figure", "band", "over_s", "users"), STATED)
def test_every_load_has_a_window_in_its_own_figures(
    family: str,
    load: dict[str, Any],
    figure: str,
    band: list[float],
    over_s: float,
    users: int | None,
) -> None:
    think = {"think_s": 1.5} if family == "store" else {}
    found = complete(family, {"load": load, "window": {figure: band}, **think})
    window = found.judgement.load_windows["load"]
    assert (window.figure, window.least, window.most) == (figure, *band)
    assert (window.over_s, window.users) == (over_s, users)
    # No longer than what is measured.
    short = complete(family, {"load": load, "window": {figure: band}, **think}, seconds=5)
    assert short.judgement.load_windows["load"].over_s == 5
    stated = {figure: band, "over_s": 30}
    longer = complete(family, {"load": load, "window": stated, **think})
    assert longer.judgement.load_windows["load"].over_s == 30


def test_every_figure_is_a_key_of_a_plan_and_is_tried() -> None:
    keys = {key for own in WINDOWS.values() for key in own}
    assert {*keys, "over_s"} == set(WINDOW_FIELDS)
    tried = {(family, figure) for family, _, figure, *_ in STATED}
    assert tried == {(family, key) for family, own in WINDOWS.items() for key in own}


def test_users_of_files_have_the_published_window_and_others_none() -> None:
    """200 users at 0.70 are valid from 0.60 to 0.75; for mail and stores nothing is published."""
    load = {"users": 200, "iops_per_user": 0.70}
    window = complete("files", {"load": load}).judgement.load_windows["load"]
    assert (window.least, window.most) == (pytest.approx(0.60), pytest.approx(0.75))
    assert (window.figure, window.over_s, window.users) == ("iops_per_user", 10, 200)
    # A load that was to be lower was planned lower.
    half = complete("files", {"load": {**load, "throughput_percent": 50}}).judgement.load_windows
    assert (half["load"].least, half["load"].most) == (pytest.approx(0.30), pytest.approx(0.375))
    assert not complete("files", {"load": {"target_iops": 140}}).judgement.load_windows
    assert not complete("store", {"load": {"users": 200}}).judgement.load_windows
    assert not complete("mail", {"load": {"users": 200}}).judgement.load_windows
    assert not complete("records", {"load": {"sessions": 2}}).judgement.load_windows


@pytest.mark.parametrize("band", [[0.75, 0.60], [0.7, 0.7], [0.6], [0.6, 0.7, 0.8], []])
def test_what_is_no_band(band: list[float]) -> None:
    load = {"users": 200, "iops_per_user": 0.70}
    found = mistakes("files", {"load": load, "window": {"iops_per_user": band}})
    assert any(
        "is no band" in text or "needs at least 2" in text
        for where, text in found.items()
        if where == "workload[1].window.iops_per_user"
    ), found


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 1e12, "0.6", True])
def test_what_is_no_number(value: object) -> None:
    load = {"users": 200, "iops_per_user": 0.70}
    found = mistakes("files", {"load": load, "window": {"iops_per_user": [value, 0.75]}})
    assert "workload[1].window.iops_per_user[1]" in found


NONSENSE: list[tuple[str, dict[str, Any], str, str]] = [
    ("files", {"load": {"sessions": 1}, "window": 5}, "window", "must be a table"),
    ("files", {"window": {}}, "window", "says no figure"),
    ("files", {"window": {"over_s": 10}}, "window", "says no figure"),
    (
        "files",
        {"window": {"iops": [1, 2], "iops_per_user": [1, 2]}},
        "window",
        "says iops and iops_per_user",
    ),
    ("files", {"window": {"orders_per_min": [1, 2]}}, "window.orders_per_min", "no figure of"),
    ("mail", {"load": {"users": 9}, "window": {"iops": [1, 2]}}, "window.iops", "no figure of"),
    ("store", {"window": {"tasks_per_s": [1, 2]}}, "window.tasks_per_s", "no figure of store"),
    ("records", {"window": {"orders_per_min": [1, 2]}}, "window.orders_per_min", "no figure of"),
    ("files", {"window": {"iops_per_user": [0.6, 0.7]}}, "window.iops_per_user", "needs users"),
    (
        "store",
        {"load": {"sessions": 5}, "window": {"orders_per_user_per_min": [3, 4]}},
        "window.orders_per_user_per_min",
        "needs users",
    ),
    (
        "home_folders",
        {"window": {"scenarios_per_user_per_h": [3, 4]}},
        "window.scenarios_per_user_per_h",
        "needs users",
    ),
    (
        "home_folders",
        {"load": {"users": 60}, "window": {"scenarios_per_s": [2, 3]}},
        "window.scenarios_per_s",
        "leaves out the 1 that the load asks for",
    ),
    (
        "files",
        {"load": {"users": 200, "iops_per_user": 0.8}, "window": {"iops_per_user": [0.6, 0.75]}},
        "window.iops_per_user",
        "leaves out the 0.8 that the load asks for",
    ),
    (
        "store",
        {"load": {"transactions_per_s": 10}, "window": {"orders_per_min": [700, 800]}},
        "window.orders_per_min",
        "leaves out the 600",
    ),
    (
        "mail",
        {"load": {"users": 9}, "window": {"tasks_per_user_per_day": [1e6, 1e7]}},
        "window.tasks_per_user_per_day",
        "leaves out the",
    ),
    (
        "store",
        {"load": {"users": 200}, "think_s": 1.5, "window": {"orders_per_min": [801, 900]}},
        "window.orders_per_min",
        "begins above the 800 that think time allows",
    ),
    (
        "records",
        {"load": {"search": "max"}, "window": {"transactions_per_s": [1, 2]}},
        "window",
        "is looked for",
    ),
    (
        "store",
        {
            "load": {"transactions_per_s": 10, "stages": [{"rate_percent": 50, "for_s": 60}]},
            "window": {"orders_per_min": [1, 2]},
        },
        "window",
        "changes in stages",
    ),
    (
        "files",
        {"load": {"target_iops": 10}, "window": {"iops": [5, 15], "over_s": 1201}},
        "window.over_s",
        "but 1200 s are measured",
    ),
]


@pytest.mark.parametrize(("family", "workload", "where", "message"), NONSENSE)
def test_nonsense_is_told_at_its_place(
    family: str, workload: dict[str, Any], where: str, message: str
) -> None:
    found = mistakes(family, workload)
    assert message in found.get(f"workload[1].{where}", ""), found


def test_io_of_databases_that_two_loads_share_cannot_be_told_apart() -> None:
    asked = {"load": {"sessions": 1}, "window": {"iops": [1, 1000]}}
    found = mistakes("records", asked, {"name": "other", "load": {"sessions": 1}})
    assert "is of databases that other works on" in found["workload[1].window.iops"]
    by_transactions = {"load": {"sessions": 1}, "window": {"transactions_per_s": [1, 1000]}}
    both = complete("records", by_transactions, {"name": "other", "load": {"sessions": 1}})
    assert set(both.judgement.load_windows) == {"load"}
