"""Rules and suggestions over a requirements file and the sizing that follows from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plimsoll.advice.engine import Advice, advise
from plimsoll.advice.requirement_facts import (
    DESCRIBED,
    figures_of,
    need_of,
    requirement_subject,
    sized,
)
from plimsoll.advice.rules import read_rules
from plimsoll.advice.suggestions import suggest
from plimsoll.inputs.expression import names_in
from plimsoll.sizing.catalogue import EQUALLOGIC_2010, read_catalogue
from plimsoll.sizing.selection import GB_PER_GIB, select_arrays

GOOD = """kind = "requirements"
title = "paper"
[users]
count = 5000
mailbox_quota = "2 GB"
messages_per_day = 150
[copies]
count = 2
[databases]
max_size = "1 TB"
[logs]
mailboxes_moved = "10 %"
[storage]
raid = "RAID 50"
[network]
flow_control = true
port_fast = true
vlan_per_class = true
replication_network = true
uplink_aggregated = true
client_port_count = 2
server_frame_bytes = 9000
switch_frame_bytes = 9216
storage_frame_bytes = 9000
[server]
memory = "64 GB"
"""
RULES = read_rules()
LAGGED = "[copies]\ncount = 3\nlagged_count = 1\nreplay_lag_days = 7"
MEASURED_TOO_LITTLE = 'raid = "RAID 50"\nmeasured_iops = 500\nmeasured_capacity = "40 TB"'
#: One change of the sound requirements for each rule that is decided from them.
FLIPS = [
    ("BP-Q29", "flow_control = true", "flow_control = false"),
    ("BP-Q30", "server_frame_bytes = 9000", "server_frame_bytes = 1500"),
    ("BP-Q31", "port_fast = true", "port_fast = false"),
    ("BP-Q34", "replication_network = true", "replication_network = false"),
    ("BP-Q51", "vlan_per_class = true", "vlan_per_class = false"),
    ("BP-Q32", "vlan_per_class = true", "vlan_per_class = false"),
    ("BP-Q33", "client_port_count = 2", "client_port_count = 1"),
    ("NET-03-uplinks", "uplink_aggregated = true", "uplink_aggregated = false"),
    ("BP-N03", 'memory = "64 GB"', 'memory = "16 GB"'),
    ("BP-N04", "messages_per_day = 150", 'messages_per_day = 150\nclient_mode = "online"'),
    ("BP-Q59", "messages_per_day = 150", 'messages_per_day = 150\nclient_mode = "online"'),
    ("BP-Q15", 'raid = "RAID 50"', 'raid = "RAID 5"'),
    ("BP-E05", 'raid = "RAID 50"', 'raid = "RAID 50"\nshared_with_other_workloads = true'),
    ("BP-E04", 'raid = "RAID 50"', 'raid = "RAID 50"\nallocation_unit = "4 KB"'),
    ("BP-Q24", "[copies]", '[copies]\nlayout = "active/passive"'),
    ("BP-Q47", "[copies]\ncount = 2", '[copies]\nmode = "standalone"'),
    ("BP-Q37", 'raid = "RAID 50"', 'raid = "RAID 50"\nsystem_disk_on_data_drives = true'),
    ("BP-Q12", 'mailboxes_moved = "10 %"', 'mailboxes_moved = "0 %"'),
    ("BP-Q11", "[copies]\ncount = 2", LAGGED),
    ("BP-Q35", "[network]", '[network]\nport_speed = "10 Mbit/s"'),
    ("BP-Q58", 'max_size = "1 TB"', 'max_size = "1 TB"\ncount_min = 101'),
    ("BP-E02", 'raid = "RAID 50"', MEASURED_TOO_LITTLE),
]
#: Figures of a guidance file of one's own that ask for less than the papers do, and a change of the
#: requirements that uses them.
OFFLINE = ('max_size = "1 TB"', 'max_size = "1 TB"\noffline_maintenance_count = 1')
STANDALONE = ("[copies]\ncount = 2", '[copies]\nmode = "standalone"')
GUIDANCE_FLIPS = {
    "BP-E06": ("max_database_dag_gb", 4096, ('max_size = "1 TB"', 'max_size = "3 TB"')),
    "BP-Q06": ("max_database_standalone_gb", 2048, STANDALONE),
    "BP-E16": ("iops_headroom_factor", 1.1, None),
    "BP-Q01": ("database_overhead_factor", 1.1, None),
    "BP-Q02": ("content_index_factor", 1.0, None),
    "BP-Q03": ("offline_maintenance_factor", 1.0, OFFLINE),
    "BP-Q09": ("log_overhead_factor", 1.1, None),
    "BP-Q14": ("maintenance_mb_per_s", 0, None),
}


def advice_for(tmp_path: Path, text: str) -> Advice:
    """All rules over a requirements file."""
    path = tmp_path / "requirements.toml"
    path.write_text(text)
    return advise(RULES, [requirement_subject(sized(path), str(path))], DESCRIBED)


def test_ADV_01_sound_requirements_have_no_findings_and_leave_nothing_open(tmp_path: Path) -> None:
    """Everything the rules ask of requirements can be stated in a requirements file."""
    advice = advice_for(tmp_path, GOOD)
    assert [finding.rule.id for finding in advice.findings] == []
    unknown = [entry for entry in advice.not_evaluated if entry.reason.startswith("not stated")]
    assert unknown == []


@pytest.mark.parametrize(("rule", "old", "new"), FLIPS)
def test_ADV_01_each_fault_in_requirements_is_found(
    tmp_path: Path, rule: str, old: str, new: str
) -> None:
    """One change to sound requirements must show under the rule that speaks of it."""
    text = GOOD.replace(old, new)
    if rule == "BP-Q47":
        text = text.replace('max_size = "1 TB"', 'max_size = "100 GB"')
    if rule == "BP-Q11":
        text = text.replace("[logs]", '[logs]\nretention = "1 day"')
    if rule == "BP-Q37":
        text = text.replace("[server]", "[server]\nvirtual = true")
    found = {rule.id for f in advice_for(tmp_path, text).findings for rule in (f.rule, *f.also)}
    assert rule in found, found


@pytest.mark.parametrize("rule", GUIDANCE_FLIPS)
def test_ADV_01_each_figure_of_own_guidance_that_is_too_small_is_found(
    tmp_path: Path, rule: str
) -> None:
    """The shipped guidance is that of the papers; a file of one's own may ask for less."""
    figure, value, change = GUIDANCE_FLIPS[rule]
    (tmp_path / "own.toml").write_text(
        'kind = "guidance"\n[[edition]]\nname = "exchange_2010"\n[edition.figures]\n'
        f'{figure} = {{ value = {value}, source = "house", basis = "assumed" }}\n'
    )
    text = GOOD.replace('title = "paper"', f'guidance_file = "{tmp_path / "own.toml"}"')
    text = text.replace(*change) if change else text
    advice = advice_for(tmp_path, text)
    assert rule in {found.rule.id for found in advice.findings}


def test_ADV_01_every_rule_over_requirements_is_flipped_here() -> None:
    """Nine checks could not fail whatever the requirements were: each needs a change that makes it
    fail.
    """
    decided = {
        rule.id
        for rule in RULES
        for check in rule.checks
        if check.scope == "requirements" and check.check
    }
    assert decided == {rule for rule, _, _ in FLIPS} | set(GUIDANCE_FLIPS)


def test_BP_E02_is_held_against_what_was_measured(tmp_path: Path) -> None:
    """Enough of one and too little of the other is too little; without a measurement nothing can
    be said.
    """
    for measured, found in (
        ('measured_iops = 1000\nmeasured_capacity = "40 TB"', False),
        ('measured_iops = 800\nmeasured_capacity = "40 TB"', True),
        ('measured_iops = 1000\nmeasured_capacity = "10 TB"', True),
    ):
        text = GOOD.replace('raid = "RAID 50"', f'raid = "RAID 50"\n{measured}')
        ids = {finding.rule.id for finding in advice_for(tmp_path, text).findings}
        assert ("BP-E02" in ids) == found, measured
    assert "BP-E02" in {rule.id for rule in advice_for(tmp_path, GOOD).not_applicable}


def test_ADV_01_rules_refer_only_to_facts_requirements_have(tmp_path: Path) -> None:
    """A misspelt fact would make its rule "not evaluated" for ever."""
    path = tmp_path / "requirements.toml"
    measured = 'raid = "RAID 50"\nmeasured_iops = 1000\nmeasured_capacity = "40 TB"'
    path.write_text(GOOD.replace('raid = "RAID 50"', measured))
    facts = requirement_subject(sized(path), str(path)).facts
    checks = [
        (rule.id, check) for rule in RULES for check in rule.checks if check.scope == "requirements"
    ]
    assert len(checks) > 30
    for rule_id, check in checks:
        trees = [tree for tree in (check.when_tree, check.check_tree) if tree is not None]
        for name in (name for tree in trees for name in names_in(tree)):
            assert name in facts, f"{rule_id}: {name}"


def test_CAL_08_a_requirements_file_leads_to_the_array_choice(tmp_path: Path) -> None:
    """What `size` gives is what `select` takes.

    Capacity converted once, log IOPS passed on but not added.
    """
    path = tmp_path / "requirements.toml"
    path.write_text(GOOD)
    sizing = sized(path)
    need = need_of(sizing)
    assert need.volumes_gb == pytest.approx(sizing.results["total_capacity_gb"].value * GB_PER_GIB)
    assert (need.database_iops, need.copies, need.raid_levels) == (900, 2, ("RAID 50",))
    assert select_arrays(need, read_catalogue(EQUALLOGIC_2010).rows).required_iops == 900


def test_ADV_03_suggestions_carry_their_reasoning_and_do_not_change(tmp_path: Path) -> None:
    """RAID, drives, copies and memory, each with the figures that lead there; twice the same."""
    path = tmp_path / "requirements.toml"
    path.write_text(
        GOOD.replace('raid = "RAID 50"', 'file_system = "ntfs"').replace("64 GB", "16 GB")
    )
    rows = read_catalogue(EQUALLOGIC_2010).rows
    first, second = (suggest(figures_of(sized(path)), rows) for _ in range(2))
    assert first == second
    assert [suggestion.subject for suggestion in first] == ["RAID", "drives", "copies", "memory"]
    by_subject = {suggestion.subject: suggestion for suggestion in first}
    assert by_subject["RAID"].proposal == "RAID 10"
    assert "RAID 50: 2 x PS6500E" in by_subject["RAID"].reasoning
    assert "this array gives 104, and capacity decides the number" in by_subject["drives"].reasoning
    assert by_subject["copies"].proposal == "keep 2"
    assert by_subject["memory"].reasoning.startswith("16 GB are planned")
    assert all(suggestion.source for suggestion in first)


def test_ADV_03_more_iops_change_the_suggested_drives(tmp_path: Path) -> None:
    """A dense load must lead to other drives than a large and quiet one, and one copy to a
    second.
    """
    path = tmp_path / "requirements.toml"
    path.write_text(GOOD.replace('raid = "RAID 50"', 'file_system = "ntfs"'))
    figures = figures_of(sized(path))
    dense = replace(
        figures, need=replace(figures.need, volumes_gb=4_000, database_iops=9_000, copies=1)
    )
    by_subject = {
        suggestion.subject: suggestion
        for suggestion in suggest(dense, read_catalogue(EQUALLOGIC_2010).rows)
    }
    assert "IOPS decides the number" in by_subject["drives"].reasoning
    assert by_subject["copies"].proposal == "2"
    assert "no row of the catalogue" in suggest(dense, ())[0].reasoning


def test_no_raid_level_is_suggested_from_a_cloud_volume(tmp_path: Path) -> None:
    """A volume of a cloud is one slot in RAID 0 to the catalogue; as a suggestion for own drives
    that would lose data.
    """
    path = tmp_path / "requirements.toml"
    path.write_text(GOOD.replace('raid = "RAID 50"', 'file_system = "ntfs"'))
    by_subject = {
        suggestion.subject: suggestion
        for suggestion in suggest(figures_of(sized(path)), read_catalogue().rows)
    }
    assert by_subject["RAID"].proposal != "RAID 0"
    assert "cloud" not in by_subject["drives"].proposal.lower()
