"""The light workload: our engine as the storage sees it, by constants taken from a trace of the
engine itself.

A simulation with it takes a fraction of a second where the engine takes minutes, so that it serves
sweeps. The constants (`data/engine_load.toml`) are ratios of counts and bytes that the engine made
on a modelled array; `python -m tools.engine_trace` writes them anew. Between two reads a session
stays away as its plan wants: it thinks as long as its transaction took (`sluggish` times), and its
durable commits wait for the log. Limits: pages are read anywhere in the database, and what the
engine writes beside pages and log records (headers, the checkpoint) is left out.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from itertools import pairwise
from typing import TypedDict

from plimsoll import _native, settings
from plimsoll.arrays.description import GB, array_description
from plimsoll.arrays.neighbours import neighbour_rows
from plimsoll.arrays.plan_storage import (
    TRANSACTION_PROCESSOR_US,
    filling_mib,
    log_volumes_of,
    volumes_of,
)
from plimsoll.arrays.pools import DATABASES, pools_of
from plimsoll.arrays.sources import DATA_FOLDER
from plimsoll.arrays.streams import BURST_PAGES, LOG_BYTES, Place, Stream, scan
from plimsoll.documents.array_sheet import ArraySheet
from plimsoll.documents.modelled_curve import CurvePoint
from plimsoll.documents.outcome import ArrayReport
from plimsoll.units import NS_PER_US

ENGINE_LOAD = DATA_FOLDER / "engine_load.toml"
#: The limit of the published tests, at which an array's rate is read off.
LIMIT_MS = 20.0
SESSIONS_MAX = 1024
#: Editions whose habits are those of another, so that the engine makes the same of them.
SAME_LOAD = {"2016": "2013", "2019": "2013"}
MEASURE_S, WARM_UP_S = 60, 20


@cache
def engine_load(edition: str) -> dict[str, float]:
    """What the engine makes for each page read, in the habits of an edition."""
    loads: dict[str, dict[str, float]] = tomllib.loads(ENGINE_LOAD.read_text(encoding="utf-8"))[
        "editions"
    ]
    return loads[SAME_LOAD.get(edition, edition)]


def run_light(
    array: ArraySheet,
    database_count: int,
    session_count: int,
    edition: str = "2010",
    size_mib: int | None = None,
) -> CurvePoint:
    """Simulate sessions on databases that lie as those of a modelled test do."""
    flash = all("rotation_rpm" not in group.sheet for group in pools_of(array)[DATABASES])
    warm_up_s, measure_s = (2, 6) if flash else (WARM_UP_S, MEASURE_S)
    spec = light_spec(array, database_count, session_count, edition, size_mib, warm_up_s, measure_s)
    return _point(session_count, json.loads(_native.simulate(json.dumps(spec))))


def light_spec(
    array: ArraySheet,
    database_count: int,
    session_count: int,
    edition: str = "2010",
    size_mib: int | None = None,
    warm_up_s: float = WARM_UP_S,
    measure_s: float = MEASURE_S,
) -> dict[str, object]:
    """What the native side simulates.

    The array, and for each database its sessions and maintenance.
    """
    size_mib = size_mib or filling_mib(array, database_count)
    stored = {f"instance{number}": size_mib * 2**20 for number in range(1, database_count + 1)}
    habits = settings.editions()[edition]
    streams: list[Stream] = []
    for number in range(database_count):
        place = Place(2 * number, 2 * number + 1, size_mib * 2**20 / GB)
        streams.append(_sessions(place, size_mib, session_count, edition))
        if habits["maintenance"]:
            read_bytes = settings.INSTANCE_DEFAULTS["maintenance_read_kib"] * 1024
            streams.append(
                scan("maintenance", place, read_bytes, 1, habits["maintenance_throttle_ms"])
            )
    return {
        "array": array_description(
            array, volumes_of(stored), warm_up_s, log_volumes_of(stored)
        ).plain(),
        "streams": streams,
        "seed": 1,
        "warm_up_ns": int(warm_up_s * 10**9),
        "measure_ns": int(measure_s * 10**9),
    }


def _sessions(place: Place, size_mib: int, session_count: int, edition: str) -> Stream:
    load, sluggish = engine_load(edition), float(settings.editions()[edition]["sluggish"])
    processor_us = (1 + sluggish) * load["transactions_per_read"] * TRANSACTION_PROCESSOR_US
    return {
        "sessions": {
            "volume": place.volume,
            "start_bytes": 0,
            "database_bytes": size_mib * 2**20,
            "log_volume": place.log_volume,
            "log_start_bytes": 0,
            "log_bytes": LOG_BYTES,
            "session_count": session_count,
            "page_bytes": int(settings.editions()[edition]["page_bytes"]),
            "read_bytes_mean": load["read_bytes"],
            "processor_ns": int(processor_us * NS_PER_US),
            "latency_factor": sluggish,
            "log_latency_factor": (1 + sluggish) * load["log_waits_per_read"],
            "writes_per_read": load["writes_per_read"],
            "write_bytes_mean": load["write_bytes"],
            "flush": {"pages": BURST_PAGES},
            "write_depth": settings.ENGINE_SIZES["writes_outstanding_max"],
            "log_writes_per_read": load["log_writes_per_read"],
            "log_write_bytes_mean": load["log_write_bytes"],
        }
    }


ClassOutcome = TypedDict(
    "ClassOutcome", {"class": str, "per_second": float, "latency_ms_mean": float}
)


class _Outcome(TypedDict):
    """What the native side answers to a simulation."""

    classes: list[ClassOutcome]
    array: object


def _point(session_count: int, outcome: _Outcome) -> CurvePoint:
    rows = {row["class"]: row for row in outcome["classes"]}
    array = ArrayReport.from_plain(outcome["array"], "what the array counted")
    first = array.stages[0]
    reads, writes = rows["database_read"], rows["database_write"]
    return CurvePoint(
        sessions=session_count,
        iops=reads["per_second"] + writes["per_second"],
        reads_per_s=reads["per_second"],
        read_ms=reads["latency_ms_mean"],
        write_ms=writes["latency_ms_mean"],
        log_write_ms=rows["log_write"]["latency_ms_mean"],
        busiest=first.stage,
        utilisation=first.utilisation,
        neighbour_utilisation=first.neighbour_utilisation,
        neighbour_iops=sum(row.iops for row in neighbour_rows(array)),
    )


def sweep(
    array: ArraySheet,
    database_count: int,
    edition: str = "2010",
    size_mib: int | None = None,
) -> list[CurvePoint]:
    """The curve: sessions are doubled until reads take longer than the limit allows, or more
    sessions bring nothing.
    """
    points: list[CurvePoint] = []
    count = 1
    while count <= SESSIONS_MAX:
        points.append(run_light(array, database_count, count, edition, size_mib))
        last = points[-1]
        if last.read_ms > LIMIT_MS or (len(points) > 2 and last.iops < 1.02 * points[-2].iops):
            break
        count *= 2
    return points


def iops_at_limit(points: list[CurvePoint], limit_ms: float = LIMIT_MS) -> float | None:
    """The rate at a read latency, between two points of a curve.

    None where the curve does not reach it.
    """
    for low, high in pairwise(points):
        if low.read_ms <= limit_ms <= high.read_ms and high.read_ms > low.read_ms:
            return low.iops + (high.iops - low.iops) * (limit_ms - low.read_ms) / (
                high.read_ms - low.read_ms
            )
    return None
