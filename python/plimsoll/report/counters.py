"""The counters of the published reports under their Linux sources, and the disks' own counters
beside the engine's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plimsoll import settings
from plimsoll.documents.summary import CounterAverages, Summary
from plimsoll.pages.tables import Table, shown, size_shown

TITLES = {
    "measure": "Counters while measuring",
    "generate_logs": "Counters while logs were generated",
    "checksum": "Counters during the checksum",
    "backup": "Counters during the backup",
    "restore": "Counters while the backup was restored",
    "recover": "Counters during recovery",
}


def counter_tables(summary: Summary) -> list[Table]:
    """Every counter in one row.

    A folded table for each kind of phase that was published, and one of where they come from.
    """
    found = [
        _phase_table(title, [item for item in summary.counters if item.phase_kind == kind])
        for kind, title in TITLES.items()
        if any(item.phase_kind == kind for item in summary.counters)
    ]
    return [*found, _sources(summary.counters)] if found else []


def _phase_table(title: str, counted: Sequence[CounterAverages]) -> Table:
    rows: list[list[Any]] = []
    for name, places in _by_name(counted).items():
        least, most = min(place.minimum for place in places), max(place.maximum for place in places)
        of = places[0].instance if len(places) == 1 else f"{len(places)} places"
        rows.append(
            [name, of, _span([place.average for place in places]), least, most, places[0].unit]
        )
    headings = ["Counter", "Of", "Average", "Minimum", "Maximum", "Unit"]
    note = (
        "Averages are the published ones: plain means of the values of all intervals, intervals "
        "without a transfer as zero. "
        "Of several places the smallest and the largest average stand here. Every place and "
        "interval is in counters.parquet; "
        "`plimsoll export` writes it as CSV."
    )
    return Table(title, headings, rows, note, folded=True)


def _span(averages: Sequence[float]) -> Any:
    """One average, or the smallest and the largest of several.

    >>> _span([2.0]), _span([1.0, 2.0, 1.5])
    (2.0, '1 to 2')
    """
    low, high = shown(min(averages)), shown(max(averages))
    return max(averages) if low == high else f"{low} to {high}"


def _sources(counted: Sequence[CounterAverages]) -> Table:
    rows: list[list[Any]] = [
        [name, places[0].source, places[0].nearness] for name, places in _by_name(counted).items()
    ]
    return Table(
        "Where the counters come from", ["Counter", "Linux source", "Nearness"], rows, folded=True
    )


def _by_name(counted: Sequence[CounterAverages]) -> dict[str, list[CounterAverages]]:
    """The places of each counter, in the order in which they are listed."""
    found: dict[str, list[CounterAverages]] = {}
    for item in counted:
        found.setdefault(f"{item.object}: {item.counter}", []).append(item)
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
        f"They disagree where bytes differ by more than {limits['bytes_share']:.0%}, or mean "
        f"latencies by more than "
        f"{limits['latency_share']:.0%} and {limits['latency_ms']} ms. The disk's time of writes "
        f"includes its cache flushes."
    )
    return [Table("The disks' own counters next to the engine's", headings, rows, note)]
