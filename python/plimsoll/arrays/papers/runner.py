"""Runs published points through the model, all of them the same way, and says how far model and
paper are apart.

A point with session counts draws a curve of latency over IOPS and reads it off at `BAND_MS`. A
point with several runs compares them: how far apart they lie, or what the second gains over the
first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

from plimsoll import _native
from plimsoll.arrays import streams as work
from plimsoll.arrays.description import KIB, array_description, with_logs_on
from plimsoll.arrays.papers.points import Figure, Point, Result, Run, layouts, mixes, read_points
from plimsoll.arrays.presets import array_preset
from plimsoll.arrays.streams import Place
from plimsoll.documents.array_sheet import ArraySheet, sheet_of
from plimsoll.documents.array_spec import ArraySpec
from plimsoll.inputs.schema import Given

Metrics = dict[str, float]
#: Middle of the latency band the EqualLogic tests state.
BAND_MS = 18.5


@dataclass(frozen=True)
class Trial:
    """What a run changes beside its point.

    Figures of the preset, the interval of page writes, the seconds measured, the loads of a curve.
    """

    changes: Mapping[str, object]
    burst_ms: float | None = None
    measure_s: int | None = None
    widens_curve: bool = False


NO_TRIAL = Trial({})


def run_papers(only: Sequence[str] = ()) -> list[Result]:
    """Run the points with these ids, or all, several at a time."""
    points = [point for point in read_points().values() if not only or point.id in only]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        metrics = list(pool.map(run_point, points))
    return [
        _result(point, figure, found)
        for point, found in zip(points, metrics, strict=True)
        for figure in point.figures
    ]


def run_point(point: Point, trial: Trial = NO_TRIAL) -> Metrics:
    """What the model makes of a point; metrics in the words of the papers."""
    if len(point.runs) == 1 and not point.runs[0].session_counts:
        return _simulate_run(point, point.runs[0], trial)
    iops = [_iops_in_band(point, run, trial) for run in point.runs]
    if len(iops) == 1:
        return {"iops": iops[0]}
    return {
        "iops_spread_max": 100 * (max(iops) / min(iops) - 1),
        "iops_gain": 100 * (iops[1] / iops[0] - 1),
    }


def simulate(
    array: ArraySpec, streams: Sequence[work.Stream], warm_up_s: int, measure_s: int
) -> Metrics:
    """Run streams on an array; rates and latencies by class, in the words of the papers."""
    spec = {
        "array": array.plain(),
        "streams": list(streams),
        "seed": 1,
        "warm_up_ns": warm_up_s * 10**9,
        "measure_ns": measure_s * 10**9,
    }
    outcome = json.loads(_native.simulate(json.dumps(spec)))
    metrics: Metrics = {}
    for row in outcome["classes"]:
        name = row["class"]
        metrics[f"{name}_reads" if not name.endswith(("_read", "_write")) else f"{name}s"] = row[
            "per_second"
        ]
        metrics[f"{name}_latency"] = row["latency_ms_mean"]
    if "database_reads" in metrics:
        metrics["iops"] = metrics["database_reads"] + metrics["database_writes"]
    return metrics


def _result(point: Point, figure: Figure, found: Metrics) -> Result:
    modelled = found[figure.of]
    if figure.reads_per_log is not None:
        databases = len(layouts()[point.runs[0].layout]["databases"])
        modelled = figure.reads_per_log / (modelled / databases)
    error = 100 * (modelled / figure.published - 1)
    return Result(
        point.id, figure.metric, figure.unit, figure.published, modelled, error, figure.fitted
    )


def _iops_in_band(point: Point, run: Run, trial: Trial) -> float:
    """IOPS at the middle of the band: the load is raised until its latency is reached."""
    curve = []
    counts = list(run.session_counts)
    if trial.widens_curve:
        # Another constant moves the band along the curve.
        counts = [counts[0] // 2, *counts, counts[-1] * 8 // 5]
    for count in counts:
        metrics = _simulate_run(point, run, trial, count)
        curve.append((metrics["database_read_latency"], metrics["iops"]))
    for (low_ms, low), (high_ms, high) in pairwise(curve):
        if low_ms <= BAND_MS <= high_ms:
            return low + (high - low) * (BAND_MS - low_ms) / (high_ms - low_ms)
    raise ValueError(
        f"{point.id}: {BAND_MS} ms lies outside the curve {curve}: widen the session counts"
    )


def _simulate_run(
    point: Point, run: Run, trial: Trial, session_count: int | None = None
) -> Metrics:
    array = sheet_of({**array_preset(point.array), **run.changes, **trial.changes})
    layout = layouts()[run.layout]
    scale = int(array["member_count"]) if layout["is_for_each_member"] else 1
    places = [
        Place(
            row["volume"],
            row["log_volume"],
            row["gb"] * scale,
            row["start_gb"] * scale,
            row["log_start_gb"] * scale,
        )
        for row in layout["databases"]
    ]
    streams = [
        stream for row in point.streams for stream in _streams(row, places, session_count, trial)
    ]
    return simulate(
        _array(array, layout, scale), streams, point.warm_up_s, trial.measure_s or point.measure_s
    )


def _array(array: ArraySheet, layout: Given, scale: int) -> ArraySpec:
    description = array_description(
        array, [(row["name"], row["gb"] * scale) for row in layout["volumes"]]
    )
    if layout["log_array"] is None:
        return description
    logs = {row["name"] for row in layout["volumes"] if row["on_log_array"]}
    return with_logs_on(
        description, array_preset(layout["log_array"]) | {"sets": layout["log_sets"]}, logs
    )


def _streams(
    row: Given, places: Sequence[Place], session_count: int | None, trial: Trial
) -> list[work.Stream]:
    """One kind of stream on every database."""
    match row["kind"]:
        case "sessions":
            mix = mixes()[row["mix"]]
            if trial.burst_ms is not None:
                mix = replace(mix, burst_ms=trial.burst_ms)
            shares = (
                _shares(session_count, len(places))
                if session_count
                else [row["per_database"]] * len(places)
            )
            return [
                work.sessions(place, share, mix)
                for place, share in zip(places, shares, strict=True)
            ]
        case "maintenance":
            return [work.maintenance(place, row["wait_ms"]) for place in places]
        case "log_copy":
            return [
                work.replication(place, row["per_s"], int(row["request_bytes"])) for place in places
            ]
        case "redo":
            return [
                work.redo(place, row["depth"], row["wait_ms"], float(row["request_bytes"]))
                for place in places
            ]
        case _:
            request_bytes = int(row["request_kib"] * KIB)
            return [
                work.scan(
                    row["class"],
                    place,
                    request_bytes,
                    row["depth"],
                    row["wait_ms"],
                    row["is_serial"],
                )
                for place in places
            ]


def _shares(count: int, places: int) -> list[int]:
    """Sessions for each database, as even as whole numbers can be."""
    return [count // places + (index < count % places) for index in range(places)]
