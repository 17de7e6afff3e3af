"""The curve of a storage: I/O per second against latency, for every block size at every depth, as
users of fio measure it.

Each point is a run of its own, with a run folder, a verdict and a report; the curve lies beside
them as `curve.json` and `curve.html`. Files stay between the points. The verdict of a point holds
its I/O against failures and against limits that the user states.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from plimsoll import exit_codes
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.files import folder
from plimsoll.files.paths import StrPath
from plimsoll.pages.tables import shown
from plimsoll.pipeline.plans import build_plan
from plimsoll.pipeline.qualify import Result
from plimsoll.results.distributions import quantile_ms
from plimsoll.results.measurements import Measurements

CURVE = "curve.json"
PAGE = "curve.html"
DEPTH_MAX = 10_000
PERCENTILES = (50.0, 99.0, 99.9)
#: What a share of a hundred may be at most: one in a hundred thousand is beyond it.
PERCENTILE_MAX = 99.999
#: What the column of limits says of a point by its result.
LIMITS_IN_WORDS = {"pass": "kept", "fail": "FAIL", "inconclusive": "in doubt"}
METRICS = ("file_read", "file_write")
_SIZE = re.compile(r"(\d+)([kKmM]?)")


@dataclass(frozen=True)
class Asked:
    """What is measured: every block size at every depth.

    Attributes:
        block_bytes: sizes of a transfer.
        depths: transfers under way.
        percentiles: of latency, in shares of a hundred.
    """

    block_bytes: tuple[int, ...]
    depths: tuple[int, ...]
    percentiles: tuple[float, ...]


@dataclass(frozen=True)
class PlannedCurve:
    """What a curve is measured by.

    Attributes:
        title: what is measured, in a line.
        percentiles: of latency, in shares of a hundred.
        plans: for each point its block size in bytes, its depth and its plan.
    """

    title: str
    percentiles: Sequence[float]
    plans: Sequence[tuple[int, int, Plan]]


@dataclass(frozen=True)
class CurvePoint:
    """One point: a block size at a depth.

    Latencies in ms; percentiles in the order in which they were asked for.
    """

    block_bytes: int
    depth: int
    iops: float
    mib_per_s: float
    latency_ms_mean: float | None
    latency_ms_percentiles: Sequence[float | None]
    result: str
    run_folder: str


@dataclass(frozen=True)
class IoCurve:
    """All points of a storage."""

    title: str
    percentiles: Sequence[float]
    points: Sequence[CurvePoint]

    def plain(self) -> dict[str, object]:
        """What `curve.json` holds."""
        return {"schema_version": 1, **asdict(self)}

    @property
    def exit_code(self) -> int:
        """1 where a point failed, 3 where one is in doubt, otherwise 0.

        Without limits there is nothing to pass.
        """
        results = {point.result for point in self.points}
        return next(
            (
                exit_codes.BY_RESULT[result]
                for result in ("fail", "inconclusive")
                if result in results
            ),
            0,
        )

    def rows(self) -> list[list[str]]:
        """The table: a row of headings, then one for each point."""
        names = [f"p{share:g} ms" for share in self.percentiles]
        rows = [["block", "depth", "IOPS", "MiB/s", "mean ms", *names, "limits"]]
        for point in self.points:
            figures = (
                point.iops,
                point.mib_per_s,
                point.latency_ms_mean,
                *point.latency_ms_percentiles,
            )
            limits = LIMITS_IN_WORDS[point.result]
            rows.append(
                [size_in_words(point.block_bytes), str(point.depth), *map(shown, figures), limits]
            )
        return rows

    def lines(self) -> list[str]:
        """The table for a terminal."""
        rows = self.rows()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        return [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]


def asked_of(block: str, depth: str, percentiles: str, problems: list[str]) -> Asked:
    """What the words of a command line ask for.

    >>> asked_of("4k,32k", "1..8", "50,99.99", []).depths
    (1, 2, 4, 8)

    Args:
        block: sizes, each with k or m: "4k,32k".
        depth: depths, or the powers of two from one to another: "1,3,8" or "1..64".
        percentiles: shares of a hundred, up to 99.999.
        problems: takes every mistake.
    """
    sizes = dict.fromkeys(_size(text, problems) for text in block.split(","))
    return Asked(tuple(sizes), _depths(depth, problems), _shares(percentiles, problems))


def size_in_words(size: int) -> str:
    """A size as fio has it.

    >>> size_in_words(4096), size_in_words(1 << 20), size_in_words(513)
    ('4k', '1m', '513')
    """
    for unit, factor in (("m", 1 << 20), ("k", 1 << 10)):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def _size(text: str, problems: list[str]) -> int:
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20}[match[2].lower()] if match else 0
    if not 512 <= size <= 1 << 30:
        problems.append(f"--block {text!r} is not a size from 512 to 1024m; write it like 4k or 1m")
    return size


def _depths(text: str, problems: list[str]) -> tuple[int, ...]:
    first, dots, last = text.partition("..")
    words = [first, last] if dots else text.split(",")
    if not all(word.strip().isdecimal() and 1 <= int(word) <= DEPTH_MAX for word in words):
        problems.append(
            f"--depth {text!r} is not a depth from 1 to {DEPTH_MAX}; write it like 1..64 or 1,4,16"
        )
        return ()
    numbers = [int(word) for word in words]
    if not dots:
        return tuple(dict.fromkeys(numbers))
    if numbers[0] > numbers[1]:
        problems.append(f"--depth {text!r} ends below its beginning; write the smaller one first")
        return ()
    found = [numbers[0]]
    while found[-1] * 2 < numbers[1]:
        found.append(found[-1] * 2)
    return tuple(dict.fromkeys([*found, numbers[1]]))


def _shares(text: str, problems: list[str]) -> tuple[float, ...]:
    found = []
    for word in text.split(","):
        try:
            share = float(word)
        except ValueError:
            share = 0.0
        if not 0 < share <= PERCENTILE_MAX:
            problems.append(
                f"--percentiles {word!r} is not a share of a hundred up to {PERCENTILE_MAX}"
            )
        found.append(share)
    return tuple(found)


def planned_curve(
    tables: Mapping[str, object], asked: Asked, title: str, *, read_percent: int, is_random: bool
) -> PlannedCurve:
    """A plan for each point, with its block size and its depth.

    Args:
        tables: what is the same in all: target, instance, phases.
        asked: the points.
        title: what is measured, in a line.
        read_percent: how many of a hundred transfers read.
        is_random: whether each goes to a random place, or follows on the one before.

    Raises:
        InputError: with every mistake of a plan.
    """
    found = []
    for size in asked.block_bytes:
        access = {
            "size_bytes": size,
            "share_percent": 100,
            "read_percent": read_percent,
            "random_percent": 100 if is_random else 0,
        }
        for depth in asked.depths:
            workload = {"name": "files", "access": [access], "outstanding": depth}
            name = f"io {size_in_words(size)} depth {depth}"
            found.append(
                (size, depth, build_plan({**tables, "name": name, "workload": [workload]}))
            )
    return PlannedCurve(title, asked.percentiles, found)


def measure_curve(
    planned: PlannedCurve, parent: StrPath, carry_out: Callable[[Plan, Path], Result]
) -> IoCurve:
    """Carry out every point, and write the curve beside their folders.

    It ends with the first point that did not end well.

    Args:
        planned: as from `plan_curve`.
        parent: an empty folder.
        carry_out: carries out one plan into a folder.

    Raises:
        FolderError: nothing can be written there.
    """
    parent = Path(parent)
    points: list[CurvePoint] = []
    for size, depth, plan in planned.plans:
        result = carry_out(plan, parent / f"{size_in_words(size)}-depth-{depth}")
        points.append(_point(size, depth, result, planned.percentiles))
        curve = IoCurve(planned.title, planned.percentiles, tuple(points))
        folder.write_text(parent / CURVE, json.dumps(curve.plain(), indent=2) + "\n")
        if result.ending != "complete":
            break
    return curve


def _point(size: int, depth: int, result: Result, percentiles: Sequence[float]) -> CurvePoint:
    with Measurements(result.folder, Outcome.read(result.folder / folder.OUTCOME)) as measured:
        buckets = measured.distribution(METRICS)
    # A run that was stopped before it measured has no figures.
    figures = next(iter(result.summary.files), None)
    sizes = figures.sizes if figures else ()
    count = sum(item.count for item in sizes)
    mean = (
        sum(item.count * item.ms_mean for item in sizes if item.ms_mean is not None) / count
        if count
        else None
    )
    latencies = tuple(quantile_ms(buckets, share / 100) for share in percentiles)
    return CurvePoint(
        size,
        depth,
        figures.iops if figures else 0.0,
        figures.mib_per_s if figures else 0.0,
        mean,
        latencies,
        result.result,
        result.folder.name,
    )


def write_curve_page(curve: IoCurve, parent: StrPath) -> Path:
    """Write the page of a curve beside its points, and answer where.

    Raises:
        FolderError: it cannot be written there.
    """
    parent = Path(parent)
    from plimsoll.report.io_curve import render_curve

    points = [
        (size_in_words(point.block_bytes), point.depth, point.iops, point.latency_ms_mean)
        for point in curve.points
        if point.latency_ms_mean
    ]
    path = parent / PAGE
    folder.write_text(
        path,
        render_curve(curve.title, points, curve.rows(), failed=curve.exit_code == exit_codes.FAIL),
    )
    return path
