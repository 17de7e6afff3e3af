"""Nodes of a cluster in a plan: who carries what, and whether a survivor holds what comes to it."""

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options

MIB = 2**20
KILLED = {"name": "left dies", "after_s": 20, "do": "node killed", "node": "left", "to": "right"}
PHASES = [
    {"kind": "prepare"},
    {"kind": "measure", "duration_s": 60},
    {"kind": "audit"},
    {"kind": "stop"},
]


def instance(name, node, cache_mib=16, **more):
    return {"name": name, "node": node, "cache_mib_max": cache_mib, "cache_mib_min": 1, **more}


def plan(*events, right=48, instances=None, phases=PHASES, processors=4, **more):
    return plan_of_options(
        {
            "target": [{"name": "disk", "path": "/nowhere"}],
            "node": [
                {"name": "left", "memory_mib": 64, "processors": 4},
                {"name": "right", "memory_mib": right, "processors": processors},
                {"name": "third", "memory_mib": 96, "processors": 8},
            ],
            "instance": instances
            or [instance("mail", "left"), instance("shop", "left"), instance("other", "right")],
            "event": list(events) or [KILLED],
            "phase": phases,
            **more,
        }
    )


def mistakes(*events, **more):
    with pytest.raises(InputError) as caught:
        plan(*events, **more)
    return str(caught.value)


def test_HA_02_what_comes_to_a_survivor_with_room_keeps_its_caches():
    found = plan()
    (death,) = found.run.cluster.deaths
    assert [(item.instance, item.cache_bytes_max) for item in death.taken] == [
        ("mail", 16 * MIB),
        ("shop", 16 * MIB),
    ]
    (event,) = found.events
    assert event.kind == "node"
    assert not event.starts_commands
    assert event.fit[0] == "right needs 48 (other 16, mail 16, shop 16) of 48 MiB of memory"
    assert event.fit_lacking == ()


def test_HA_02_a_survivor_without_room_is_a_mistake_with_its_sums():
    """The fit rule of the paper: what the survivor has must hold both nodes' loads."""
    text = mistakes(right=47, processors=2)
    assert "right needs 48 (other 16, mail 16, shop 16) of 47 MiB of memory" in text
    assert "right needs 3 (other 1, mail 1, shop 1) of 2 processors" in text
    assert 'fit = "reported"' in text


def test_HA_02_a_shortage_that_the_plan_allows_shares_out_what_is_left():
    found = plan({**KILLED, "fit": "reported"}, right=32)
    (death,) = found.run.cluster.deaths
    assert [item.cache_bytes_max for item in death.taken] == [8 * MIB, 8 * MIB]
    assert found.events[0].fit_lacking == (
        "right needs 48 (other 16, mail 16, shop 16) of 32 MiB of memory",
    )


def test_a_node_that_cannot_carry_its_own_is_a_mistake():
    assert "its instances need 64 (other 64)" in mistakes(
        instances=[instance("mail", "left"), instance("other", "right", 64)], right=60
    )


def test_the_second_death_counts_what_the_first_one_brought():
    second = {**KILLED, "name": "right dies", "after_s": 40, "node": "right", "to": "third"}
    found = plan(second, KILLED)
    assert [death.node for death in found.run.cluster.deaths] == ["left", "right"]
    assert {item.instance for item in found.run.cluster.deaths[1].taken} == {
        "mail",
        "shop",
        "other",
    }


def test_a_failover_that_nobody_can_see_is_not_judged():
    """It ends when something is served again, which wants time behind it and a load that asks."""
    judged = {**KILLED, "after_s": 40, "judge": {"failover_s_max": 30}}
    assert "is 30, but its phase ends 20 s after the event" in mistakes(judged)
    judged["after_s"] = 30
    assert plan(judged).run.cluster is not None
    load = {"name": "load", "instances": ["mail", "other"], "load": {"transactions_per_s": 9}}
    text = mistakes(judged, workload=[load])
    assert "waits for shop to serve again, which no load of the phase works on" in text
    assert "waits for mail" not in text


def test_a_failover_of_an_event_that_kills_no_node_is_refused_before_anything_is_measured():
    """It is not known then, and a run of hours would end inconclusive for it."""
    killed = {"name": "dies", "after_s": 20, "command": ["true"], "judge": {"failover_s_max": 9}}
    assert "`event[1].judge.failover_s_max` means nothing without node killed" in mistakes(killed)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"to": "left"}, "is left, the node that dies"),
        ({"to": "rigth"}, 'names "rigth"'),
        ({"node": "third"}, "carries no instance"),
        ({"to": None}, "is missing for node killed"),
        ({"undo_after_s": 30}, "what came to the survivor stays there"),
        ({"number": 2}, "cannot be combined with node killed"),
        ({"do": "path fails", "command": ["true"]}, "means nothing without node killed"),
        ({"phase": "stop"}, "in which nodes do not die"),
    ],
)
def test_an_event_that_makes_no_sense_says_so(event, said):
    given = {key: value for key, value in {**KILLED, **event}.items() if value is not None}
    assert said in mistakes(given)


def test_both_deaths_of_one_node_are_told_at_once():
    text = mistakes(KILLED, {**KILLED, "name": "again", "after_s": 30})
    assert "names left, which an earlier event has killed" in text


def test_what_has_no_log_cannot_come_back():
    raw = {"name": "raw", "node": "left", "backend": "raw_files", "database_size_mib": 64}
    assert "carries raw, which has no log" in mistakes(
        instances=[raw, instance("other", "right")],
        phases=[*PHASES[:2], *PHASES[2:]],
    )


def test_a_server_on_a_node_that_dies_needs_a_command():
    server = {
        "name": "shop",
        "node": "left",
        "target": "away",
        "store_address": "postgresql://ds2@127.0.0.1:5432/ds2",
        "memory_mib": 8,
    }
    targets = [{"name": "disk", "path": "/nowhere"}, {"name": "away"}]
    told = {
        "instances": [server, instance("other", "right")],
        "target": targets,
        "workload": [
            {"name": "orders", "instances": ["shop"]},
            {"name": "mix", "instances": ["other"]},
        ],
    }
    assert "carries shop, a server that cannot come back by itself" in mistakes(**told)
    found = plan({**KILLED, "command": ["kill-pg"], "timeout_s": 5}, **told)
    assert found.events[0].kind == "command"
    assert found.events[0].starts_commands
    assert found.events[0].fit[0] == "right needs 24 (other 16, shop 8) of 48 MiB of memory"


def test_a_death_without_an_audit_behind_it_is_a_mistake():
    phases = [{"kind": "prepare"}, {"kind": "measure", "duration_s": 60}, {"kind": "stop"}]
    assert "audits what was acknowledged" in mistakes(phases=phases)


@pytest.mark.parametrize(
    ("quorum", "said"),
    [
        ("nodes", None),
        ("nodes and disk", None),
    ],
)
def test_HA_01_a_majority_of_three_nodes_survives_one_death(quorum, said):
    (death,) = plan(quorum=quorum).run.cluster.deaths
    assert death.quorum_lost == said


def test_HA_01_a_second_death_of_three_nodes_loses_the_quorum():
    second = {**KILLED, "name": "right dies", "after_s": 40, "node": "right", "to": "third"}
    deaths = plan(KILLED, second, quorum="nodes").run.cluster.deaths
    assert deaths[0].quorum_lost is None
    assert deaths[1].quorum_lost == '1 of 3 votes is left, and 2 are needed (quorum = "nodes")'


def test_keys_of_a_node_without_one_are_mistakes():
    text = mistakes(instances=[{"name": "one", "processors": 2, "memory_mib": 5}])
    assert "`instance[1].processors` means nothing without `node`" in text
    assert "`instance[1].memory_mib` means nothing without `node`" in text
