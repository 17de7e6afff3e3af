"""`python -m tools.load_cost DIRECTORY SECONDS [LOAD ...]`: what loads cost their busiest thread.

One line of JSON, for `make bench`. Each load arrives evenly at a rate of its own, on an instance of
its own. Several loads run at once in one process. Their instances lie in a folder for these loads
below the directory, are made at the first run and used again. Without names all of them run.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import plimsoll
from plimsoll import _native

#: What is not measured at either end: caches fill before, and what is under way ends behind.
SOAK_S, MARGIN_S = 3.0, 1.0
INSTANCES: dict[str, dict[str, object]] = {
    "records": {"database_size_mib": 256, "cache_mib_max": 32, "cache_mib_min": 32},
    "store": {"backend": "store", "store_size": "10MB", "cache_mib_max": 16, "cache_mib_min": 16},
    "files": {"backend": "files", "file_mib": 256},
    "mail": {
        "backend": "mail_store",
        "mailbox_mib": 0.3,
        "sizes": "loadsim-light",
        "cache_mib_max": 16,
        "cache_mib_min": 16,
    },
}
LOADS: dict[str, dict[str, object]] = {
    "records": {"load": {"transactions_per_s": 1000, "spacing": "regular"}},
    "store": {"load": {"transactions_per_s": 200, "spacing": "regular"}},
    "files": {"load": {"target_iops": 5000}, "pattern": "file-server", "outstanding": 32},
    "mail": {"load": {"users": 40, "spacing": "regular"}, "day_h": 0.01},
}


class Threads(plimsoll.Listener):
    """Reads the processor time of every thread of this process in the middle of the measured time.

    Attributes:
        busy: for each thread, the share of the time that it was on a processor.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.busy: dict[str, float] = {}
        self.reader: threading.Thread | None = None

    def event(self, event: plimsoll.Event) -> None:
        """Begins to read when the measured phase does."""
        if event.kind == "phase_started" and event.phase == "measure":
            self.reader = threading.Thread(target=self._read, daemon=True)
            self.reader.start()

    def _read(self) -> None:
        time.sleep(MARGIN_S)
        begun, before = time.monotonic(), processor_s()
        time.sleep(self._seconds - 2 * MARGIN_S)
        took, after = time.monotonic() - begun, processor_s()
        self.busy = {name: (after[name] - before.get(name, 0.0)) / took for name in after}


def processor_s() -> dict[str, float]:
    """The processor time of every thread so far in seconds, as the kernel's scheduler counts it."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            name = f"{task.joinpath('comm').read_text().strip()} {task.name}"
            found[name] = int(task.joinpath("schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue  # It has ended meanwhile.
    return found


def plan_of(directory: Path, seconds: float, loads: list[str]) -> plimsoll.Plan:
    """The plan of some of the loads."""
    return plimsoll.build_plan(
        {
            "name": " and ".join(loads),
            "seed": 11,
            "target": [{"name": "disk", "path": str(directory)}],
            "instance": [{"name": name, **INSTANCES[name]} for name in loads],
            "workload": [{"name": name, "instances": [name], **LOADS[name]} for name in loads],
            "phase": [
                {"kind": "prepare"},
                {"kind": "soak", "duration_s": SOAK_S, "workloads": loads},
                {"kind": "measure", "duration_s": seconds},
                {"kind": "stop"},
            ],
        }
    )


def measured(directory: Path, seconds: float, loads: list[str]) -> dict[str, object]:
    """Carry the loads out together and tell what they cost."""
    place = directory / " and ".join(loads)
    place.mkdir(parents=True, exist_ok=True)
    plan = plan_of(place, seconds, loads)
    threads = Threads(seconds)
    folder = Path(tempfile.mkdtemp(prefix="load-cost-"))
    try:
        found = plimsoll.check(plan, allow_system_disk=True)
        result = plimsoll.qualify(plan, folder / "run", found=found, listener=threads)
        if threads.reader is not None:
            threads.reader.join()
        return {
            "ending": result.ending,
            "busiest": max(threads.busy.values()),
            "threads": {name: share for name, share in threads.busy.items() if share > 0.0005},
            "operations_per_s": {
                load.name: load.transactions_per_s for load in result.summary.load.workloads
            },
            "release_build": _native.is_release_build,
        }
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Measure what the command line names."""
    directory, seconds, *loads = sys.argv[1:]
    print(json.dumps(measured(Path(directory), float(seconds), loads or list(LOADS))))


if __name__ == "__main__":
    main()
