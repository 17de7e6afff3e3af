"""A repeated run, `repeats.json`.

Its runs as they happened, and median, extremes and spread of each figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document


class CommandBefore(Document):
    """A command that was carried out before a run; of its output the first 64 KiB.

    `error` says what went wrong; null if nothing did.
    """

    command: Sequence[str]
    seconds: float
    exit_code: int | None
    output: str
    error: str | None


class RepeatedRun(Document):
    """One run of a series; a run that was only begun has neither result nor headline."""

    folder: str
    ending: str
    result: str | None
    headline: str | None
    reasons: Sequence[str]
    qualifying: bool | None = None
    cautions: Sequence[str] = ()
    before: Sequence[CommandBefore] = ()


class RepeatedFigure(Document):
    """One figure of every run that came to its end.

    The spread is the distance of the extremes as a share of the median.
    """

    name: str
    title: str
    unit: str
    values: Sequence[float | None]
    median: float
    min: float
    max: float
    spread_percent: float | None


class Repeats(Document):
    """A series; the worst of its runs is its result."""

    schema_version: Literal[1]
    name: str
    wanted_count: int
    finished: bool
    modelled: bool = False
    rehearsal: bool = False
    runs: Sequence[RepeatedRun]
    result: str | None
    headline: str | None
    figures: Sequence[RepeatedFigure]
