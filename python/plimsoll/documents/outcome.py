"""The outcome of a run: what the Rust side returns, key by key as in
`crates/plimsoll-run/src/outcome.rs`.

`outcome.json` holds it without `figures`, which become `histograms.parquet`. Outcomes of version
0.1 lack the keys that have a default here. Positions count from 0; a database is counted from 1
within its instance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from plimsoll.documents.document import Document
from plimsoll.documents.figures import Origin

Ending = Literal["complete", "interrupted", "failed"]
Decision = Literal["passed", "failed", "unsure"]


class ErrorReport(Document):
    """What ended a run: its family (config, disk, corruption, stopped, other) and what to do."""

    family: str
    text: str


class Anchor(Document):
    """Two readings of one moment."""

    monotonic_ns: int
    utc_ns: int
    host_offset_ns: int


class InstanceDevices(Document):
    """Which block devices carry an instance."""

    instance: str
    databases: str | None
    log: str | None


class DatabaseState(Document):
    """A database at the end of a phase."""

    path: str
    size_bytes: int
    records_ever: int
    #: By what commits that were acknowledged can be lost; absent where they are durable.
    commits_at_risk: Sequence[str] = ()


class ChecksumReport(Document):
    """What reading every page of a database found."""

    database: int
    path: str
    pages_seen: int
    bad: int
    correctable: int
    wrong_page_number: int
    uninitialized: int
    reasons: Sequence[str] = ()


class ChecksumResult(ChecksumReport):
    """A checksum pass over one database."""

    instance: int
    seconds: float
    mib_per_s: float


class BackupResult(Document):
    """A database that was read front to back."""

    instance: int
    database: int
    path: str
    pages_count: int
    bytes: int
    correctable: int = 0
    headers_bad: int = 0
    generation_first: int
    generation_last: int
    seconds: float
    mib_per_s: float
    kept_at: str | None = None


class KeptLog(Document):
    """The log that was kept beside the copies of an instance."""

    instance: int
    generation_first: int
    generation_last: int
    bytes: int
    seconds: float


class RestoredDatabase(ChecksumReport):
    """A database of a backup that was restored, and its pages."""

    records_ever: int


class AuditReport(Document):
    """What an application says of what it holds."""

    counts: Mapping[str, int]
    findings: Sequence[str]


class RestoreResult(Document):
    """The copies of an instance, restored."""

    instance: int
    logs_count: int
    rolled_back: int
    recovery_seconds: float
    seconds: float
    databases: Sequence[RestoredDatabase]
    audit: AuditReport | None = None
    not_opened: str | None = None
    log_left_from: int | None = None

    def findings(self) -> list[str]:
        """What is wrong with the copies, in sentences."""
        found = [] if self.not_opened is None else [self.not_opened]
        for item in self.databases:
            bad = item.bad + item.correctable + item.wrong_page_number
            if bad:
                why = f": {'; '.join(item.reasons[:3])}" if item.reasons else ""
                found.append(f"{item.path} has {bad} bad page{'' if bad == 1 else 's'}{why}")
        return found + list(self.audit.findings if self.audit else ())


class RecoveryResult(Document):
    """A log that was replayed."""

    instance: int
    seconds: float
    logs_count: int
    generation_first: int
    generation_last: int
    log_bytes: int
    changes_made: int
    changes_found: int
    rolled_back: int


class Failover(Document):
    """An instance that came back on a survivor after its node had died."""

    event: str
    instance: int
    node: str
    to: str
    died_ns: int
    opened_ns: int
    served_ns: int | None
    lost_count: int
    cache_bytes_max: int
    recovery: RecoveryResult | None


class Calibration(Document):
    """The rate that was fixed for a load that aims at database I/O."""

    workload: str
    target_iops: float
    io_per_transaction: float
    transactions_per_s: float
    windows_count: int
    agreed: bool


class SearchFigure(Document):
    """One criterion at one place, at one rate that was tried."""

    criterion: str
    instance: int
    database: int
    measured: float
    low: float | None
    high: float | None
    limit: float
    decision: Decision


class MeanAndTail(Document):
    """A latency in milliseconds."""

    mean: float
    p99: float


class SearchStep(Document):
    """One rate, or number of sessions, that was tried."""

    transactions_per_s: float
    done_per_s: float
    start_ns: int
    end_ns: int
    seconds: float
    batches_count: int
    database_iops: float
    database_reads_per_s: float
    database_writes_per_s: float
    log_writes_per_s: float
    database_read_ms: MeanAndTail
    log_write_ms: MeanAndTail
    response_ms: MeanAndTail
    executor_busy: float
    arrival_lag_ms_p99: float
    pool_waits_count: int
    generator_limited: bool
    decision: Decision
    limited_by: str | None
    figures: Sequence[SearchFigure]
    #: Only where sessions were looked for.
    sessions: int | None = None


class SearchEnd(Document):
    """What a search found, without its steps."""

    workload: str
    end: Literal["narrow", "time_over", "nothing_passes", "most_tried"]
    passed_per_s: float | None
    passed_iops: float | None
    confirmed: bool
    failed_per_s: float | None
    limited_by: str | None
    #: Runs of version 0.1 stated 95, which so many looks together do not hold.
    confidence_percent: int | None
    tolerance_percent: float
    #: Whether the highest rate was looked for, or the most sessions.
    search: Literal["max", "max_sessions"] = "max"
    #: Only where sessions were looked for; the rates are then what they completed.
    passed_sessions: int | None = None
    failed_sessions: int | None = None


class SearchResult(SearchEnd):
    """What a search found, step by step."""

    steps: Sequence[SearchStep]


class Points(Document):
    """`points.json`: every rate that searches tried."""

    schema_version: Literal[1]
    searches: Sequence[SearchResult]


class Steadiness(Document):
    """How far rounds lie apart, and how much the line through them slopes."""

    range_percent: float
    slope_percent: float


class PreconditionResult(Document):
    """Whether the storage became steady."""

    rounds_iops: Sequence[float]
    round_s: float
    window_rounds: int
    last_window: Steadiness | None
    range_percent_max: float
    slope_percent_max: float
    is_steady: bool


class StationUse(Document):
    """A station of a modelled array."""

    per_second: float
    present_mean: float
    stay_ms_mean: float


class StageUse(Document):
    """How busy a stage of a modelled array was.

    One with a station also says who was there and how long.
    """

    stage: str
    utilisation: float
    neighbour_utilisation: float = 0.0
    per_second: float | None = None
    present_mean: float | None = None
    stay_ms_mean: float | None = None


class HostReport(Document):
    """Requests as an administrator of an array counts them.

    Those whose data was lost are in no other count.
    """

    read_count: int
    write_count: int
    read_bytes: int
    write_bytes: int
    read_latency_ms: float
    write_latency_ms: float
    lost_count: int = 0


class VolumeReport(HostReport):
    """What the host did on a volume of a modelled array."""

    name: str


class NeighbourReport(HostReport):
    """What a neighbour did on a modelled array."""

    name: str
    volume: str
    wanted_per_second: float
    left_out_count: int


class MemberReport(HostReport):
    """What a member of a modelled array did."""

    read_hit_count: int
    write_stall_count: int
    destaged_row_count: int
    full_stripe_count: int
    dirty_bytes: int
    dirty: StationUse | None = None


class DriveReport(Document):
    """What a drive of a modelled array did."""

    member: int
    operations: Sequence[tuple[str, int]]
    utilisation: float
    response_ms: float
    present_mean: float | None = None


class LinkReport(Document):
    """How busy a link of a modelled array was."""

    to_array_utilisation: float
    to_host_utilisation: float
    request_count: int


class CapReport(Document):
    """What the limits of a modelled cloud volume let through."""

    utilisation: float
    base_per_second: float
    credit_count: float
    credit_count_max: float


class RebuildReport(Document):
    """A rebuild on a modelled array."""

    started_s: float
    duration_s: float
    share: float


class LostSetReport(Document):
    """A RAID set that lost more drives than its level bears: its data is gone."""

    group: str
    at_s: float
    dirty_bytes: int


class ArrayReport(Document):
    """What a modelled array counted in a phase."""

    interval_ns: int
    volumes: Sequence[VolumeReport]
    neighbours: Sequence[NeighbourReport] = ()
    members: Sequence[MemberReport]
    drives: Sequence[DriveReport]
    links: Sequence[LinkReport]
    cap: CapReport | None = None
    rebuilds: Sequence[RebuildReport] = ()
    lost_sets: Sequence[LostSetReport] = ()
    stages: Sequence[StageUse] = ()


class AuditResult(AuditReport):
    """Whether an instance holds what was done to it."""

    instance: int
    seconds: float


class LoadStageOutcome(Document):
    """A stage of a load, as it came; times on the clock of the run."""

    workload: str
    stage: int
    rate_percent: float
    transactions_per_s: float
    start_ns: int
    end_ns: int


class PhaseOutcome(Document):
    """A phase that was begun, and what it found."""

    name: str
    kind: str
    start_ns: int
    end_ns: int
    complete: bool
    databases: Sequence[Sequence[DatabaseState]]
    checksums: Sequence[ChecksumResult] = ()
    backups: Sequence[BackupResult] = ()
    kept_logs: Sequence[KeptLog] = ()
    restores: Sequence[RestoreResult] = ()
    audits: Sequence[AuditResult] = ()
    recoveries: Sequence[RecoveryResult] = ()
    failovers: Sequence[Failover] = ()
    calibrations: Sequence[Calibration] = ()
    stages: Sequence[LoadStageOutcome] = ()
    search: SearchResult | None = None
    precondition: PreconditionResult | None = None
    array: ArrayReport | None = None


class IoStamps(Document):
    """The times of one transfer."""

    purpose: str
    asked_ns: int
    submitted_ns: int
    completed_ns: int


class Stall(Document):
    """One of the longest transactions of a phase."""

    phase: int
    instance: int
    database: int
    operation: str
    begun_ns: int
    commit_begun_ns: int
    finished_ns: int
    page_io: IoStamps | None
    log_io: IoStamps | None


class PhaseFigures(Document):
    """One distribution of a phase; a bucket is its upper bound in ns and its count."""

    phase: int
    instance: int
    database: int
    workload: int
    metric: str
    count: int
    errors: int
    bytes: int
    latency_ns_sum: int
    latency_ns_min: int
    latency_ns_max: int
    buckets: Sequence[tuple[int, int]]


class ThreadOutcome(Document):
    """A thread of the run and what it carried; samples name it by its number, counted from 1."""

    thread: int
    instances: Sequence[str]
    processor: int | None


class Outcome(Document):
    """How a run ended: everything that is not a sample or an event."""

    schema_version: Literal[1]
    #: Only of imported runs, whose reports do not say how I/O was done.
    imported: Origin | None = None
    ending: Ending
    error: ErrorReport | None
    debug_build: bool
    virtual_time: bool
    io_method: str | None
    io_remarks: Sequence[str]
    io_choices: Sequence[str] = ()
    anchors: Sequence[Anchor]
    devices: Sequence[InstanceDevices] = ()
    #: Absent where one thread carried all.
    threads: Sequence[ThreadOutcome] = ()
    phases: Sequence[PhaseOutcome]
    stalls: Sequence[Stall] = ()
    figures: Sequence[PhaseFigures] = ()
