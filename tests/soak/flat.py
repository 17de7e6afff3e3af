"""Whether what a long run uses stays flat (memory, descriptors, threads, logs, the growth of its
databases and its run folder), and whether it ran.

A leak of a few bytes for each transaction drowns in the noise of minutes and shows over hours, so
the middle of a run is compared with its end, and the allowance is stated. Databases may grow,
because the load inserts more than it deletes, and the run folder by what is measured; they must not
grow faster and faster.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import duckdb

MIB = 1 << 20


@dataclass(frozen=True)
class Reading:
    """What a run uses at one moment."""

    seconds: float
    memory_bytes: int
    descriptors_count: int
    threads_count: int
    log_bytes: int
    database_bytes: int
    run_folder_bytes: int


@dataclass(frozen=True)
class Allowance:
    """How much more the end may need than the middle."""

    memory_bytes: int = 16 * MIB
    memory_share: float = 0.03
    descriptors_count: int = 2
    threads_count: int = 2
    log_share: float = 0.25
    log_bytes: int = 4 * MIB
    growth_factor: float = 1.5
    growth_bytes: int = 16 * MIB
    run_folder_bytes: int = 2 * MIB


READINGS_MIN = 12
#: What the run says of the transaction that stayed open, and how much of its time it must have had:
#: it looks at the time now and then.
_OPEN = re.compile(r"a transaction was open for ([\d.]+) s")
READER_SHARE_MIN = 0.9
OPERATIONS = ("insert", "delete", "replace", "read")
#: Into so many parts the time is divided; in each at least this share of the mean must be done.
PARTS, SLOWEST_SHARE = 4, 0.25
#: A shorter part must only have done something at all: a busy machine may take most of some seconds
#: from a load that goes on.
PART_S_MIN = 60.0


def not_flat(readings: list[Reading], allowance: Allowance | None = None) -> list[str]:
    """What grows, a sentence for each; empty when everything is flat.

    The first quarter of the readings does not count: there caches fill.
    """
    allowed = allowance or Allowance()
    if len(readings) < READINGS_MIN:
        return [
            f"only {len(readings)} readings were taken; {READINGS_MIN} are needed to say anything"
        ]
    settled = readings[len(readings) // 4 :]
    third = len(settled) // 3
    early, late = settled[:third], settled[-third:]
    found = []
    before, after = (median(one.memory_bytes for one in part) for part in (early, late))
    if after > before * (1 + allowed.memory_share) + allowed.memory_bytes:
        found.append(f"memory grew from {before / MIB:.0f} to {after / MIB:.0f} MiB")
    for name, margin in (
        ("descriptors_count", allowed.descriptors_count),
        ("threads_count", allowed.threads_count),
    ):
        few, many = (max(getattr(one, name) for one in part) for part in (early, late))
        if many > few + margin:
            found.append(f"{name.removesuffix('_count')} grew from {few} to {many}")
    few, many = (max(one.log_bytes for one in part) for part in (early, late))
    if many > few * (1 + allowed.log_share) + allowed.log_bytes:
        found.append(
            f"logs grew from {few / MIB:.0f} to {many / MIB:.0f} MiB, though old ones are deleted"
        )
    middle = len(settled) // 2
    seconds = settled[-1].seconds - settled[middle].seconds
    margins = {"database_bytes": allowed.growth_bytes, "run_folder_bytes": allowed.run_folder_bytes}
    for (name, margin), words in zip(margins.items(), ("databases", "the run folder"), strict=True):
        first, second = (_growth(part, name) for part in (settled[: middle + 1], settled[middle:]))
        if second * seconds > first * seconds * allowed.growth_factor + margin:
            found.append(
                f"{words} grew by {first / MIB:.2f} MiB/s at first and by {second / MIB:.2f} MiB/s "
                f"at last"
            )
    return found


def told_by_reader(run_folder: Path) -> list[str]:
    """What the run says of the transaction that stayed open."""
    events = (run_folder / "events.log").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line) for line in events if '"long_reader_ended"' in line]
    return [str(event["text"]) for event in told]


def judged(run_folder: Path, reader_s: float = 0.0) -> list[str]:
    """What is wrong with a soak's run itself, a sentence for each.

    Flat is also what does nothing. `reader_s` is how long a transaction was to stay open.
    """
    try:
        summary = json.loads((run_folder / "summary.json").read_text(encoding="utf-8"))
        events = [
            json.loads(line)
            for line in (run_folder / "events.log").read_text(encoding="utf-8").splitlines()
        ]
    except (OSError, ValueError) as error:
        return [f"the run left no result: {error}"]
    found = []
    if summary["ending"] != "complete" or summary["error"]:
        found.append(f"the run ended {summary['ending']}: {summary['error']}")
    failed = [event for event in events if event.get("kind") in ("io_error", "io_refused")]
    if failed:
        found.append(f"{len(failed)} I/O failed, first: {failed[0]}")
    found += _stood_still(run_folder)
    if reader_s:
        open_s = [
            float(match[1]) for told in told_by_reader(run_folder) if (match := _OPEN.match(told))
        ]
        if max(open_s, default=0.0) < reader_s * READER_SHARE_MIN:
            found.append(f"no transaction stayed open for {reader_s:.0f} s")
    if not summary["checksums"]:
        found.append("no page was verified afterwards")
    found += [
        f"{row['bad']} bad pages in {row['name']}" for row in summary["checksums"] if row["bad"]
    ]
    return found


def _stood_still(run_folder: Path) -> list[str]:
    """Whether the load came to a stand: who does nothing needs nothing."""
    samples = run_folder / "samples.parquet"
    with duckdb.connect() as database:
        rows = database.execute(
            "SELECT part, sum(count), max(part_s) FROM (SELECT count, (max(end_ns) OVER () - "
            "min(end_ns) OVER ()) / 1e9 / $parts AS part_s,"
            " (end_ns - min(end_ns) OVER ()) * $parts // (1 + max(end_ns) OVER () - min(end_ns) "
            "OVER ()) AS part"
            f" FROM read_parquet($samples) WHERE metric IN {OPERATIONS} AND phase = 'measure') "
            f"GROUP BY part ORDER BY part",
            {"parts": PARTS, "samples": str(samples)},
        ).fetchall()
    done = [int(count) for _, count, _ in rows]
    slowest, mean = min(done, default=0), fmean(done or [0])
    part_s = max((seconds for _, _, seconds in rows), default=0.0)
    least = mean * SLOWEST_SHARE if part_s >= PART_S_MIN else 0
    if len(done) == PARTS and slowest > least:
        return []
    return [
        f"the load stood still: of {PARTS} parts of {part_s:.0f} s the slowest saw {slowest:,} "
        f"operations, the mean is {mean:,.0f}"
    ]


def _growth(readings: list[Reading], name: str) -> float:
    """Bytes a second by which something grew."""
    seconds = readings[-1].seconds - readings[0].seconds
    return (getattr(readings[-1], name) - getattr(readings[0], name)) / seconds if seconds else 0.0
