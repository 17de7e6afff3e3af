"""The provisioning plan: volumes, formatting, pools, controllers and paths, and the drive class it
proposes.
"""

import pytest

from plimsoll.sizing.design import size
from plimsoll.sizing.storage import DRIVE_CLASSES, is_aligned, propose_drives
from tests.support.sizing_designs import make


@pytest.mark.parametrize(
    ("iops", "capacity_gb", "drive_class", "raid"),
    [
        (
            900,
            15768,
            "7,200 rpm SATA or NL-SAS",
            "RAID 50",
        ),  # the paper's example ends with PS6500E, RAID 50
        (3000, 15768, "10,000 rpm SAS", "RAID 50"),
        (7000, 15768, "15,000 rpm SAS", "RAID 10"),
        (20000, 15768, "solid-state", "RAID 10"),
    ],
)
def test_a_drive_class_is_proposed_with_its_reason(
    iops: float, capacity_gb: float, drive_class: str, raid: str
) -> None:
    """STO-01: the cheapest class whose published IOPS for each TB cover the need, and why."""
    proposal = propose_drives(iops, capacity_gb)
    assert (proposal.drive_class, proposal.raid) == (drive_class, raid)
    assert "IOPS per TB" in proposal.reason


def test_drive_classes_are_ordered_by_what_they_give() -> None:
    densities = [each.iops_per_tb for each in DRIVE_CLASSES]
    assert densities == sorted(densities)


def test_volumes_follow_from_users_mailbox_size_and_mode() -> None:
    """STO-02: users, mailbox size and group or not are enough to get volumes sized by the
    calculators.
    """
    plan = size(make()).volumes
    database = next(volume for volume in plan if volume.role == "database")
    assert database.size_gb == 2604  # 2603.34 GB rounded up
    assert {volume.pool for volume in plan} == {"pool 1", "pool 2"}


def test_copies_never_share_a_pool_and_standalone_logs_stand_apart() -> None:
    """STO-02: with copies, database and logs may share drives and copies may not.

    Without, the logs stand apart.
    """
    by_database: dict[str, list[str]] = {}
    for volume in size(make()).volumes:
        if volume.role == "database":
            by_database.setdefault(volume.name.split("-")[0], []).append(volume.pool)
    assert all(len(set(pools)) == len(pools) for pools in by_database.values())
    alone = size(make(copies={"mode": "standalone"})).volumes
    assert {(volume.role, volume.pool) for volume in alone} == {
        ("database", "pool 1"),
        ("log", "pool 1-log"),
    }


def test_volumes_are_aligned_and_formatted_as_published() -> None:
    """STO-04: GPT, 64 KB units, a partition offset that is a multiple of 64 KB.

    Anything else is a finding.
    """
    for volume in size(make()).volumes:
        assert volume.partition_table.startswith("GPT")
        assert volume.allocation_unit_kb == 64
        assert is_aligned(volume.partition_offset_kb)
    wrong = size(
        make(
            storage={"partition_offset_kb": 31.5, "allocation_unit": "4 KB", "file_system": "ext4"}
        )
    )
    assert {"alignment", "allocation unit"} <= {finding.subject for finding in wrong.findings}
    assert wrong.volumes[0].mount_point == "/srv/volumes/db001"


def test_volumes_alternate_between_controllers() -> None:
    """STO-02: a database and its logs, and neighbouring databases, are owned by different
    controllers.
    """
    volumes = {volume.name: volume.controller for volume in size(make()).volumes}
    assert volumes["DB001-1"] != volumes["LOG001-1"]
    assert volumes["DB001-1"] != volumes["DB002-2"]


def test_four_ports_survive_a_switch_and_a_controller() -> None:
    """With each switch wired to one controller only, losing one of each kind could cut every
    path.
    """
    paths = size(make(network={"port_count": 4, "switch_count": 2})).volumes[0].paths
    assert len({(switch, controller) for _, switch, controller in paths}) == 4


def test_declared_features_change_the_physical_space() -> None:
    """STO-06: thin provisioning and data reduction are used by the calculator, and only when
    declared.
    """
    assert "physical_capacity_gb" not in size(make()).results
    total = size(make()).results["total_capacity_gb"].value
    reduced = size(make(storage={"compression_ratio": 2, "deduplication_ratio": 1.25}))
    assert reduced.results["physical_capacity_gb"].value == pytest.approx(total / 2.5)
    thin = size(make(storage={"thin_provisioning": True})).results
    free = thin["database_volume_size_gb"].value - thin["database_size_gb"].value * 1.1
    assert thin["physical_capacity_gb"].value == pytest.approx(
        total - thin["database_count"].value * free
    )
    assert "data reduction" in {finding.subject for finding in reduced.findings}
    assert "retention" in {
        finding.subject for finding in size(make(storage={"file_retention": True})).findings
    }


def test_system_disks_and_other_workloads_stay_off_the_data_drives() -> None:
    """STO-12: shared drives are flagged, drives of their own are not."""
    shared = size(
        make(storage={"system_disk_on_data_drives": True, "shared_with_other_workloads": True})
    )
    assert {"system disks", "shared drives"} <= {finding.subject for finding in shared.findings}
    assert not {"system disks", "shared drives"} & {
        finding.subject for finding in size(make()).findings
    }
