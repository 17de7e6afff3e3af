"""Phases of plans whose databases or mailboxes are those of a server."""

from typing import Any

import pytest

import plimsoll
from plimsoll.inputs.mistakes import InputError

SHOP = {
    "name": "shop",
    "backend": "postgresql",
    "target": "server",
    "store_address": "postgresql://shop@db1.example.org/ds2",
    "store_size": "1GB",
}
MAIL = {"name": "mail", "database_size_mib": 256, "target": "disk"}
LOADS = {
    "shop": {"name": "shop", "instances": ["shop"], "load": {"users": 20}},
    "mail": {"name": "mail", "instances": ["mail"], "load": {"target_iops": 50}},
}
WARMED = [{"kind": "prepare"}, {"kind": "warm_up"}, {"kind": "measure", "duration_s": 60}]


def built(*instances: dict[str, Any], phases: list[dict[str, Any]] | None = None) -> plimsoll.Plan:
    """A plan with a load on each instance."""
    targets = {"server": {"name": "server", "data_path": "/var/lib/postgresql"}}
    targets["disk"] = {"name": "disk", "path": "/data"}
    return plimsoll.build_plan(
        {
            "name": "several",
            "target": [targets[instance["target"]] for instance in instances],
            "instance": list(instances),
            "workload": [LOADS[instance["name"]] for instance in instances],
            **({"phase": phases} if phases else {}),
        }
    )


def test_a_plan_with_a_server_and_a_cache_of_ours_may_warm_up() -> None:
    """It was refused, and so was a load that aims at IOPS without it: the two never met."""
    plan = built(SHOP, MAIL, phases=WARMED)
    assert [phase.action.kind for phase in plan.run.phases][1] == "warm_up"
    assert plan.run.phases[1].workloads == ("shop", "mail")


def test_where_no_cache_is_ours_the_phase_to_write_instead_is_named() -> None:
    with pytest.raises(InputError) as refused:
        built(SHOP, phases=WARMED)
    (mistake,) = refused.value.mistakes
    assert mistake.where == "phase[2].kind"
    assert "no cache of ours" in mistake.message
    assert 'kind = "soak", duration_s = ' in mistake.hint


def test_a_plan_of_a_server_that_names_no_phases_has_those_that_it_may_have() -> None:
    """It was refused for a phase that it never named."""
    assert [phase.action.kind for phase in built(SHOP).run.phases] == ["prepare", "measure", "stop"]
