"""Adapters, iSCSI sessions and multipath devices, from a /sys that was built for the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll.advice.engine import Subject, advise
from plimsoll.advice.rules import read_rules
from plimsoll.advice.run_facts import DESCRIBED_BY_RUN, _environment_facts
from plimsoll.host.adapters import iscsi_sessions, multipath_devices, storage_adapters

TABLE = "0 209715200 multipath 1 queue_if_no_path 1 alua 1 1 service-time 0 2 2 8:0 1 1 8:16 1 1 \n"


def written(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def linked(link: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Two sessions of one initiator with a disk each, on one multipath device; a Fibre Channel
    adapter with a disk; an adapter without any.
    """
    platform, pci = tmp_path / "devices/platform", tmp_path / "devices/pci0"
    for number, (disk, depth, portal) in enumerate(
        [("sda", 32, "10.0.0.5"), ("sdb", 128, "10.0.0.6")], 1
    ):
        session = platform / f"host{number}/session{number}"
        device = session / f"target{number}:0:0/{number}:0:0:0"
        written(device / "queue_depth", depth)
        written(device / "state", "running" if number == 1 else "transport-offline")
        linked(tmp_path / f"block/{disk}/device", device)
        linked(tmp_path / f"class/iscsi_session/session{number}", session / "iscsi_session")
        for name, value in {
            "targetname": "iqn.2010-01.example:one",
            "state": "LOGGED_IN",
            "first_burst_len": 262144,
            "max_burst_len": 16776192,
            "max_outstanding_r2t": 1,
            "recovery_tmo": 120,
        }.items():
            written(session / "iscsi_session" / name, value)
        connection = tmp_path / f"class/iscsi_connection/connection{number}:0"
        written(connection / "persistent_address", portal)
        written(connection / "max_recv_dlength", 262144)
        written(connection / "header_digest", "None" if number == 1 else "CRC32C")
        written(tmp_path / f"class/scsi_host/host{number}/proc_name", "iscsi_tcp")
        written(tmp_path / f"class/scsi_host/host{number}/can_queue", 113)
        written(tmp_path / f"class/iscsi_host/host{number}/netdev", f"eth{number}")
        written(tmp_path / f"class/net/eth{number}/mtu", 9000 if number == 1 else 1500)
    fibre = pci / "host7/rport-7:0-0/target7:0:0/7:0:0:1"
    written(fibre / "queue_depth", 30)
    linked(tmp_path / "block/sdc/device", fibre)
    for name, value in {
        "proc_name": "lpfc",
        "modelname": "LPe12002",
        "fwrev": "2.02X11",
        "can_queue": 8192,
    }.items():
        written(tmp_path / "class/scsi_host/host7" / name, value)
    written(tmp_path / "class/fc_host/host7/speed", "8 Gbit")
    written(tmp_path / "module/lpfc/version", "0:12.8.0.10")
    written(tmp_path / "class/scsi_host/host9/proc_name", "megaraid_sas")
    written(tmp_path / "block/dm-3/dm/uuid", "mpath-36001405")
    written(tmp_path / "block/dm-3/dm/name", "mpatha")
    written(tmp_path / "block/dm-4/dm/uuid", "LVM-1")
    for disk in ("sda", "sdb"):
        linked(tmp_path / f"block/dm-3/slaves/{disk}", tmp_path / f"block/{disk}")
    return tmp_path


def test_sessions_say_what_limits_them(sysfs: Path) -> None:
    """A target with a queue of 32 on one path and 128 on the other, jumbo frames on one side only:
    who reads two reports has to see it.
    """
    first, second = iscsi_sessions(sysfs)
    assert (first["target"], first["state"]) == ("iqn.2010-01.example:one", "LOGGED_IN")
    assert (first["portal"], second["portal"]) == ("10.0.0.5", "10.0.0.6")
    assert (first["interface"], first["interface_mtu_bytes"]) == ("eth1", 9000)
    assert second["interface_mtu_bytes"] == 1500
    assert (first["queue_depth_min"], second["queue_depth_min"]) == (32, 128)
    assert (first["disks"], second["disks"]) == (["sda"], ["sdb"])
    assert (first["header_digest"], second["header_digest"]) == (False, True)
    assert (first["first_burst_bytes"], first["recovery_timeout_s"]) == (262144, 120)


def test_adapters_say_model_firmware_and_depth(sysfs: Path) -> None:
    """The two rows of a tested solution that nobody remembers; adapters without disks have none."""
    found = {adapter["name"]: adapter for adapter in storage_adapters(sysfs)}
    assert sorted(found) == ["host1", "host2", "host7"]
    fibre = found["host7"]
    assert (fibre["model"], fibre["firmware"]) == ("LPe12002", "2.02X11")
    assert (fibre["driver"], fibre["driver_version"]) == ("lpfc", "0:12.8.0.10")
    assert (fibre["transport"], fibre["speed"]) == ("fc", "8 Gbit")
    assert (fibre["commands_max"], fibre["queue_depth_max"]) == (8192, 30)
    assert found["host1"]["transport"] == "iscsi"


def test_a_multipath_device_says_its_policy(sysfs: Path) -> None:
    """A path that is offline, and the way in which one is chosen."""
    (found,) = multipath_devices(sysfs, lambda name: TABLE if name == "mpatha" else None)
    assert (found["title"], found["paths"]) == ("mpatha", ["sda", "sdb"])
    assert (found["paths_count"], found["paths_running_count"]) == (2, 1)
    assert (found["policy"], found["groups_count"]) == ("service-time", 1)
    (unknown,) = multipath_devices(sysfs, lambda _: None)
    assert (unknown["policy"], unknown["groups_count"]) == (None, None)


def test_a_host_without_any_says_nothing(tmp_path: Path) -> None:
    """Most virtual machines."""
    assert storage_adapters(tmp_path) == []
    assert iscsi_sessions(tmp_path) == []
    assert multipath_devices(tmp_path) == []


def facts(**changed: object) -> dict[str, object]:
    """What advice knows of two sessions with one target, and of a device of two paths."""
    session = {"target": "one", "interface_mtu_bytes": 9000, "queue_depth_min": 64}
    environment: dict[str, object] = {
        "iscsi": [session, session],
        "multipath": [{"paths_running_count": 2, "policy": "service-time"}],
    }
    return _environment_facts(environment | changed, None)


def test_advice_knows_sessions_and_paths() -> None:
    """Each rule of the way to the storage is decided, and turned over by what it is about."""
    sound = facts()
    assert sound["iscsi_sessions_per_target_min"] == 2
    assert (sound["iscsi_mtus_count"], sound["iscsi_queue_depth_min"]) == (1, 64)
    assert (sound["multipath_paths_running_min"], sound["multipath_policies"]) == (
        2,
        ["service-time"],
    )
    sessions = [
        {"target": "one", "interface_mtu_bytes": 9000, "queue_depth_min": 8},
        {"target": "two", "interface_mtu_bytes": 1500, "queue_depth_min": 64},
    ]
    poor = facts(iscsi=sessions, multipath=[{"paths_running_count": 1, "policy": None}])
    assert poor["iscsi_sessions_per_target_min"] == 1
    assert (poor["iscsi_mtus_count"], poor["iscsi_queue_depth_min"]) == (2, 8)
    assert (poor["multipath_paths_running_min"], poor["multipath_policies"]) == (1, None)
    assert facts(iscsi=[])["iscsi_sessions_count"] == 0


VERDICTS = {
    "ISC-sessions": ({"iscsi_sessions_per_target_min": 2}, {"iscsi_sessions_per_target_min": 1}),
    "ISC-mtu": ({"iscsi_mtus_count": 1}, {"iscsi_mtus_count": 2}),
    "ISC-queue": ({"iscsi_queue_depth_min": 32}, {"iscsi_queue_depth_min": 16}),
    "MPA-paths": ({"multipath_paths_running_min": 2}, {"multipath_paths_running_min": 1}),
    "NVM-throttled": ({"drives_throttled_count": 0}, {"drives_throttled_count": 1}),
    "NVM-write-cache": ({"nvme_volatile_caches_count": 0}, {"nvme_volatile_caches_count": 2}),
    "NVM-power-state": ({"nvme_power_state_max": 0}, {"nvme_power_state_max": 3}),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_each_rule_of_these_facts_is_flipped(name: str) -> None:
    """A rule that cannot fail is no rule."""
    kept, broken = VERDICTS[name]
    rule = next(rule for rule in read_rules() if rule.id == name)
    findings = []
    for found in (kept, broken):
        subject = Subject("run", "run", {"iscsi_sessions_count": 2, **found}, "run")
        findings.append(advise([rule], [subject], DESCRIBED_BY_RUN).findings)
    assert (len(findings[0]), len(findings[1])) == (0, 1)
