"""Rules over a topology: a sound design has no findings, and each planted fault is found under its
rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from plimsoll.advice.engine import Advice

Check = Callable[[str], Advice]


def found(advice: Advice) -> dict[str, list[str]]:
    """Names of the subjects with findings, by rule."""
    names: dict[str, list[str]] = {}
    for finding in advice.findings:
        names.setdefault(finding.rule.id, []).append(finding.subject.name)
    return names


def test_ADV_02_a_sound_design_has_no_findings(two_hosts: str, advice_for: Check) -> None:
    """Advice that always finds something is not read."""
    advice = advice_for(two_hosts)
    assert found(advice) == {}
    assert len(advice.met) >= 45
    assert {"BP-Q30", "NET-01-mismatch", "BP-Q35", "BP-Q28", "BP-Q53"} <= set(advice.met)


def without_second_switch(text: str) -> str:
    """The design with the second storage switch and its cables taken away."""
    text = re.sub(r'\[\[switches\]\]\nname = "san-2"\n(?:[a-z_]+ = .*\n)+', "", text)
    return re.sub(r'\[\[links\]\]\nbetween = \[[^\]]*"san-2"[^\]]*\]\n(count = 2\n)?', "", text)


def all_active_on_one_server(text: str) -> str:
    """Every active copy on mbx1."""
    text = re.sub(r'(server = "mbx1", .*active = )false', r"\1true", text)
    return re.sub(r'(server = "mbx2", .*active = )true', r"\1false", text)


def no_replication_port(text: str) -> str:
    """Replication shares its ports with clients."""
    return text.replace('["replication", "heartbeat"]', '["replication", "heartbeat", "client"]')


def unplugged_from_storage(text: str) -> str:
    """Neither storage port of mbx1 has a cable."""
    return re.sub(r'\[\[links\]\]\nbetween = \["mbx1.san\d", "san-\d"\]\n', "", text)


FAULTS = [
    ("HA-05-switch", "san-1", without_second_switch, ""),
    ("BP-Q29", "san-1", "flow_control = true\nportfast", "flow_control = false\nportfast"),
    ("BP-Q30", "the storage network", "mtu_bytes = 9216", "mtu_bytes = 1500"),
    ("NET-01-mismatch", "the storage network", "mtu_bytes = 9216", "mtu_bytes = 1500"),
    ("BP-Q31", "san-1", "portfast = true", "portfast = false"),
    ("BP-M15", "san-1", "iscsi_optimisation = false", "iscsi_optimisation = true"),
    ("BP-Q52", "san-1", "ports = 48", "ports = 4"),
    (
        "BP-Q32",
        "mbx1",
        'networks = ["storage"], adapter',
        'networks = ["storage", "client"], adapter',
    ),
    ("BP-Q34", "mbx1", no_replication_port, ""),
    ("BP-Q51", "mbx1", "vlan = 200", "vlan = 103"),
    ("BP-M03", "mbx1", "vendor_multipath = true", "vendor_multipath = false"),
    ("BP-M14", "mbx1", "sessions_per_array_port = 1", "sessions_per_array_port = 0"),
    ("BP-Q35", "mbx1", "storage_demand_mb_per_s = 60", "storage_demand_mb_per_s = 200"),
    ("BP-Q25", "loss of mbx2", "iops_max = 1200", "iops_max = 800"),
    ("HA-05-feeds", "mbx1", '"feed-a", "feed-b"]\nmemory_gb = 64', '"feed-a"]\nmemory_gb = 64'),
    (
        "HA-05-power",
        "feed-a",
        'networks = ["storage"]\npower = ["feed-b"]',
        'networks = ["storage"]\npower = ["feed-a"]',
    ),
    ("STO-spares", "array-a", "hot_spares = 2", "hot_spares = 0"),
    ("BP-Q15", "group-a", 'raid = "RAID 50"', 'raid = "RAID 5"'),
    ("BP-E04", "db1-a", "allocation_unit_kb = 64", "allocation_unit_kb = 4"),
    ("BP-E04", "db1-a", "partition_offset_bytes = 1048576", "partition_offset_bytes = 32256"),
    ("BP-Q27", "db1-a", 'partition_style = "gpt"', 'partition_style = "mbr"'),
    (
        "BP-E05",
        "group-a",
        'name = "log1-a"\ndisk_group = "group-a"\nuse = "log"',
        'name = "log1-a"\ndisk_group = "group-a"\nuse = "other"',
    ),
    ("BP-E06", "DB1", "size_gb = 959", "size_gb = 2049"),
    ("BP-Q07", "db1-a", 'database_volume = "db2-a"', 'database_volume = "db1-a"'),
    ("BP-Q08", "log1-a", 'log_volume = "log2-a"', 'log_volume = "log1-a"'),
    ("BP-Q26", "DB1", 'log_volume = "log1-a"', 'log_volume = "db1-a"'),
    ("BP-Q20", "DB1", 'database_volume = "db1-b"', 'database_volume = "db1-a"'),
    ("BP-Q21", "array-a", 'database_volume = "db1-b"', 'database_volume = "db1-a"'),
    ("BP-Q24", "two hosts, two arrays", all_active_on_one_server, ""),
    ("BP-Q48", "two hosts, two arrays", 'target = "elsewhere"', 'target = "array"'),
    ("HA-01-votes", "two hosts, two arrays", 'witness = "dc"\n', ""),
    (
        "NET-03-uplinks",
        "san-1",
        'between = ["san-1", "san-2"]\ncount = 2',
        'between = ["san-1", "san-2"]\ncount = 1',
    ),
    ("HA-05-cabling", "two hosts, two arrays", unplugged_from_storage, ""),
]


@pytest.mark.parametrize(
    ("rule", "subject", "old", "new"),
    FAULTS,
    ids=[f"{fault[0]}-{index}" for index, fault in enumerate(FAULTS)],
)
def test_ADV_02_each_planted_fault_is_found(
    two_hosts: str,
    advice_for: Check,
    rule: str,
    subject: str,
    old: str | Callable[[str], str],
    new: str,
) -> None:
    """One change to a sound design must show under the rule that speaks of it, at the thing that
    was changed.
    """
    if callable(old):
        text = old(two_hosts)
    else:
        assert old in two_hosts, "the fault must be planted somewhere"
        text = two_hosts.replace(old, new, 1)
    advice = advice_for(text)
    assert subject in found(advice).get(rule, []), found(advice)
    finding = next(
        finding
        for finding in advice.findings
        if finding.rule.id == rule and finding.subject.name == subject
    )
    assert finding.evidence
    assert finding.rule.fix
    assert finding.rule.source


def test_HA_05_the_missing_second_switch_is_found(two_hosts: str, advice_for: Check) -> None:
    """The switch is named with its line and the databases that stop with it."""
    advice = advice_for(without_second_switch(two_hosts))
    finding = next(finding for finding in advice.findings if finding.rule.id == "HA-05-switch")
    assert finding.severity == "error"
    assert finding.subject.name == "san-1"
    assert finding.evidence["services_lost"] == [
        "database DB1",
        "database DB2",
        "database DB3",
        "database DB4",
    ]
    assert finding.place == "design.toml:15"
    assert "second switch" in finding.rule.fix


def test_HA_07_hypervisor_failover_of_mailbox_machines_is_flagged(
    cluster: str, advice_for: Check
) -> None:
    """BP-Q38: the group of databases moves them, and two mechanisms at once fight."""
    text = cluster.replace(
        'role = "mailbox"', 'role = "mailbox"\nhypervisor_features = ["ha", "drs"]'
    )
    advice = advice_for(text)
    finding = next(finding for finding in advice.findings if finding.rule.id == "BP-Q38")
    assert finding.evidence["hypervisor_features"] == ["ha", "drs"]
    assert "BP-Q38" in advice_for(text.replace('["ha", "drs"]', "[]")).met


def test_STO_12_system_disks_on_data_drives_are_flagged(cluster: str, advice_for: Check) -> None:
    """BP-Q37: paging and updates of the guest would disturb the database."""
    assert "BP-Q37" in advice_for(cluster).met
    text = cluster.replace(
        'name = "system-disks"\ndisk_group = "group-4"',
        'name = "system-disks"\ndisk_group = "group-2"',
    )
    assert found(advice_for(text))["BP-Q37"] == ["exchange"]


def test_NET_01_a_single_small_station_breaks_large_frames(
    two_hosts: str, advice_for: Check
) -> None:
    """The evidence names the station, because nothing else does."""
    advice = advice_for(
        two_hosts.replace(
            "speed_gbit_per_s = 1, mtu_bytes = 9000, flow",
            "speed_gbit_per_s = 1, mtu_bytes = 1500, flow",
            1,
        )
    )
    finding = next(finding for finding in advice.findings if finding.rule.id == "BP-Q30")
    assert finding.evidence["stations_below_jumbo"] == ["mbx1.san0 (1500)"]
    assert [rule.id for rule in finding.also] == ["BP-N05", "BP-M02"]


VIRTUAL = """
[[switches]]
name = "iscsi"
networks = ["storage"]
[[switches]]
name = "lan"
networks = ["client", "replication", "management"]
[[hosts]]
name = "esx1"
memory_gb = 64
threads = 16
hypervisor = "esx"
initiator = "guest"
ports = [
  { name = "vmnic0", networks = ["client", "replication", "management"], vlan = 103 },
  { name = "vmnic1", networks = ["client", "replication", "management"], vlan = 103 },
  { name = "vmnic6", networks = ["storage"], vlan = 200 },
  { name = "vmnic7", networks = ["storage"], vlan = 200 },
]
virtual_switches = [
  { name = "vSwitch0", networks = ["client", "replication", "management"], uplinks = ["vmnic0", "vmnic1"] },
  { name = "vSwitch1", networks = ["storage"], uplinks = ["vmnic6", "vmnic7"], initiator = "guest" },
]
[[machines]]
name = "mbx"
host = "esx1"
role = "mailbox"
memory_gb = 48
vcpus = 4
system_disk_gb = 63
system_volume = "local"
hypervisor_features = []
initiator = "guest"
vendor_multipath = true
needs_array_snapshots = true
nics = [
  { name = "nic1", networks = ["client"], virtual_switch = "vSwitch0", adapter = "e1000" },
  { name = "nic2", networks = ["replication"], virtual_switch = "vSwitch0", adapter = "e1000" },
  { name = "nic3", networks = ["storage"], virtual_switch = "vSwitch1", adapter = "vmxnet3", offload = true },
  { name = "nic4", networks = ["storage"], virtual_switch = "vSwitch1", adapter = "vmxnet3", offload = true },
]
"""  # noqa: E501
VIRTUAL = 'kind = "topology"\nname = "virtual"\n' + VIRTUAL
VIRTUAL_FAULTS = [
    (
        "BP-Q39",
        "esx1",
        'networks = ["storage"], uplinks',
        'networks = ["storage", "client"], uplinks',
    ),
    ("BP-Q39", "esx1", '["vmnic6", "vmnic7"]', '["vmnic1", "vmnic7"]'),
    ("BP-Q40", "esx1.vSwitch1", '["vmnic6", "vmnic7"]', '["vmnic6"]'),
    ("BP-Q41", "mbx", 'initiator = "guest"\nvendor', 'initiator = "host"\nvendor'),
    ("BP-Q42", "mbx", '"vmxnet3", offload = true', '"e1000", offload = true'),
    ("BP-Q42", "mbx", '"vmxnet3", offload = true', '"vmxnet3", offload = false'),
    ("BP-Q43", "mbx", "vendor_multipath = true", "vendor_multipath = false"),
    ("BP-Q44", "mbx", '["vmnic6", "vmnic7"]', '["vmnic6", "vmnic7", "vmnic0"]'),
    ("BP-Q46", "mbx", "system_disk_gb = 63", "system_disk_gb = 62"),
    ("BP-Q54", "esx1", 'initiator = "guest"\nports', 'initiator = "hardware"\nports'),
]


@pytest.mark.parametrize(("rule", "subject", "old", "new"), VIRTUAL_FAULTS)
def test_NET_05_each_fault_of_a_virtual_network_is_found(
    advice_for: Check, rule: str, subject: str, old: str, new: str
) -> None:
    """Virtual switches, uplinks, NIC kinds and offloads of the published testbed, one fault at a
    time.
    """
    assert rule not in found(advice_for(VIRTUAL))
    assert old in VIRTUAL
    assert subject in found(advice_for(VIRTUAL.replace(old, new, 1))).get(rule, [])


def test_NET_02_the_published_network_roles_validate(advice_for: Check) -> None:
    """Tables 3 to 5 of the EqualLogic paper.

    Two virtual switches, client and storage apart, four kinds of traffic.
    """
    advice = advice_for(VIRTUAL)
    for rule in ("BP-Q32", "BP-Q33", "BP-Q39", "BP-Q40", "BP-Q42", "BP-Q44", "BP-Q46"):
        assert rule in advice.met, rule


def test_NET_03_switch_rules_that_need_unstated_settings_are_listed(
    cluster: str, advice_for: Check
) -> None:
    """The MD3000i paper says nothing of portfast, so nothing is claimed about it."""
    advice = advice_for(cluster)
    assert "BP-M15" in advice.met
    entry = next(entry for entry in advice.not_evaluated if entry.rule.id == "BP-Q31")
    assert (entry.subjects, entry.reason) == (("switch-1", "switch-2"), "not stated: portfast")


def test_NET_04_bandwidth_counts_with_one_port_lost(two_hosts: str, advice_for: Check) -> None:
    """Two 1 Gbit/s ports carry 125 MB/s when one is gone; 126 do not fit, although 250 would."""
    enough = advice_for(
        two_hosts.replace("storage_demand_mb_per_s = 60", "storage_demand_mb_per_s = 125")
    )
    assert "BP-Q35" in enough.met
    finding = next(
        finding
        for finding in advice_for(
            two_hosts.replace("storage_demand_mb_per_s = 60", "storage_demand_mb_per_s = 126")
        ).findings
        if finding.rule.id == "BP-Q35"
    )
    assert finding.evidence == {
        "storage_bandwidth_after_port_loss_mb_per_s": 125.0,
        "storage_demand_mb_per_s": 126,
    }


def test_what_is_not_stated_names_the_key_to_write(cluster: str, advice_for: Check) -> None:
    """A reader can only act on the key, not on the name of a derived fact."""
    reasons = {entry.rule.id: entry.reason for entry in advice_for(cluster).not_evaluated}
    assert reasons["BP-E04"] == "not stated: allocation_unit_kb, partition_offset_bytes"
    assert reasons["HA-05-feeds"] == "not stated: power"
    assert reasons["BP-Q48"] == "not stated: [[backups]]"
    assert reasons["BP-E11"] == "needs a finished run, which was not given"


def test_NET_01_a_station_of_unknown_frame_size_leaves_the_rule_open(
    two_hosts: str, advice_for: Check
) -> None:
    """A network is sound only when every station is known to be.

    One that is known to be small decides at once.
    """
    unknown = two_hosts.replace("mtu_bytes = 9216\n", "", 1)
    reasons = {entry.rule.id: entry.reason for entry in advice_for(unknown).not_evaluated}
    assert reasons["BP-Q30"] == "not stated: mtu_bytes on every port and switch"
    small = unknown.replace("mtu_bytes = 9216", "mtu_bytes = 1500")
    assert "BP-Q30" in found(advice_for(small))


def test_NET_04_the_fastest_port_is_the_one_that_is_lost(two_hosts: str, advice_for: Check) -> None:
    """With ports of 10 and 1 Gbit/s, 125 MB/s are left when the fast one is gone."""
    text = two_hosts.replace(
        'adapter = "card-2", speed_gbit_per_s = 1', 'adapter = "card-2", speed_gbit_per_s = 10', 1
    )
    assert "BP-Q35" in advice_for(text).met
    finding = next(
        finding
        for finding in advice_for(
            text.replace("storage_demand_mb_per_s = 60", "storage_demand_mb_per_s = 130", 1)
        ).findings
        if finding.rule.id == "BP-Q35"
    )
    assert finding.evidence["storage_bandwidth_after_port_loss_mb_per_s"] == 125


def test_the_published_testbed_has_its_known_weaknesses(cluster: str, advice_for: Check) -> None:
    """One array, one cable between switches, logs of both databases together.

    The paper's testbed as it was.
    """
    names = found(advice_for(cluster))
    assert names["NET-03-uplinks"] == ["switch-1", "switch-2"]
    assert names["HA-05-array"] == ["md3000i", "group-1", "group-2", "group-3", "group-4"]
    assert "BP-E10" not in names
    together = cluster.replace('log_volume = "exchange-logs"', 'log_volume = "file-server-2"')
    assert found(advice_for(together))["BP-E10"] == ["mail"]


def test_BP_N02_each_volume_holds_one_database_or_its_logs(
    two_hosts: str, advice_for: Callable[[str], Advice]
) -> None:
    """It was advice for a person, although a topology says what lies on which volume."""
    assert "BP-N02" in advice_for(two_hosts).met
    shared = two_hosts.replace('log_volume = "log2-a"', 'log_volume = "log1-a"')
    assert shared != two_hosts
    found = [f for f in advice_for(shared).findings if f.rule.id == "BP-N02"]
    assert [finding.subject.name for finding in found] == ["log1-a"]
    assert found[0].evidence["log_count"] == 2
