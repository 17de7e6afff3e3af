"""What a power cut test writes and reads: the work as marker and witness describe it, what the
native side finds after the cut, and the audit's result.

Key by key as in `crates/plimsoll-powercut/src`. Descriptions come from disks that have lost their
power and over networks, so they are read with `checked`.
"""

# Annotations are not kept as text here: which keys are required is read from them.

from collections.abc import Mapping
from typing import Literal, TypedDict

from plimsoll.documents.environment import StorageIdentity


class PowercutWork(TypedDict):
    """The work, as the native side takes it; sizes are bytes, `seconds` null without an end."""

    directory: str
    run: int
    page_bytes: int
    sessions: int
    rows: int
    row_bytes: int
    lanes: int
    slots: int
    cache_bytes: int
    unwitnessed_max: int
    io_method: str
    seconds: float | None


class Sectors(TypedDict, total=False):
    """What a device says of its sectors, and how blocks of files lie on them."""

    logical_bytes: int | None
    physical_bytes: int | None
    block_bytes: int | None
    start_bytes: int | None


class RunDescription(TypedDict):
    """What marker and witness know of a run: everything an audit needs, should the other be
    lost.
    """

    run: str
    path: str
    work: PowercutWork
    boot_id: str | None
    sectors: Sectors
    storage: StorageIdentity


class SurveyRecovery(TypedDict):
    """What recovery did."""

    recovered: bool
    generation_first: int
    generation_last: int
    rolled_back: int


class SurveyError(TypedDict):
    """Why something could not be looked at."""

    family: str
    text: str


class CommitFound(TypedDict):
    """A row of a session's ring, and which transaction wrote it and its twin."""

    lane: int
    slot: int
    sequence: int
    started: int
    twin: int
    is_sound: bool


class MarkFound(TypedDict):
    """A block of a lane's ring, and which write each of its sectors is of."""

    lane: int
    slot: int
    sequence: int | None
    started: int
    sectors: list[int | None]


class Survey(TypedDict):
    """Everything the native side found."""

    recovery: SurveyRecovery | None
    database_error: SurveyError | None
    marks_error: SurveyError | None
    commits: list[CommitFound]
    marks: list[MarkFound]


class PagesFound(TypedDict, total=False):
    """What verification says of the pages, in short."""

    verdict: str | None
    pages_seen: int | None
    bad: int | None
    correctable: int | None
    wrong_page_number: int | None
    uninitialized: int | None
    unreadable: int | None
    error: str | None
    deep_findings: int


class AuditFinding(TypedDict):
    """One thing that the storage did; whether it counts against it is null where nobody knows."""

    name: str
    count: int
    text: str
    counts_against: bool | None
    meaning: str
    examples: list[str]


class AuditFigures(TypedDict):
    """What was acknowledged, looked for and lost."""

    acknowledged_commits: int
    acknowledged_marks: int
    acknowledged_last_second: int
    looked_for: int
    lost_commits: int
    lost_marks: int
    first_lost_number: int | None
    last_number: int
    witness_numbers_missing: int
    witness_ended: str | None
    witness_lines_unreadable: int


class Judgement(TypedDict):
    """What the difference between acknowledged and found means."""

    result: Literal["pass", "fail", "inconclusive"]
    reasons: list[str]
    findings: list[AuditFinding]
    figures: AuditFigures


class Examined(TypedDict):
    """What was recovered, and where."""

    on: str
    copy: str | None
    original_changed: bool


class PowercutAudit(Judgement, total=False):
    """The result of an audit, or of a rehearsed one."""

    kind: Literal["power_cut_audit"]
    schema_version: Literal[1]
    rehearsed: str
    path: str
    run: str
    examined: Examined
    pages_before_recovery: PagesFound | None
    recovery: SurveyRecovery | None
    pages_after_recovery: PagesFound | None
    same_start_of_machine: bool


class WorkOutcome(TypedDict):
    """What work that ended without a cut did."""

    commits: int
    marks: int
    remarks: list[str]
    method: str


class WitnessNote(TypedDict, total=False):
    """A line of the witness's own in its log: what begins the log, a run or its end."""

    kind: str
    schema_version: int
    event: str
    at: str
    peer: str
    run: Mapping[str, object]
    lines: int
    why: str


class LinkEnded(TypedDict):
    """How a witness's link ended."""

    event: Literal["ended"]
    at: str
    peer: str
    lines: int
    why: str
