"""The circumstances of a run: machine, operating system, storage and software.

Read from /proc, /sys, the interpreter and the probe of the storage; nothing needs privileges, and
what is unknown stays None.
"""

from __future__ import annotations

import os
import platform
import resource
import sys
from datetime import UTC, datetime
from pathlib import Path

from plimsoll import __version__
from plimsoll.documents.environment import Environment, ShareTrial
from plimsoll.host import share_trial
from plimsoll.host.adapters import iscsi_sessions, multipath_devices, storage_adapters
from plimsoll.host.clock_sync import wall_clock
from plimsoll.host.hardware import disks, machine_facts, network_adapters
from plimsoll.host.identity import identity_of
from plimsoll.host.nvme import nvme_drives
from plimsoll.host.probe import Storage, describe
from plimsoll.host.storage_class import storage_class

BUSY_LOAD_PER_CPU = 0.5


def collect(target_paths: list[Path]) -> Environment:
    """Everything worth knowing before a run on these targets begins."""
    cpus = len(os.sched_getaffinity(0))
    load = os.getloadavg()
    storages = [describe(path) for path in target_paths]
    warnings = [warning for storage in storages for warning in storage.warnings]
    trials = [_tried(path, storage) for path, storage in zip(target_paths, storages, strict=True)]
    warnings += [sentence for tried in trials for sentence in share_trial.refused(tried)]
    if load[0] > BUSY_LOAD_PER_CPU * cpus:
        warnings.append(
            f"the machine is busy: load {load[0]:.1f} on {cpus} CPUs before the run began"
        )
    return {
        "schema_version": 1,
        "collected_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "plimsoll": __version__,
        "python": platform.python_version(),
        "machine": {
            "host_name": platform.node(),
            "architecture": platform.machine(),
            "cpu_model": _field("/proc/cpuinfo", "model name"),
            "cpus_usable": cpus,
            "cpus_present": os.cpu_count(),
            "memory_kib": _kib(_field("/proc/meminfo", "MemTotal")),
            "memory_available_kib": _kib(_field("/proc/meminfo", "MemAvailable")),
            "product": _first_line("/sys/class/dmi/id/product_name"),
            **machine_facts(),
            "virtual": "hypervisor" in (_field("/proc/cpuinfo", "flags") or "").split(),
        },
        "operating_system": {
            "kernel": platform.release(),
            "build": platform.version(),
            "distribution": _os_release(),
            "io_uring_disabled": _first_line("/proc/sys/kernel/io_uring_disabled"),
            "locked_memory_limit_kib": _limit(resource.RLIMIT_MEMLOCK, 1024),
            "open_files_limit": _limit(resource.RLIMIT_NOFILE, 1),
            "load_average": list(load),
            "command": Path(sys.argv[0]).name,
        },
        "clock": wall_clock(),
        "network": network_adapters(),
        "disks": disks(),
        "nvme": nvme_drives(),
        "adapters": storage_adapters(),
        "iscsi": iscsi_sessions(),
        "multipath": multipath_devices(),
        "targets": [
            {
                **storage.facts,
                "identity": identity_of(path).as_data(),
                "storage_class": storage_class(storage.facts),
                **({"share": tried} if tried else {}),
            }
            for path, storage, tried in zip(target_paths, storages, trials, strict=True)
        ],
        "warnings": list(dict.fromkeys(warnings)),
    }


def _tried(path: Path, storage: Storage) -> list[ShareTrial]:
    """What a share honours, tried in a directory of its own; nothing elsewhere."""
    file_system = storage.facts.get("file_system")
    if not file_system or not path.is_dir() or not os.access(path, os.W_OK):
        return []
    if not share_trial.is_share(file_system["kind"], is_network=file_system["is_network"]):
        return []
    return share_trial.try_out_or_say(path)


def _first_line(path: str) -> str | None:
    try:
        return (
            Path(path).read_text(encoding="utf-8", errors="replace").splitlines()[0].strip() or None
        )
    except (OSError, IndexError):
        return None


def _field(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _kib(text: str | None) -> int | None:
    return int(text.split()[0]) if text else None


def _limit(kind: int, unit: int) -> int | None:
    soft, _ = resource.getrlimit(kind)
    return None if soft == resource.RLIM_INFINITY else soft // unit


def _os_release() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None
