"""What a report of Jetstress says, under the published names: `reported.json` and what its readers
hand on.

The only documents that may be changed while a report is put together (a checksum has a page of its
own and is put to its test later), and so dictionaries whose keys and values have types. Times are
local times of the machine in ISO form; sizes, rates and latencies have their unit as the end of
their name. Tables are by place: an instance, or `(Sum)` and `(Avg)`. A key is absent where the
report lacks the part, and null where its cell is empty.
"""

# Annotations are not kept as text here: which keys are required is read from them.

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from plimsoll.documents.document import DocumentError, checked
from plimsoll.files import folder

Kind = Literal["performance", "stress", "database_backup", "soft_recovery", "checksum"]
#: A row of a table of rates, sizes and latencies, by the names of its columns.
IoRow = dict[str, float | None]
IoTable = dict[str, IoRow]


class ReportedSummary(TypedDict, total=False):
    """The test summary, and the sizing that the report prints below it."""

    overall_result: str | None
    machine_name: str | None
    description: str | None
    test_start: str | None
    test_end: str | None
    collection_start: str | None
    collection_end: str | None
    jetstress_version: str | None
    ese_version: str | None
    operating_system: str | None
    performance_log: str | None
    achieved_transactional_iops: float | None
    target_transactional_iops: float | None
    capacity_percentage_pct: float | None
    throughput_percentage_pct: float | None
    initial_database_size_bytes: int | None
    final_database_size_bytes: int | None
    database_files_count: int | None


class ReportedParameters(TypedDict, total=False):
    """The system parameters of the test."""

    thread_count_per_database: int | None
    thread_count: int | None
    minimum_database_cache_mb: float | None
    maximum_database_cache_mb: float | None
    insert_operations_pct: float | None
    delete_operations_pct: float | None
    replace_operations_pct: float | None
    read_operations_pct: float | None
    lazy_commits_pct: float | None
    run_background_database_maintenance: bool | None
    copies_per_database: int | None


class ReportedPaths(TypedDict, total=False):
    """Where an instance lies."""

    log_path: str | None
    database_file: str | None
    further_database_files: list[str]


class ReportedLevel(TypedDict, total=False):
    """A counter of the host."""

    average: float | None
    minimum: float | None
    maximum: float | None


class ReportedBackupRow(TypedDict, total=False):
    """The backup of an instance."""

    database_size_mb: float | None
    elapsed_hms: str | None
    elapsed_s: float | None
    mb_transferred_per_sec: float | None


class ReportedRecoveryRow(TypedDict, total=False):
    """The replay of an instance's log."""

    log_files_replayed: int | None
    elapsed_s: float | None


class ReportedChecksumRow(TypedDict, total=False):
    """The checksum of a file; of all of them where `database` is `(Sum)`."""

    database: str
    seen_pages: int | None
    bad_pages: int | None
    correctable_pages: int | None
    wrong_page_number_pages: int | None
    file_length_mb: float | None
    elapsed_s: float | None


class ReportedDisk(TypedDict, total=False):
    """A disk while checksums were verified."""

    logical_disk: str
    avg_disk_sec_per_read_s: float | None
    avg_disk_sec_per_write_s: float | None
    disk_reads_per_sec: float | None
    disk_writes_per_sec: float | None
    avg_disk_bytes_per_read: float | None


class ReportedChecksum(TypedDict, total=False):
    """The verification of checksums."""

    statistics: list[ReportedChecksumRow]
    disk_subsystem_performance: list[ReportedDisk]
    host_performance: dict[str, ReportedLevel]


class LogEvent(TypedDict, total=False):
    """A line of the test log: its time, which sentence it is, and the values in the sentence."""

    t: str
    event: str
    text: str
    min_mb: float
    max_mb: float
    start_mb: float
    stop_mb: float
    average_ms: float
    maximum_ms: float
    sessions: int
    insert_pct: float
    delete_pct: float
    replace_pct: float
    read_pct: float
    lazy_commit_pct: float
    interval_ms: int
    counter: str
    last_bytes: float
    lower_bound_bytes: float
    upper_bound: float | None
    pct: list[float] | float
    per_instance: list[int]
    file: str
    samples: int
    instance: str
    value_ms: float
    metric: str
    value: float
    elapsed_s: list[float]


class ReportSource(TypedDict, total=False):
    """Where a report was read."""

    files: list[str]
    format: str
    part: str


class _TestType(TypedDict):
    test_type: Kind


class ReportedTest(_TestType, total=False):
    """A report of one test."""

    schema_version: Literal[1]
    source: ReportSource
    test_summary: ReportedSummary
    jetstress_system_parameters: ReportedParameters
    database_configuration: dict[str, ReportedPaths]
    transactional_io: IoTable
    background_database_maintenance_io: IoTable
    log_replication_io: IoTable
    total_io: IoTable
    host_system_performance: dict[str, ReportedLevel]
    database_backup_statistics: dict[str, ReportedBackupRow]
    soft_recovery_statistics: dict[str, ReportedRecoveryRow]
    checksum: ReportedChecksum
    test_log_events: list[LogEvent]
    issues: list[str]
    #: Lines that have no name here, by the title of their part.
    other: dict[str, list[str]]
    #: What had to be repaired to read it, and what could not be read.
    repairs: list[str]
    losses: list[str]


class ReportedFinding(TypedDict):
    """One thing that does not add up in a report."""

    rule: str
    kind: str
    where: str
    text: str


class _Consistency(TypedDict):
    schema_version: Literal[1]
    findings: list[ReportedFinding]


def read_reported(path: Path) -> ReportedTest:
    """The report of an imported run from its file.

    Raises:
        FolderError: it is missing or damaged, or holds no imported report; with every mistake.
    """
    content = folder.read_json(path)
    try:
        found: ReportedTest = checked(ReportedTest, content, str(path))
    except DocumentError as error:
        error.args = (f"{error}; import the original again",)
        raise
    return found


def read_findings(path: Path) -> Sequence[ReportedFinding]:
    """What does not add up in an imported run, from its file.

    Raises:
        FolderError: it is missing or damaged.
    """
    found: _Consistency = checked(_Consistency, folder.read_json(path), str(path))
    return found["findings"]
