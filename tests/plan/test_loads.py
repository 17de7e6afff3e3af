"""One way to load per workload, completed from editions, profiles and limits, and refused where it
cannot be.
"""

from typing import Any

import pytest

from plimsoll import settings
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan import load as loads
from plimsoll.plan.complete import plan_of_options

SEARCH = [{"kind": "prepare"}, {"kind": "warm_up"}, {"kind": "search", "duration_s": 600}]
USUAL = [{"kind": "prepare"}, {"kind": "warm_up"}, {"kind": "measure", "duration_s": 60}]


def options(
    load: dict[str, Any], phases: list[dict[str, Any]] | None = None, edition: str = "2010"
) -> dict[str, Any]:
    return {
        "target": [{"name": "disk", "path": "/data"}],
        "instance": [{"name": "one", "edition": edition}],
        "workload": [{"name": "mix", "load": load}],
        "phase": USUAL if phases is None else phases,
    }


def load_of(load: dict[str, Any], **more: Any) -> Any:
    return plan_of_options(options(load, **more)).run.workloads[0].load


def refusal(load: dict[str, Any], **more: Any) -> str:
    with pytest.raises(InputError) as caught:
        plan_of_options(options(load, **more))
    return str(caught.value)


def test_sessions_are_the_editions_unless_stated() -> None:
    """A thread count that hides in the code cannot be compared with a published one."""
    for name, edition in settings.editions().items():
        plan = plan_of_options({**options({}, edition=name), "workload": []})
        load = plan.run.workloads[0].load
        assert load.plain() == {
            "sessions": edition["sessions"],
            "shared": edition["sessions_shared"],
        }, name
    assert load_of({"sessions": 6}).plain() == {"sessions": 6, "shared": False}


def test_JST_09_throughput_per_cent_scales_the_target() -> None:
    """Half the throughput is half the target, and a hundred per cent is the target itself."""
    assert load_of({"target_iops": 240}).target_iops == 240
    assert load_of({"target_iops": 240, "throughput_percent": 50}).target_iops == 120


def test_JST_10_users_become_a_target_and_a_requirement() -> None:
    """The published profile: 1000 users of 0.24 IOPS are 240 IOPS, and the test is passed by making
    them.
    """
    plan = plan_of_options(options({"users": 1000, "iops_per_user": 0.24}))
    assert plan.judgement.required_iops == 240
    # No margin is granted, and arrivals vary: a load that is carried must make what is required.
    assert plan.run.workloads[0].load.target_iops == pytest.approx(1.03 * 240)
    heavy = load_of({"users": 1000, "profile": "heavy"})
    assert heavy.target_iops == pytest.approx(1.03 * 1000 * loads.profile_iops("heavy", "2010"))
    assert loads.profile_iops("heavy", "2013") == pytest.approx(0.067)


def test_a_search_takes_its_criteria_from_the_limits() -> None:
    """Two lists of the same limits would drift apart: the search steers by those that judge."""
    load = load_of({"search": "max"}, phases=[*SEARCH, USUAL[2]])
    limits = {item.name: item.limit for item in load.criteria}
    assert limits == {
        "database_read_latency_mean": 20,
        "log_write_latency_mean": 10,
        "page_fault_stalls": 1,
    }
    assert (load.sessions, load.sessions_max) == (3, 512)


def test_a_search_for_sessions_is_told_apart() -> None:
    """Sessions have no schedule, so how arrivals are spaced means nothing to them."""
    load = load_of({"search": "max_sessions"}, phases=[*SEARCH, USUAL[2]])
    assert (load.search, load.sessions, load.sessions_max) == ("max_sessions", 3, 512)
    assert loads.described(load) == "the most sessions for each database that keep the limits"
    by_rate = load_of({"search": "max", "spacing": "regular"}, phases=[*SEARCH, USUAL[2]])
    assert loads.described(by_rate) == "arrivals at the highest rate that keeps the limits"
    refused = refusal({"search": "max_sessions", "spacing": "regular"}, phases=[*SEARCH, USUAL[2]])
    assert "means nothing where sessions are looked for" in refused
    refused = refusal({"search": "max_sessions", "sessions": 600}, phases=[*SEARCH, USUAL[2]])
    assert "begins the search with 600, above the 512 that may be tried" in refused


def test_a_search_without_phases_gets_all_it_needs() -> None:
    """Whoever only says search = "max" gets a search and then the two hours that qualify."""
    plan = plan_of_options({**options({"search": "max"}), "phase": []})
    assert [phase.action.kind for phase in plan.run.phases] == [
        "prepare",
        "warm_up",
        "search",
        "measure",
        "stop",
        "checksum",
    ]


@pytest.mark.parametrize(
    ("load", "phrase"),
    [
        (
            {"sessions": 3, "target_iops": 240},
            "says sessions and target_iops of what may be loaded",
        ),
        ({"spacing": "regular"}, "says nothing of what may be loaded"),
        ({"sessions": 3, "spacing": "regular"}, "means nothing together with `sessions`"),
        (
            {"transactions_per_s": 3, "throughput_percent": 50},
            "means nothing together with `transactions_per_s`",
        ),
        ({"users": 100}, "write either `profile` or `iops_per_user`"),
        (
            {"users": 100, "profile": "heavy", "iops_per_user": 0.1},
            "write either `profile` or `iops_per_user`",
        ),
        ({"target_iops": 0}, "must lie between"),
        ({"search": "min"}, "not one of the known values"),
    ],
)
def test_a_load_is_one_thing(load: dict[str, Any], phrase: str) -> None:
    """A plan that says two things must not quietly run as one of them."""
    assert phrase in refusal(load)


def test_a_profile_without_published_figures_is_refused() -> None:
    """No figure of a message was published for 2003 and 2007.

    Guessing one would look like a fact.
    """
    assert "write `iops_per_user`" in refusal({"users": 100, "profile": "heavy"}, edition="2003")


def test_phases_must_fit_the_load() -> None:
    """A target is measured in the warm-up and a search needs its phase.

    Both are said before anything is written.
    """
    assert "never warmed up" in refusal({"target_iops": 240}, phases=[USUAL[0], USUAL[2]])
    assert "never looked for" in refusal({"search": "max"})
    assert "needs exactly one" in refusal({"sessions": 3}, phases=SEARCH)
    assert "say how long to search" in refusal(
        {"search": "max"}, phases=[USUAL[0], {"kind": "search"}]
    )
