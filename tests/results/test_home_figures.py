"""Figures of home folders: what was planned, what came to an end, and when that is overload."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.plan.complete import plan_of_options
from plimsoll.results.homes import OPERATIONS, SCENARIOS, homes_audits, homes_figures, in_words
from plimsoll.verdict.homes import homes_checks

SECONDS = 60.0


def _plan(load: dict[str, object], pace: float = 3600) -> Any:
    kinds = ["prepare", *(["search"] if "search" in load else []), "measure", "audit", "stop"]
    durations = {"measure": 60, "search": 600}
    return plan_of_options(
        {
            "name": "homes",
            "target": [{"name": "share", "path": "/mnt/share"}],
            "instance": [{"name": "homes", "backend": "home_folders", "homes": 10}],
            "workload": [{"name": "users", "load": load, "scenarios_per_h": pace}],
            "phase": [
                {"kind": kind, **({"duration_s": durations[kind]} if kind in durations else {})}
                for kind in kinds
            ],
        }
    )


def _found(plan: Any, done: int, slow: int = 0, search: dict[str, Any] | None = None) -> Any:
    """Figures and checks of so many scenarios of 10 ms, of which some took 4 s."""
    names = ["home_scenario", *SCENARIOS, *OPERATIONS]
    counted = [
        {"metric": name, "count": done, "total_ns": done * 1e7, "max_ns": 10_000_000}
        for name in names
    ]
    buckets = [
        {"upper_ns": 10_000_000, "count": done - slow},
        {"upper_ns": 4_000_000_000, "count": slow},
    ]

    def ask(text: str, _: object = None) -> Any:
        return counted if "GROUP BY metric" in text else [row for row in buckets if row["count"]]

    ended: dict[str, Any] = {"end": "narrow", "confirmed": True, "limited_by": "home_response"}
    found = None if search is None else SimpleNamespace(workload="users", **(ended | search))
    audit = SimpleNamespace(instance=0, seconds=1.0, counts={"files": 240}, findings=["one lacks"])
    outcome: Any = SimpleNamespace(phases=[SimpleNamespace(search=found, audits=[audit])])
    figures = homes_figures(plan, ask, {"users": SECONDS}, ["measure"], outcome)
    audits = homes_audits(plan, outcome)
    summary: Any = SimpleNamespace(homes=figures, homes_audits=audits)
    checks = {check.name: check.status for check in homes_checks(plan, summary)}
    return figures[0], checks, in_words(figures, audits)


def test_users_that_are_served_are_no_overload() -> None:
    """Ten users at one scenario a second make 600 in a minute; one may be under way at the end."""
    figures, checks, said = _found(_plan({"users": 10}), 599)
    assert figures.planned_per_s == pytest.approx(10)
    assert figures.achieved_percent == pytest.approx(99.83, abs=0.01)
    assert figures.is_overloaded is False
    assert (checks["homes_response"], checks["homes_achieved"]) == ("pass", "pass")
    assert "9.98 scenarios per second of 10 users" in said[0]


@pytest.mark.parametrize(("done", "is_overloaded"), [(571, False), (568, True)])
def test_less_than_was_planned_is_overload(done: int, *, is_overloaded: bool) -> None:
    """95 % of 600 are 570, but for the one under way."""
    figures, checks, _ = _found(_plan({"users": 10}), done)
    assert figures.is_overloaded is is_overloaded
    assert checks["homes_achieved"] == ("fail" if is_overloaded else "pass")


@pytest.mark.parametrize(("slow", "is_overloaded"), [(20, False), (40, True)])
def test_a_twentieth_that_waits_is_overload(slow: int, *, is_overloaded: bool) -> None:
    """The 95th percentile decides, not the mean."""
    figures, checks, _ = _found(_plan({"users": 10}), 600, slow)
    assert figures.is_overloaded is is_overloaded
    assert checks["homes_response"] == ("fail" if is_overloaded else "pass")
    assert checks["homes_achieved"] == "pass"


def test_what_chance_leaves_out_is_no_overload() -> None:
    """Arrivals that are not evenly spaced vary by three roots of their number."""
    load: dict[str, object] = {"users": 10, "spacing": "poisson"}
    assert _found(_plan(load), 560)[0].is_overloaded is False
    assert _found(_plan(load), 480)[0].is_overloaded is True


def test_sessions_plan_no_rate() -> None:
    """They wait for the storage, so nothing can fall short."""
    figures, checks, _ = _found(_plan({"sessions": 4}), 600, 600)
    assert figures.is_overloaded is None
    assert set(checks) == {"homes_audit"}


def test_a_search_tells_users() -> None:
    """The rate that was found, by what one user makes."""
    figures, _, said = _found(_plan({"search": "max"}), 1200, search={"passed_per_s": 20.0})
    assert figures.users_found == pytest.approx(20)
    assert any("20 users are the most, in 10 homes" in line for line in said)


@pytest.mark.parametrize(
    "cut_short",
    [
        {"end": "time_over"},
        {"end": "most_tried"},
        {"confirmed": False},
        {"limited_by": "generator"},
        {"limited_by": "sessions_max"},
    ],
)
def test_a_search_that_met_no_limit_of_the_storage_tells_the_least(
    cut_short: dict[str, Any],
) -> None:
    """Why: a search that ran out of time said that no more users were carried."""
    figures, _, said = _found(
        _plan({"search": "max"}), 1200, search={"passed_per_s": 20.0, **cut_short}
    )
    assert figures.users_found_is_least is True
    assert any("at least 20 users are carried, in 10 homes" in line for line in said)
    assert not any("are the most" in line for line in said)


def test_an_audit_that_differs_fails() -> None:
    """A file that is gone is no matter of speed."""
    _, checks, said = _found(_plan({"users": 10}), 600)
    assert checks["homes_audit"] == "fail"
    assert any("one lacks" in line for line in said)


def test_of_few_scenarios_one_may_be_under_way() -> None:
    """Ten were planned, and nine of them ended: less than 95 %, and no sign of overload. A pass
    says so.
    """
    plan = _plan({"users": 10}, pace=60)
    figures, checks, _ = _found(plan, 9)
    assert figures.achieved_percent == 90 and figures.is_overloaded is False
    (achieved,) = [
        check
        for check in homes_checks(plan, SimpleNamespace(homes=[figures], homes_audits=[]))
        if check.name == "homes_achieved"
    ]
    assert checks["homes_achieved"] == "pass"
    assert achieved.reason == (
        "90.0 % of what was planned came to an end, 95.0 % must; what lacks of 10 scenarios may "
        "have been under way or chance"
    )
