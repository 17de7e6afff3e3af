"""What kind of storage lies under a path, layer by layer, and what that means for a result.

Told from what the machine itself says: kind of file system, device mapper names, models of disks,
DMI. No network is asked, so a cloud volume is known by the name its provider gives it and by the
machine's, and one without such a name is not. The rules are data (`data/storage_classes.toml`),
each with its source.

Limits: what an array or a hypervisor puts behind a disk shows only in the disk's name; file systems
on several devices name no disks; in a container DMI and the block stack are those of the host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from plimsoll import settings
from plimsoll.documents.environment import StorageClass, StorageFacts, StorageLayer
from plimsoll.files.paths import StrPath
from plimsoll.host.probe import Storage, describe

SYS = Path("/sys")
#: What the machine calls itself, below class/dmi/id.
DMI = (
    "sys_vendor",
    "product_name",
    "product_version",
    "board_vendor",
    "bios_vendor",
    "bios_version",
    "chassis_asset_tag",
)
#: Layers by the beginning of the kernel's name.
BY_NAME = (
    ("loop", "loop"),
    ("md", "md"),
    ("nbd", "nbd"),
    ("rbd", "rbd"),
    ("drbd", "drbd"),
    ("zd", "zvol"),
    ("zram", "ram"),
    ("ram", "ram"),
    ("brd", "ram"),
    ("pmem", "disk"),
)
#: Device mapper targets by the beginning of the identifier their makers give them.
BY_MAPPER = (("LVM-", "dm-lvm"), ("CRYPT-", "dm-crypt"), ("mpath-", "dm-multipath"))
UNKNOWN: StorageClass = {
    "class": "unknown",
    "title": "unknown storage",
    "meaning": "nothing here says what the storage is; write what you know into notes.toml of the "
    "run folder",
    "layers": [],
}


@dataclass(frozen=True)
class Facts:
    """What the rules look at; a layer is a fact of its own for each level of the block stack."""

    file_system: str
    source: str
    machine: str
    layers: tuple[tuple[str, str, str], ...]

    def candidates(self) -> list[dict[str, str]]:
        """One set of facts for each level.

        The file system with the machine, then layer, disk and transport of each.
        """
        shared = {"machine": self.machine, "file_system": self.file_system, "source": self.source}
        levels = [
            {**shared, "layer": kind, "disk": disk, "transport": how}
            for kind, disk, how in self.layers
        ]
        return levels or [{**shared, "layer": "", "disk": "", "transport": ""}]


def storage_class(probed: StorageFacts, root: Path = SYS) -> StorageClass:
    """The class of the storage that was probed.

    Name, title, what it means, and every layer with its evidence.

    Args:
        probed: as from `plimsoll.host.probe`.
        root: where sysfs is mounted.
    """
    facts = facts_of(probed, root)
    layers: list[StorageLayer] = []
    decided: StorageLayer | None = None
    for rule in settings.storage_classes():
        evidence = next(
            (found for each in facts.candidates() if (found := _fits(rule["match"], each))), None
        )
        if evidence is None or (rule.get("decides") and decided):
            continue
        layer = StorageLayer(
            name=rule["name"],
            title=rule["title"],
            meaning=rule["meaning"],
            source=rule["source"],
            evidence=evidence,
        )
        layers.append(layer)
        if rule.get("decides"):
            decided = layer
    named = decided or (layers[0] if layers else None)
    if named is None:
        return UNKNOWN.copy()
    return {
        "class": named["name"],
        "title": named["title"],
        "meaning": named["meaning"],
        "layers": layers,
    }


def _fits(match: dict[str, str], facts: dict[str, str]) -> str | None:
    """The facts that fit a rule, as evidence; None where one does not."""
    found = []
    for name, pattern in match.items():
        if not re.search(pattern, facts[name], re.IGNORECASE):
            return None
        found.append(f"{name.replace('_', ' ')} is {facts[name].strip()}")
    return ", ".join(found)


def facts_of(probed: StorageFacts, root: Path = SYS) -> Facts:
    """What the rules look at, from the probe and from sysfs."""
    file_system = probed.get("file_system") or {}
    device = probed.get("device") or {}
    machine = " ".join(text for name in DMI if (text := _line(root / "class/dmi/id" / name)))
    levels = _levels(device.get("kernel_name"), root)
    return Facts(
        file_system.get("kind") or "", str(file_system.get("source") or ""), machine, tuple(levels)
    )


def _levels(kernel_name: str | None, root: Path) -> list[tuple[str, str, str]]:
    """Layer, disk and transport of a device and of everything below it, the top first."""
    if not kernel_name:
        return []
    folder = root / "class/block" / kernel_name
    if (folder / "partition").exists():
        folder = folder.resolve().parent
    name = folder.resolve().name if folder.exists() else kernel_name
    below = sorted(path.name for path in (folder / "slaves").glob("*"))
    kind = _kind(name, folder)
    words = (_line(folder / "device/vendor"), _line(folder / "device/model"))
    disk = " ".join([*(word for word in words if word and not word.startswith("0x")), name])
    found = [(kind, disk, _transport(name, folder))]
    return found + [level for slave in below for level in _levels(slave, root)]


def _kind(name: str, folder: Path) -> str:
    if name.startswith("dm-"):
        identifier = _line(folder / "dm/uuid") or ""
        return next((kind for start, kind in BY_MAPPER if identifier.startswith(start)), "dm")
    return next(
        (kind for start, kind in BY_NAME if re.fullmatch(rf"{start}_?[0-9a-z]+", name)), "disk"
    )


def _transport(name: str, folder: Path) -> str:
    """How a disk is attached, from the path of its device and, for NVMe, from its controller."""
    transport = _line(folder / "device/transport")
    if transport and transport != "pcie":
        return f"nvme-{transport}"
    path = str(folder.resolve()) if folder.exists() else ""
    for word, kind in (
        ("/virtio", "virtio"),
        ("/session", "iscsi"),
        ("/rport-", "fc"),
        ("/usb", "usb"),
        ("/end_device-", "sas"),
        ("/ata", "sata"),
    ):
        if word in path:
            return kind
    return "nvme" if name.startswith("nvme") else ""


def _line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def probe(path: StrPath) -> Storage:
    """What is under a path: file system, device, direct I/O, class of storage, and what about them
    a test must know. Never writes.

    Raises:
        StorageError: nothing can be found out.
    """
    path = Path(path)
    storage = describe(path)
    return replace(storage, facts={**storage.facts, "storage_class": storage_class(storage.facts)})
