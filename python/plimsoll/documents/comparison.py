"""A comparison of runs, as `plimsoll compare --json` prints it.

Every side beside the first, figure by figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from plimsoll.documents.document import Document


class ComparedSide(Document):
    """One side: a run, or several runs of the same thing; the result is the worst of them."""

    name: str
    path: str
    plan: str | None
    runs_count: int
    left_out: Sequence[str]
    start_utc: str | None
    measured_s: float | None
    result: str | None


class ComparedValue(Document):
    """A figure of one side and what its confidence rests on."""

    value: float | None
    relative_error: float | None
    basis: str | None
    count: int
    block_s: float | None
    why_no_confidence: str | None


class Difference(Document):
    """How a side stands to another in one figure: the factor, its interval, and a word for it."""

    factor: float | None
    low: float | None
    high: float | None
    change_percent: float | None
    word: str | None
    basis: str | None
    why: str | None


class ComparedFigure(Document):
    """One figure of every side; `load` says whose it is where an event has figures of several."""

    name: str
    title: str
    unit: str
    better: str
    sides: Sequence[ComparedValue]
    against_first: Sequence[Difference]
    load: str | None = None


class ComparedPart(Document):
    """A load, or an event, of every side that has it; `missing` names the sides that do not."""

    title: str
    figures: Sequence[ComparedFigure]
    missing: Sequence[str] = ()


class SideBySide(Document):
    """One value of the plans or environments of all sides."""

    key: str
    values: Sequence[Any]
    differs: bool


class Condition(Document):
    """A condition of failure on one side; null where it could not be evaluated."""

    text: str
    side: str
    holds: bool | None
    words: str


class Comparison(Document):
    """Every side compared with the first."""

    schema_version: Literal[1]
    confidence: float
    same_share: float
    sides: Sequence[ComparedSide]
    warnings: Sequence[str]
    figures: Sequence[ComparedFigure]
    plan: Sequence[SideBySide]
    environment: Sequence[SideBySide]
    conditions: Sequence[Condition] = ()
    parts: Sequence[ComparedPart] = ()
