"""What stops when one component fails, and whether the survivors can carry what is left."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plimsoll.advice.failover import host_losses
from plimsoll.advice.failures import Access, Failure, Plant, View, failures, unreachable
from plimsoll.advice.topology import Topology, check_topology
from plimsoll.inputs.toml_lines import parse_located


def topology_of(text: str) -> Topology:
    """A topology from its text."""
    return check_topology(parse_located("design.toml", text))


def by_name(topology: Topology) -> dict[str, Failure]:
    """What the loss of each component does."""
    return {failure.name: failure for failure in failures(topology)}


def test_HA_05_a_redundant_design_survives_every_single_failure(two_hosts: str) -> None:
    """Sixty components and cables, and none of them stops a service or cuts an access."""
    lost = failures(topology_of(two_hosts))
    assert len(lost) > 60
    assert [failure for failure in lost if failure.services_lost or failure.accesses_cut] == []


def test_HA_05_an_adapter_with_both_ports_is_a_single_point(two_hosts: str) -> None:
    """Two ports on one card are one failure; the copy on the other host keeps the databases up."""
    lost = by_name(
        topology_of(
            two_hosts.replace('"storage"], adapter = "card-2"', '"storage"], adapter = "card-1"', 1)
        )
    )
    card = lost["mbx1.card-1"]
    assert card.services_lost == ()
    assert "mbx1 to volume db1-a" in card.accesses_cut
    assert lost["mbx1.san0"].accesses_cut == ()
    assert lost["mbx1.san0"].part_of == ("mbx1.card-1",)


def test_HA_05_power_takes_with_it_what_has_no_other_feed(two_hosts: str) -> None:
    """Both storage switches on one feed: the feed is the single point, no switch is."""
    text = two_hosts.replace(
        'networks = ["storage"]\npower = ["feed-b"]', 'networks = ["storage"]\npower = ["feed-a"]'
    )
    lost = by_name(topology_of(text))
    assert lost["feed-a"].services_lost == (
        "database DB1",
        "database DB2",
        "database DB3",
        "database DB4",
    )
    assert lost["feed-b"].services_lost == ()
    assert lost["san-1"].services_lost == ()


def test_HA_05_copies_on_one_array_die_with_it(two_hosts: str) -> None:
    """Two copies on one array are one copy when the array fails."""
    text = two_hosts.replace('disk_group = "group-b"', 'disk_group = "group-a"')
    lost = by_name(topology_of(text))
    assert len(lost["array-a"].services_lost) == 4
    assert len(lost["group-a"].services_lost) == 4
    assert lost["array-b"].services_lost == ()


def test_HA_05_a_standalone_server_is_a_single_point(two_hosts: str) -> None:
    """Without a second copy the host itself stops its databases.

    The access is not cut, its end is gone.
    """
    text = re.sub(r'  \{ server = "mbx2", .*\},\n', "", two_hosts)
    lost = by_name(topology_of(text))
    assert lost["mbx1"].services_lost == (
        "database DB1",
        "database DB2",
        "database DB3",
        "database DB4",
    )
    assert not [title for title in lost["mbx1"].accesses_cut if title.startswith("mbx1")]


def test_HA_05_a_link_of_two_cables_does_not_fail_alone(two_hosts: str) -> None:
    """Aggregated cables survive the loss of one."""
    single = re.sub(r'(between = \["mbx1.san1", "san-2"\])\n', r"\1\n", two_hosts)
    single = re.sub(r'\[\[links\]\]\nbetween = \["mbx1.san0", "san-1"\]\n', "", single)
    lost = by_name(topology_of(single))
    assert "mbx1 to volume db1-a" in lost["mbx1.san1 - san-2"].accesses_cut
    double = single.replace(
        'between = ["mbx1.san1", "san-2"]\n', 'between = ["mbx1.san1", "san-2"]\ncount = 2\n'
    )
    assert by_name(topology_of(double))["mbx1.san1 - san-2"].accesses_cut == ()


def test_an_access_without_cabling_is_no_single_point_but_a_mistake_of_the_design(
    two_hosts: str,
) -> None:
    """What never worked cannot be cut; it is listed by itself."""
    text = re.sub(r'\[\[links\]\]\nbetween = \["mbx1.san\d", "san-\d"\]\n', "", two_hosts)
    assert "mbx1 to volume db1-a" in unreachable(topology_of(text))
    assert unreachable(topology_of(two_hosts)) == []


def with_links(text: str, missing: set[int]) -> Topology:
    """The design without some of its cables."""
    head, *links = re.split(r"(?=\[\[links\]\])", text)
    last, backups = links[-1].split("[[backups]]")
    kept = "".join(link for index, link in enumerate([*links[:-1], last]) if index not in missing)
    return topology_of(f"{head}{kept}[[backups]]{backups}")


CABLES = st.sets(st.integers(0, 23), max_size=6)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(missing=CABLES, restored=CABLES)
def test_more_cables_never_lose_a_service(
    two_hosts: str, missing: set[int], restored: set[int]
) -> None:
    """Monotone: whatever runs after a failure also runs after it when there is a cable more."""
    before, after = with_links(two_hosts, missing), with_links(two_hosts, missing - restored)
    assert set(unreachable(after)) <= set(unreachable(before))
    if set(unreachable(after)) == set(unreachable(before)):
        lost_after = by_name(after)
        for name, failure in by_name(before).items():
            assert set(lost_after[name].services_lost) <= set(failure.services_lost)


def naive_reaches(topology: Topology, access: Access, dead: frozenset[str]) -> bool:
    """The same question asked the slow way: walk from the host, one port after the other."""
    plant = Plant(topology)
    if dead.intersection(plant.ends_of(access)):
        return False
    network = "storage" if access.is_volume else access.target
    alive = {
        node
        for node, owners in plant.owners.items()
        if network in plant.networks[node] and not dead.intersection(owners)
    }
    seen = {node for node in alive if access.host in plant.owners[node]}
    pending = list(seen)
    while pending:
        for node in plant.edges.get(pending.pop(), set()) & alive - seen:
            seen.add(node)
            pending.append(node)
    if access.is_volume:
        return any(plant.ends_of(access)[1] in plant.owners[node] for node in seen)
    return any(len(plant.owners[node]) == 1 for node in seen)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(missing=CABLES)
def test_the_quick_answer_is_the_slow_one(two_hosts: str, missing: set[int]) -> None:
    """Most losses are answered without walking the graph again; each must agree with the walk."""
    topology = with_links(two_hosts, missing)
    plant = Plant(topology)
    whole = View(plant)
    for _, name in plant.components():
        dead = plant.dead(name)
        view = View.after(whole, dead, frozenset())
        for access in plant.accesses:
            assert view.reaches(access) == naive_reaches(topology, access, dead), (name, access)
            if access not in view.affected:
                assert view.reaches(access) == whole.reaches(access)


def test_HA_05_a_copy_needs_its_log_volume_too(cluster: str) -> None:
    """The published testbed keeps all logs on one disk group: its loss stops both databases."""
    assert by_name(topology_of(cluster))["group-3"].services_lost == (
        "database mail",
        "database shop",
    )


def test_HA_05_a_shared_volume_lives_while_one_user_reaches_it(cluster: str) -> None:
    """A cluster volume does not stop with one of its hosts."""
    text = cluster.replace('used_by = ["file-1"]', 'used_by = ["r710-1", "r710-2"]')
    assert by_name(topology_of(text))["r710-1"].services_lost == ()
    alone = cluster.replace('used_by = ["file-1"]', 'used_by = ["r710-1"]')
    assert by_name(topology_of(alone))["r710-1"].services_lost == ("volume file-server-1",)


def test_HA_03_the_published_degraded_state(cluster: str) -> None:
    """Sixteen machines on one host.

    36 GB of 48 GB fit, 22 virtual processors on 16 threads are worth a warning.
    """
    loss = host_losses(topology_of(cluster))[0]
    assert loss.host == "r710-1"
    assert len(loss.moved) == 8
    assert loss.stranded == ()
    assert loss.memory_fullest_pct == pytest.approx(36 / 48 * 100)
    assert loss.vcpus_per_thread_max == 22 / 16


def test_HA_03_machines_that_do_not_fit_are_named(cluster: str) -> None:
    """With 32 GB a host, 36 GB do not fit.

    The smallest machines stay down, the large ones move first.
    """
    loss = host_losses(topology_of(cluster.replace("memory_gb = 48", "memory_gb = 32")))[0]
    assert len(loss.stranded) == 2
    assert "exchange" in loss.moved
    assert loss.memory_fullest_pct == pytest.approx(100)


def test_DAG_09_survivors_carry_the_active_load(two_hosts: str) -> None:
    """Four databases of 225 IOPS all end on the surviving server and its array: 900 each."""
    loss = host_losses(topology_of(two_hosts))[0]
    assert loss.active_iops_by_host == {"mbx2": 900, "dc": 0}
    assert loss.active_iops_by_array == {"array-a": 0, "array-b": 900}


def test_DAG_09_databases_of_a_lost_server_spread_over_the_others(two_hosts: str) -> None:
    """With copies on three servers the load of a lost one is divided, not doubled up."""
    text = two_hosts.replace(
        '  { server = "mbx2", database_volume = "db1-b"',
        '  { server = "dc", database_volume = "db1-b", log_volume = "log1-b" },\n  { server = '
        '"mbx2", database_volume = "db1-b"',
    )
    loss = host_losses(topology_of(text))[0]
    assert loss.active_iops_by_host == {"mbx2": 675, "dc": 225}


def test_DAG_09_what_keeps_running_is_counted_before_what_moves(two_hosts: str) -> None:
    """The databases of a lost server go where the least load already is, not where the file happens
    to begin.
    """
    text = two_hosts
    for number in (1, 2):
        text = text.replace(
            f'  {{ server = "mbx2", database_volume = "db{number}-b"',
            f'  {{ server = "dc", database_volume = "db{number}-b", log_volume = "log{number}-b" '
            f"}},\n"
            f'  {{ server = "mbx2", database_volume = "db{number}-b"',
        )
    assert host_losses(topology_of(text))[0].active_iops_by_host == {"mbx2": 450, "dc": 450}


def test_HA_03_a_single_host_has_nobody_to_fall_back_on() -> None:
    """With one host there is no degraded state to check."""
    assert (
        host_losses(topology_of('kind = "topology"\nname = "one"\n[[hosts]]\nname = "h"\n')) == []
    )


def test_HA_03_machines_move_to_the_host_with_the_most_room() -> None:
    """Among several survivors the emptiest takes the machine, so that none is overfilled while
    another idles.
    """
    hosts = "".join(
        f'[[hosts]]\nname = "h{number}"\nmemory_gb = {size}\nthreads = 8\n'
        for number, size in enumerate((32, 40, 64))
    )
    text = (
        f'kind = "topology"\nname = "three"\n{hosts}[[machines]]\nname = "m"\nhost = '
        f'"h0"\ncan_run_on = ["h1", "h2"]\n'
        "memory_gb = 16\nvcpus = 4\n"
    )
    loss = host_losses(topology_of(text))[0]
    assert list(loss.moved) == ["m"]
    assert loss.memory_fullest_pct == 25
