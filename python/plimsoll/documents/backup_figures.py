"""Figures of backups and recoveries in a summary."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.documents.document import Document


class ReportedBackup(Document):
    """The backup of one database, as far as it was reported."""

    phase: str = ""
    instance: str
    database: int
    bytes: int | None
    seconds: float | None
    reads_count: int | None
    pages_count: int | None = None
    correctable: int | None = None
    headers_bad: int | None = None
    mib_per_s: float | None
    read_latency_ms_mean: float | None
    outstanding_mean: float | None = None


class BackupFigures(ReportedBackup):
    """The backup of one database."""

    bytes: int
    seconds: float
    reads_count: int
    mib_per_s: float
    read_latency_ms_mean: float


class BackupTotal(Document):
    """The backups of all databases together."""

    databases_count: int
    bytes: int
    seconds: float
    mib_per_s_sum: float
    mib_per_s_mean: float
    mib_per_s_wall: float


class RestoreFigures(Document):
    """A backup of one instance that was kept, or a clone of it, and restored."""

    instance: str
    kept_in: str
    bytes: int
    databases_count: int
    logs_count: int
    rolled_back: int
    recovery_seconds: float
    seconds: float
    pages_count: int
    findings: Sequence[str]
    is_clone: bool = False


class ReportedRecovery(Document):
    """The recovery of one instance, as far as it was reported."""

    instance: str
    phase: str
    pages_count: int | None = None
    logs_count: float | None
    log_bytes: int | None
    seconds: float | None
    seconds_per_log: float | None
    mib_per_s: float | None
    reads_per_log: float | None = None
    pages_read_per_log: float | None = None
    writes_per_log: float | None = None
    log_reads_per_log: float | None = None
    reads_count: int | None = None
    writes_count: int | None = None
    read_bytes_mean: float | None = None
    read_latency_ms_mean: float | None = None
    outstanding_mean: float | None = None
    changes_made: int | None = None
    changes_found: int | None = None
    rolled_back: int | None = None
    generated_seconds_per_log: float | None = None
    faster_than_generated: float | None = None


class RecoveryFigures(ReportedRecovery):
    """The recovery of one instance."""

    logs_count: float
    log_bytes: int
    seconds: float
