"""A study, `study.json`: every figure of every variant and the ranking.

And what a variant by the light load is and came to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from plimsoll.documents.comparison import ComparedValue, Difference
from plimsoll.documents.document import Document


class StudySide(Document):
    """One variant: what it changes, and what became of it."""

    name: str
    settings: Mapping[str, object]
    runs_count: int
    result: str | None
    problem: str | None
    warnings: Sequence[str]


class StudyFigure(Document):
    """One figure of every variant."""

    name: str
    title: str
    unit: str
    better: str
    sides: Sequence[ComparedValue]
    against_baseline: Sequence[Difference]


class RankedVariant(Document):
    """A variant in its place; the first has none above it."""

    name: str
    value: float
    against_the_one_above: Difference | None


class StudyAxis(Document):
    """What varies, where it is one thing with numbers, and how far along it the read latency stays
    within the limit.
    """

    title: str
    values: Sequence[float]
    largest_within_limit: float | None
    limit_ms: float


class StudyFindings(Document):
    """What a study found."""

    schema_version: Literal[1]
    name: str
    description: str | None
    source: str | None
    rank_by: str
    baseline: str
    modelled: bool
    sides: Sequence[StudySide]
    figures: Sequence[StudyFigure]
    ranking: Sequence[RankedVariant]
    model_band_percent: float | None
    axis: StudyAxis | None


class LightMix(Document):
    """What a database of the light load does for each page read."""

    read_bytes: float
    writes_per_read: float
    write_bytes: float
    logs_per_read: float
    log_bytes: float
    write_depth: int
    burst_ms: float


class Light(Document):
    """The light load on a modelled array."""

    array: str
    changes: Mapping[str, object]
    log_array: str | None
    log_changes: Mapping[str, object]
    databases: int
    database_gb: float
    volume_gb: float
    log_gb: float
    databases_per_volume: int
    logs_apart: bool
    sessions: int
    at_latency_ms: float | None
    users: int | None
    iops_per_user: float | None
    maintenance: bool
    maintenance_pause_ms: float
    mix: LightMix
    warm_up_s: float
    measure_s: float


class LightResult(Document):
    """What the light load came to with one seed."""

    schema_version: Literal[1]
    definition: Light
    seed: int
    figures: Mapping[str, float] | None
    problem: str | None
