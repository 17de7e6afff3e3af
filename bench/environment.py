"""What a figure was measured on. Without it a figure is a rumour."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def _link_time() -> str:
    """How the programs are linked: as Cargo.toml says, unless this environment says otherwise."""
    lto = os.environ.get("CARGO_PROFILE_RELEASE_LTO", "thin")
    return "no LTO" if lto == "off" else f"{lto} LTO"


def _told(*command: str) -> str:
    try:
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
    except FileNotFoundError:
        return f"{command[0]} is not installed"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def load_average() -> float:
    """Processes that ran or wanted to, over the last minute."""
    return os.getloadavg()[0]


def load_averages() -> list[float]:
    """Over one minute, five and fifteen."""
    return [round(value, 2) for value in os.getloadavg()]


def _commit() -> str:
    """What was measured; the page and the record being written do not count as changes."""
    changed = _told(
        "git", "status", "--porcelain", "--", ".", ":!docs/benchmarks.md", ":!docs/benchmarks.json"
    )
    return _told("git", "rev-parse", "--short=12", "HEAD") + ("-dirty" if changed else "")


def record(directory: Path) -> dict[str, object]:
    """Everything about the machine that a reader of the figures needs."""
    mount = _told("findmnt", "-no", "SOURCE,FSTYPE,OPTIONS", "-T", str(directory)).split()
    source, kind, options = (mount + ["unknown"] * 3)[:3]
    device = Path(source).name
    queue = Path("/sys/block") / device / "queue"
    facts = {
        name: (queue / name).read_text().strip()
        for name in ("rotational", "physical_block_size", "scheduler")
        if (queue / name).is_file()
    }
    memory = next(
        line
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal")
    )
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "build": f"cargo release: optimised, {_link_time()}, no debug assertions",
        "rustc": _told("rustc", "--version"),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory_kib": int(memory.split()[1]),
        "kernel": platform.release(),
        "file_system": kind,
        "mount_options": options,
        "device": device,
        "device_facts": facts,
        "fio": _told("fio", "--version"),
        "load_average_before": load_averages(),
    }
