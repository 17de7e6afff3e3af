"""What a modelled array would carry.

The curve over the load, where its limit lies, and how far all of it may be off.
"""

from __future__ import annotations

from typing import Literal

from plimsoll.documents.document import Document
from plimsoll.documents.verdict import NearestPoint


class CurvePoint(Document):
    """What one load made of the array.

    Sessions on each database, rates per second, mean latencies in ms, the busiest stage.
    """

    sessions: int
    iops: float
    reads_per_s: float
    read_ms: float
    write_ms: float
    log_write_ms: float
    busiest: str
    utilisation: float
    neighbour_utilisation: float
    neighbour_iops: float


class BurstCurve(Document):
    """The curve as long as full burst credits last, and how many seconds that is at the highest
    rate.
    """

    points: tuple[CurvePoint, ...]
    lasts_s: float


class ModelledCurve(Document):
    """Rate and latency of a modelled array over its load; all of it is MODELLED."""

    modelled: Literal[True]
    array: str
    points: tuple[CurvePoint, ...]
    iops_at_20_ms: float | None
    burst: BurstCurve | None
    formula_iops: float | None
    formula_remark: str
    neighbours_wanted_iops: float
    band_percent: float
    nearest_validated_point: NearestPoint
