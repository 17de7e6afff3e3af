"""Page reads of the engine against fio's.

The same file, the same page size, direct I/O, runs in turns.

Two comparisons, because "the same load" can be two things. With as many I/Os kept outstanding as
the engine has sessions, fio asks more of the device: a session also looks at what it has read. At
the same outstanding I/O both ask the same, and rate and latency are one figure by Little's law. The
engine's mean outstanding I/O is no depth of fio, whose ring keeps only powers of two exactly: it
runs at the powers next to it, and its figures are taken between them in proportion, on a line
through the logarithms. Rate times latency stays the outstanding I/O on such a line, and a rate that
rises more and more slowly is met better than by a straight one.

Both sides run on the processor that gets the disk's interrupts. Where a disk has one queue, a
completion that must wake another processor costs a third more time here, and which processor a
program runs on is chance.
"""

import math
import os
import shutil
import statistics
from pathlib import Path
from typing import Any

from environment import load_average
from figure import Figure
from pairs import Comparison, lower_bound
from programs import fio, interrupts_by_processor, ours

READS = "Page reads against fio"
PAGE_BYTES = 32 << 10
IOPS_RATIO_MIN = 0.95
LATENCY_EXCESS_MAX = 0.05

#: Figures of one run: I/O per second, mean and 99th percentile from submission to seeing the
#: completion, mean outstanding I/O.
Run = dict[str, float]


def at_outstanding(outstanding: float, runs: list[Run]) -> Run:
    """The figures that runs at neighbouring depths have at this outstanding I/O.

    Those of the one run where there is one.

    A session that also works keeps fewer than one I/O outstanding; no depth of fio is below one.
    """
    low, high = runs[0], runs[-1]
    if len(runs) == 1:
        return low
    share = math.log(outstanding / low["outstanding"]) / math.log(
        high["outstanding"] / low["outstanding"]
    )
    return {name: low[name] * (high[name] / low[name]) ** share for name in low}


def neighbours(outstanding: float) -> list[int]:
    """The powers of two next to a mean outstanding I/O."""
    low: int = 2 ** max(0, math.floor(math.log2(outstanding)))
    return [low] if outstanding <= low else [low, 2 * low]


def reads_at(path: Path, arguments: dict[str, object], sessions: int, pairs: int) -> list[Figure]:
    """One number of sessions: rate and latency beside fio's."""
    load = load_average()
    under = beside_the_disk(arguments)
    near = neighbours(_engine(arguments, 0, under)["outstanding"])
    depths = sorted({sessions, *near})
    engine: list[Run] = []
    peers: dict[int, list[Run]] = {depth: [] for depth in depths}
    for number in range(pairs):
        sides: list[int] = [0, *depths]
        for depth in sides if number % 2 == 0 else reversed(sides):
            if depth == 0:
                engine.append(_engine(arguments, number + 1, under))
            else:
                peers[depth].append(_fio(path, depth, float(str(arguments["seconds"])), under))
    same = [
        at_outstanding(one["outstanding"], [peers[depth][number] for depth in near])
        for number, one in enumerate(engine)
    ]
    named = f"{sessions} session{'s' if sessions > 1 else ''}"
    prefix = f"{' '.join(under)} " if under else ""
    command = (
        f"{prefix}run_load read_percent=100 sessions={sessions} seconds={arguments['seconds']}; "
        f"{prefix}fio --rw=randread --bs=32k --iodepth={' and '.join(map(str, depths))}"
    )
    outstanding = statistics.median(one["outstanding"] for one in engine)
    beside = f"{named}, {outstanding:.2f} outstanding"
    return [
        _rate(
            f"{named}: database IOPS over fio's with {sessions} outstanding",
            engine,
            peers[sessions],
            command,
            load,
        ),
        _rate(f"{beside}: database IOPS over fio's at the same", engine, same, command, load),
        _latency(
            f"{beside}: mean read latency over fio's at the same",
            "us_mean",
            (engine, same),
            command,
            load,
        ),
        _latency(
            f"{beside}: p99 read latency over fio's at the same",
            "us_p99",
            (engine, same),
            command,
            load,
        ),
    ]


def beside_the_disk(arguments: dict[str, object]) -> list[str]:
    """What keeps a program on the processor that most of the disk's interrupts go to.

    Nothing where that cannot be done.
    """
    allowed = os.sched_getaffinity(0)
    before = interrupts_by_processor()
    ours("run_load", arguments)
    grown = [
        after - earlier for after, earlier in zip(interrupts_by_processor(), before, strict=True)
    ]
    known = [processor for processor in allowed if processor < len(grown)]
    if not known or shutil.which("taskset") is None:
        return []
    busiest = max(known, key=lambda processor: grown[processor])
    # In the real-time class, as root: what else runs on that processor would hit one side of a pair
    # and not the other.
    return [*(["chrt", "-f", "1"] if os.geteuid() == 0 else []), "taskset", "-c", str(busiest)]


def _engine(arguments: dict[str, object], seed: int, under: list[str]) -> Run:
    found = ours("run_load", {**arguments, "seed": seed + 1}, under)["database_read"]
    return {
        "iops": found["per_s"],
        "us_mean": found["us_mean"],
        "us_p99": found["us_p99"],
        "outstanding": found["outstanding_mean"],
    }


def _fio(path: Path, depth: int, seconds: float, under: list[str]) -> Run:
    # Percentiles of fio are by default from after the submission on, which in a virtual machine is
    # a good part of the whole.
    more: dict[str, Any] = {
        "norandommap": 1,
        "randrepeat": 0,
        "lat_percentiles": 1,
        "clat_percentiles": 0,
    }
    more |= {"time_based": 1, "runtime": max(1, int(seconds))}
    found = fio(path, "randread", PAGE_BYTES, depth, under, **more)
    total = found["lat_ns"]
    return {
        "iops": found["iops"],
        "us_mean": total["mean"] / 1000,
        "us_p99": total["percentile"]["99.000000"] / 1000,
        "outstanding": found["iops"] * total["mean"] / 1e9,
    }


def _rate(name: str, engine: list[Run], peer: list[Run], command: str, load: float) -> Figure:
    rates = Comparison([one["iops"] for one in engine], [one["iops"] for one in peer])
    bound = lower_bound(rates.ratios)
    value = (
        f"{bound:.3f} (median {statistics.median(rates.ratios):.3f}, {min(rates.ratios):.2f} to "
        f"{max(rates.ratios):.2f}, "
        f"n = {len(engine)}; {statistics.median(rates.ours):.0f} against "
        f"{statistics.median(rates.theirs):.0f} per second)"
    )
    bar = f"lower 90 % bound at least {IOPS_RATIO_MIN:g}"
    return Figure(READS, name, value, bar, bound >= IOPS_RATIO_MIN, command, load, data=rates.row())


def _latency(
    name: str, key: str, runs: tuple[list[Run], list[Run]], command: str, load: float
) -> Figure:
    engine, peer = runs
    latency = Comparison([one[key] for one in engine], [one[key] for one in peer])
    ratio = statistics.median(latency.ratios)
    value = (
        f"{ratio:.3f} ({min(latency.ratios):.2f} to {max(latency.ratios):.2f}, n = {len(engine)}; "
        f"{statistics.median(latency.ours):.0f} against {statistics.median(latency.theirs):.0f} µs)"
    )
    # A lower one is no miss: fio's ring interrupts the program for each completion, the engine's
    # waits until it looks.
    met = ratio <= 1 + LATENCY_EXCESS_MAX
    bar = f"within {LATENCY_EXCESS_MAX:.0%}, or lower"
    return Figure(READS, name, value, bar, met, command, load, data=latency.row())
