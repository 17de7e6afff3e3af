"""A model of the storage at hand, fitted to a sweep over it.

The sweep is data: points of reads and writes with what was measured at each. A device model has few
constants, and each is taken first from the points that show it most plainly (latency of one small
read, the highest rate, the highest throughput, one durable write, writes that go on), then all are
improved together by a pattern search on the simulator, on the points that are not held out. Of the
kinds of device that it can be (`devices.py`) the one whose constants fit best is taken. Every third
point is held out and never looked at; the error on those is what the preset claims.

Limits: a storage that treats its neighbours or its history differently from minute to minute cannot
be fitted by any model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypedDict

from plimsoll import _native
from plimsoll.arrays.description import GB, KIB, array_description
from plimsoll.arrays.fit.devices import kinds
from plimsoll.documents.array_sheet import ArraySheet, sheet_of
from plimsoll.documents.array_spec import ArraySpec

#: Every so many points one is held out: 30 % of them.
HELD_OUT = (2, 5, 8)
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
        durable: whether a write must be on stable storage when it completes.
        per_second: transfers per second, measured.
        latency_ms: their mean latency.
    """

    action: str
    block_kib: int
    depth: int
    span_share: float
    sequential: bool
    durable: bool
    per_second: float
    latency_ms: float

    @property
    def name(self) -> str:
        """The point in words."""
        how = "sequential" if self.sequential else "random"
        action = f"durable {self.action}" if self.durable else self.action
        return (
            f"{how} {action} {self.block_kib} KiB, depth {self.depth}, {self.span_share:.0%} of "
            f"the file"
        )


@dataclass(frozen=True)
class Fit:
    """A device model with its errors.

    Attributes:
        array: as a row of a file of arrays, with `drive_sheet`.
        errors: point, modelled rate, error in percent, whether it was held out.
    """

    array: ArraySheet
    errors: list[tuple[SweepPoint, float, float, bool]]

    def mean_error(self, held_out: bool) -> float:
        """Mean absolute error of the rates, in percent."""
        chosen = [abs(error) for _, _, error, held in self.errors if held == held_out]
        return sum(chosen) / len(chosen) if chosen else math.nan


class SweepWanted(TypedDict):
    """A point of a sweep before it is measured, as the native side is told it."""

    action: str
    block_kib: int
    depth: int
    span_share: float
    sequential: bool
    durable: bool


def sweep_plan(quick: bool = False) -> list[SweepWanted]:
    """The points of a sweep, in the order in which they are measured.

    Reads first, then what writes.
    """
    points: list[SweepWanted] = []
    depths = (1, 8, 32) if quick else (1, 2, 4, 8, 16, 32)
    for block_kib in (4, 32) if quick else (4, 16, 32, 64):
        for depth in depths:
            points.append(_wanted("read", block_kib, depth, 1.0, False))
    if not quick:
        points += [
            _wanted("read", 32, depth, share, False) for share in (0.05, 0.25) for depth in (1, 8)
        ]
    points += [_wanted("read", 256, depth, 1.0, True) for depth in ((1, 8) if quick else (1, 2, 8))]
    points += [
        _wanted("write", 32, depth, 1.0, False)
        for depth in ((1, 8) if quick else (1, 2, 4, 8, 16, 32))
    ]
    points += [
        _wanted("write", block_kib, 1, 0.05, True, True)
        for block_kib in ((4,) if quick else (4, 8, 16))
    ]
    points += [
        _wanted("write", 32, depth, 1.0, False, True)
        for depth in ((4,) if quick else (1, 4, 16, 32))
    ]
    return points


def _wanted(
    action: str,
    block_kib: int,
    depth: int,
    span_share: float,
    sequential: bool,
    durable: bool = False,
) -> SweepWanted:
    return {
        "action": action,
        "block_kib": block_kib,
        "depth": depth,
        "span_share": span_share,
        "sequential": sequential,
        "durable": durable,
    }


def fit(
    points: Sequence[SweepPoint],
    size_bytes: int,
    name: str,
    host: Mapping[str, float] | None = None,
) -> Fit:
    """Fit a device model to a sweep over a file of `size_bytes`.

    Args:
        points: what was measured, in the order of the plan.
        size_bytes: of the file.
        name: what the preset is called.
        host: figures of the array that describe the machine which measured.

    Raises:
        ValueError: the sweep lacks the points a model begins with.
    """
    held = [index % 10 in HELD_OUT for index in range(len(points))]
    lone = [
        point
        for point in points
        if point.action == "read" and point.depth == 1 and not point.sequential
    ]
    if not lone or not any(point.action == "write" for point in points):
        raise ValueError("a sweep to fit needs random reads at depth 1 and writes")
    training = [point for point, is_held in zip(points, held, strict=True) if not is_held]
    candidates = [
        _improve(constants, build, training, size_bytes)
        for constants, build in kinds(training, size_bytes, name)
    ]
    _, array = min(candidates, key=lambda candidate: candidate[0])
    rates = modelled_rates(array, points, size_bytes)
    errors = [
        (point, rate, 100 * (rate / point.per_second - 1), is_held)
        for point, rate, is_held in zip(points, rates, held, strict=True)
    ]
    # What belongs to a queue says nothing where there is none.
    known = {
        key: value
        for key, value in (host or {}).items()
        if "queue_request_us" in array or not key.startswith("queue_")
    }
    return Fit(sheet_of({**array, **known}), errors)


def _improve(
    constants: dict[str, float],
    build: Callable[[dict[str, float]], ArraySheet],
    points: Sequence[SweepPoint],
    size_bytes: int,
) -> tuple[float, ArraySheet]:
    """The array with the constants that fit best, behind its cost.

    A pattern search, each up and down by a factor, which shrinks when nothing helps.
    """
    best, least, factor = constants, _cost(build(constants), points, size_bytes), 1.5
    while factor > 1.03:
        better = False
        for key in constants:
            for change in (factor, 1 / factor):
                tried = best | {key: best[key] * change}
                if key == "fixed_share" and tried[key] > 0.95:
                    continue
                found = _cost(build(tried), points, size_bytes)
                if found < least * 0.999:
                    best, least, better = tried, found, True
                    break
        if not better:
            factor = math.sqrt(factor)
    return least, build(best)


def _cost(array: ArraySheet, points: Sequence[SweepPoint], size_bytes: int) -> float:
    """Mean of the logarithmic errors, a little of their squares, so that no point is given up for
    the others.
    """
    rates = modelled_rates(array, points, size_bytes)
    errors = [
        abs(math.log(max(rate, 0.01) / point.per_second))
        for point, rate in zip(points, rates, strict=True)
    ]
    return sum(error + error * error for error in errors) / len(errors)


def modelled_rates(array: ArraySheet, points: Sequence[SweepPoint], size_bytes: int) -> list[float]:
    """What a device model makes of the points."""
    description = array_description(array, [("file", size_bytes / GB)])
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda point: _modelled_rate(description, point, size_bytes), points))


def _modelled_rate(description: ArraySpec, point: SweepPoint, size_bytes: int) -> float:
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
        "is_durable": point.durable,
    }
    # As many transfers as tell a rate, whatever it is.
    seconds = min(max(2000 / max(point.per_second, 1.0), 0.05), 20.0)
    spec = {
        "array": description.plain(),
        "streams": [{"closed": stream}],
        "seed": 1,
        "warm_up_ns": int(seconds * WARM_UP_S * 1e9),
        "measure_ns": int(seconds * SIMULATED_S * 1e9),
    }
    outcome = json.loads(_native.simulate(json.dumps(spec)))
    return float(outcome["classes"][0]["per_second"])


def preset_text(fitted: Fit, where: str, when: str) -> str:
    """The model as a file of arrays that every command reads.

    Each figure says that it was fitted, and how well.
    """
    array, sheet = fitted.array, fitted.array["drive_sheet"]
    told = (
        f"fitted to a sweep over {where} on {when}: mean error {fitted.mean_error(False):.1f} % on "
        f"the points fitted, "
        f"{fitted.mean_error(True):.1f} % on the points held out"
    )
    kind = "hard_drives" if "rotation_rpm" in sheet else "flash_drives"
    lines = [
        f"# The storage under {where}, as a model; written by `plimsoll calibrate`. Every figure "
        f"made with it is MODELLED.",
        "",
        'kind = "modelled_arrays"',
        f'name = "{array["name"]}"',
        "",
        f"[[{kind}]]",
    ]
    lines += [
        *_rows(sheet),
        f"[{kind}.sources]",
        f"{_keys(sheet)} = {json.dumps(told)}",
        "",
        "[[arrays]]",
    ]
    plain = {key: value for key, value in array.items() if key != "drive_sheet"}
    if math.isfinite(fitted.mean_error(True)):
        plain["own_error_percent"] = round(fitted.mean_error(True), 1)
    lines += [*_rows(plain), "[arrays.sources]", f"{_keys(plain)} = {json.dumps(told)}"]
    return "\n".join(lines) + "\n"


def _rows(values: Mapping[str, object]) -> list[str]:
    return [f"{key} = {json.dumps(value)}" for key, value in values.items()]


def _keys(values: Mapping[str, object]) -> str:
    return json.dumps(", ".join(key for key in values if key not in ("name", "title")))
