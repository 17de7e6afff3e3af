"""The other two published reports, backup and soft recovery, for runs in which either happened.

Source of the columns: appendices E and F of the EMC VNXe3300 report; sums and averages as in newer reports.
"""

from __future__ import annotations

from typing import Any

from plimsoll.backup_and_recovery import MIB
from plimsoll.report.tables import Table


def backup_sections(summary: dict[str, Any]) -> list[Table]:
    """Backup statistics; nothing when nothing was backed up."""
    found = summary["backups"]
    if not found:
        return []
    names = {(item["instance"], item["database"]): item["name"] for item in summary["databases"]}
    rows: list[list[Any]] = [
        [
            names.get((item["instance"], item["database"]), item["instance"]),
            item["bytes"] / MIB,
            clock(item["seconds"]),
            item["mib_per_s"],
        ]
        for item in found
    ]
    size_mib, seconds = sum(item["bytes"] for item in found) / MIB, max(item["seconds"] for item in found)
    rows.append(["(Sum)", size_mib, clock(seconds), sum(item["mib_per_s"] for item in found)])
    headings = ["Database", "Size (MiB)", "Elapsed (h:min:s)", "Transfer rate (MiB/s)"]
    note = "Databases are read at the same time: the time of all is the longest, the rate of all their sum."
    return [Table("Backup statistics", headings, rows, note, decimals=(2,), has_total=True)]


def recovery_sections(summary: dict[str, Any]) -> list[Table]:
    """Soft recovery statistics; nothing when no log was replayed."""
    found = summary["recoveries"]
    if not found:
        return []
    keys = ("logs_count", "seconds", "seconds_per_log", "mib_per_s", "pages_count")
    rows: list[list[Any]] = [[item["instance"], *(item[key] for key in keys)] for item in found]
    headings = ["Instance", "Logs replayed (of 1 MiB)", "Elapsed (s)", "s per log", "MiB/s", "Pages read or written"]
    note = "Logs are counted by the bytes that were read of them."
    return [Table("Soft recovery statistics", headings, rows, note, decimals=(0, 1, 3, 3, 2))]


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as published.

    >>> clock(16888.6)
    '4:41:29'
    """
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
