"""How far the model is off on an array that it was never fitted to.

Each calibrated array is predicted without its own constant.

The EqualLogic arrays have one constant each, a factor on the seek times of their drives, chosen on
their RAID 50 point, and one in common, the share of old data in the cache, chosen on their RAID 10
points. A user's array has neither: its factor is 1 and no old data is found. So each of these
arrays is run as if nothing of it were published, once without either constant and once with the
mean factor of the other two and the share. The worst error without a constant is the band of a
prediction for an array that was never calibrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from plimsoll.arrays.papers.points import Point, read_points
from plimsoll.arrays.papers.runner import Trial, run_point
from plimsoll.arrays.presets import shipped_arrays

NO_CONSTANT, SISTERS = "no constant", "constants of the others"
UNCALIBRATED = 1.0
#: What an array has of which nothing was published.
NOTHING_FITTED = {"seek_scale": UNCALIBRATED, "old_data_share": 0.0}


@dataclass(frozen=True)
class LeftOut:
    """A published rate predicted without the constant of its array.

    Attributes:
        id: the point.
        array: the preset.
        way: what stands for its constant.
        seek_scale: the factor used.
        old_data_share: the share of old data used.
        modelled: IOPS.
        error_percent: against the published ones.
    """

    id: str
    array: str
    way: str
    seek_scale: float
    old_data_share: float
    modelled: float
    error_percent: float


def calibrated_points() -> list[Point]:
    """The points of one array of each calibrated preset, as published with one rate."""
    calibrated = {
        name for name, array in shipped_arrays().items() if array["seek_scale"] != UNCALIBRATED
    }
    return [
        point
        for point in read_points().values()
        if point.array in calibrated
        and [figure.metric for figure in point.figures] == ["iops"]
        and not point.changed("member_count")
    ]


def leave_one_out() -> list[LeftOut]:
    """Every calibrated point without its constant."""
    points = calibrated_points()
    factors = {name: float(array["seek_scale"]) for name, array in shipped_arrays().items()}
    shares = {name: float(array["old_data_share"]) for name, array in shipped_arrays().items()}
    jobs: list[tuple[Point, str, dict[str, float]]] = []
    for point in points:
        others = sorted({other.array for other in points} - {point.array})
        sisters = {
            "seek_scale": sum(factors[name] for name in others) / len(others),
            "old_data_share": sum(shares[name] for name in others) / len(others),
        }
        jobs += [(point, NO_CONSTANT, NOTHING_FITTED), (point, SISTERS, sisters)]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(_left_out, jobs))


def _left_out(job: tuple[Point, str, dict[str, float]]) -> LeftOut:
    point, way, constants = job
    modelled = run_point(point, Trial(constants, widens_curve=True))["iops"]
    error = 100 * (modelled / point.figures[0].published - 1)
    return LeftOut(
        point.id,
        point.array,
        way,
        round(constants["seek_scale"], 3),
        constants["old_data_share"],
        round(modelled, 1),
        round(error, 2),
    )


def leave_one_out_lines(found: Sequence[LeftOut]) -> list[str]:
    """The section of the page."""
    lines = [
        "## Arrays predicted without their own constant",
        "",
        "Each calibrated array as if nothing of it were published: with a seek factor of 1 and no "
        "old data in the cache, as every array",
        "that was never calibrated has, and with the mean factor of the other two and their share "
        "of old data. The worst error without a",
        "constant is the band that `select` and modelled verdicts print for such an array.",
        "",
        "| point | without a constant | with the constants of the others |",
        "|---|---:|---:|",
    ]
    for point in dict.fromkeys(row.id for row in found):
        errors = {row.way: row.error_percent for row in found if row.id == point}
        lines.append(f"| {point} | {errors[NO_CONSTANT]:+.1f} % | {errors[SISTERS]:+.1f} % |")
    for way in (NO_CONSTANT, SISTERS):
        sizes = [abs(row.error_percent) for row in found if row.way == way]
        lines.append(
            f"| mean, worst: {way} | {sum(sizes) / len(sizes):.1f} % | {max(sizes):.1f} % |"
        )
    return [*lines, ""]
