"""The verdict as the report tells it.

Its checks, the layer that is to blame, and what was not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from plimsoll.documents.latency_split import Split
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, CheckBottleneck, StallBottleneck, Verdict
from plimsoll.pages.tables import Table, shown

STATUS = {
    "pass": "✓ pass",
    "fail": "✗ FAIL",
    "not_evaluated": "? not evaluated",
    "not_applicable": "not applicable",
}
#: What a modelled run says of a check, and how far its figure may be off.
PREDICTED = {
    "predicted pass": "✓ predicted pass",
    "predicted fail": "✗ predicted FAIL",
    "too close to call": "? too close to call",
}
#: Checks whose limit is the least that is wanted.
_LOWER_LIMITS = ("required_iops", "load_overlap", "stage_carried", "mail_achieved", "mail_moves")


@dataclass(frozen=True)
class Bottlenecks:
    """The layers that are to blame in sentences, and where the time went in tables."""

    sentences: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def check_table(verdict: Verdict) -> Table:
    """Every check with its reason, what failed first."""
    order = {"predicted fail": 0, "fail": 0, "too close to call": 1, "not_evaluated": 1}
    checks = sorted(verdict.checks, key=lambda check: order.get(check.predicted or check.status, 2))
    rows = [
        [
            _result(check),
            _title(check),
            check.scope,
            _with_unit(check.measured, check.unit),
            _with_unit(check.limit, check.unit),
            _used(check),
            _remark(check),
        ]
        for check in checks
    ]
    headings = ["Result", "Check", "Where", "Measured", "Limit", "Used", "Remark"]
    if verdict.prediction:
        headings[3] = "Modelled"
    # Figures say why a check passed or failed; only what they do not say needs words.
    if not any(row[-1] for row in rows):
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    return Table("Checks", headings, rows)


def _result(check: Check) -> str:
    """What became of a check: of a modelled one only what it predicts."""
    status = str(check.status)
    return PREDICTED.get(check.predicted or "", STATUS.get(status, status))


def _remark(check: Check) -> str:
    band = f"within {check.band_percent:.0f} % either way" if check.band_percent else ""
    if check.left_out_s is not None:
        return "; ".join(part for part in (check.reason, band) if part)
    if band:
        return band
    doubts = "; ".join(doubt.text for doubt in check.doubts or [])
    if check.status in ("pass", "fail") and check.measured is not None:
        return f"in doubt: {doubts}" if doubts else ""
    reason: str = check.reason
    return reason


def limit_sources(verdict: Verdict) -> list[tuple[str, str]]:
    """Each kind of check with the source of its limit."""
    return list(
        dict.fromkeys((_title(check), check.source) for check in verdict.checks if check.source)
    )


def _title(check: Check) -> str:
    title: str = check.title or check.name.replace("_", " ").capitalize()
    return title


def _used(check: Check) -> str | None:
    """How much of an upper limit is used up."""
    if check.measured is None or not check.limit or check.name in _LOWER_LIMITS:
        return None
    return f"{shown(100 * check.measured / check.limit)} %"


def _with_unit(value: Any, unit: str) -> str:
    if value is None:
        return "–"
    return f"{shown(value)} {unit}" if unit in ("ms", "s", "%", "pages", "bytes") else shown(value)


def bottlenecks_of(summary: Summary, verdict: Verdict) -> Bottlenecks:
    """The bottlenecks of what failed and of the longest transactions, and how the latency of every
    place is made up.
    """
    checks = [entry for entry in verdict.bottlenecks if isinstance(entry, CheckBottleneck)]
    stalls = [entry for entry in verdict.bottlenecks if isinstance(entry, StallBottleneck)]
    scopes: dict[tuple[str, str], list[str]] = {}
    for entry in checks:
        scopes.setdefault((entry.text, entry.title), []).append(entry.scope)
    sentences = [
        f"{text}. Concerns: {title} ({', '.join(where)})."
        for (text, title), where in scopes.items()
    ]
    tables = [
        _failed_checks(checks),
        _time_splits(summary),
        _longest_stalls(stalls),
        _devices(summary),
    ]
    return Bottlenecks(sentences, [table for table in tables if table.rows])


def _failed_checks(entries: Sequence[CheckBottleneck]) -> Table:
    rows = [[entry.title, entry.scope, entry.text, "; ".join(entry.evidence)] for entry in entries]
    return Table(
        "Limiting layer of each failed check",
        ["Check", "Where", "Limiting layer", "Evidence"],
        rows,
    )


#: The layers in the order in which an I/O meets them.
_LAYERS = {
    "engine": "Engine",
    "log_flush": "Wait for the log",
    "submission": "Submission",
    "kernel_queue": "Kernel queue",
    "device": "Device",
}
_METRICS = {
    "database_read": "database reads",
    "log_write": "log writes",
    "database_write": "database writes",
}


def _time_splits(summary: Summary) -> Table:
    """The mean latency of all that is judged and the mean time of a transaction, layer by layer."""
    rows: list[list[Any]] = []
    for split in summary.time_splits:
        window = "" if split.window == "whole" else ", in the worst sample"
        what = f"{split.scope}: {_METRICS.get(split.metric, split.metric)}{window}"
        rows.append([what, *_parts(split)])
    for part in summary.transaction_splits:
        rows.append(
            [f"{'all' if part.scope == 'run' else part.scope}: transactions", *_parts(part)]
        )
    note = (
        "Milliseconds of the mean. Where the block layer says nothing about a disk, kernel queue "
        "and device are one and stand "
        "under device."
    )
    return Table("Time by layer", ["What", *_LAYERS.values()], rows, note)


def _parts(split: Split) -> list[float | None]:
    return [split.split_ms.layer(layer) for layer in _LAYERS]


def _longest_stalls(entries: Sequence[StallBottleneck]) -> Table:
    rows = [
        [
            (entry.begun_utc or "–").replace("T", " ").removesuffix("+00:00"),
            f"{entry.scope}, {entry.operation}",
            entry.length_ms,
            entry.text,
            "; ".join(entry.evidence),
        ]
        for entry in entries
    ]
    headings = ["Begun (UTC)", "Where", "Length (ms)", "Limiting layer", "Evidence"]
    return Table("The longest transactions", headings, rows)


def _devices(summary: Summary) -> Table:
    """What the block layer counted of the disk under the databases and under the log of each
    instance.
    """
    rows: list[list[Any]] = [
        [
            f"{device.instance}, {device.role}",
            device.name,
            100 * device.busy,
            device.queue_mean,
            device.read_latency_ms_mean,
            device.write_latency_ms_mean,
            device.flush_latency_ms_mean,
            100 * device.others_share,
        ]
        for device in summary.devices
    ]
    headings = [
        "Volume",
        "Disk",
        "Busy %",
        "In flight",
        "Read ms",
        "Write ms",
        "Flush ms",
        "Work of others %",
    ]
    note = (
        "From the block layer, which counts for everybody on this machine; one disk may carry "
        "several volumes."
    )
    return Table("Disks under the databases and the logs", headings, rows, note)


def not_measured(summary: Summary, verdict: Verdict) -> list[str]:
    """What a reader must not take this report to say."""
    found = [
        f"{_title(check)} ({check.scope}): {check.reason}."
        for check in verdict.checks
        if check.status == "not_evaluated"
    ]
    if not summary.checksums:
        found.append("Whether pages can be read back undamaged: no checksum pass was completed.")
    if not any(database.maintenance.count for database in summary.databases):
        found.append("Background database maintenance: none ran next to the load.")
    if not any(instance.log_replication.count for instance in summary.instances):
        found.append("Log replication: no log was read back for further copies.")
    if not summary.machine:
        found.append("Processor and memory of the machine: no counters were recorded.")
    return [
        *found,
        "Behaviour during failures: degraded arrays, rebuilds, lost paths, power cuts.",
        "Other loads at the same time: backup windows, snapshots, other hosts on the same storage.",
        "Other rates than the one that was run: latency at half or twice the load cannot be told "
        "from it.",
        "Latency of database writes is shown but not judged, as in the published test.",
    ]
