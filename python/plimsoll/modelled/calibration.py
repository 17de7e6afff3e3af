"""A model of the storage at hand, fitted to a sweep over it.

The sweep is data: points of reads and writes with what was measured at each. A device model has few constants, and each is
taken first from the points that show it most plainly (latency of one small read, the highest rate, the highest throughput,
one durable write, writes that go on), then all are improved together by a pattern search on the simulator, on the points
that are not held out. Every third point is held out and never looked at; the error on those is what the preset claims.

Limits: the model is one flash or hard drive behind a controller; a storage that treats its neighbours or its history
differently from minute to minute cannot be fitted by any model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from plimsoll import _native
from plimsoll.modelled.description import GB, KIB, array_description

#: A lone small read that takes longer than this can only have moved an arm.
ARM_MS = 2.0
#: Every so many points one is held out: 30 % of them.
HELD_OUT = (2, 5, 8)
#: Room for any test: how fast a flash drive is does not depend on it.
FLASH_GB = 10_000.0
SIMULATED_S, WARM_UP_S = 1.0, 0.2


@dataclass(frozen=True)
class SweepPoint:
    """One measured point.

    Attributes:
        action: read or write.
        block_kib: size of a transfer.
        depth: transfers under way at once.
        span_share: part of the file that is used.
        sequential: in order, or anywhere.
        per_second: transfers per second, measured.
        latency_ms: their mean latency.
    """

    action: str
    block_kib: int
    depth: int
    span_share: float
    sequential: bool
    per_second: float
    latency_ms: float

    @property
    def name(self) -> str:
        """The point in words."""
        how = "sequential" if self.sequential else "random"
        return f"{how} {self.action} {self.block_kib} KiB, depth {self.depth}, {self.span_share:.0%} of the file"


@dataclass(frozen=True)
class Fit:
    """A device model with its errors.

    Attributes:
        array: as a row of a file of arrays, with `drive_sheet`.
        errors: point, modelled rate, error in percent, whether it was held out.
    """

    array: dict[str, Any]
    errors: list[tuple[SweepPoint, float, float, bool]]

    def mean_error(self, held_out: bool) -> float:
        """Mean absolute error of the rates, in percent."""
        chosen = [abs(error) for _, _, error, held in self.errors if held == held_out]
        return sum(chosen) / len(chosen) if chosen else math.nan


def sweep_plan(quick: bool = False) -> list[dict[str, Any]]:
    """The points of a sweep, in the order in which they are measured: reads first, then what writes."""
    points: list[dict[str, Any]] = []
    depths = (1, 8, 32) if quick else (1, 2, 4, 8, 16, 32)
    for block_kib in (4, 32) if quick else (4, 16, 32, 64):
        for depth in depths:
            points.append(_wanted("read", block_kib, depth, 1.0, False))
    if not quick:
        points += [_wanted("read", 32, depth, share, False) for share in (0.05, 0.25) for depth in (1, 8)]
    points += [_wanted("read", 256, depth, 1.0, True) for depth in ((1, 8) if quick else (1, 2, 8))]
    points += [_wanted("write", block_kib, 1, 0.05, True) for block_kib in ((4,) if quick else (4, 16))]
    points += [_wanted("write", 32, depth, 1.0, False) for depth in ((4,) if quick else (1, 4, 16, 32))]
    return points


def _wanted(action: str, block_kib: int, depth: int, span_share: float, sequential: bool) -> dict[str, Any]:
    return {
        "action": action, "block_kib": block_kib, "depth": depth, "span_share": span_share, "sequential": sequential,
    }  # fmt: skip


def fit(points: Sequence[SweepPoint], size_bytes: int, name: str) -> Fit:
    """Fit a device model to a sweep over a file of `size_bytes`.

    Raises:
        ValueError: the sweep lacks the points a model begins with.
    """
    held = [index % 10 in HELD_OUT for index in range(len(points))]
    lone = [point for point in points if point.action == "read" and point.depth == 1 and not point.sequential]
    if not lone or not any(point.action == "write" for point in points):
        raise ValueError("a sweep to fit needs random reads at depth 1 and writes")
    first = min(lone, key=lambda point: point.block_kib)
    training = [point for point, is_held in zip(points, held, strict=True) if not is_held]
    constants = _first_constants(training, first)
    build = _hard_drive_array if first.latency_ms > ARM_MS else _flash_array
    best = _improve(constants, lambda tried: _cost(build(tried, size_bytes, name), training, size_bytes))
    array = build(best, size_bytes, name)
    rates = modelled_rates(array, points, size_bytes)
    errors = [
        (point, rate, 100 * (rate / point.per_second - 1), is_held)
        for point, rate, is_held in zip(points, rates, held, strict=True)
    ]
    return Fit(array, errors)


def _first_constants(training: Sequence[SweepPoint], first: SweepPoint) -> dict[str, float]:
    """What single points show plainly."""
    reads = [point for point in training if point.action == "read"]
    writes = [point for point in training if point.action == "write"]
    ordered = [point for point in writes if point.sequential] or writes
    scattered = [point for point in writes if not point.sequential] or writes
    most = max(point.per_second for point in reads if not point.sequential)
    return {
        "read_ms": first.latency_ms,
        "parallel": max(1.0, most * first.latency_ms / 1e3 * 0.5),
        "mb_per_s": max(point.per_second * point.block_kib * KIB for point in reads) / 1e6,
        "write_ms": min(point.latency_ms for point in ordered),
        "program_mb_per_s": max(point.per_second * point.block_kib * KIB for point in scattered) / 1e6,
        "fixed_share": 0.5,
        "us_per_kib": 0.5,
    }


def _improve(constants: dict[str, float], cost: Callable[[dict[str, float]], float]) -> dict[str, float]:
    """A pattern search: each constant up and down by a factor, which shrinks when nothing helps."""
    best, least, factor = constants, cost(constants), 1.5
    while factor > 1.03:
        better = False
        for key in constants:
            for change in (factor, 1 / factor):
                tried = best | {key: best[key] * change}
                if key == "fixed_share" and tried[key] > 0.95:
                    continue
                found = cost(tried)
                if found < least * 0.999:
                    best, least, better = tried, found, True
                    break
        if not better:
            factor = math.sqrt(factor)
    return best


def _cost(array: dict[str, Any], points: Sequence[SweepPoint], size_bytes: int) -> float:
    """Mean of the logarithmic errors, a little of their squares, so that no point is given up for the others."""
    rates = modelled_rates(array, points, size_bytes)
    errors = [abs(math.log(max(rate, 0.01) / point.per_second)) for point, rate in zip(points, rates, strict=True)]
    return sum(error + error * error for error in errors) / len(errors)


def modelled_rates(array: dict[str, Any], points: Sequence[SweepPoint], size_bytes: int) -> list[float]:
    """What a device model makes of the points."""
    description = array_description(array, [("file", size_bytes / GB)])
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda point: _modelled_rate(description, point, size_bytes), points))


def _modelled_rate(description: dict[str, Any], point: SweepPoint, size_bytes: int) -> float:
    block = point.block_kib * KIB
    span = max(int(size_bytes * point.span_share) // block * block, block)
    stream = {
        "class": "point",
        "volume": 0,
        "start_bytes": 0,
        "span_bytes": span,
        "pattern": "sequential" if point.sequential else "random",
        "request_bytes_mean": float(block),
        "page_bytes": block,
        "depth": point.depth,
        "think_ns": 0,
        "is_serial": False,
        "is_batch": False,
        "write_share": 1.0 if point.action == "write" else 0.0,
    }
    # As many transfers as tell a rate, whatever it is.
    seconds = min(max(2000 / max(point.per_second, 1.0), 0.05), 20.0)
    spec = {
        "array": description,
        "streams": [{"closed": stream}],
        "seed": 1,
        "warm_up_ns": int(seconds * WARM_UP_S * 1e9),
        "measure_ns": int(seconds * SIMULATED_S * 1e9),
    }
    outcome = json.loads(_native.simulate(json.dumps(spec)))
    return float(outcome["classes"][0]["per_second"])


def _common(name: str, constants: dict[str, float], fixed_ms: float) -> dict[str, Any]:
    """What both kinds of array share: one drive, one link, one controller that costs nothing."""
    return {
        "name": name, "title": f"the storage measured as {name}", "drive": f"{name}-drive", "level": "RAID 0", "sets": [1],
        "spare_count": 0, "slot_count": 1, "member_count": 1, "controller_count": 1, "processor_count": 1,
        "processor_us": 0, "failover_s": 0, "read_latency_ms": round(fixed_ms, 5),
        "write_latency_ms": round(constants["write_ms"], 5), "us_per_kib": round(constants["us_per_kib"], 4),
        "write_back": True, "dirty_mib": 64, "destage_start": 0.02, "destage_full": 0.5, "destage_rows_per_drive": 32.0,
        "read_preference_ms": 0.0, "old_data_share": 0.0, "recent_mib": 0, "chunk_kib": 0, "ahead_count": 0, "run_count": 1,
        "pause_ms": 0, "element_kib": 1024, "shift_kib": 0, "page_mib": 15, "rebuild_mb_per_s": 0, "seek_scale": 1.0,
        "link_count": 1, "link_mb_per_s": round(constants["mb_per_s"], 3), "link_latency_ms": 0.0, "host_latency_ms": 0.0,
    }  # fmt: skip


def _flash_array(constants: dict[str, float], _size_bytes: int, name: str) -> dict[str, Any]:
    """Dies in parallel behind a fixed latency: also what a virtual disk looks like from within."""
    fixed_ms = constants["read_ms"] * constants["fixed_share"]
    die_us = max(1000 * (constants["read_ms"] - fixed_ms), 1.0)
    dies = max(1, min(round(constants["parallel"]), 4096))
    # Each die takes a unit of 32 KiB in the time that makes the rate of writes that go on.
    program_us = max(dies * 32 * KIB / max(constants["program_mb_per_s"], 0.01), 1.0)
    sheet = {
        "name": f"{name}-drive", "capacity_gb": FLASH_GB, "die_count": dies, "unit_kib": 32,
        "units_per_block": 65536, "read_us": round(min(die_us, 10000.0), 3), "program_us": round(min(program_us, 1e5), 3),
        "erase_us": 1, "channel_mb_per_s": 100000, "bus_mb_per_s": 100000, "overhead_us": 0, "write_amplification": 1.0,
        "buffer_mib": 1,
    }  # fmt: skip
    return _common(name, constants, fixed_ms) | {"drive_sheet": sheet}


def _hard_drive_array(constants: dict[str, float], size_bytes: int, name: str) -> dict[str, Any]:
    """One arm: what takes longer than half a turn at 7,200 rpm is its seek."""
    fixed_ms = constants["read_ms"] * constants["fixed_share"] * 0.2
    seek_ms = max(constants["read_ms"] - fixed_ms - 4.17, 0.1)
    sheet = {
        "name": f"{name}-drive", "capacity_gb": max(20 * size_bytes / GB, 100.0), "rotation_rpm": 7200,
        "read_seek_ms": round(seek_ms, 4), "write_seek_ms": round(seek_ms + 0.5, 4),
        "outer_mb_per_s": round(constants["mb_per_s"], 2), "inner_mb_per_s": round(constants["mb_per_s"] * 0.5, 2),
        "interface_mb_per_s": 300, "overhead_ms": 0.1, "buffer_mib": 16, "queue_count": 32,
    }  # fmt: skip
    return _common(name, constants | {"mb_per_s": constants["mb_per_s"] * 2}, fixed_ms) | {"drive_sheet": sheet}


def preset_text(fitted: Fit, where: str, when: str) -> str:
    """The model as a file of arrays that every command reads; each figure says that it was fitted, and how well."""
    array, sheet = fitted.array, fitted.array["drive_sheet"]
    told = (
        f"fitted to a sweep over {where} on {when}: mean error {fitted.mean_error(False):.1f} % on the points fitted, "
        f"{fitted.mean_error(True):.1f} % on the points held out"
    )
    kind = "hard_drives" if "rotation_rpm" in sheet else "flash_drives"
    lines = [
        f"# The storage under {where}, as a model; written by `plimsoll calibrate`. Every figure made with it is MODELLED.",
        "", 'kind = "modelled_arrays"', f'name = "{array["name"]}"', "", f"[[{kind}]]",
    ]  # fmt: skip
    lines += [*_rows(sheet), f"[{kind}.sources]", f"{_keys(sheet)} = {json.dumps(told)}", "", "[[arrays]]"]
    plain = {key: value for key, value in array.items() if key != "drive_sheet"}
    if math.isfinite(fitted.mean_error(True)):
        plain["own_error_percent"] = round(fitted.mean_error(True), 1)
    lines += [*_rows(plain), "[arrays.sources]", f"{_keys(plain)} = {json.dumps(told)}"]
    return "\n".join(lines) + "\n"


def _rows(values: dict[str, Any]) -> list[str]:
    return [f"{key} = {json.dumps(value)}" for key, value in values.items()]


def _keys(values: dict[str, Any]) -> str:
    return json.dumps(", ".join(key for key in values if key not in ("name", "title")))
