"""The load itself: page reads against fio's, the full mix beside fio with a log job, and how well
arrivals keep their schedule.

Reads and mix run on the real disk in turns with fio at the same outstanding I/O; arrivals run on a
disk that costs nothing.
"""

import json
import os
import shutil
import statistics
import subprocess
from pathlib import Path
from typing import Any

from environment import load_average
from figure import Figure
from programs import ProgramError, ours
from programs import run as run_program
from reads import PAGE_BYTES, reads_at

MIX, ARRIVALS = "The full mix beside fio", "Arrivals on a disk that answers at once"
SESSIONS = (1, 4, 16, 32)
ARRIVALS_PER_S = 10_000
LAG_US_MAX = 1000.0


def _field(directory: Path, quick: bool) -> tuple[Path, dict[str, object]]:
    """A prepared database, and the arguments of every run on it."""
    folder = directory / "loads"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    size: dict[str, object] = (
        {"database_mib": 64, "cache_mib": 4} if quick else {"database_mib": 2048, "cache_mib": 32}
    )
    arguments = {"directory": folder, **size, "seconds": 0.3 if quick else 1}
    prepared = ours("run_load", {**arguments, "read_percent": 100, "seconds": 0.2})
    return folder, {**arguments, "existing_records": prepared["records_ever"]}


def reads(directory: Path, quick: bool) -> list[Figure]:
    """Sessions that only read, one page each, in turns with fio reading pages of the same file at
    random at the same depth.
    """
    folder, arguments = _field(directory, quick)
    path = folder / "one" / "database001.edb"
    found = []
    for sessions in SESSIONS[1:2] if quick else SESSIONS:
        found += reads_at(
            path,
            {**arguments, "read_percent": 100, "sessions": sessions},
            sessions,
            1 if quick else 11,
        )
    shutil.rmtree(folder)
    return found


def mix(directory: Path, quick: bool) -> list[Figure]:
    """The 2010 mix at full speed, beside fio with the same share of reads and a second job that
    writes a log synchronously.
    """
    folder, arguments = _field(directory, quick)
    scratch = folder / "fio-mix"
    shutil.copyfile(folder / "one" / "database001.edb", scratch)
    found = []
    for sessions in SESSIONS[1:2] if quick else SESSIONS:
        load = load_average()
        engine, peer = [], []
        for number in range(1 if quick else 5):
            one = ours("run_load", {**arguments, "sessions": sessions, "seed": number + 1})
            arguments["existing_records"] = one["records_ever"]
            engine.append(one)
            peer.append(_fio_mix(scratch, one, arguments["seconds"]))
        both = [one["database_read"]["per_s"] + one["database_write"]["per_s"] for one in engine]
        theirs = [one["iops"] for one in peer]
        log = statistics.median(one["log_write"]["per_s"] for one in engine)
        found.append(
            Figure(
                MIX,
                f"{sessions} session{'s' if sessions > 1 else ''}: database I/O per second, and "
                f"log writes",
                f"{statistics.median(both):.0f} ({min(both):.0f} to {max(both):.0f}, n = "
                f"{len(both)}) and {log:.0f}, with "
                f"{statistics.median(_outstanding(one) for one in engine):.1f} outstanding; fio at "
                f"that depth "
                f"{statistics.median(theirs):.0f} ({min(theirs):.0f} to {max(theirs):.0f}) and "
                f"{statistics.median(one['log_iops'] for one in peer):.0f}",
                "reported",
                None,
                f"run_load sessions={sessions} seconds={arguments['seconds']}; fio --rw=randrw "
                f"--rwmixread=.. --iodepth=.. "
                "--name=log --rw=write --sync=dsync",
                load,
                data={"engine": engine, "fio": peer},
            )
        )
    shutil.rmtree(folder)
    return found


def _outstanding(run: dict[str, Any]) -> float:
    total: float = (
        run["database_read"]["outstanding_mean"] + run["database_write"]["outstanding_mean"]
    )
    return total


def _fio_mix(scratch: Path, run: dict[str, Any], seconds: object) -> dict[str, Any]:
    """Runs fio with the reads' share and the outstanding I/O of a run of ours, and a log job that
    waits for every write.
    """
    reads, writes = run["database_read"]["per_s"], run["database_write"]["per_s"]
    depth = max(1, round(_outstanding(run)))
    block = max(512, round(run["log_write"]["bytes_mean"] / 512) * 512)
    runtime = max(1, int(float(str(seconds))))
    words = [
        "fio",
        "--output-format=json",
        "--direct=1",
        f"--runtime={runtime}",
        "--time_based=1",
        "--name=database",
        f"--filename={scratch}",
        "--rw=randrw",
        f"--rwmixread={round(100 * reads / (reads + writes))}",
        f"--bs={PAGE_BYTES}",
        "--ioengine=io_uring",
        f"--iodepth={depth}",
        "--norandommap=1",
        "--name=log",
        f"--filename={scratch}.log",
        "--size=64m",
        "--rw=write",
        f"--bs={block}",
        "--ioengine=psync",
        "--sync=dsync",
    ]
    database, log = json.loads(run_program(words))["jobs"]
    return {
        "iops": database["read"]["iops"] + database["write"]["iops"],
        "log_iops": log["write"]["iops"],
        "depth": depth,
        "log_block_bytes": block,
    }


def arrivals(quick: bool) -> list[Figure]:
    """Ten thousand transactions a second on a memory disk, everything on one processor."""
    found = []
    processor = max(os.sched_getaffinity(0))
    if (
        subprocess.run(
            ["taskset", "-c", str(processor), "true"], check=False, capture_output=True
        ).returncode
        != 0
    ):
        raise ProgramError("taskset is needed to keep the run on one processor")
    for backend in ("engine", "raw_files"):
        load = load_average()
        arguments = {
            "directory": "/field",
            "disk": "null",
            "backend": backend,
            "per_s": ARRIVALS_PER_S,
            "database_mib": 64 if quick else 512,
            "cache_mib": 4 if quick else 64,
            "seconds": 0.5 if quick else 3,
        }
        # In the real-time class, as root: a kernel without preemption would leave us waiting for
        # whatever else runs here.
        under = [
            *(["chrt", "-f", "1"] if os.geteuid() == 0 else []),
            "taskset",
            "-c",
            str(processor),
        ]
        runs = [ours("run_load", arguments, under) for _ in range(1 if quick else 3)]
        lags = [one["arrival_lag"]["us_p99"] for one in runs]
        done = statistics.median(one["arrival_lag"]["per_s"] for one in runs)
        busy = statistics.median(one["executor_busy"] for one in runs)
        found.append(
            Figure(
                ARRIVALS,
                f"{backend}: p99 of the generator's own delay, µs",
                f"{statistics.median(lags):.0f} ({min(lags):.0f} to {max(lags):.0f}, n = "
                f"{len(lags)}; {done:.0f} arrivals per "
                f"second, thread busy {busy:.0%}, {sum(one['pool_wait']['count'] for one in runs)} "
                f"waited for a session)",
                f"below {LAG_US_MAX:g}" if backend == "engine" else "beside it",
                statistics.median(lags) < LAG_US_MAX if backend == "engine" else None,
                f"{' '.join(under)} run_load "
                f"{' '.join(f'{key}={value}' for key, value in arguments.items())}",
                load,
                "The thread never spins: it sleeps until the next arrival or completion is due. In "
                "the real-time class where root measured it."
                if backend == "engine"
                else "",
                data={"runs": runs},
            )
        )
    return found
