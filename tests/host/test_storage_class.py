"""The class of storage, on machines made of files.

What a provider or a kernel calls a disk decides, and nothing else.
"""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from plimsoll import settings
from plimsoll.cli import run_program
from plimsoll.host.environment import collect
from plimsoll.host.storage_class import storage_class
from plimsoll.report.environment import environment_tables

AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"


def machine(root: Path, name: str, disks: dict[str, dict[str, Any]], **dmi: str) -> dict[str, Any]:
    """A probe of a device on a machine whose sysfs is made of these disks.

    Files, `slaves`, and where the device hangs.
    """
    for number, (disk, files) in enumerate(disks.items()):
        hangs = files.pop("at", f"pci0/host{number}")
        folder = root / "devices" / hangs / "block" / disk
        folder.mkdir(parents=True)
        for slave in files.pop("slaves", []):
            (folder / "slaves").mkdir(exist_ok=True)
            (folder / "slaves" / slave).mkdir()
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text + "\n")
        (root / "class/block").mkdir(parents=True, exist_ok=True)
        (root / "class/block" / disk).symlink_to(folder)
    for field, text in dmi.items():
        (root / "class/dmi/id").mkdir(parents=True, exist_ok=True)
        (root / "class/dmi/id" / field).write_text(text + "\n")
    return {
        "file_system": {"kind": "ext4", "source": f"/dev/{name}"},
        "device": {"kernel_name": name},
    }


def nvme(model: str) -> dict[str, dict[str, Any]]:
    return {"nvme1n1": {"device/model": model, "device/transport": "pcie"}}


def scsi(vendor: str, model: str, **more: str) -> dict[str, dict[str, Any]]:
    return {"sdb": {"device/vendor": vendor, "device/model": model, **more}}


@pytest.mark.parametrize(
    ("disks", "dmi", "expected"),
    [
        (nvme("Amazon Elastic Block Store"), {"sys_vendor": "Amazon EC2"}, "cloud_volume"),
        (nvme("Amazon EC2 NVMe Instance Storage"), {"sys_vendor": "Amazon EC2"}, "cloud_local"),
        ({"xvdb": {}}, {"bios_version": "4.11.amazon"}, "cloud_volume"),
        (nvme("nvme_card-pd"), {"product_name": "Google Compute Engine"}, "cloud_volume"),
        (nvme("nvme_card"), {"product_name": "Google Compute Engine"}, "cloud_local"),
        (
            scsi("Google", "PersistentDisk"),
            {"product_name": "Google Compute Engine"},
            "cloud_volume",
        ),
        (nvme("MSFT NVMe Accelerator v1.0"), {"chassis_asset_tag": AZURE_TAG}, "cloud_volume"),
        (nvme("Microsoft NVMe Direct Disk v2"), {"chassis_asset_tag": AZURE_TAG}, "cloud_local"),
        (scsi("Msft", "Virtual Disk"), {"chassis_asset_tag": AZURE_TAG}, "cloud_volume"),
        (scsi("Msft", "Virtual Disk"), {"sys_vendor": "Microsoft Corporation"}, "virtual_disk"),
        (
            nvme("Alibaba Cloud Elastic Block Storage"),
            {"product_name": "Alibaba Cloud ECS"},
            "cloud_volume",
        ),
        (scsi("ORACLE", "BlockVolume"), {"chassis_asset_tag": "OracleCloud.com"}, "cloud_volume"),
        (scsi("DO", "Volume"), {"sys_vendor": "DigitalOcean"}, "cloud_volume"),
        (scsi("HC", "Volume"), {"sys_vendor": "Hetzner"}, "cloud_volume"),
        ({"vdb": {"at": "pci0/virtio3"}}, {"product_name": "OpenStack Nova"}, "cloud_disk"),
        (
            {"vdb": {"at": "pci0/virtio3", "device/vendor": "0x1af4"}},
            {"sys_vendor": "QEMU"},
            "virtual_disk",
        ),
        (scsi("VMware", "Virtual disk"), {}, "virtual_disk"),
        ({"sdc": {"at": "platform/host3/session1/target3"}}, {}, "san"),
        ({"sdc": {"at": "pci0/host7/rport-7:0-1/target7"}}, {}, "san"),
        ({"nvme2n1": {"device/transport": "tcp", "device/model": "array"}}, {}, "san"),
        ({"loop0": {}}, {}, "loop"),
        ({"rbd0": {}}, {}, "ceph_block"),
        ({"nbd3": {}}, {}, "network_block"),
        ({"zram0": {}}, {}, "ram_disk"),
        (nvme("Samsung SSD 980 PRO 1TB"), {"sys_vendor": "Dell Inc."}, "local_drive"),
        (scsi("ATA", "ST4000NM0035", at="pci0/ata1/host0"), {}, "local_drive"),
        ({"sdd": {"at": "pci0/usb2/2-1/host9", "device/model": "Stick"}}, {}, "usb"),
    ],
)
def test_a_disk_is_what_its_maker_calls_it(
    tmp_path: Path, disks: dict[str, dict[str, Any]], dmi: dict[str, str], expected: str
) -> None:
    """RPT-31: a cloud volume that bursts must not be read as a drive, nor a drive as a cloud
    volume.
    """
    found = storage_class(machine(tmp_path, next(iter(disks)), {**disks}, **dmi), tmp_path)
    assert found["class"] == expected
    assert found["meaning"] and all(layer["evidence"] for layer in found["layers"])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("nfs4", "nfs"),
        ("cifs", "smb"),
        ("smb3", "smb"),
        ("ceph", "ceph"),
        ("fuse.ceph-fuse", "ceph"),
        ("zfs", "zfs"),
        ("btrfs", "btrfs"),
        ("tmpfs", "memory"),
        ("overlay", "container_layer"),
        ("lustre", "network_file_system"),
        ("strange", "unknown"),
    ],
)
def test_a_file_system_without_a_disk_of_its_own(tmp_path: Path, kind: str, expected: str) -> None:
    """Shares and pools have no device to look at.

    The kind of the file system says what they are.
    """
    probed = {"file_system": {"kind": kind, "source": "server:/share"}, "device": None}
    assert storage_class(probed, tmp_path)["class"] == expected


def test_every_layer_is_named_down_to_the_disk(tmp_path: Path) -> None:
    """An encrypted logical volume on a mirror of cloud volumes is all of that, and each layer means
    something.
    """
    disks = {
        "dm-1": {"dm/uuid": "LVM-abc", "slaves": ["dm-0"]},
        "dm-0": {"dm/uuid": "CRYPT-LUKS2-abc", "slaves": ["md0"]},
        "md0": {"slaves": ["nvme1n1", "nvme2n1"]},
        **{name: {"device/model": "Amazon Elastic Block Store"} for name in ("nvme1n1", "nvme2n1")},
    }
    found = storage_class(machine(tmp_path, "dm-1", disks), tmp_path)
    assert found["class"] == "cloud_volume"
    assert {layer["name"] for layer in found["layers"]} == {
        "encrypted",
        "logical_volume",
        "software_raid",
        "cloud_volume",
    }
    other = {
        "dm-2": {"dm/uuid": "mpath-3600", "slaves": ["sdc"]},
        "sdc": {"at": "host3/session1/x"},
    }
    multipath = storage_class(machine(tmp_path / "b", "dm-2", other), tmp_path / "b")
    assert [layer["name"] for layer in multipath["layers"]] == ["multipath", "san"]


def test_a_partition_is_its_disk(tmp_path: Path) -> None:
    """Databases lie on partitions; the model belongs to the disk."""
    probed = machine(tmp_path, "nvme1n1", nvme("Amazon Elastic Block Store"))
    partition = (tmp_path / "class/block/nvme1n1").resolve() / "nvme1n1p1"
    partition.mkdir()
    (partition / "partition").write_text("1\n")
    (tmp_path / "class/block/nvme1n1p1").symlink_to(partition)
    probed["device"]["kernel_name"] = "nvme1n1p1"
    assert storage_class(probed, tmp_path)["class"] == "cloud_volume"


def test_the_class_is_told_without_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A metadata service would tell more.

    Asking it is a call that a locked network blocks and an auditor sees.
    """

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    environment = collect([tmp_path])
    found = environment["targets"][0]["storage_class"]
    assert found["title"]
    tables = environment_tables(environment, {})
    rows = next(table.rows for table in tables if table.title.startswith("Storage under"))
    assert rows[0] == ["Class of storage", found["title"]]
    assert rows[1] == ["What that means", found["meaning"]]


def test_probe_says_what_it_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The question before a test: what am I about to measure?"""
    assert run_program(["probe", str(tmp_path)]) == 0
    assert "class of storage" in capsys.readouterr().out
    assert run_program(["probe", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["storage_class"]["meaning"]


def test_every_class_has_a_meaning_and_a_source() -> None:
    """A class that says nothing about the result is a label."""
    for rule in settings.storage_classes():
        assert len(rule["meaning"]) > 30 and rule["source"] and rule["match"], rule["name"]
        assert set(rule["match"]) <= {
            "file_system",
            "source",
            "layer",
            "disk",
            "transport",
            "machine",
        }
