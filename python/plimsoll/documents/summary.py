"""The summary of a run, `summary.json`: every figure per database and in total.

`docs/reference/verdict.md` explains them.

The summary of several hosts has the same shape; what it lacks, and what summaries of version 0.1
lack, has a default here. A figure is null where nothing of the kind was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from plimsoll.documents.backup_figures import (
    BackupFigures,
    BackupTotal,
    RecoveryFigures,
    ReportedBackup,
    ReportedRecovery,
    RestoreFigures,
)
from plimsoll.documents.content import Content
from plimsoll.documents.document import Document
from plimsoll.documents.drive_health import DriveHealth
from plimsoll.documents.endpoint_figures import DistributionFigures
from plimsoll.documents.environment import WallClock
from plimsoll.documents.evenness import (
    BURST_SHARE,
    RateSteps,
    RisingLatency,
    StandStill,
    SustainedRate,
    UnfinishedIo,
)
from plimsoll.documents.event_figures import EventFigures, Undisturbed
from plimsoll.documents.figures import (
    DatabaseFigures,
    InstanceFigures,
    Level,
    OperationResponses,
    Origin,
    ReportedDatabaseFigures,
    ReportedInstanceFigures,
    ReportedTotals,
    ReportedWindow,
    StallLevel,
    Totals,
    Window,
)
from plimsoll.documents.homes import HomesAudit, HomesFigures
from plimsoll.documents.latency_split import DeviceUse, StallSplit, TimeSplit, TransactionSplit
from plimsoll.documents.log_check import LogCheckFigures
from plimsoll.documents.log_space import LogSpaceFigures
from plimsoll.documents.mail import MailAudit, MailFigures
from plimsoll.documents.outcome import (
    ArrayReport,
    Calibration,
    Ending,
    ErrorReport,
    LostSetReport,
    PreconditionResult,
    SearchEnd,
)
from plimsoll.documents.run_spec import RateLoad, SearchedLoad, SessionsLoad, TargetIopsLoad
from plimsoll.documents.server_usage import ServerUsage
from plimsoll.files import folder


class GeneratorThread(Document):
    """How busy one thread of the load generator was, and what it carried."""

    thread: int
    instances: Sequence[str]
    processor: int | None
    busy_mean: float | None
    busy_max: float | None


class Generator(Document):
    """How the load generator itself did; of several threads the busiest."""

    executor_busy_mean: float | None
    executor_busy_max: float | None
    reap_gap_ms_p99: float | None
    arrival_lag_ms_p99: float | None
    #: Absent where one thread carried all.
    threads: Sequence[GeneratorThread] = ()
    #: Where a thread was the limit: so many would do.
    threads_enough: int | None = None


class Outstanding(Document):
    """The mean I/O outstanding."""

    database_read: float | None
    database_write: float | None
    log_write: float | None


class Timing(Document):
    """Times of one kind of event of a workload."""

    count: int
    ms_mean: float | None
    ms_p50: float | None
    ms_p99: float | None
    ms_p999: float | None
    ms_max: float | None


class StageFigures(Document):
    """A stage of a load: what arrived, and what came of it, in the samples that lie in it whole.

    Attributes:
        stage: which of the load's stages, from 1; they may come more than once.
        rate_percent: the share of the load's rate.
        start_s: when it began, on the clock of the run.
        scheduled_s: how long it lasted.
        seconds: of the samples that are counted; 0 where none lies in it whole.
        offered_per_s: transactions that were due per second.
        completed_per_s: transactions that completed per second.
        response_ms_mean: from when a transaction was due.
        database_iops: reads and writes of the load's instances.
        database_read_ms_mean: their latency; likewise `log_write_ms_mean`.
    """

    stage: int
    rate_percent: float
    start_s: float
    scheduled_s: float
    seconds: float
    offered_per_s: float
    completed_per_s: float | None
    response_ms_mean: float | None
    database_iops: float | None
    database_read_ms_mean: float | None
    log_write_ms_mean: float | None


LoadShown = SessionsLoad | RateLoad | TargetIopsLoad | SearchedLoad


class WorkloadFigures(Document):
    """What the load of one workload was, and what its users felt."""

    name: str
    load: LoadShown
    transactions_per_s: float
    batches_per_s: float
    response: Timing
    arrival_lag: Timing | None
    pool_wait: Timing | None
    calibration: Calibration | None
    stages: Sequence[StageFigures] = ()


class SearchFound(SearchEnd):
    """What a search found; its steps stand in `points.json`."""

    steps_count: int


class LoadFigures(Document):
    """What the load of a run was."""

    outstanding_mean: Outstanding
    workloads: Sequence[WorkloadFigures]
    searches: Sequence[SearchFound]


class SizeClass(Document):
    """Transfers up to a size, as a workload asked for them."""

    size: str
    count: int
    share: float
    ms_mean: float
    ms_p50: float | None
    ms_p95: float | None
    ms_p99: float | None
    ms_max: float


class LoadWindowFigures(Document):
    """What a load made in the windows of the measured time, next to what it had to make.

    The last three are None where no whole window was measured outside of events. `left_out_count`
    are windows that an event touched which changed the load.
    """

    workload: str
    figure: str
    unit: str
    least: float
    most: float
    over_s: float
    count: int
    outside_count: int
    left_out_count: int
    min: float | None
    mean: float | None
    max: float | None


class FilesFigures(Document):
    """What a workload on files did, transfers counted as it asked for them."""

    workload: str
    iops: float
    transactions_per_s: float
    mib_per_s: float
    read_percent: float | None
    bytes_mean: float | None
    outstanding_asked: int
    outstanding_mean: float
    waited_for_slot_count: int
    below_block_count: int
    target_iops: float | None
    users: int | None
    iops_per_user: float | None
    sizes: Sequence[SizeClass]


class StoreStep(Document):
    """Orders of a store, or one step of them."""

    step: str
    count: int
    ms_mean: float
    ms_p50: float | None
    ms_p95: float | None
    ms_p99: float | None
    ms_max: float


class StoreWindows(Document):
    """Orders per minute in the whole windows of the measured time."""

    count: int
    opm_min: float
    opm_mean: float
    opm_max: float
    opm_last: float


class StoreFigures(Document):
    """What a workload on a store did.

    Of the connections lost, and of the orders that came to nothing for want of one or were given
    up, `answers_lost_count` and `answers_refused_count` fell into the time from an event until the
    load was back. `due_count` orders were due by the one rate at which customers arrived; it is
    absent of sessions, which wait, and of stages, which are judged by themselves.
    """

    workload: str
    orders_count: int
    due_count: int | None = None
    rolled_back_count: int
    retries_count: int
    given_up_count: int
    connections_lost_count: int = 0
    connections_refused_count: int = 0
    no_space_count: int = 0
    answers_lost_count: int = 0
    answers_refused_count: int = 0
    opm: int
    opm_clean: float
    rollback_percent: float | None
    sessions: int | None
    think_s: float
    ceiling_opm: float | None
    think_bound_opm: float | None
    is_think_bound: bool
    windows: StoreWindows | None
    steps: Sequence[StoreStep]


class StoreAudit(Document):
    """Whether a store holds what was done to it: counts by name, and what does not add up."""

    instance: str
    seconds: float
    counts: Mapping[str, int]
    findings: Sequence[str]


class StoreRisk(Document):
    """By what a database can lose orders that it acknowledged: its settings, in words."""

    instance: str
    settings: Sequence[str]


class CounterAverages(Document):
    """One counter in one kind of phase."""

    phase_kind: str
    object: str
    counter: str
    instance: str
    role: str
    unit: str
    average: float
    minimum: float
    maximum: float
    intervals_count: int
    source: str | None = None
    nearness: str | None = None


class DeviceView(Document):
    """What the engine and a disk below it counted of the same I/O."""

    device: str
    carries: Sequence[str]
    direction: str
    engine_bytes: float
    engine_bytes_either: float
    device_bytes: float
    engine_latency_ms_mean: float | None
    device_latency_ms_mean: float | None
    disagreements: Sequence[str] = ()


class HotSet(Document):
    """The hot set of a workload: asked for and met."""

    workload: str
    hot_percent: float
    asked_access_percent: float
    access_percent: float | None


class Conditioning(Document):
    """What was done to the storage before it was measured."""

    soaked_s: float
    preconditioned_s: float
    precondition: PreconditionResult | None
    text: str | None
    hot_sets: Sequence[HotSet]


class DeviceRates(Document):
    """Rates, sizes and times of a disk under an instance."""

    instance: str
    role: str
    name: str | None
    read_latency_ms_mean: float | None
    write_latency_ms_mean: float | None
    reads_per_s: float
    writes_per_s: float
    read_bytes_mean: float | None
    write_bytes_mean: float | None
    busy: float | None
    queue_mean: float | None


class ReportedChecksum(Document):
    """A checksum pass over one database, as far as it was reported."""

    instance: str | None
    database: int
    path: str
    pages_seen: int | None
    bad: int | None
    correctable: int | None
    wrong_page_number: int | None
    uninitialized: int | None
    reasons: Sequence[str] = ()
    seconds: float | None
    mib_per_s: float | None
    name: str
    host: str | None = None


class ChecksumFigures(ReportedChecksum):
    """A checksum pass over one database."""

    instance: str
    pages_seen: int
    bad: int
    correctable: int
    wrong_page_number: int
    uninitialized: int
    seconds: float
    mib_per_s: float


class ChecksumReads(Document):
    """The reads of all checksum passes together."""

    read_latency_ms_mean: float
    reads_per_s: float
    read_bytes_mean: float


class KernelLog(Document):
    """What the kernel said of the disks under test.

    `of_events` are lines of the time in which events of the plan harmed the storage.
    """

    readable: bool
    reason: str | None
    lines: Sequence[str]
    disks: Sequence[str] = ()
    of_events: Sequence[str] = ()


class DeviceErrors(Document):
    """What devices and file systems counted as errors.

    `of_events` was counted in the time in which events of the plan harmed the storage.
    """

    readable: bool
    counters: Sequence[str]
    lines: Sequence[str]
    of_events: Sequence[str] = ()


class KernelLogFile(Document):
    """`kernel-log.json`."""

    schema_version: Literal[1] = 1
    readable: bool
    reason: str | None
    disks: Sequence[str] = ()
    lines: Sequence[str]
    of_events: Sequence[str] = ()

    def figures(self) -> KernelLog:
        """What a summary repeats of it."""
        return KernelLog(
            readable=self.readable,
            reason=self.reason,
            lines=self.lines,
            disks=self.disks,
            of_events=self.of_events,
        )


class DeviceErrorsFile(Document):
    """`device-errors.json`."""

    schema_version: Literal[1] = 1
    readable: bool
    counters: Sequence[str]
    lines: Sequence[str]
    of_events: Sequence[str] = ()

    def figures(self) -> DeviceErrors:
        """What a summary repeats of it."""
        return DeviceErrors(
            readable=self.readable,
            counters=self.counters,
            lines=self.lines,
            of_events=self.of_events,
        )


class ClockGaps(Document):
    """Times in which the run did not go on while it was measured.

    Its process was stopped, or its machine paused.
    """

    count: int
    seconds: float
    longest_s: float


class DataLoss(Document):
    """What a modelled array has lost.

    Requests that no drive could answer any more, and the sets they lay on.
    """

    requests_count: int
    sets: Sequence[LostSetReport]


class Gap(Document):
    """A time in which a run was cut off."""

    phase: str | None
    completed: Sequence[str]
    cut_off_utc: str
    resumed_utc: str
    seconds: float
    phase_seconds_before: float
    errors_before: int
    measured_lost: bool = False
    kept_in: str = ""


class Gaps(Document):
    """`gaps.json`: every time in which a run was cut off."""

    schema_version: Literal[1]
    gaps: Sequence[Gap]


class PhaseFigures(Document):
    """A phase and how long it took."""

    name: str
    kind: str
    start_utc: str | None
    seconds: float
    complete: bool


class ReportedIo(Document):
    """How I/O was done, where it is known."""

    method: str | None
    remarks: Sequence[str]
    choices: Sequence[str] = ()


class IoFigures(ReportedIo):
    """How I/O was done."""

    method: str | None


class HostInOverlap(Document):
    """What a host contributed to the time all of them measured in common."""

    host: str
    start_utc: str | None
    end_utc: str | None
    share: float
    seconds_counted: float
    clock: WallClock | None


class Overlap(Document):
    """The time that several hosts measured in common."""

    seconds: float
    share: float
    hosts: Sequence[HostInOverlap]


NO_LOAD = LoadFigures(
    outstanding_mean=Outstanding(database_read=None, database_write=None, log_write=None),
    workloads=(),
    searches=(),
)


class AnySummary(Document):
    """Every figure of a run of our own, of several hosts together, or of a run that another tool
    reported.
    """

    schema_version: Literal[1]
    combined: bool = False
    imported: Origin | None = None
    name: str
    ending: Ending
    error: ErrorReport | None
    window: ReportedWindow
    overlap: Overlap | None = None
    total: ReportedTotals
    hosts: Sequence[Totals] = ()
    databases: Sequence[ReportedDatabaseFigures]
    instances: Sequence[ReportedInstanceFigures]
    operations: Sequence[OperationResponses]
    generator: Generator
    page_fault_stalls: StallLevel | None = None
    load: LoadFigures = NO_LOAD
    files: Sequence[FilesFigures] = ()
    homes: Sequence[HomesFigures] = ()
    homes_audits: Sequence[HomesAudit] = ()
    events: Sequence[EventFigures] = ()
    undisturbed: Undisturbed | None = None
    records_audits: Sequence[StoreAudit] = ()
    overlaps: Mapping[str, float] = {}
    load_windows: Sequence[LoadWindowFigures] = ()
    servers: Sequence[ServerUsage] = ()
    endpoints: Sequence[DistributionFigures] = ()
    store: Sequence[StoreFigures] = ()
    store_audits: Sequence[StoreAudit] = ()
    stores_at_risk: Sequence[StoreRisk] = ()
    mail: Sequence[MailFigures] = ()
    mail_audits: Sequence[MailAudit] = ()
    log_space: Sequence[LogSpaceFigures] = ()
    machine: Mapping[str, Level]
    backup_machine: Mapping[str, Level] = {}
    recovery_machine: Mapping[str, Level] = {}
    counters: Sequence[CounterAverages] = ()
    device_view: Sequence[DeviceView] = ()
    plateaus: RateSteps = RateSteps(kind="none")
    conditioning: Conditioning | None = None
    content: Content | None = None
    devices: Sequence[DeviceUse] = ()
    time_splits: Sequence[TimeSplit] = ()
    transaction_splits: Sequence[TransactionSplit] = ()
    stalls: Sequence[StallSplit] = ()
    checksums: Sequence[ReportedChecksum]
    checksum_reads: ChecksumReads | None = None
    checksum_machine: Mapping[str, Level] = {}
    checksum_devices: Sequence[DeviceRates] = ()
    backups: Sequence[ReportedBackup] = ()
    backup_total: BackupTotal | None = None
    restores: Sequence[RestoreFigures] = ()
    recoveries: Sequence[ReportedRecovery] = ()
    kernel_log: KernelLog | None = None
    device_errors: DeviceErrors | None = None
    log_check: Sequence[LogCheckFigures] | None = None
    drive_health: Sequence[DriveHealth] = ()
    gaps: Sequence[Gap] = ()
    phases: Sequence[PhaseFigures] = ()
    io: ReportedIo = IoFigures(method="", remarks=())
    debug_build: bool
    virtual_time: bool
    array: ArrayReport | None = None
    clock_gaps: ClockGaps | None = None
    data_loss: DataLoss | None = None
    sustained: SustainedRate | None = None
    stand_still: StandStill | None = None
    unfinished: Sequence[UnfinishedIo] = ()
    rising: Sequence[RisingLatency] = ()

    @property
    def sustained_iops(self) -> float | None:
        """The database I/O per second that was sustained.

        After a burst the mean of what is left, however short that was. The mean of all where
        nothing else is known, also of imported runs.
        """
        found = self.sustained.database_iops if self.sustained else self.total.database_iops
        below = found is not None and self.ends_below(found)
        return self.plateaus.sustained_iops if below else found

    def ends_below(self, rate: float) -> bool:
        """Whether the measured time ended in a burst's rest that does not carry such a rate."""
        rest = self.plateaus.sustained_iops
        return self.plateaus.kind == "burst" and rest < rate * (1 + BURST_SHARE)


class Summary(AnySummary):
    """Every figure of a run, or of several hosts together."""

    window: Window
    total: Totals
    databases: Sequence[DatabaseFigures]
    instances: Sequence[InstanceFigures]
    checksums: Sequence[ChecksumFigures]
    backups: Sequence[BackupFigures] = ()
    recoveries: Sequence[RecoveryFigures] = ()
    io: IoFigures = IoFigures(method="", remarks=())


def summary_of(content: Any, name: str = "summary") -> AnySummary:
    """A summary from plain data: that of an imported run may have gaps, any other is a `Summary`.

    Raises:
        DocumentError: it is neither; with every mistake.
    """
    kind = AnySummary if isinstance(content, dict) and "imported" in content else Summary
    return kind.from_plain(content, name)


def read_summary(path: Path) -> AnySummary:
    """A summary from its file.

    Raises:
        FolderError: it is missing, damaged, or something else.
    """
    return summary_of(folder.read_json(path), str(path))
