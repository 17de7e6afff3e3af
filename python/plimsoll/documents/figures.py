"""Figures of transfers, responses and levels, at each place and in total, as `summary.json` holds
them.

What another tool reported has gaps where ours has figures: the classes called `Reported...` allow
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from plimsoll.documents.document import Document


class Origin(Document):
    """The mark of an imported run: from which file and tool."""

    tool: str = ""
    tool_version: str | None = None
    engine_version: str | None = None
    files: Sequence[Any] = ()
    format: str | None = None
    test_type: str = ""
    repairs: Sequence[str] = ()
    losses: Sequence[str] = ()


class ReportedWindow(Document):
    """When was measured; other tools state the local time of their machine."""

    start_utc: str | None
    end_utc: str | None
    start_local: str | None = None
    end_local: str | None = None
    seconds: float | None
    samples_count: int | None
    published_interval_s: int
    complete: bool


class Window(ReportedWindow):
    """When was measured, for how long, in how many samples."""

    seconds: float
    samples_count: int


class ReportedTransfers(Document):
    """Figures of one purpose of I/O at one place, as far as another tool reported them."""

    count: int | None
    errors: int | None
    per_s: float | None
    bytes_per_s: float | None
    bytes_mean: float | None
    bytes_mean_of_samples: float | None
    latency_ms_mean: float | None
    latency_ms_mean_of_samples: float | None
    latency_ms_mean_over_time: float | None = None
    latency_ms_sample_mean_max: float | None
    latency_ms_p50: float | None
    latency_ms_p90: float | None
    latency_ms_p95: float | None
    latency_ms_p99: float | None
    latency_ms_p999: float | None
    latency_ms_max: float | None

    def number(self, figure: str) -> float | None:
        """A figure by its name."""
        found: float | None = getattr(self, figure)
        return found


class Transfers(ReportedTransfers):
    """Figures of one purpose of I/O at one place."""

    count: int
    errors: int
    per_s: float
    bytes_per_s: float


class ReportedResponses(Document):
    """Response times of transactions, as far as they are known."""

    count: int | None
    per_s: float | None
    response_ms_mean: float | None = None
    response_ms_p50: float | None = None
    response_ms_p90: float | None = None
    response_ms_p95: float | None = None
    response_ms_p99: float | None = None
    response_ms_p999: float | None = None
    response_ms_max: float | None = None


class Responses(ReportedResponses):
    """Response times of transactions from their intended start."""

    count: int
    per_s: float


class OperationResponses(Document):
    """Response times of one kind of operation of one workload."""

    workload: str
    operation: str
    count: int
    per_s: float
    response_ms_mean: float | None
    response_ms_p50: float | None
    response_ms_p90: float | None
    response_ms_p95: float | None
    response_ms_p99: float | None
    response_ms_p999: float | None
    response_ms_max: float | None


class DatabasePurposes(TypedDict):
    """Transfers of databases by purpose, as documents hold them."""

    database_read: Transfers
    database_write: Transfers
    maintenance: Transfers
    database_read_with_maintenance: Transfers


class LogPurposes(TypedDict):
    """Transfers of logs by purpose, as documents hold them."""

    log_write: Transfers
    log_read: Transfers
    log_replication: Transfers
    log_read_with_replication: Transfers


class ReportedTotals(Document):
    """Figures of the whole run; `host` where they are those of one of several."""

    host: str | None = None
    database_iops: float | None
    transactions_per_s: float | None
    database_read: ReportedTransfers
    database_write: ReportedTransfers
    maintenance: ReportedTransfers
    database_read_with_maintenance: ReportedTransfers
    log_write: ReportedTransfers
    log_read: ReportedTransfers
    log_replication: ReportedTransfers
    log_read_with_replication: ReportedTransfers
    transactions: ReportedResponses
    errors_in_run: int | None
    hung_in_run: int | None
    missing_records: int | None
    write_conflicts: int | None
    initial_bytes: int | None = None
    final_bytes: int | None = None
    grown_bytes: int | None = None
    pages_verified: int | None = None
    pages_damaged: int | None = None
    pages_corrected: int | None = None

    def transfers(self, metric: str) -> ReportedTransfers:
        """The figures of one purpose by its name."""
        found: ReportedTransfers = getattr(self, metric)
        return found


class Totals(ReportedTotals):
    """Figures of the whole run."""

    database_iops: float
    transactions_per_s: float
    errors_in_run: int
    hung_in_run: int
    missing_records: int
    write_conflicts: int
    database_read: Transfers
    database_write: Transfers
    maintenance: Transfers
    database_read_with_maintenance: Transfers
    log_write: Transfers
    log_read: Transfers
    log_replication: Transfers
    log_read_with_replication: Transfers
    transactions: Responses

    def transfers(self, metric: str) -> Transfers:
        """The figures of one purpose by its name."""
        found: Transfers = getattr(self, metric)
        return found


class ReportedDatabaseFigures(Document):
    """Figures of one database."""

    name: str
    instance: str
    database: int
    path: str | None
    initial_bytes: int | None
    final_bytes: int | None
    grown_bytes_measured: int | None
    iops: float | None
    database_read: ReportedTransfers
    database_write: ReportedTransfers
    maintenance: ReportedTransfers
    database_read_with_maintenance: ReportedTransfers
    pages_corrected: int | None = None
    host: str | None = None

    def transfers(self, metric: str) -> ReportedTransfers:
        """The figures of one purpose by its name."""
        found: ReportedTransfers = getattr(self, metric)
        return found


class DatabaseFigures(ReportedDatabaseFigures):
    """Figures of one database."""

    path: str
    iops: float
    database_read: Transfers
    database_write: Transfers
    maintenance: Transfers
    database_read_with_maintenance: Transfers

    def transfers(self, metric: str) -> Transfers:
        """The figures of one purpose by its name."""
        found: Transfers = getattr(self, metric)
        return found


class Level(Document):
    """Mean, smallest and largest value of a level."""

    mean: float
    min: float | None
    max: float | None


class StallLevel(Level):
    """Page fault stalls per second, and how many samples were higher than 0, as the published
    reports count them.
    """

    samples_count: int | None = None
    samples_above_zero_count: int | None = None


class ReportedInstanceFigures(Document):
    """Figures of one instance's log and cache."""

    name: str
    log_directory: str | None
    log_write: ReportedTransfers
    log_read: ReportedTransfers
    log_replication: ReportedTransfers
    log_read_with_replication: ReportedTransfers
    page_fault_stalls_count: int | None
    page_fault_stalls_per_s: float | None
    cache_used_bytes: Level | None
    cache_limit_bytes: int | None
    in_flight: Level | None
    host: str | None = None

    def transfers(self, metric: str) -> ReportedTransfers:
        """The figures of one purpose by its name."""
        found: ReportedTransfers = getattr(self, metric)
        return found


class InstanceFigures(ReportedInstanceFigures):
    """Figures of one instance's log and cache."""

    log_directory: str
    page_fault_stalls_count: int
    cache_limit_bytes: int
    log_write: Transfers
    log_read: Transfers
    log_replication: Transfers
    log_read_with_replication: Transfers

    def transfers(self, metric: str) -> Transfers:
        """The figures of one purpose by its name."""
        found: Transfers = getattr(self, metric)
        return found
