"""The counters of the published reports under their Linux sources, and the disks' own counters beside the engine's."""

from __future__ import annotations

from typing import Any

from plimsoll import settings
from plimsoll.documents.summary import Summary
from plimsoll.pages.tables import Table, size_shown

TITLES = {
    "measure": "Counters while measuring",
    "generate_logs": "Counters while logs were generated",
    "checksum": "Counters during the checksum",
    "backup": "Counters during the backup",
    "recover": "Counters during recovery",
}


def counter_tables(summary: Summary) -> list[Table]:
    """Average, minimum and maximum of every counter, one table for each kind of phase that was published."""
    found = []
    for kind, title in TITLES.items():
        counted = [item for item in summary.counters if item.phase_kind == kind]
        if not counted:
            continue
        rows: list[list[Any]] = [
            [
                f"{item.object}: {item.counter}",
                item.instance,
                item.role,
                item.average,
                item.minimum,
                item.maximum,
                item.unit,
                item.source,
                item.nearness,
            ]
            for item in counted
        ]
        headings = ["Counter", "Of", "For", "Average", "Minimum", "Maximum", "Unit", "Linux source", "Nearness"]
        note = (
            "Averages are the published ones: plain means of the values of all intervals, intervals without a transfer as zero. "
            "Every interval is in counters.parquet; `plimsoll export` writes it as CSV."
        )
        found.append(Table(title, headings, rows, note))
    return found


def device_view_table(summary: Summary) -> list[Table]:
    """What the engine and the disks counted of the same I/O."""
    rows: list[list[Any]] = [
        [
            f"{item.device}: {item.direction}s",
            ", ".join(item.carries),
            size_shown(item.engine_bytes),
            size_shown(item.device_bytes),
            item.engine_latency_ms_mean,
            item.device_latency_ms_mean,
            "; ".join(item.disagreements) or "they agree",
        ]
        for item in summary.device_view
    ]
    if not rows:
        return []
    limits = settings.DEVICE_VIEW
    headings = ["Disk", "Carries", "Engine moved", "Disk moved", "Engine ms", "Disk ms", "Both"]
    note = (
        f"They disagree where bytes differ by more than {limits['bytes_share']:.0%}, or mean latencies by more than "
        f"{limits['latency_share']:.0%} and {limits['latency_ms']} ms. The disk's time of writes includes its cache flushes."
    )
    return [Table("The disks' own counters beside the engine's", headings, rows, note)]
