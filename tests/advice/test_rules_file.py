"""The rules as data: all 102 of the papers, each with its source, each deciding by facts that
exist.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll.advice.engine import LIMITS_OF_THE_RESULT, Subject, advise
from plimsoll.advice.rules import SCOPES, SEVERITIES, SHIPPED_RULES, read_rules
from plimsoll.advice.topology import check_topology
from plimsoll.advice.topology_facts import topology_subjects
from plimsoll.inputs.expression import names_in
from plimsoll.inputs.mistakes import InputError
from plimsoll.inputs.toml_lines import parse_located

RULES = read_rules()
PAPERS = {"BP-E": 16, "BP-Q": 62, "BP-N": 5, "BP-S": 4, "BP-M": 15}

#: Facts a plan or run may have; test_run_facts.py holds a run that has them all.
PLAN_FACTS = {
    "test",
    "limit_set",
    "required_iops",
    "required_iops_stated",
    "instance_count",
    "database_count",
    "database_bytes",
    "maintenance_enabled",
    "circular_log",
    "copies_count",
    "measured_h",
    "phases",
    "verifies_checksums",
    "warms_up",
    "instances_with_log_beside_database_count",
    "mail_store",
}
RUN_FACTS = PLAN_FACTS | {
    "result",
    "qualifying",
    "obstacles_count",
    "achieved_iops",
    "checks_failed_count",
    "checks_not_evaluated_count",
    "capacity_utilisation_fraction",
    "log_faults_count",
    "kernel_errors_count",
    "processors_busy_fraction",
    "bad_pages_count",
    "errors_count",
    "solid_state",
    "drives_throttled_count",
    "iscsi_sessions_count",
    "iscsi_sessions_per_target_min",
    "iscsi_mtu_bytes_min",
    "iscsi_mtus_count",
    "iscsi_queue_depth_min",
    "multipath_paths_running_min",
    "multipath_policies",
    "nvme_volatile_caches_count",
    "nvme_block_bytes_min",
    "nvme_power_state_max",
    "targets_with_system_count",
}


def test_ADV_01_all_102_rules_of_the_papers_are_there() -> None:
    """Every recommendation found in the five papers, under its own id."""
    counts = {prefix: sum(rule.id.startswith(prefix) for rule in RULES) for prefix in PAPERS}
    assert counts == PAPERS
    assert sum(counts.values()) == 102


def test_ADV_01_every_rule_says_what_when_how_serious_and_who() -> None:
    """A rule without a source is an opinion."""
    for rule in RULES:
        assert rule.recommendation, rule.id
        assert rule.condition, rule.id
        assert rule.severity in SEVERITIES, rule.id
        assert len(rule.source) > 10, rule.id


def test_ADV_01_most_rules_are_decided_by_facts() -> None:
    """Advice that no file can decide is listed for a person; it must stay the small part."""
    decided = [
        rule for rule in RULES if rule.decided_with or any(check.check for check in rule.checks)
    ]
    assert len(decided) >= 90


def test_ADV_01_a_rule_is_decided_by_facts_or_says_why_it_is_for_a_person() -> None:
    """Plain advice that nobody explains looks like a check that was forgotten; a reason beside a
    check would be untrue.
    """
    for rule in RULES:
        decided = bool(rule.decided_with) or any(check.check for check in rule.checks)
        assert decided != bool(rule.for_a_person), rule.id


def test_ADV_01_rules_refer_only_to_facts_that_exist(two_hosts: str, cluster: str) -> None:
    """A misspelt fact would make its rule "not evaluated" for ever."""
    machine = (
        'virtual_switches = [{ name = "v", networks = ["storage"], uplinks = ["storage0"], '
        'initiator = "host", mtu_bytes = 9000 }]\n'
    )
    nics = (
        "hypervisor_features = []\nvendor_multipath = true\n"
        'nics = [{ name = "n", networks = ["storage"], virtual_switch = "v", adapter = "vmxnet3", '
        "offload = true, mtu_bytes = 9000 }]\n"
    )
    full = cluster.replace('hypervisor = "hyper-v"\n', f'hypervisor = "hyper-v"\n{machine}', 1)
    full = full.replace('role = "mailbox"\n', f'role = "mailbox"\n{nics}')
    subjects = [
        subject
        for text in (two_hosts, full)
        for subject in topology_subjects(check_topology(parse_located("design.toml", text)))
    ]
    known: dict[str, set[str]] = {scope: set() for scope in SCOPES} | {
        "plan": PLAN_FACTS,
        "run": RUN_FACTS,
    }
    for subject in subjects:
        known[subject.scope] |= set(subject.facts)
    for rule in RULES:
        for check in rule.checks:
            if check.scope == "requirements":
                continue  # compared with a sized file in test_requirement_rules.py
            trees = [tree for tree in (check.when_tree, check.check_tree) if tree is not None]
            for name in (name for tree in trees for name in names_in(tree)):
                assert name in known[check.scope], (
                    f"{rule.id}: {name} is no fact of a {check.scope}"
                )


OWN = """kind = "rules"
name = "house rules"
[[rules]]
id = "H-1"
subject = "memory"
condition = "every host"
severity = "warning"
recommendation = "at least 32 GB"
source = "house standard 7"
checks = [{ scope = "host", when = "threads_known", check = "memory_gb >= 32" }]
[[rules]]
id = "H-2"
subject = "memory"
condition = "every host"
severity = "info"
recommendation = "the same in other words"
source = "house standard 8"
decided_with = "H-1"
"""


def own_rules(tmp_path: Path, text: str = OWN) -> Path:
    """A user's rules in a file."""
    path = tmp_path / "rules.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ({"threads_known": True, "memory_gb": 16}, "finding"),
        ({"threads_known": True, "memory_gb": 64}, "met"),
        ({"threads_known": False, "memory_gb": 16}, "not applicable"),
        ({"threads_known": True}, "not stated: memory_gb"),
        ({}, "not stated: threads_known, memory_gb"),
        ({"threads_known": True, "memory_gb": "much"}, "the rule cannot be worked out"),
    ],
)
def test_ADV_01_a_users_own_rule_has_every_outcome(
    tmp_path: Path, facts: dict[str, float | str], outcome: str
) -> None:
    """Sample facts labelled with what must come of them.

    The rule decided with it shares the outcome.
    """
    advice = advise(
        read_rules(own_rules(tmp_path)), [Subject("host", "h", dict(facts))], frozenset({"host"})
    )
    assert bool(advice.findings) == (outcome == "finding")
    assert ("H-1" in advice.met, "H-2" in advice.met) == ((outcome == "met"),) * 2
    assert [rule.id for rule in advice.not_applicable] == (
        ["H-1", "H-2"] if outcome == "not applicable" else []
    )
    reasons = [entry.reason for entry in advice.not_evaluated]
    assert all(reason.startswith(outcome) for reason in reasons)
    assert len(reasons) == (0 if outcome in ("finding", "met", "not applicable") else 2)
    if advice.findings:
        assert advice.findings[0].evidence == {"memory_gb": 16}
        assert [rule.id for rule in advice.findings[0].also] == ["H-2"]


def test_ADV_01_a_rule_whose_input_was_not_given_says_what_it_needs(tmp_path: Path) -> None:
    """Silence about a rule must always mean that it was looked at."""
    advice = advise(read_rules(own_rules(tmp_path)), [], frozenset({"requirements"}))
    assert {entry.reason for entry in advice.not_evaluated} == {
        "needs a topology, which was not given"
    }
    nothing = advise(RULES, [], frozenset())
    seen = {entry.rule.id for entry in nothing.not_evaluated} | {
        rule.id for rule in nothing.to_weigh
    }
    assert seen == {rule.id for rule in RULES}


def test_mistakes_in_rules_come_at_once(tmp_path: Path) -> None:
    """A broken expression, an unknown scope, a missing source and a dangling partner."""
    text = OWN.replace('check = "memory_gb >= 32"', 'check = "memory_gb >="').replace(
        'scope = "host"', 'scope = "hosts"'
    )
    text = text.replace('source = "house standard 8"\n', "").replace(
        'decided_with = "H-1"', 'decided_with = "H-9"'
    )
    with pytest.raises(InputError) as caught:
        read_rules(own_rules(tmp_path, text))
    assert [(mistake.line, mistake.where) for mistake in caught.value.mistakes] == [
        (10, "rules[1].checks[1].check"),
        (10, "rules[1].checks[1].scope"),
        (11, "rules[2].source"),
        (17, "rules[2].decided_with"),
    ]


def test_ADV_04_the_limits_of_the_result_are_always_stated() -> None:
    """Every paper says its figures are no benchmark and no substitute for an own test.

    So does every advice.
    """
    assert advise((), [], frozenset()).limits == LIMITS_OF_THE_RESULT
    assert any("do not replace a test of the own design" in limit for limit in LIMITS_OF_THE_RESULT)
    assert any("no benchmarks" in limit for limit in LIMITS_OF_THE_RESULT)


def test_the_shipped_file_is_one_page_a_person_can_read() -> None:
    """Rules are data for people, too: no line beyond the editor's width but for long checks."""
    assert max(len(line) for line in SHIPPED_RULES.read_text().splitlines()) < 260
