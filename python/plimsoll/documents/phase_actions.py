"""The steps of a run, and what each does: the `phases` of the run spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document


class Prepare(Document):
    """Makes the databases that do not exist yet and opens all of them."""

    kind: Literal["prepare"]


class WarmUp(Document):
    """Waits until every cache holds this share of its limit."""

    kind: Literal["warm_up"]
    cache_percent: int
    timeout_s: float


class Precondition(Document):
    """Loads in rounds until the database IOPS keep steady."""

    kind: Literal["precondition"]
    range_percent: float
    slope_percent: float
    round_s: float
    rounds_max: int
    window_rounds: int


class Soak(Document):
    """Loads without being measured, for so long and then until a moment in UTC, where one is
    given.
    """

    kind: Literal["soak"]
    duration_s: float
    until_utc_s: float | None = None


class Measure(Document):
    """Loads and measures."""

    kind: Literal["measure"]
    duration_s: float


class Search(Document):
    """Looks for the highest rate that keeps the limits of its workload."""

    kind: Literal["search"]
    duration_s: float


class Backup(Document):
    """Reads every page of the open databases front to back, and keeps copies below `to`, where that
    is named: `NAME/databases` and `NAME/logs` of each instance.
    """

    kind: Literal["backup"]
    read_bytes: int
    reads_in_flight: int
    to: str | None = None


class CloneOf(Document):
    """Where a clone of a directory is, made by a snapshot of the storage."""

    of: str
    at: str


class Restore(Document):
    """Opens copies of the databases, recovers and closes them, and reads every page: those that a
    backup kept in `from`, or clones of the storage. With `truncate_log` the log that a sound backup
    makes superfluous is deleted.
    """

    kind: Literal["restore"]
    from_: str | None = None
    clones: Sequence[CloneOf] | None = None
    truncate_log: bool | None = None
    read_bytes: int
    reads_in_flight: int


class GenerateLogs(Document):
    """Loads until every instance has written so many generations of its log."""

    kind: Literal["generate_logs"]
    logs_count: int
    timeout_s: float


class Recover(Document):
    """Drops the open instances as a crash would and opens them again."""

    kind: Literal["recover"]


class Audit(Document):
    """Asks what holds more than pages whether it holds what was done to it."""

    kind: Literal["audit"]


class Stop(Document):
    """Closes the databases cleanly."""

    kind: Literal["stop"]


class Checksum(Document):
    """Reads every page and verifies its checksum."""

    kind: Literal["checksum"]
    read_bytes: int
    reads_in_flight: int


PhaseAction = (
    Prepare
    | WarmUp
    | Precondition
    | Soak
    | Measure
    | Search
    | Backup
    | Restore
    | GenerateLogs
    | Recover
    | Audit
    | Stop
    | Checksum
)


class PhaseSpec(Document):
    """One step of the run, and the workloads that run during it."""

    name: str
    action: PhaseAction
    workloads: Sequence[str]
