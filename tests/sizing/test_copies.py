"""Copies and hosts: who holds what, what fails over where, and what must fit afterwards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.inputs.mistakes import InputError
from plimsoll.sizing.database_copies import (
    Machine,
    balanced_server_iops,
    failover,
    fit_after_host_loss,
    place_copies,
)
from plimsoll.sizing.design import size
from tests.support.sizing_designs import make, several


@st.composite
def designs(draw: st.DrawFn) -> tuple[int, int, int]:
    servers = draw(st.integers(2, 16))
    return draw(st.integers(1, 120)), servers, draw(st.integers(2, servers))


@several
@given(designs())
def test_dag_rules_hold_for_every_design(design: tuple[int, int, int]) -> None:
    """DAG-01, CAL-16: a server never holds two copies of a database, and active copies are balanced
    to within one.
    """
    databases, servers, copies = design
    placements = place_copies(databases, servers, copies, "active/active")
    assert all(len(set(placement.servers)) == copies for placement in placements)
    state = failover(placements, servers)
    assert max(state.active_count) - min(state.active_count) <= 1
    assert sum(state.active_count) == databases
    assert sum(state.passive_count) == databases * (copies - 1)


@several
@given(designs())
def test_a_survivor_never_carries_more_than_planned(design: tuple[int, int, int]) -> None:
    """DAG-09: the planned worst case is a formula.

    Failing each server in turn over the placement must not exceed it.
    """
    databases, servers, copies = design
    worst = failover(
        place_copies(databases, servers, copies, "active/active"), servers
    ).worst_active_count
    active = -(-databases // servers)
    assert worst <= min(databases, active + -(-active // (servers - 1)))


@several
@given(designs())
def test_a_lost_server_is_shared_by_the_survivors(design: tuple[int, int, int]) -> None:
    """CAL-16: with n servers the load of a lost one goes to n - 1, not to one neighbour."""
    databases, servers, copies = design
    worst = failover(
        place_copies(databases, servers, copies, "active/active"), servers
    ).worst_active_count
    assert worst <= databases / (servers - 1) + 2


def test_layouts() -> None:
    """DAG-06: active copies on every server, or all on one."""
    spread = failover(place_copies(4, 2, 2, "active/active"), 2)
    assert (spread.active_count, spread.passive_count) == ((2, 2), (2, 2))
    gathered = failover(place_copies(4, 2, 2, "active/passive"), 2)
    assert (gathered.active_count, gathered.passive_count) == ((4, 0), (0, 4))
    assert balanced_server_iops(449, 322, 2) == 385.5  # measured: 390 and 392


def test_a_second_copy_on_a_server_is_refused() -> None:
    """DAG-01, CAL-20: more copies than servers, and a group of 17, are refused before anything is
    sized.
    """
    with pytest.raises(ValueError, match="3 copies need 3 servers"):
        place_copies(4, 2, 3, "active/active")
    with pytest.raises(InputError, match="on 2 servers"):
        make(copies={"mode": "dag", "count": 3, "servers": 2})
    with pytest.raises(InputError, match="at most 16 servers"):
        make(copies={"mode": "dag", "count": 2, "servers": 17})
    assert make(copies={"mode": "dag", "count": 2, "servers": 16}).copies.servers == 16


def test_a_survivor_beyond_its_measured_limit_is_flagged() -> None:
    """DAG-09, CAL-16: the array must carry the failover load, not the load in service."""
    slow = size(make(storage={"measured_iops": 899}))
    assert [finding.subject for finding in slow.findings if finding.level == "warning"] == [
        "failover load"
    ]
    fast = size(make(storage={"measured_iops": 900}))
    assert not [finding for finding in fast.findings if finding.level == "warning"]


MACHINES = [
    *(Machine(f"exchange and sql {n}", f"host {n}", 4, 4) for n in (1, 2)),
    *(Machine(f"background {n}", f"host {n % 2 + 1}", 2, 1) for n in range(14)),
]


def test_the_md3000i_machines_fit_after_a_host_is_lost() -> None:
    """HA-03: 36 GB fit in 48 GB.

    22 virtual processors on 16 threads are a warning, as in the published test.
    """
    fit = fit_after_host_loss(
        MACHINES, host_memory_gb=48, host_thread_count=16, failed_host="host 1"
    )
    assert (fit.memory_need_gb, fit.vcpu_count) == (36, 22)
    assert fit.memory_fits
    assert fit.processors_overcommitted
    assert not fit_after_host_loss(MACHINES, 32, 24, "host 1").memory_fits
    with pytest.raises(ValueError, match="no host survives"):
        fit_after_host_loss([MACHINES[0]], 48, 16, "host 1")


def machine(name: str, host: str, **more: object) -> dict[str, object]:
    return {"name": name, "host": host, "memory": "40 GB", "vcpu_count": 8, **more}


def test_passive_copies_cost_io_on_the_survivors() -> None:
    """CAL-16: a survivor runs its own and its share of the lost databases, and replays the copies
    that stay passive.
    """
    sizing = size(
        make(copies={"mode": "dag", "count": 3, "servers": 4}, databases={"max_size": "1200 GB"})
    )
    figures = sizing.results
    assert figures["database_count"].value == 12
    # 12 databases on 4 servers: 3 active each, 1 more when a server is lost, 9 copies held, so 5
    # stay passive.
    assert figures["server_database_iops"].value == pytest.approx(900 / 12 * (4 + 5 * 0.717))


def test_a_measured_array_too_small_for_the_design_is_told() -> None:
    """CAL-11: the users table of a measured array answers how many of them a design needs."""
    small = size(make(storage={"measured_iops": 6500, "measured_capacity": "6 TB"}))
    told = [finding for finding in small.findings if finding.subject == "measured array"]
    assert len(told) == 1
    assert "capacity is the limit" in told[0].message
    assert told[0].advice == "plan 4 of them for each copy"
    large = size(make(storage={"measured_iops": 6500, "measured_capacity": "60 TB"}))
    assert "measured array" not in [finding.subject for finding in large.findings]


def test_machines_are_checked_in_a_sizing() -> None:
    """HA-03, HA-07: what does not fit, and hypervisor features on a mailbox server, are
    findings.
    """
    machines = [
        machine("mail 1", "one", mailbox_role=True, hypervisor_failover=True),
        machine("mail 2", "two", mailbox_role=True),
    ]
    server = {"memory": "48 GB", "thread_count": 16, "virtual": True}
    subjects = [finding.subject for finding in size(make(server=server, machine=machines)).findings]
    assert subjects.count("host memory") == 2
    assert subjects.count("hypervisor") == 1
    assert (
        "host processors" not in subjects
    )  # 16 virtual processors on 16 threads are not overcommitted
    roomy = size(make(server=server | {"memory": "96 GB"}, machine=machines))
    assert "host memory" not in [finding.subject for finding in roomy.findings]
