"""The verdict, `verdict.json`: pass, fail or inconclusive, with a reason for each check.

`docs/reference/verdict.md` explains it.

Version 2 calls `bottlenecks` what version 1 called `guilty`; `read_verdict` takes both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from plimsoll.documents.document import Document
from plimsoll.documents.figures import Origin
from plimsoll.documents.latency_split import SplitMs
from plimsoll.files import folder

SCHEMA_VERSION: Literal[2] = 2
Result = Literal["pass", "fail", "inconclusive"]
Status = Literal["pass", "fail", "not_evaluated"]


class Doubt(Document):
    """Why a failed check may be the load generator's doing."""

    name: str
    text: str


class Check(Document):
    """One check: a figure at a place, held against a limit.

    A modelled run adds what it predicts.

    Attributes:
        left_out_s: the time in which events lasted and which `measured` leaves out; none if null.
    """

    name: str
    title: str = ""
    scope: str
    metric: str
    statistic: str
    measured: float | None
    limit: float
    unit: str
    status: Status
    reason: str
    source: str = ""
    doubts: Sequence[Doubt] = ()
    host: str | None = None
    predicted: str | None = None
    band_percent: float | None = None
    left_out_s: float | None = None


class CheckBottleneck(Document):
    """The limiting layer of a failed check."""

    what: Literal["check"]
    check: str
    title: str
    scope: str
    layer: str
    cause: str
    text: str
    evidence: Sequence[str]
    split_ms: SplitMs | None


class StallBottleneck(Document):
    """The limiting layer of one of the longest transactions."""

    what: Literal["stall"]
    begun_utc: str | None
    scope: str
    operation: str
    length_ms: float
    layer: str
    cause: str
    text: str
    evidence: Sequence[str]
    split_ms: SplitMs | None


Bottleneck = CheckBottleneck | StallBottleneck


class UserEquivalent(Document):
    """How many users of a profile a rate is worth."""

    profile: str
    messages_per_day: float
    iops_per_user: float
    users: int
    source: str


class NearestPoint(Document):
    """The published result nearest to a modelled array."""

    id: str
    array: str
    error_percent: float
    how: str


class Prediction(Document):
    """What a modelled run predicts."""

    result: str
    reasons: Sequence[str]
    band_percent: Mapping[str, float]
    nearest_validated_point: NearestPoint


class HostVerdict(Document):
    """The verdict of one of several hosts."""

    host: str
    result: str
    headline: str
    reasons: Sequence[str]


class Verdict(Document):
    """The judgement of a run, of several hosts together, or of an imported run by its own tool."""

    schema_version: Literal[2]
    combined: bool = False
    imported: Origin | None = None
    result: Result
    headline: str
    limits: str
    limits_meaning: str
    reasons: Sequence[str]
    throughput: str
    checks: Sequence[Check]
    bottlenecks: Sequence[Bottleneck] = ()
    qualifying: bool
    not_qualifying_because: Sequence[str]
    warnings: Sequence[str] = ()
    not_tested: Sequence[str] = ()
    doubts: Sequence[str]
    generator_limited: Sequence[str]
    cautions: Sequence[str] = ()
    required_iops: float | None
    achieved_iops: float | None
    sustained_iops: float | None = None
    headroom: float | None
    user_equivalents: Sequence[UserEquivalent]
    hosts: Sequence[HostVerdict] = ()
    prediction: Prediction | None = None


def verdict_of(content: Any, name: str = "verdict") -> Verdict:
    """A verdict from plain data of version 1 or 2.

    Raises:
        DocumentError: it is neither; with every mistake.
    """
    if isinstance(content, dict) and content.get("schema_version") == 1 and "guilty" in content:
        renamed = {
            "bottlenecks" if key == "guilty" else key: value for key, value in content.items()
        }
        content = renamed | {"schema_version": SCHEMA_VERSION}
    return Verdict.from_plain(content, name)


def read_verdict(path: Path) -> Verdict:
    """A verdict from its file.

    Raises:
        FolderError: it is missing, damaged, or something else.
    """
    return verdict_of(folder.read_json(path), str(path))
