"""Storage adapters of this host, and the iSCSI sessions and multipath devices on them.

From /sys alone, where anybody may read; the policy of a multipath device is asked of device mapper,
which takes root. Sources: Linux, scsi_transport_fc and scsi_transport_iscsi (sysfs attributes),
Documentation/scsi, and the attributes of the lpfc and qla2xxx drivers, which name model and
firmware each in their own way.

Limits: an adapter behind a hypervisor shows nothing of this, and a session of an initiator in
hardware shows only what its driver tells.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from plimsoll.documents.environment import IscsiSession, MultipathFacts, StorageAdapter
from plimsoll.files.paths import StrPath

SYS = Path("/sys")
#: Device mapper answers at once or not at all.
PATIENCE_S = 5
#: What drivers call the model and the firmware of their adapters.
MODEL_NAMES = ("modelname", "model_name", "board_name")
FIRMWARE_NAMES = ("fwrev", "fw_version", "version_fw")
#: Adapters that are not for disks under test.
NO_ADAPTERS = ("ata_piix", "usb-storage", "uas")
_SELECTOR = re.compile(
    r"(round-robin|queue-length|service-time|historical-service-time|io-affinity)"
)


def storage_adapters(root: Path = SYS) -> list[StorageAdapter]:
    """Adapters of the SCSI layer that have disks, by number."""
    found: list[StorageAdapter] = []
    hosts = sorted((root / "class/scsi_host").glob("host*"), key=_number_in)
    for host in hosts:
        driver = _line(host / "proc_name")
        disks = _disks_of(root, host.name)
        if not disks or driver in NO_ADAPTERS:
            continue
        depths = [
            depth
            for disk in disks
            if (depth := _integer(root / "block" / disk / "device/queue_depth")) is not None
        ]
        fibre = root / "class/fc_host" / host.name
        found.append(
            {
                "name": host.name,
                "driver": driver,
                "driver_version": _line(root / "module" / str(driver) / "version"),
                "model": _first(host, MODEL_NAMES),
                "firmware": _first(host, FIRMWARE_NAMES),
                "transport": "fc" if fibre.exists() else _transport(root, host.name, disks),
                "speed": _line(fibre / "speed"),
                "commands_max": _integer(host / "can_queue"),
                "queue_depth_min": min(depths, default=None),
                "queue_depth_max": max(depths, default=None),
                "disks": disks,
            }
        )
    return found


def iscsi_sessions(root: StrPath = SYS) -> list[IscsiSession]:
    """Every session that this host has with a target, by number."""
    root = Path(root)
    found: list[IscsiSession] = []
    for session in sorted((root / "class/iscsi_session").glob("session*"), key=_number_in):
        number = _number_in(session)
        connections = sorted((root / "class/iscsi_connection").glob(f"connection{number}:*"))
        first = connections[0] if connections else session
        host = next(
            (part for part in session.resolve().parts if re.fullmatch(r"host\d+", part)), None
        )
        adapter = root / "class/iscsi_host" / str(host)
        disks = _disks_of(root, host or "", session.name)
        depths = [
            depth
            for disk in disks
            if (depth := _integer(root / "block" / disk / "device/queue_depth")) is not None
        ]
        interface = _line(adapter / "netdev")
        found.append(
            {
                "name": session.name,
                "target": _line(session / "targetname"),
                "state": _line(session / "state"),
                "portal": _line(first / "persistent_address") or _line(first / "address"),
                "connections_count": len(connections),
                "interface": interface,
                "interface_mtu_bytes": _integer(root / "class/net" / str(interface) / "mtu"),
                "first_burst_bytes": _integer(session / "first_burst_len"),
                "max_burst_bytes": _integer(session / "max_burst_len"),
                "receive_segment_bytes": _integer(first / "max_recv_dlength"),
                "outstanding_r2t_max": _integer(session / "max_outstanding_r2t"),
                "recovery_timeout_s": _integer(session / "recovery_tmo"),
                "header_digest": _flag(first / "header_digest"),
                "data_digest": _flag(first / "data_digest"),
                "queue_depth_min": min(depths, default=None),
                "disks": disks,
            }
        )
    return found


def multipath_devices(
    root: StrPath = SYS, table_of: Callable[[str], str | None] | None = None
) -> list[MultipathFacts]:
    """Multipath devices of device mapper, with their paths and how one is chosen.

    Args:
        root: where sysfs is mounted.
        table_of: the table of a device by its name; None asks `dmsetup`.
    """
    root = Path(root)
    ask = table_of or _table
    found: list[MultipathFacts] = []
    for device in sorted((root / "block").glob("dm-*"), key=_number_in):
        if not (_line(device / "dm/uuid") or "").startswith("mpath-"):
            continue
        name = _line(device / "dm/name") or device.name
        paths = sorted(path.name for path in (device / "slaves").glob("*"))
        table = ask(name)
        policies = sorted(set(_SELECTOR.findall(table or "")))
        found.append(
            {
                "name": device.name,
                "title": name,
                "paths": paths,
                "paths_count": len(paths),
                "paths_running_count": sum(
                    1
                    for path in paths
                    if _line(root / "block" / path / "device/state") in ("running", "live")
                ),
                "policy": ", ".join(policies) or None,
                "groups_count": _groups(table),
            }
        )
    return found


def _groups(table: str | None) -> int | None:
    """Groups of paths in a table of device mapper: after the features and the handler with their
    counts.

    >>> _groups("0 100 multipath 1 queue_if_no_path 0 2 1 service-time 0 2 1 8:0 1 8:16 1")
    2
    """
    words = (table or "").split()
    if len(words) < 4 or words[2] != "multipath":
        return None
    position = 3
    try:
        for _ in range(2):
            position += 1 + int(words[position])
        return int(words[position])
    except (IndexError, ValueError):
        return None


def _table(name: str) -> str | None:
    program = shutil.which(
        "dmsetup", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    )
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "table", name],
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
            text=True,
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    return done.stdout if done.returncode == 0 else None


def _disks_of(root: Path, host: str, session: str | None = None) -> list[str]:
    """Disks whose device lies below an adapter, or below one session on it."""
    found = []
    for disk in (root / "block").glob("sd*"):
        parts = (disk / "device").resolve().parts
        if host in parts and (session is None or session in parts):
            found.append(disk.name)
    return sorted(found)


def _transport(root: Path, host: str, disks: Sequence[str]) -> str | None:
    if (root / "class/iscsi_host" / host).exists():
        return "iscsi"
    if (root / "class/sas_host" / host).exists():
        return "sas"
    words = {"virtio": "virtio", "ata": "sata"}
    path = str((root / "block" / disks[0] / "device").resolve())
    return next((kind for word, kind in words.items() if f"/{word}" in path), None)


def _first(place: Path, names: Sequence[str]) -> str | None:
    return next((text for name in names if (text := _line(place / name))), None)


def _number_in(path: Path) -> int:
    digits = re.search(r"\d+", path.name)
    return int(digits[0]) if digits else 0


def _flag(path: Path) -> bool | None:
    text = _line(path)
    return None if text is None else text not in ("0", "None")


def _integer(path: Path) -> int | None:
    text = _line(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
