"""The storage network: bandwidth on every path, the published rules, and what is common to all
paths.
"""

from typing import Any

import pytest

from plimsoll.sizing.design import size
from plimsoll.sizing.guidance import Guidance
from plimsoll.sizing.network import (
    Interfaces,
    network_rules,
    path_bandwidth,
    single_points_of_failure,
)
from tests.support.sizing_designs import make


def verdict(name: str, design: Interfaces) -> bool | None:
    return next(rule.holds for rule in network_rules(design) if rule.name == name)


def test_bandwidth_of_the_published_host(exchange_2010: Guidance) -> None:
    """CAL-24, NET-04: two 1 Gbit/s links carry the VNXe host's backup; one link would not."""
    # 329.489 database IOPS at 32 KB, 100.076 log writes, two databases scanned, 116.83 MB/s of
    # backup.
    use = path_bandwidth(329.489, 100.076, 2, 2, 1000, exchange_2010, 116.83, overhead_fraction=0)
    assert use.transactional.value == pytest.approx(90.63, abs=0.01)
    assert use.backup.value == pytest.approx(980.04, abs=0.01)
    assert use.demand.value == pytest.approx(
        use.transactional.value + use.maintenance.value + use.backup.value
    )
    assert use.available.value == 2000
    assert use.utilisation.value < 100 < use.utilisation_one_down.value


def test_an_oversubscribed_path_is_a_finding() -> None:
    """NET-04: the budget is held against the ports, also with one of them down."""
    subjects = {
        finding.subject
        for finding in size(make(network={"port_count": 1, "port_speed": "500 Mbit/s"})).findings
    }
    assert {"storage paths", "single point of failure"} <= subjects
    wide = size(make(network={"port_count": 2, "port_speed": "10 Gbit/s", "switch_count": 2}))
    assert not {"storage paths", "single point of failure"} & {
        finding.subject for finding in wide.findings
    }


@pytest.mark.parametrize(
    ("server", "switch", "storage", "holds"),
    [
        (9014, 9216, 9000, True),
        (9014, 1500, 9000, False),
        (9014, None, 9000, None),
        (1500, None, None, False),
    ],
)
def test_jumbo_frames_end_to_end(
    server: int | None, switch: int | None, storage: int | None, holds: bool | None
) -> None:
    """NET-01: one small frame on the way is enough to lose, and a frame nobody stated proves
    nothing.
    """
    design = Interfaces(
        server_frame_bytes=server, switch_frame_bytes=switch, storage_frame_bytes=storage
    )
    assert verdict("jumbo frames on the whole path", design) is holds


def test_traffic_classes_are_kept_apart() -> None:
    """NET-02: client, private and storage traffic, and replication, have networks of their own."""
    assert verdict("VLAN for each class", Interfaces(vlan_per_class=False)) is False
    assert verdict("replication network", Interfaces(replication_network=True)) is True
    assert verdict("two client ports", Interfaces(client_port_count=1)) is False


@pytest.mark.parametrize("setting", ["uplink_aggregated", "flow_control", "port_fast"])
@pytest.mark.parametrize("value", [True, False, None])
def test_switch_settings(setting: str, value: bool | None) -> None:
    """NET-03: what is off is told, what is not stated is listed as open and never as right."""
    names = {
        "uplink_aggregated": "uplinks aggregated",
        "flow_control": "flow control",
        "port_fast": "portfast on edge ports",
    }
    stated: dict[str, Any] = {setting: value}
    assert verdict(names[setting], Interfaces(**stated)) is value


def test_virtual_nics() -> None:
    """NET-05: vmxnet3, offloads on, and a virtual NIC for each uplink.

    Asked only of virtual servers.
    """
    good = Interfaces(
        virtual=True,
        virtual_nic_type="VMXNET3",
        virtual_nic_count=4,
        storage_port_count=4,
        offload=True,
    )
    assert all(
        verdict(name, good)
        for name in ("vmxnet3 storage NICs", "TSO and LRO", "a virtual NIC for each uplink")
    )
    bad = Interfaces(
        virtual=True,
        virtual_nic_type="E1000",
        virtual_nic_count=2,
        storage_port_count=4,
        offload=False,
    )
    assert not any(
        verdict(name, bad)
        for name in ("vmxnet3 storage NICs", "TSO and LRO", "a virtual NIC for each uplink")
    )
    assert "TSO and LRO" not in [rule.name for rule in network_rules(Interfaces(offload=False))]


def test_single_points_of_failure() -> None:
    """HA-05: a missing second switch is found, and a design that has one is not accused."""
    one_switch = [["port 1", "switch 1", "controller A"], ["port 2", "switch 1", "controller B"]]
    two_switches = [["port 1", "switch 1", "controller A"], ["port 2", "switch 2", "controller B"]]
    assert single_points_of_failure(one_switch) == ["switch 1"]
    assert single_points_of_failure(two_switches) == []
    assert single_points_of_failure([]) == []


def test_a_missing_second_switch_is_a_finding_of_a_sizing() -> None:
    """HA-05: the paths of the provisioning plan are examined, not only a list of settings."""
    findings = size(make(network={"port_count": 4, "switch_count": 1})).findings
    assert [
        finding.message for finding in findings if finding.subject == "single point of failure"
    ] == ["every path of a volume runs through switch 1"]
