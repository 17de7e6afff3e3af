"""What drives tell of their own health: SMART, read by smartmontools before and after a run.

It takes the program `smartctl` and, for nearly every drive, root. A drive that cannot be read says
why, and that is never taken for health. Drives behind a RAID controller or an array do not show
here; their makers' tools do.

Counters are those that grow when data was lost or nearly lost, by the names of the three command
sets (the program's JSON output, its manual page smartctl(8)): NVMe media errors, ATA attributes 5,
187, 197 and 198, SCSI uncorrected errors and grown defects.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping

from plimsoll.documents.environment import DiskHealth
from plimsoll.host.nvme import health_of

#: A drive that answers no sooner is not waited for: a run must not hang on its circumstances.
PATIENCE_S = 10
#: What the names of all counters begin with.
PREFIX = "smart/"
#: ATA attributes by their number.
ATA_COUNTERS = {
    5: "reallocated_sectors",
    187: "reported_uncorrectable",
    197: "pending_sectors",
    198: "offline_uncorrectable",
}


def read_smart(disks: list[str]) -> list[DiskHealth]:
    """The health of each disk: whether it could be read and if not why, its own verdict, share of
    its life used, counters.
    """
    program = shutil.which(
        "smartctl", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    )
    if program is None:
        return [_unread(disk, "smartctl is not installed") for disk in disks]
    return [_read_one(program, disk) for disk in disks]


def counters_of(smart: list[DiskHealth]) -> dict[str, int]:
    """The counters of all disks under names of their own, to be compared after the run.

    >>> counters_of([{"disk": "sda", "counters": {"pending_sectors": 2}}, {"disk": "sdb", "counters": {}}])
    {'smart/sda:pending_sectors': 2}
    """  # noqa: E501
    return {
        f"{PREFIX}{item['disk']}:{name}": count
        for item in smart
        for name, count in item["counters"].items()
    }


def warnings_of(smart: list[DiskHealth]) -> list[str]:
    """What keeps a run on these disks from qualifying."""
    return [
        f"{item['disk']} says of itself that it is failing (SMART)"
        for item in smart
        if item["healthy"] is False
    ]


def _unread(disk: str, reason: str) -> DiskHealth:
    return {
        "disk": disk,
        "read": False,
        "reason": reason,
        "healthy": None,
        "life_used_percent": None,
        "counters": {},
    }


def _read_one(program: str, disk: str) -> DiskHealth:
    command = [program, "--json", "--health", "--attributes", "--log=error", f"/dev/{disk}"]
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=PATIENCE_S, stdin=subprocess.DEVNULL
        )
        said = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return _unread(disk, f"smartctl did not answer within {PATIENCE_S} s")
    except (OSError, ValueError) as error:
        return _unread(disk, f"smartctl: {error}")
    return (
        understood(disk, said)
        if isinstance(said, dict)
        else _unread(disk, "smartctl printed no object")
    )


def understood(disk: str, said: Mapping[str, object]) -> DiskHealth:
    """What the program printed about a disk, in our words."""
    passed = _inside(said, "smart_status", "passed")
    counters = _counters(said)
    if not isinstance(passed, bool) and not counters:
        messages = _inside(said, "smartctl", "messages")
        texts = (
            [str(item.get("string", "")) for item in messages if isinstance(item, dict)]
            if isinstance(messages, list)
            else []
        )
        return _unread(disk, "; ".join(text for text in texts if text) or "the drive tells nothing")
    used = _inside(said, "nvme_smart_health_information_log", "percentage_used")
    if used is None:
        used = said.get("scsi_percentage_used_endurance_indicator")
    found: DiskHealth = {
        "disk": disk,
        "read": True,
        "reason": None,
        "healthy": passed if isinstance(passed, bool) else None,
        "life_used_percent": _count(used),
        "counters": counters,
    }
    log = said.get("nvme_smart_health_information_log")
    if isinstance(log, dict):
        found["nvme"] = health_of(log)
    return found


def _counters(said: Mapping[str, object]) -> dict[str, int]:
    found: dict[str, object] = {
        "media_errors": _inside(said, "nvme_smart_health_information_log", "media_errors")
    }
    table = _inside(said, "ata_smart_attributes", "table")
    for row in table if isinstance(table, list) else []:
        number = row.get("id") if isinstance(row, dict) else None
        name = ATA_COUNTERS.get(number) if isinstance(number, int) else None
        if name is not None:
            found[name] = _inside(row, "raw", "value")
    for way in ("read", "write"):
        found[f"uncorrected_{way}_errors"] = _inside(
            said, "scsi_error_counter_log", way, "total_uncorrected_errors"
        )
    found["grown_defects"] = said.get("scsi_grown_defect_list")
    return {name: count for name, value in found.items() if (count := _count(value)) is not None}


def _count(value: object) -> int | None:
    """A value that is a number of things; None where it is anything else."""
    return value if isinstance(value, int) and type(value) is int and value >= 0 else None


def _inside(value: object, *names: str) -> object:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
