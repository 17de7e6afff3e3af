"""The second of the published reports: what the checksum passes found and how fast they read.

And the disks below.

Source of the columns: the checksum reports of Jetstress 2010 in appendices B to D of the EMC
VNXe3300 report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plimsoll.documents.summary import ChecksumFigures, ChecksumReads, DeviceRates, Summary
from plimsoll.pages.tables import Table
from plimsoll.report.sections import host_table


def checksum_sections(summary: Summary) -> list[Table]:
    """Statistics, disk subsystem and host of the checksum passes.

    Of a run without one, what was corrected under load.
    """
    corrected = _corrected(summary)
    if not summary.checksums:
        return corrected
    found = [_statistics(summary.checksums), *corrected]
    if summary.checksum_reads:
        found.append(_reads(summary.checksum_reads))
    devices, levels = summary.checksum_devices, summary.checksum_machine
    if devices:
        found.append(device_table(devices, "Disk subsystem during the checksum"))
    if levels:
        found.append(host_table(levels, None, "Memory and processor during the checksum"))
    return found


def _statistics(checksums: Sequence[ChecksumFigures]) -> Table:
    counts = ("pages_seen", "bad", "correctable", "wrong_page_number", "uninitialized")
    rows: list[list[Any]] = [
        [
            item.name,
            *(getattr(item, key) for key in counts),
            item.mib_per_s * item.seconds,
            item.seconds,
            item.mib_per_s,
        ]
        for item in checksums
    ]
    sums = [sum(getattr(item, key) for item in checksums) for key in counts]
    length_mib, seconds = sum(row[6] for row in rows), max(item.seconds for item in checksums)
    rows.append(["(Sum)", *sums, length_mib, seconds, length_mib / seconds if seconds else None])
    headings = [
        "Database",
        "Seen pages",
        "Bad pages",
        "Correctable pages",
        "Wrong page number pages",
        "Never written pages",
        "File length (MiB)",
        "Elapsed (s)",
        "MiB/s",
    ]
    note = "Databases are read at the same time, so the time of all is the longest of them."
    return Table("Checksum statistics", headings, rows, note, decimals=(1,), has_total=True)


def _corrected(summary: Summary) -> list[Table]:
    """Pages with a flipped bit that were put right under load.

    Runs of earlier versions did not count them.
    """
    rows: list[list[Any]] = [
        [place.name, place.pages_corrected]
        for place in summary.databases
        if place.pages_corrected is not None
    ]
    if not rows:
        return []
    rows.append(["(Sum)", summary.total.pages_corrected])
    note = (
        "A flipped bit that a read of the load met and put right. It counts like a correctable "
        "page of the pass."
    )
    return [
        Table(
            "Pages corrected under load",
            ["Database", "Corrected pages"],
            rows,
            note,
            has_total=True,
        )
    ]


def _reads(reads: ChecksumReads) -> Table:
    rows: list[list[Any]] = [
        ["All", reads.read_latency_ms_mean / 1000, reads.reads_per_s, reads.read_bytes_mean]
    ]
    headings = ["Databases", "Average s/read", "Reads/s", "Average bytes/read"]
    note = (
        "The transfers of the passes themselves, counted where they enter the disk; a pass writes "
        "nothing."
    )
    return Table("Reads of the checksum", headings, rows, note, decimals=(5, 5, 1, 1))


def device_table(devices: Sequence[DeviceRates], title: str) -> Table:
    """The disk under the databases and the one under the log of each instance, as the block layer
    counted them.
    """
    rows: list[list[Any]] = [
        [
            f"{item.instance}, {item.role}",
            item.name,
            _seconds(item.read_latency_ms_mean),
            _seconds(item.write_latency_ms_mean),
            item.reads_per_s,
            item.writes_per_s,
            item.read_bytes_mean,
            None if item.busy is None else 100 * item.busy,
            item.queue_mean,
        ]
        for item in devices
    ]
    headings = [
        "Volume",
        "Logical disk",
        "Average s/read",
        "Average s/write",
        "Reads/s",
        "Writes/s",
        "Average bytes/read",
        "Busy %",
        "In flight",
    ]
    note = (
        "Counted by the block layer for everybody on this machine; one disk may carry several "
        "volumes."
    )
    return Table(title, headings, rows, note, decimals=(5, 5, 5, 5, 1, 1, 1, 1, 2))


def _seconds(latency_ms: float | None) -> float | None:
    return None if latency_ms is None else latency_ms / 1000
