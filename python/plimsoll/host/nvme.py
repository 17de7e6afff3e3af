"""NVMe drives: what they are, from /sys, and how warm they became while a run went on.

A drive that grows too warm slows itself down, and its figures then say more of the room than of the
drive. The controller counts the minutes it spent above its warning and its critical temperature;
they are read before and after a run (`plimsoll.host.smart`). Between these the sensor that the
kernel shows (`hwmon`) is read every few seconds.

The power state is asked of the drive itself, which takes root. Whether a cache is volatile is what
the kernel was told (`queue/write_cache`): "write back" means that a flush is needed. Sources: Linux
Documentation/ABI/stable/sysfs-block and Documentation/nvme; NVM Express base specification 2.0,
Get Features and the SMART / health information log page.

Limits: an array of such drives, and a drive behind a hypervisor, shows nothing of this.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from plimsoll.documents.drive_health import DriveHealth, DriveHealthFile
from plimsoll.documents.environment import DiskHealth, NvmeFacts

SYS = Path("/sys")
#: The sensor is asked no more often.
EVERY_S = 5.0
#: Of the ioctl that passes an admin command through: NVME_IOCTL_ADMIN_CMD, whose structure has 72
#: bytes (linux/nvme_ioctl.h).
ADMIN_COMMAND = 0xC0484E41
GET_FEATURES, POWER_MANAGEMENT = 0x0A, 0x02
_COMMAND = struct.Struct("<BBHIIIQQIIIIIIIIII")
#: A data unit of the health log: a thousand times 512 bytes.
DATA_UNIT_BYTES = 512_000
_NAMESPACE = re.compile(r"nvme\d+n\d+")


def nvme_drives(root: Path = SYS) -> list[NvmeFacts]:
    """Every NVMe namespace that the kernel shows as a disk, by name."""
    found: list[NvmeFacts] = []
    for disk in sorted((root / "block").glob("nvme*")):
        if not _NAMESPACE.fullmatch(disk.name):
            continue
        controller = disk / "device"
        cache = _line(disk / "queue/write_cache")
        found.append(
            {
                "name": disk.name,
                "model": _line(controller / "model"),
                "firmware": _line(controller / "firmware_rev"),
                "transport": _line(controller / "transport"),
                "namespaces_count": _namespaces(root, disk.name),
                "block_bytes": _number(disk / "queue/logical_block_size"),
                "block_bytes_physical": _number(disk / "queue/physical_block_size"),
                "metadata_bytes": _number(disk / "metadata_bytes"),
                "queues_count": _number(controller / "queue_count"),
                "volatile_write_cache": None if cache is None else cache == "write back",
                "power_state": power_state(controller_of(disk.name)),
                "temperature_c": temperature_c(disk.name, root),
                "temperature_warning_c": _limit_c(controller, "temp1_max"),
                "temperature_critical_c": _limit_c(controller, "temp1_crit"),
            }
        )
    return found


def controller_of(disk: str) -> str:
    """The controller of a namespace.

    >>> controller_of("nvme0n1")
    'nvme0'
    """
    return disk[: disk.rindex("n")]


def temperature_c(disk: str, root: Path = SYS) -> float | None:
    """What the sensor of a drive says now; None where there is none."""
    return _limit_c(root / "block" / disk / "device", "temp1_input")


def power_state(
    controller: str,
    ask: Callable[[int, int, bytearray], int] = fcntl.ioctl,
    devices: Path = Path("/dev"),
) -> int | None:
    """The power state that a controller is in, 0 for the highest; None where it does not say.

    Args:
        controller: such as nvme0.
        ask: passes the command to the drive.
        devices: where its device is.
    """
    command = bytearray(
        _COMMAND.pack(
            GET_FEATURES, 0, 0, 0, 0, 0, 0, 0, 0, 0, POWER_MANAGEMENT, 0, 0, 0, 0, 0, 0, 0
        )
    )
    try:
        handle = os.open(devices / controller, os.O_RDONLY)
    except OSError:
        return None
    try:
        if ask(handle, ADMIN_COMMAND, command) != 0:
            return None
    except OSError:
        return None
    finally:
        os.close(handle)
    result: int = _COMMAND.unpack(bytes(command))[-1]
    return result & 0x1F


class DriveWatch:
    """Reads the sensors of some drives while a run goes on.

    Args:
        disks: names of disks; those that are no NVMe drives are left out.
        root: where sysfs is mounted.
        clock: seconds, for how often the sensors are asked.
    """

    def __init__(
        self,
        disks: Iterable[str],
        root: Path = SYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._drives = [disk for disk in disks if _NAMESPACE.fullmatch(disk)]
        self._root, self._clock = root, clock
        self._highest: dict[str, float] = {}
        self._next_s = clock()

    def look(self) -> None:
        """Take the temperatures, unless that was done a moment ago."""
        now = self._clock()
        if now < self._next_s:
            return
        self._next_s = now + EVERY_S
        for disk in self._drives:
            celsius = temperature_c(disk, self._root)
            if celsius is not None:
                self._highest[disk] = max(celsius, self._highest.get(disk, celsius))

    def found(self, before: Sequence[DiskHealth], after: Sequence[DiskHealth]) -> DriveHealthFile:
        """What a run did to its drives, with what they told before and after it."""
        first = {item["disk"]: item for item in before}
        drives = [
            _health(first[item["disk"]], item, self._highest.get(item["disk"]))
            for item in after
            if item["disk"] in first and (item["read"] or item["disk"] in self._highest)
        ]
        return DriveHealthFile(schema_version=1, drives=drives)


def _health(before: DiskHealth, after: DiskHealth, highest_c: float | None) -> DriveHealth:
    def grown(name: str) -> int | None:
        old, new = before.get("nvme", {}).get(name), after.get("nvme", {}).get(name)
        return None if old is None or new is None else max(new - old, 0)

    units = grown("data_units_written")
    temperatures = [
        value
        for value in (
            highest_c,
            before.get("nvme", {}).get("temperature_c"),
            after.get("nvme", {}).get("temperature_c"),
        )
        if value is not None
    ]
    return DriveHealth(
        disk=after["disk"],
        life_used_percent_before=before["life_used_percent"],
        life_used_percent_after=after["life_used_percent"],
        spare_percent_after=after.get("nvme", {}).get("available_spare_percent"),
        written_bytes=None if units is None else units * DATA_UNIT_BYTES,
        temperature_c_max=max(temperatures, default=None),
        warm_minutes=grown("warning_temp_minutes"),
        critical_minutes=grown("critical_temp_minutes"),
        throttled_count=grown("throttled_count"),
    )


def health_of(said: Mapping[str, object]) -> dict[str, int]:
    """What matters of the health log of an NVMe drive, as smartctl prints it."""
    names = {
        "temperature": "temperature_c",
        "available_spare": "available_spare_percent",
        "data_units_written": "data_units_written",
        "warning_temp_time": "warning_temp_minutes",
        "critical_comp_time": "critical_temp_minutes",
        "critical_warning": "critical_warning",
    }
    found: dict[str, int] = {}
    for key, name in names.items():
        value = said.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            found[name] = value
    counts = [said.get(f"thermal_mgmt_temp{level}_trans_count") for level in (1, 2)]
    numbers = [count for count in counts if isinstance(count, int)]
    return {**found, "throttled_count": sum(numbers)} if numbers else found


def _namespaces(root: Path, disk: str) -> int:
    controller = controller_of(disk)
    others = (root / "block").glob(f"{controller}n*")
    return sum(1 for other in others if _NAMESPACE.fullmatch(other.name))


def _limit_c(controller: Path, name: str) -> float | None:
    # A sensor of a namespace's controller; older kernels put it one level lower.
    for place in ("hwmon*", "device/hwmon*", "hwmon/hwmon*"):
        for sensor in sorted(controller.glob(place)):
            thousandths = _number(sensor / name)
            if thousandths is not None:
                return thousandths / 1000
    return None


def _number(path: Path) -> int | None:
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
