"""How far a modelled figure may be off.

The errors against published results, kept as data beside the presets.

The band of a rate is the worst error the model made on arrays predicted as if nothing of them had
been published: a user's array is one more such array. No latency was left out so; the band of a
latency is the worst error of its kind, and of reads no less than that of the rate, because sessions
that wait longer do less. `data/papers_results.json` is written together with `docs/papers.md` by
`make papers`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from plimsoll.arrays.papers.leave_one_out import NO_CONSTANT, LeftOut
from plimsoll.arrays.papers.points import Result, read_points
from plimsoll.arrays.pools import DATABASES
from plimsoll.arrays.presets import shipped_arrays
from plimsoll.arrays.sources import DATA_FOLDER
from plimsoll.documents.array_sheet import ArraySheet
from plimsoll.documents.verdict import NearestPoint

RESULTS = DATA_FOLDER / "papers_results.json"
#: What figures of a summary are called in the papers.
PAPER_METRICS = {
    "database_iops": "iops",
    "database_read": "database_read_latency",
    "database_write": "database_write_latency",
    "log_write": "log_write_latency",
}
#: Statistics other than means were not published, so that nothing says how well they are met.
UNVALIDATED_PERCENT = 50.0


@dataclass(frozen=True, kw_only=True)
class PaperRow(Result):
    """A published figure beside the modelled one, with the array of its point."""

    array: str


@cache
def paper_results() -> list[PaperRow]:
    """Every published figure with the array of its point, as the last run of the papers left
    them.
    """
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["results"]
    return [PaperRow(**row) for row in rows]


@cache
def left_out() -> list[LeftOut]:
    """Every calibrated array predicted without its constant, as the last run of the papers left
    them.
    """
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["leave_one_out"]
    return [LeftOut(**row) for row in rows]


@cache
def band_percent(metric: str, statistic: str = "mean") -> float:
    """How far a modelled figure may be off either way.

    Args:
        metric: as in a check: `database_iops`, `database_read`, `database_write` or `log_write`.
        statistic: what of it.

    Returns:
        The worst error on arrays predicted without a constant of their own, in percent.
    """
    if statistic != "mean" or metric not in PAPER_METRICS:
        return UNVALIDATED_PERCENT
    if metric == "database_iops":
        unfitted = [
            abs(float(row.error_percent))
            for row in paper_results()
            if row.metric == "iops" and not row.fitted
        ]
        return max(
            [*unfitted, *(abs(row.error_percent) for row in left_out() if row.way == NO_CONSTANT)]
        )
    errors = [
        abs(float(row.error_percent))
        for row in paper_results()
        if row.metric == PAPER_METRICS[metric]
    ]
    if metric == "database_read":
        errors.append(band_percent("database_iops"))
    return max(errors)


def array_band(array: ArraySheet, metric: str, statistic: str = "mean") -> float:
    """How far a modelled figure of an array may be off.

    A model that missed what it was fitted beside has no smaller band.

    Args:
        array: a preset or an array of the same fields.
        metric: as in a check.
        statistic: what of it.
    """
    return max(band_percent(metric, statistic), float(array.get("own_error_percent") or 0))


def nearest_point(array: ArraySheet) -> NearestPoint:
    """The validated point nearest to an array, and how near it is.

    Likeness counts in this order: the preset, the kind of drive, its speed, the redundancy, the
    number of drives.

    Returns:
        The point's `id`, `array`, `error_percent` of its IOPS, and `how`, a sentence.
    """
    points = [row for row in paper_results() if row.metric == "iops"]
    presets = shipped_arrays()
    published = read_points()

    def unlikeness(row: PaperRow) -> tuple[Any, ...]:
        other, point = presets[row.array], published[row.id]
        mine, theirs = array["drive_sheet"], other["drive_sheet"]
        drives = sum(other["sets"]) * (point.changed("member_count") or other["member_count"])
        return (
            row.array != array["name"],
            ("rotation_rpm" in mine) != ("rotation_rpm" in theirs),
            abs(mine.get("rotation_rpm", 0) - theirs.get("rotation_rpm", 0)),
            (point.changed("level") or other["level"]) != array["level"],
            abs(drives - sum(array["sets"]) * array["member_count"]),
        )

    row = min(points, key=unlikeness)
    same = row.array == array["name"]
    how = "the same array" if same else f"another array ({published[row.id].title})"
    if same and array["drive"] != presets[row.array]["drive"]:
        how = "the same box with other drives"
    elif same and any(group["pool"] == DATABASES for group in array.get("groups") or []):
        how = "the same box without the further drives"
    if any(neighbour["iops"] for neighbour in array.get("neighbours") or []):
        how += ", without neighbours"
    return NearestPoint(id=row.id, array=row.array, error_percent=row.error_percent, how=how)
