"""What an array would carry, simulated in seconds by a light workload that stands for the engine.
Touches no disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType

from plimsoll.arrays.burst_credits import burst_s, bursts, without_credits
from plimsoll.arrays.formula import formula_iops, neighbours_remark
from plimsoll.arrays.mail_streams import LIMIT_MS, iops_at_limit, run_light, sweep
from plimsoll.arrays.papers.error_band import array_band, nearest_point
from plimsoll.arrays.text import WARNING, array_title
from plimsoll.documents.array_sheet import ArraySheet, sheet_of
from plimsoll.documents.modelled_curve import BurstCurve, CurvePoint, ModelledCurve
from plimsoll.errors import RefusedError
from plimsoll.plan.complete import plan_of_options

#: What stands above everything that was modelled, and where its curves end.
MODELLED_WARNING, MODEL_LIMIT_MS = WARNING, LIMIT_MS


def model(
    array: str,
    *,
    changes: Mapping[str, object] | None = None,
    databases: int = 2,
    size_mib: int | None = None,
    sessions: int | None = None,
    edition: str = "2010",
) -> ModelledCurve:
    """How rate and latency of a modelled array go with the load, and where the limit of 20 ms is
    reached. All of it is MODELLED.

    >>> found = model("emc-vnxe3300", sessions=3)
    >>> found.modelled, [point.sessions for point in found.points]
    (True, [3])

    Args:
        array: a preset, `FILE.toml` or `FILE.toml#NAME`.
        changes: figures of the array, such as `{"level": "RAID 10"}`.
        databases: how many, each with a log volume of its own.
        size_mib: of each; six tenths of the array in all, if left out.
        sessions: only this many for each database; a whole curve if left out.
        edition: whose load.

    Returns:
        Points of the curve, the rate at the limit, the planner's formula, the model's error band.

    Raises:
        RefusedError: no such number of sessions, or changes that are no mapping.
        InputError: there is no such array, or it cannot be.
    """
    if sessions is not None and (not isinstance(sessions, int) or sessions < 1):
        raise RefusedError([f"sessions={sessions!r} is no load; write a whole number from 1"])
    if not isinstance(changes, (Mapping, NoneType)):
        raise RefusedError(
            [f"changes={changes!r} is no mapping; write it like {{'level': 'RAID 10'}}"]
        )
    described = _described(array, changes or {}, databases, size_mib, edition)

    def curve(of: ArraySheet) -> list[CurvePoint]:
        if sessions is not None:
            return [run_light(of, databases, sessions, edition, size_mib)]
        return sweep(of, databases, edition, size_mib)

    points = curve(without_credits(described) if bursts(described) else described)
    burst = curve(described) if bursts(described) else []
    return ModelledCurve(
        modelled=True,
        array=array_title(described),
        points=tuple(points),
        iops_at_20_ms=iops_at_limit(points),
        burst=BurstCurve(points=tuple(burst), lasts_s=burst_s(described)) if burst else None,
        formula_iops=formula_iops(described, points[-1].reads_per_s / points[-1].iops),
        formula_remark=neighbours_remark(described),
        neighbours_wanted_iops=sum(row["iops"] for row in described.get("neighbours") or []),
        band_percent=array_band(described, "database_iops"),
        nearest_validated_point=nearest_point(described),
    )


def _described(
    array: str, changes: Mapping[str, object], databases: int, size_mib: int | None, edition: str
) -> ArraySheet:
    """The array with its changes, checked as a plan's would be."""
    instance = {"edition": edition, "database_size_mib": size_mib or 64}
    target = {"name": "target", "modelled": array} | ({"changes": dict(changes)} if changes else {})
    wanted = {
        "target": [target],
        "instance": [
            {"name": f"instance{number}", **instance} for number in range(1, databases + 1)
        ],
    }
    return sheet_of(plan_of_options(wanted).judgement.modelled or {})
