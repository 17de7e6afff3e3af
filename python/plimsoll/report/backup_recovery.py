"""The other two published reports, backup and soft recovery, for runs in which either happened.

Source of the columns: appendices E and F of the EMC VNXe3300 report; sums and averages as in newer
reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.documents.backup_figures import RecoveryFigures
from plimsoll.documents.figures import Level
from plimsoll.documents.summary import Summary
from plimsoll.pages.tables import Table
from plimsoll.report.sections import host_table
from plimsoll.results.backup_recovery import MIB, backup_total


def backup_sections(summary: Summary) -> list[Table]:
    """Backup statistics; nothing when nothing was backed up."""
    found = summary.backups
    if not found:
        return _restored(summary)
    names = {(item.instance, item.database): item.name for item in summary.databases}
    rows: list[list[Any]] = [
        [
            names.get((item.instance, item.database), item.instance),
            item.bytes / MIB,
            clock(item.seconds),
            item.mib_per_s,
            item.read_latency_ms_mean,
            item.outstanding_mean,
        ]
        for item in found
    ]
    total = summary.backup_total or backup_total(found)
    assert total is not None
    sums = [total.bytes / MIB, clock(total.seconds), total.mib_per_s_sum]
    rows.append(
        ["(Average)", total.bytes / MIB / len(found), None, total.mib_per_s_mean, None, None]
    )
    rows.append(["(Sum)", *sums, None, None])
    headings = [
        "Database",
        "Size (MiB)",
        "Elapsed (h:min:s)",
        "Transfer rate (MiB/s)",
        "Reads average latency (ms)",
        "Reads in flight, mean",
    ]
    note = (
        "Databases are read at the same time: the time of all is the longest, the rate of all, "
        "which is that of the server, "
        f"their sum. Every page was verified, {_what_was_kept(summary)}."
    )
    tables = [
        Table(
            "Backup statistics", headings, rows, note, decimals=(0, 2, 0, 2, 3, 2), has_total=True
        )
    ]
    return [
        *tables,
        *_restored(summary),
        *_host(summary.backup_machine, "Host system performance during the backup"),
    ]


def _what_was_kept(summary: Summary) -> str:
    kept = [item.kept_in for item in summary.restores if not item.is_clone]
    places = list(dict.fromkeys(kept))
    return f"and its copy kept in {', '.join(places)}" if places else "nothing was kept"


def _restored(summary: Summary) -> list[Table]:
    """What became of the copies; nothing where none were kept."""
    rows: list[list[Any]] = [
        [
            item.instance,
            "clone" if item.is_clone else "backup",
            item.databases_count,
            item.bytes / MIB,
            item.logs_count,
            item.rolled_back,
            item.recovery_seconds,
            item.seconds,
            item.pages_count,
            len(item.findings),
        ]
        for item in summary.restores
    ]
    headings = [
        "Instance",
        "Copy",
        "Files",
        "Size (MiB)",
        "Logs replayed",
        "Taken back",
        "Recovered (s)",
        "Verified (s)",
        "Pages read",
        "Bad",
    ]
    note = (
        "The copies were opened with the log next to them, recovered, closed, and every page "
        "read. Taken back are transactions that were under way; both times begin with the opening."
    )
    title = "Backup restored" if any(not item.is_clone for item in summary.restores) else "Clones"
    return (
        [Table(title, headings, rows, note, decimals=(0, 0, 0, 2, 0, 0, 1, 1, 0, 0))]
        if rows
        else []
    )


def recovery_sections(summary: Summary) -> list[Table]:
    """Soft recovery statistics; nothing when no log was replayed."""
    found = summary.recoveries
    if not found:
        return []
    keys = ("logs_count", "seconds", "seconds_per_log", "mib_per_s")
    rows: list[list[Any]] = [
        [item.instance, *(getattr(item, key) for key in keys)] for item in found
    ]
    if len(found) > 1:
        rows.append(["(Average)", *(_mean(found, key) for key in keys[:3]), None])
        rows.append(
            ["(Sum)", sum(item.logs_count for item in found), None, None, _sum(found, "mib_per_s")]
        )
    headings = ["Instance", "Logs replayed (of 1 MiB)", "Elapsed (s)", "s per log", "MiB/s"]
    note = (
        "From opening the files until transactions could begin again. MiB are those of log records."
    )
    statistics = Table(
        "Soft recovery statistics",
        headings,
        rows,
        note,
        decimals=(0, 1, 3, 3, 2),
        has_total=len(found) > 1,
    )
    host = _host(summary.recovery_machine, "Host system performance during the recovery")
    detailed = [item for item in found if "reads_per_log" in item.given()]
    return [statistics, *([_for_each_log(detailed)] if detailed else []), *host]


def _for_each_log(found: Sequence[RecoveryFigures]) -> Table:
    """What recovery did for each log.

    Pages are mostly found as they should be, so that it reads much and writes little.
    """
    keys = (
        "reads_per_log",
        "pages_read_per_log",
        "writes_per_log",
        "log_reads_per_log",
        "read_latency_ms_mean",
        "outstanding_mean",
        "changes_found",
        "changes_made",
        "faster_than_generated",
    )
    rows: list[list[Any]] = [
        [item.instance, *(getattr(item, key) for key in keys)] for item in found
    ]
    headings = [
        "Instance",
        "DB reads",
        "Pages read",
        "DB writes",
        "Log reads",
        "DB reads average latency (ms)",
        "DB reads in flight, mean",
        "Changes found in the file",
        "Changes made again",
        "Times as fast as the logs were generated",
    ]
    note = "Reads and writes are those of one log. Changes are those of the whole recovery."
    return Table(
        "Soft recovery I/O for each log",
        headings,
        rows,
        note,
        decimals=(0, 1, 1, 2, 2, 3, 2, 0, 0, 2),
    )


def _sum(found: Sequence[RecoveryFigures], key: str) -> float | None:
    values = [getattr(item, key) for item in found]
    return sum(values) if None not in values else None


def _mean(found: Sequence[RecoveryFigures], key: str) -> float | None:
    values = [getattr(item, key) for item in found]
    return sum(values) / len(values) if None not in values else None


def _host(machine: Mapping[str, Level], title: str) -> list[Table]:
    return [host_table(machine, None, title)] if machine else []


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as published.

    >>> clock(16888.6)
    '4:41:29'
    """
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
