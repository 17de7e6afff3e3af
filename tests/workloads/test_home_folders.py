"""Home folders: the shipped scenarios, and what a plan of them becomes."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from plimsoll.documents import run_spec as spec
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from plimsoll.workloads.homes.scenarios import (
    home_folders,
    operations,
    published_operations,
)

Options = dict[str, object]


def _options(load: Options, **further: object) -> Options:
    return {
        "name": "homes",
        "target": [{"name": "share", "path": "/mnt/share"}],
        "instance": [{"name": "homes", "backend": "home_folders"}],
        "workload": [{"name": "users", "load": load}],
        "phase": [
            {"kind": "prepare"},
            {"kind": "measure", "duration_s": 60},
            {"kind": "audit"},
            {"kind": "stop"},
        ],
        **further,
    }


def test_the_operations_of_the_scenarios_are_the_published_ones_within_three_points() -> None:
    """Four fifths of what a file server is asked for are no reads or writes: a load that leaves
    them out is one of a disk.
    """
    made, published = operations(home_folders()), published_operations(home_folders())
    assert set(published) <= set(made)
    for name, share in published.items():
        assert abs(made[name] - share) < 3, (name, made[name], share)
    # Each of the published rest is below 2 of the 85 that a client can cause.
    assert made["other"] < 100 * 6 / 85


def test_every_row_of_home_folders_has_a_basis_and_a_source() -> None:
    """A figure without a source cannot be argued with."""
    content = tomllib.loads(
        files("plimsoll.data").joinpath("home_folders.toml").read_text(encoding="utf-8")
    )
    rows = [
        *content["pace"].values(),
        *content["home"].values(),
        *content["size"],
        *content["scenario"],
        content["mix"],
    ]
    for row in rows:
        assert row["basis"] in ("read", "derived", "inferred", "own"), row
        assert row["source"], row


def test_what_comes_and_what_goes_is_balanced() -> None:
    """Homes would fill up, or run empty, in a test of hours."""
    weights = {item.name: item.weight for item in home_folders().scenarios}
    assert weights["copy_in"] == weights["delete"]
    assert weights["new_folder"] == weights["remove_folder"]


def test_users_become_a_rate_and_each_has_a_home() -> None:
    """The pace of a user is what is stated; how many there are decides the rate."""
    plan = plan_of_options(_options({"users": 240}))
    (instance,) = plan.run.instances
    assert isinstance(instance, spec.HomesInstance)
    assert instance.homes == 240
    load = plan.run.workloads[0].load
    assert isinstance(load, spec.RateLoad)
    assert load.transactions_per_s == pytest.approx(240 * 60 / 3600)
    assert load.sessions_max == 240
    assert (plan.judgement.test, plan.judgement.limits) == ("files", "files")


def test_users_are_not_looked_for_by_sessions() -> None:
    """A user keeps a pace of its own; sessions would make one user of as much as storage takes."""
    with pytest.raises(
        InputError, match="home folders are loaded by users who keep their own pace"
    ):
        plan_of_options(_options({"search": "max_sessions"}))


def test_a_search_looks_for_the_most_users() -> None:
    """Overload is less than 95 % of what was planned, or a 95th percentile above its limit."""
    options = _options(
        {"search": "max"},
        phase=[
            {"kind": "prepare"},
            {"kind": "search", "duration_s": 600},
            {"kind": "measure", "duration_s": 60},
            {"kind": "stop"},
        ],
    )
    options["instance"] = [{"name": "homes", "backend": "home_folders", "homes": 50}]
    plan = plan_of_options(options)
    load = plan.run.workloads[0].load
    assert isinstance(load, spec.SearchLoad)
    (criterion,) = load.criteria
    assert (criterion.metric, criterion.statistic, criterion.limit) == (
        "home_scenario",
        "p95",
        1000,
    )
    assert load.shortfall_percent == 5
    assert load.sessions_max == 50


def test_mistakes_are_told_at_once() -> None:
    """What means something elsewhere is not silently left out here."""
    options = _options(
        {"users": 5, "target_iops": 7, "step_s": 3},
        source="existing",
        instance=[{"name": "homes", "backend": "home_folders", "file_mib": 7}],
    )
    options["phase"] = [{"kind": "prepare"}, {"kind": "checksum"}]
    with pytest.raises(InputError) as caught:
        plan_of_options(options)
    text = str(caught.value)
    for part in (
        "`source` is existing, but home folders are made anew by every run",
        "`workload[1].load.target_iops` means nothing for home folders",
        "`workload[1].load.step_s` means nothing without a search",
        "`instance[1].file_mib` means nothing for home folders",
        "`phase[2].kind` is checksum, but no instance can be judged by reading it",
    ):
        assert part in text, text


def test_keys_of_home_folders_mean_nothing_elsewhere() -> None:
    """An instance of databases with homes would have none."""
    options = _options({"sessions": 1})
    options["instance"] = [{"name": "homes", "homes": 3}]
    with pytest.raises(InputError, match="means something only for home folders"):
        plan_of_options(options)
