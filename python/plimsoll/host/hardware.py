"""What the host is made of, as far as anybody may read it.

Firmware, processor packages, network adapters, disks.

From /sys alone, without privileges. Memory modules, cabling and everything behind an adapter cannot
be seen from here; who wants them in a report writes them into `notes.toml` of the run folder.
"""

from __future__ import annotations

from pathlib import Path

from plimsoll.documents.environment import DiskFacts, MachineFacts, NetworkAdapter

SYS = Path("/sys")
#: Disks that exist only in this machine's memory or on top of files.
NO_DISKS = ("loop", "ram", "zram")


def machine_facts(root: Path = SYS) -> MachineFacts:
    """Vendor, firmware, processor packages and how the processor's frequency is chosen."""
    identity = root / "class/dmi/id"
    firmware = (_line(identity / f"bios_{part}") for part in ("vendor", "version", "date"))
    processors = root / "devices/system/cpu"
    packages = {_line(path) for path in processors.glob("cpu[0-9]*/topology/physical_package_id")}
    return {
        "vendor": _line(identity / "sys_vendor"),
        "firmware": ", ".join(part for part in firmware if part) or None,
        "cpu_packages": len(packages - {None}) or None,
        "frequency_governor": _line(processors / "cpu0/cpufreq/scaling_governor"),
    }


def network_adapters(root: Path = SYS) -> list[NetworkAdapter]:
    """Adapters with hardware behind them, by name."""
    found: list[NetworkAdapter] = []
    for adapter in sorted((root / "class/net").glob("*")):
        if not (adapter / "device").exists():
            continue
        speed = _line(adapter / "speed")
        driver = adapter / "device/driver"
        found.append(
            {
                "name": adapter.name,
                "driver": driver.resolve().name if driver.exists() else None,
                "speed_mbit_per_s": int(speed) if speed and speed.isdigit() else None,
                "frame_bytes_max": int(_line(adapter / "mtu") or 0) or None,
                "state": _line(adapter / "operstate"),
            }
        )
    return found


def disks(root: Path = SYS) -> list[DiskFacts]:
    """Disks the kernel knows, by name."""
    found: list[DiskFacts] = []
    for disk in sorted((root / "block").glob("*")):
        sectors = _line(disk / "size")
        if disk.name.startswith(NO_DISKS) or not sectors or sectors == "0":
            continue
        words = (_line(disk / "device/vendor"), _line(disk / "device/model"))
        # Virtual disks have the number of a bus vendor here.
        model = " ".join(word for word in words if word and not word.startswith("0x"))
        rotational = _line(disk / "queue/rotational")
        found.append(
            {
                "name": disk.name,
                "model": model or None,
                # The kernel counts in sectors of 512 bytes whatever the disk's own are.
                "size_bytes": int(sectors) * 512,
                "rotational": None if rotational is None else rotational == "1",
                "scheduler": _chosen(_line(disk / "queue/scheduler")),
                "numa_node": _numa_node(disk),
            }
        )
    return found


def _numa_node(disk: Path) -> int | None:
    """The node of memory and processors that a disk is attached to.

    None where there is only one, or the kernel does not say.
    """
    # A namespace of an NVMe drive lies below its controller, which lies below the PCI device.
    for place in ("device", "device/device"):
        node = _line(disk / place / "numa_node")
        if node is not None and node.isdecimal():
            return int(node)
    return None


def _chosen(schedulers: str | None) -> str | None:
    """The one in brackets.

    >>> _chosen("[mq-deadline] none"), _chosen("none")
    ('mq-deadline', 'none')
    """
    if schedulers is None or "[" not in schedulers:
        return schedulers
    return schedulers.partition("[")[2].partition("]")[0]


def _line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
