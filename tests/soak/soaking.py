"""`make soak HOURS=h`: the load of a stress test watched from outside, and a judgement whether what
it uses stays flat. In one of its two instances a transaction stays open for ten minutes from the
beginning, or for a quarter of a short soak: what it keeps in memory must be gone afterwards.

    python -m tests.soak.soaking DIRECTORY HOURS [--keep]

Readings go to DIRECTORY/readings.csv while the run goes on. Exits with 1 when something grew, or
the run ended badly."""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, fields
from pathlib import Path

from tests.soak.flat import MIB, Reading, judged, not_flat, told_by_reader

#: Readings of a run, however long it is.
READINGS = 400
READING_S_MIN = 0.25
MEASURING, ENDED = "measure started", "measure ended"
#: How long a transaction stays open, and the share of the time that it takes at most.
READER_S, READER_SHARE = 600, 0.25
#: Ten minutes at full speed leave no more old versions than this.
VERSION_STORE_MIB = 4096
PLAN = """kind = "plan"
schema_version = 1
name = "soak"

[[target]]
name = "disk"
path = {databases}

[[instance]]
name = "instance1"
database_size_mib = {size_mib}
cache_mib_max = 16
long_reader_s = {reader_s}
version_store_mib = {version_store_mib}

[[instance]]
name = "instance2"
database_size_mib = {size_mib}
cache_mib_max = 16

[[workload]]
name = "mix"
load = {{ sessions = 3 }}

[[phase]]
kind = "prepare"

[[phase]]
kind = "warm_up"
timeout_s = {warm_up_s}

[[phase]]
kind = "measure"
duration_s = {seconds}

[[phase]]
kind = "stop"

[[phase]]
kind = "checksum"
"""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def read(process_id: int, databases: Path, run_folder: Path, began: float) -> Reading | None:
    """What a process uses now; None when it has just ended."""
    process = Path(f"/proc/{process_id}")
    try:
        resident = int((process / "statm").read_text().split()[1]) * PAGE_BYTES
        descriptors = len(list((process / "fd").iterdir()))
        threads = len(list((process / "task").iterdir()))
    except (OSError, IndexError):
        return None
    return Reading(
        seconds=time.monotonic() - began,
        memory_bytes=resident,
        descriptors_count=descriptors,
        threads_count=threads,
        log_bytes=_size(databases, "*.log"),
        database_bytes=_size(databases, "*.edb"),
        run_folder_bytes=_size(run_folder, "*"),
    )


def _size(folder: Path, pattern: str) -> int:
    total = 0
    for path in folder.rglob(pattern):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue  # deleted while we looked
    return total


def watch(
    command: list[str], databases: Path, run_folder: Path, every_s: float, out: Path
) -> tuple[int, list[Reading]]:
    """Run a command; its exit code, and readings from the time it measures."""
    readings = []
    events = run_folder / "events.log"
    with (
        out.open("w", newline="", encoding="utf-8") as file,
        (out.parent / "errors.txt").open("w") as errors,
    ):
        writer = csv.writer(file)
        writer.writerow([field.name for field in fields(Reading)])
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        began = time.monotonic()
        while process.poll() is None:
            time.sleep(every_s)
            told = events.read_text(errors="replace") if events.exists() else ""
            if MEASURING not in told or ENDED in told:
                continue
            reading = read(process.pid, databases, run_folder, began)
            if reading is not None:
                readings.append(reading)
                writer.writerow(asdict(reading).values())
                file.flush()
    return process.returncode, readings


def reader_seconds(hours: float) -> int:
    """How long the transaction stays open that a soak has next to its load."""
    return max(1, min(READER_S, int(hours * 3600 * READER_SHARE)))


def soak(directory: Path, hours: float, size_mib: int) -> tuple[int, list[Reading]]:
    """A run in a directory, with a transaction that stays open."""
    run_folder, plan = directory / "run", directory / "soak.toml"
    seconds = hours * 3600
    text = PLAN.format(
        databases=json.dumps(str(directory / "databases")),
        size_mib=size_mib,
        reader_s=reader_seconds(hours),
        version_store_mib=VERSION_STORE_MIB,
        warm_up_s=max(1, min(1800, int(seconds))),
        seconds=f"{seconds:g}",
    )
    plan.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "plimsoll.cli", "run", str(plan)]
    # The maker of the directory has chosen the disk it lies on.
    command += ["--create", "--allow-system-disk", "--yes", "--quiet", "--out", str(run_folder)]
    every_s = max(READING_S_MIN, seconds / READINGS)
    return watch(command, directory / "databases", run_folder, every_s, directory / "readings.csv")


def summary(readings: list[Reading]) -> str:
    """First and last reading beside each other."""
    if not readings:
        return "no readings"
    first, last = readings[len(readings) // 4], readings[-1]
    return (
        f"{len(readings)} readings over {last.seconds - readings[0].seconds:.0f} s; after a "
        f"quarter and at the end: memory "
        f"{first.memory_bytes / MIB:.0f} and {last.memory_bytes / MIB:.0f} MiB, "
        f"{first.descriptors_count} and {last.descriptors_count} "
        f"descriptors, {first.threads_count} and {last.threads_count} threads, logs "
        f"{first.log_bytes / MIB:.0f} and "
        f"{last.log_bytes / MIB:.0f} MiB, databases {first.database_bytes / MIB:.0f} and "
        f"{last.database_bytes / MIB:.0f} MiB, "
        f"run folder {first.run_folder_bytes / MIB:.1f} and {last.run_folder_bytes / MIB:.1f} MiB"
    )


def main() -> None:
    """Soak, say what was seen, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("hours", type=float)
    parser.add_argument("--size-mib", type=int, default=1024)
    parser.add_argument("--keep", action="store_true", help="leave the databases there")
    chosen = parser.parse_args()
    if chosen.directory.exists():
        sys.exit(
            f"{chosen.directory} exists; name another folder with DIR=, nothing is overwritten"
        )
    chosen.directory.mkdir(parents=True)
    code, readings = soak(chosen.directory, chosen.hours, chosen.size_mib)
    print(summary(readings))
    print(*told_by_reader(chosen.directory / "run"), sep="\n")
    problems = [f"not flat: {problem}" for problem in not_flat(readings)]
    problems += judged(chosen.directory / "run", reader_seconds(chosen.hours))
    if code not in (0, 1, 3):
        problems.append(
            f"the run ended with exit code {code}; see {chosen.directory / 'errors.txt'}"
        )
    if not chosen.keep:
        shutil.rmtree(chosen.directory / "databases", ignore_errors=True)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
