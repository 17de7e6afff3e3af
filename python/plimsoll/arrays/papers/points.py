"""The published results, run through the model: what was printed, what comes out, and how far apart they are.

A figure is `fitted` when a constant of the model was taken from it; all others are predictions. Thread counts of the
EqualLogic tests were not published, so IOPS are read off at 18.5 ms, the middle of the stated 17 to 20 ms. The SanDisk
tests do not state theirs either: 13 is what the thread law gives for the flash run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from plimsoll import _native
from plimsoll.arrays import streams as work
from plimsoll.arrays.description import KIB, array_description
from plimsoll.arrays.presets import array_preset
from plimsoll.arrays.sources import DATA_FOLDER, READERS
from plimsoll.arrays.streams import Mix, Place
from plimsoll.inputs.schema import Field, Flag, Number, Tables, Text, check_file
from plimsoll.inputs.toml_lines import read_located

SHIPPED_PAPERS = DATA_FOLDER / "papers.toml"

_FIGURE = {
    "metric": Field(Text(), required=True, meaning="what is compared"),
    "unit": Field(Text(), required=True, meaning="its unit"),
    "published": Field(Number(), required=True, meaning="as printed"),
    "fitted": Field(Flag(), default=False, meaning="whether a constant of the model was taken from it"),
}
_POINT = {
    "id": Field(Text(), required=True, meaning="the name of the point"),
    "array": Field(Text(), required=True, meaning="a preset"),
    "level": Field(Text(), meaning="its RAID level, where it is not the preset's"),
    "member_count": Field(Number(1, 64, whole=True), meaning="its boxes, where they are not the preset's"),
    "title": Field(Text(), required=True, meaning="what it is"),
    "source": Field(Text(), required=True, meaning="where it was published"),
    "figures": Field(Tables(_FIGURE, 1, "metric"), required=True, meaning="what was published"),
}

Metrics = dict[str, float]
#: Middle of the latency band the EqualLogic tests state.
BAND_MS = 18.5


@dataclass(frozen=True)
class Result:
    """One published figure beside the modelled one."""

    id: str
    metric: str
    unit: str
    published: float
    modelled: float
    error_percent: float
    fitted: bool


@cache
def read_points() -> list[dict[str, Any]]:
    """The published points."""
    fields = {
        "name": Field(Text(), required=True, meaning="what the file holds"),
        "points": Field(Tables(_POINT, 1, "id"), required=True, meaning="one table for each point"),
    }
    points: list[dict[str, Any]] = check_file(read_located(SHIPPED_PAPERS), "papers", fields, READERS)["points"]
    return points


def run_papers(only: Sequence[str] = ()) -> list[Result]:
    """Run the points with these ids, or all, several at a time."""
    points = [point for point in read_points() if not only or point["id"] in only]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        metrics = list(pool.map(lambda point: POINTS[point["id"]](), points))
    return [
        _result(point["id"], figure, found[figure["metric"]])
        for point, found in zip(points, metrics, strict=True)
        for figure in point["figures"]
    ]


def _result(point_id: str, figure: dict[str, Any], modelled: float) -> Result:
    published = float(figure["published"])
    error = 100 * (modelled / published - 1)
    return Result(point_id, figure["metric"], figure["unit"], published, modelled, error, bool(figure["fitted"]))


def simulate(array: dict[str, Any], streams: Sequence[dict[str, Any]], warm_up_s: int, measure_s: int) -> Metrics:
    """Run streams on an array; rates and latencies by class, in the words of the papers."""
    spec = {
        "array": array,
        "streams": list(streams),
        "seed": 1,
        "warm_up_ns": warm_up_s * 10**9,
        "measure_ns": measure_s * 10**9,
    }
    outcome = json.loads(_native.simulate(json.dumps(spec)))
    metrics: Metrics = {}
    for row in outcome["classes"]:
        name = row["class"]
        metrics[f"{name}_reads" if not name.endswith(("_read", "_write")) else f"{name}s"] = row["per_second"]
        metrics[f"{name}_latency"] = row["latency_ms_mean"]
    if "database_reads" in metrics:
        metrics["iops"] = metrics["database_reads"] + metrics["database_writes"]
    return metrics


# EMC VNXe3300: two databases of 1,044 GB, each with a volume and a log volume on the same seven drives.

_EMC = [Place(0, 1, 1043.7), Place(2, 3, 1043.7)]
_EMC_VOLUMES = [("E", 1304.0), ("L", 80.0), ("F", 1304.0), ("M", 80.0)]


#: Runs with maintenance and replication: threads for each database, what they do, log reads for each second.
EMC_RUNS = {
    "emc-3-threads": (3, Mix(33_616, 0.6129, 37_530, 0.4899, 5_314), 1.092),
    "emc-24-hours": (3, Mix(33_616, 0.6240, 37_530, 0.4614, 5_225), 0.992),
    "emc-6-threads": (6, Mix(33_057, 0.6023, 37_328, 0.3816, 6_423), 1.475),
}


def _emc(
    streams: Sequence[dict[str, Any]],
    warm_up_s: int = 60,
    measure_s: int = 600,
    changes: dict[str, Any] | None = None,
) -> Metrics:
    array = array_preset("emc-vnxe3300") | (changes or {})
    return simulate(array_description(array, _EMC_VOLUMES), streams, warm_up_s, measure_s)


def emc_sessions(
    count: int,
    mix: Mix,
    replication_per_s: float,
    maintained: bool = True,
    changes: dict[str, Any] | None = None,
    measure_s: int = 600,
) -> Metrics:
    """Sessions on both EMC databases, with what runs beside them; `changes` are figures of the preset."""
    streams = [work.sessions(place, count, mix) for place in _EMC]
    if maintained:
        streams += [work.maintenance(place) for place in _EMC]
    if replication_per_s:
        streams += [work.replication(place, replication_per_s, 232_500) for place in _EMC]
    metrics = _emc(streams, 60, measure_s, changes)
    # The model's two databases are alike; what was printed for the second instance is compared with their mean.
    for name in ("database_write_latency", "log_write_latency"):
        metrics[f"{name}_instance_2"] = metrics[name]
    return metrics


def _emc_recovery() -> Metrics:
    # 16 pages at a time: fitted on the latency. The wait between batches is the published processor share.
    streams = [work.redo(place, 16, 5.0, 41_200.0) for place in _EMC]
    metrics = _emc(streams + [work.maintenance(place) for place in _EMC])
    metrics["seconds_per_log"] = 712.55 / (metrics["redo_reads"] / 2)
    return metrics


# SanDisk: one database on four drives of the server, its log on three 15k drives of their own.

_SANDISK_SESSIONS = 13
_SANDISK_MAINTENANCE_MS = 250.0


def _sandisk(preset: str, size_gb: float, mix: Mix, warm_up_s: int, measure_s: int) -> Metrics:
    array = array_preset(preset)
    description = array_description(array, [("E", size_gb + 50), ("D", 40.0)])
    log = array_description(array_preset("sandisk-server-hdd") | {"sets": [3]}, [])
    log["drives"][0]["name"] = log["groups"][0]["drive"] = "log drive"
    description["drives"] += log["drives"]
    description["groups"] += log["groups"]
    description["pools"].append(log["pools"][0] | {"name": "log", "groups": [1]})
    description["volumes"][1]["pool"] = 1
    place = Place(0, 1, size_gb)
    streams = [
        work.sessions(place, _SANDISK_SESSIONS, mix),
        work.maintenance(place, _SANDISK_MAINTENANCE_MS),
    ]
    return simulate(description, streams, warm_up_s, measure_s)


# EqualLogic: four databases with a log volume each, Jetstress 2010 in a guest.

_EQUALLOGIC_MIX = Mix(33_600, 0.613, 37_500, 0.49, 5_300)


@dataclass(frozen=True)
class _Layout:
    """Sizes for one member, and how the four databases share volumes."""

    database_gb: float = 671.0
    volume_gb: float = 1099.0
    log_gb: float = 161.0
    databases_per_volume: int = 1
    logs_apart: bool = True


def _equallogic(
    preset: str,
    session_counts: Sequence[int],
    changes: dict[str, Any] | None = None,
    layout: _Layout | None = None,
) -> float:
    """IOPS at the middle of the band: the load is raised until its latency is reached."""
    array = array_preset(preset) | (changes or {})
    layout = layout or _Layout()
    members = int(array["member_count"])
    volumes, places = _equallogic_volumes(layout, members)
    curve = []
    for count in session_counts:
        shares = [count // 4 + (index < count % 4) for index in range(4)]
        streams = [work.sessions(place, share, _EQUALLOGIC_MIX) for place, share in zip(places, shares, strict=True)]
        streams += [work.maintenance(place) for place in places]
        metrics = simulate(array_description(array, volumes), streams, 40, 150)
        curve.append((metrics["database_read_latency"], metrics["iops"]))
    return _at(curve, BAND_MS)


def _equallogic_volumes(layout: _Layout, members: int) -> tuple[list[tuple[str, float]], list[Place]]:
    volumes: list[tuple[str, float]] = []
    places: list[Place] = []
    share = layout.databases_per_volume
    for first in range(0, 4, share):
        number = len(volumes)
        volumes.append((f"database {first}", layout.volume_gb * share * members))
        if layout.logs_apart:
            volumes.append((f"log {first}", layout.log_gb * share * members))
        # A fresh file system puts files one behind the other, logs behind the databases they share a volume with.
        size = layout.database_gb * members
        for index in range(share):
            log = number + 1 if layout.logs_apart else number
            log_start = index * layout.log_gb * members if layout.logs_apart else share * size + 1 + 2 * index
            places.append(Place(number, log, size, index * size, log_start))
    return volumes, places


def _at(curve: Sequence[tuple[float, float]], latency_ms: float) -> float:
    """IOPS at a latency, between two points of a curve."""
    for (low_ms, low), (high_ms, high) in pairwise(curve):
        if low_ms <= latency_ms <= high_ms:
            return low + (high - low) * (latency_ms - low_ms) / (high_ms - low_ms)
    raise ValueError(f"{latency_ms} ms lies outside the curve {curve}: widen the session counts")


def _layouts() -> float:
    """How far the four volume layouts lie apart, in percent of the least."""
    layouts = (_Layout(), _Layout(logs_apart=False), _Layout(databases_per_volume=2), _Layout(databases_per_volume=4))
    found = [_equallogic("equallogic-ps6000xv", (38, 48, 58), None, layout) for layout in layouts]
    return 100 * (max(found) / min(found) - 1)


def _initiators() -> float:
    """What a millisecond less in the host's stack brings, in percent: the hypervisor's initiator against the guest's."""
    guest = _equallogic("equallogic-ps6000xv", (38, 48, 58))
    hypervisor = _equallogic("equallogic-ps6000xv", (40, 50, 60, 70), {"read_latency_ms": 0.0, "write_latency_ms": 0.0})
    return 100 * (hypervisor / guest - 1)


_MIRRORED = {"level": "RAID 10", "sets": [14]}
_MIRRORED_LAYOUT = _Layout(volume_gb=698.0, log_gb=80.0)
_XV, _X, _E = "equallogic-ps6000xv", "equallogic-ps6000x", "equallogic-ps6500e"

POINTS: dict[str, Callable[[], Metrics]] = {
    "emc-3-threads": lambda: emc_sessions(*EMC_RUNS["emc-3-threads"]),
    "emc-6-threads": lambda: emc_sessions(*EMC_RUNS["emc-6-threads"]),
    "emc-24-hours": lambda: emc_sessions(*EMC_RUNS["emc-24-hours"]),
    "emc-without-maintenance": lambda: emc_sessions(3, Mix(32_769, 0.6121, 37_604, 0.4992, 5_373), 0.0, False),
    "emc-checksum": lambda: _emc([work.scan("checksum", place, 64 * KIB, 62, 0.0) for place in _EMC], 10, 60),
    "emc-backup": lambda: _emc([work.scan("backup", place, 256 * KIB, 2, 1.2, True) for place in _EMC], 10, 300),
    "emc-recovery": _emc_recovery,
    "sandisk-hdd": lambda: _sandisk(
        "sandisk-server-hdd", 800.0, Mix(33_600, 0.5349, 37_500, 0.2689, 5_300, 16, 0.0), 60, 600
    ),
    "sandisk-ssd": lambda: _sandisk(
        "sandisk-server-ssd", 1_100.0, Mix(33_600, 0.4556, 37_500, 0.1615, 5_300, 16, 0.0), 5, 60
    ),
    "ps6000xv-raid10": lambda: {"iops": _equallogic(_XV, (52, 62, 72), _MIRRORED, _MIRRORED_LAYOUT)},
    "ps6000xv-raid50": lambda: {"iops": _equallogic(_XV, (38, 48, 58))},
    "ps6000x-raid10": lambda: {"iops": _equallogic(_X, (32, 38, 46), _MIRRORED, _MIRRORED_LAYOUT)},
    "ps6000x-raid50": lambda: {"iops": _equallogic(_X, (22, 28, 36))},
    "ps6500e-raid10": lambda: {"iops": _equallogic(_E, (50, 64, 80), {"level": "RAID 10", "sets": [46]})},
    "ps6500e-raid50": lambda: {"iops": _equallogic(_E, (40, 52, 64))},
    "ps6000xv-2-members": lambda: {"iops": _equallogic(_XV, (84, 100, 116), {"member_count": 2})},
    "ps6000xv-3-members": lambda: {"iops": _equallogic(_XV, (130, 152, 176), {"member_count": 3})},
    "ps6000xv-layouts": lambda: {"iops_spread_max": _layouts()},
    "ps6000xv-initiators": lambda: {"iops_gain": _initiators()},
}
