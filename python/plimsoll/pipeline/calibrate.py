"""Measuring the storage at hand point by point, and fitting a preset that behaves like it.

Writes one file below the path, and deletes it.
"""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plimsoll.arrays.fit.calibration import (
    Fit,
    SweepPoint,
    SweepWanted,
    fit,
    preset_text,
    sweep_plan,
)
from plimsoll.databases.consent import Consent, refusals
from plimsoll.documents.engine_reports import MeasuredPoint
from plimsoll.errors import of_the_engine
from plimsoll.files.folder import FolderError
from plimsoll.files.paths import StrPath
from plimsoll.host.probe import describe
from plimsoll.live.listener import Listener

FILE_NAME = "plimsoll-calibration.dat"
#: For the forecast alone.
ASSUMED_MIB_PER_S = 150
BURST_DEPTH, BURST_TIMES = 32, 5
#: Runs with and without work for the processors, of a point's time each way in all.
DURABLE_TIMES = 10


@dataclass(frozen=True)
class Calibration:
    """What is to be measured, and what that takes.

    Attributes:
        file: the file that is measured; it is made, and deleted afterwards.
        size_mib: its size.
        seconds: how long each point is measured.
        points: what is measured.
        warnings: what about the storage a reader must know.
    """

    file: Path
    size_mib: int
    seconds: float
    points: list[SweepWanted]
    warnings: list[str]

    @property
    def point_count(self) -> int:
        """Points, as far as their time goes."""
        return len(self.points) + 3 + BURST_TIMES

    @property
    def total_s(self) -> float:
        """How long it takes, about."""
        return self.size_mib / ASSUMED_MIB_PER_S + self.point_count * self.seconds


def plan_calibration(
    directory: StrPath,
    *,
    size_mib: int,
    seconds: float,
    quick: bool = False,
    allow_system_disk: bool = False,
) -> Calibration:
    """Look at the storage and say what will be measured. Writes nothing.

    Args:
        directory: on the storage to be measured.
        size_mib: of the file that is measured.
        seconds: how long each point is measured.
        quick: fewer points, only to see how it works.
        allow_system_disk: let the directory lie on the root file system; it is refused otherwise.

    Raises:
        StorageError: nothing can be found out about the path.
        FolderError: it is no directory, is too small, or another calibration is running.
    """
    directory = Path(directory)
    file = directory.expanduser().absolute() / FILE_NAME
    storage = describe(file.parent)
    if not file.parent.is_dir():
        raise FolderError(f"{file.parent} is no directory; name one on the storage to be measured")
    for refusal in refusals([file.parent], Consent(system_disk=allow_system_disk)):
        raise FolderError(refusal)
    if file.exists():
        raise FolderError(f"{file} is there already; delete it if no other calibration is running")
    if storage.free_bytes < size_mib << 20:
        raise FolderError(
            f"{file.parent} has {storage.free_bytes >> 20} MiB free; take a smaller --size-mib"
        )
    return Calibration(file, size_mib, seconds, sweep_plan(quick), list(storage.warnings))


def calibrate(
    wanted: Calibration,
    directory: StrPath,
    name: str,
    out: StrPath,
    *,
    listener: Listener | None = None,
) -> tuple[Fit, list[float]]:
    """Measure the storage and write a preset that behaves like it, with its error on points held
    out.

    Args:
        wanted: as from `plan_calibration`.
        directory: as it was named.
        name: what the preset is called.
        out: its file.
        listener: told each point.

    Returns:
        The fit, and the rate of writes that went on in each tenth of their time.

    Raises:
        EngineError: the storage reported an error.
    """
    directory = Path(directory)
    out = Path(out)
    hears, file, size_mib, seconds = (
        listener or Listener(),
        wanted.file,
        wanted.size_mib,
        wanted.seconds,
    )
    with _measured_file(file, size_mib, hears):
        points = [_measured(point, file, size_mib, seconds, hears) for point in wanted.points]
        host = _host(file, size_mib, seconds, hears)
        tenths = _burst(file, size_mib, seconds)
    hears.say("fitting a model ...")
    fitted = fit(points, size_mib << 20, name, host)
    when = datetime.now(UTC).date().isoformat()
    out.write_text(preset_text(fitted, str(directory), when), encoding="utf-8")
    return fitted, tenths


@contextmanager
def _measured_file(file: Path, size_mib: int, listener: Listener) -> Iterator[None]:
    """The file, filled, for as long as it is measured."""
    try:
        listener.say(f"writing {size_mib} MiB ...")
        _point(
            file,
            size_mib,
            1.0,
            action="fill",
            block_kib=1024,
            depth=4,
            span_share=1.0,
            sequential=True,
            durable=False,
        )
        yield
    finally:
        file.unlink(missing_ok=True)


def _point(file: Path, size_mib: int, seconds: float, **wanted: Any) -> MeasuredPoint:
    """Measure one point; what the storage reports is an EngineError."""
    from plimsoll import _native

    block = int(wanted["block_kib"]) * 1024
    span = max(int((size_mib << 20) * wanted["span_share"]) // block * block, block)
    point = {
        "path": str(file),
        "action": wanted["action"],
        "block_bytes": block,
        "depth": wanted["depth"],
        "span_bytes": span,
        "sequential": wanted["sequential"],
        "durable": wanted["durable"],
        "seconds": seconds,
        "seed": 1,
        "working_threads": wanted.get("working_threads", 0),
    }
    with of_the_engine():
        found: MeasuredPoint = json.loads(_native.sweep(json.dumps(point)))
    return found


def _measured(
    wanted: SweepWanted, file: Path, size_mib: int, seconds: float, listener: Listener
) -> SweepPoint:
    """One point of the sweep."""
    found = _point(file, size_mib, seconds, **wanted)
    point = SweepPoint(
        **wanted, per_second=max(found["per_second"], 1e-3), latency_ms=found["latency_ms_mean"]
    )
    listener.say(f"{point.name}: {point.per_second:,.0f} per second, {point.latency_ms:.3f} ms")
    return point


def _host(file: Path, size_mib: int, seconds: float, listener: Listener) -> dict[str, float]:
    """The host as a run with few sessions has it.

    Its processors, and their time for an I/O that is waited for alone.
    """
    wanted = {
        "action": "read",
        "block_kib": 32,
        "depth": 1,
        "span_share": 1.0,
        "sequential": False,
        "durable": False,
    }
    before = resource.getrusage(resource.RUSAGE_SELF)
    count = _point(file, size_mib, seconds, **wanted)["count"]
    after = resource.getrusage(resource.RUSAGE_SELF)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    processors = len(os.sched_getaffinity(0))
    wait_us = _durable_wait_us(file, size_mib, seconds, processors)
    io_us = 1e6 * used_s / max(count, 1)
    listener.say(
        f"this machine: {processors} processors, {io_us:.1f} us of one for each I/O; "
        f"a durable write waits {wait_us:.0f} us longer while they are at work"
    )
    return {
        "host_processor_count": processors,
        "host_io_us": round(io_us, 2),
        "queue_durable_us": round(wait_us, 2),
    }


def _durable_wait_us(file: Path, size_mib: int, seconds: float, processors: int) -> float:
    """How much longer a durable write takes while the processors are at work.

    The kernel finishes it in workers that need one.

    Where the threads happen to run decides much, so this is the mean of many short runs in turns.
    """
    wanted = {
        "action": "write",
        "block_kib": 8,
        "depth": 1,
        "span_share": 0.05,
        "sequential": True,
        "durable": True,
    }

    def latency_us(working: int) -> float:
        point = _point(file, size_mib, seconds / DURABLE_TIMES, working_threads=working, **wanted)
        return 1e3 * float(point["latency_ms_mean"])

    longer = [latency_us(processors) - latency_us(0) for _ in range(DURABLE_TIMES)]
    return max(sum(longer) / len(longer), 0.0)


def _burst(file: Path, size_mib: int, seconds: float) -> list[float]:
    """Writes that go on: their rate in each tenth of the time, which falls when a cache is full."""
    wanted = {
        "action": "write",
        "block_kib": 32,
        "depth": BURST_DEPTH,
        "span_share": 1.0,
        "sequential": False,
        "durable": True,
    }
    tenths: list[float] = _point(file, size_mib, BURST_TIMES * seconds, **wanted)[
        "per_second_of_tenths"
    ]
    return tenths
