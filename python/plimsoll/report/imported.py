"""The report of an imported run.

The page of a run of our own, filled with what another tool reported.

The verdict is the original's. Tables are those of the original in its order; what does not add up
in them comes before them, what the original does not hold is listed as not measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.documents.figures import ReportedDatabaseFigures, ReportedInstanceFigures
from plimsoll.documents.reported import ReportedFinding, ReportedLevel, ReportedTest
from plimsoll.documents.summary import AnySummary
from plimsoll.documents.verdict import Verdict
from plimsoll.pages.tables import Table, duration_shown, shown
from plimsoll.report.findings import Figure

MARKS = {
    "contradiction": "contradicts itself",
    "missing": "is missing",
    "oddity": "is odd",
    "rounding": "is rounded",
}
IO_HEADINGS = {
    "db_read_avg_latency_ms": "DB reads average latency (ms)",
    "db_write_avg_latency_ms": "DB writes average latency (ms)",
    "db_reads_per_sec": "DB reads/s",
    "db_writes_per_sec": "DB writes/s",
    "db_read_avg_bytes": "DB reads average bytes",
    "db_write_avg_bytes": "DB writes average bytes",
    "log_read_avg_latency_ms": "Log reads average latency (ms)",
    "log_write_avg_latency_ms": "Log writes average latency (ms)",
    "log_reads_per_sec": "Log reads/s",
    "log_writes_per_sec": "Log writes/s",
    "log_read_avg_bytes": "Log reads average bytes",
    "log_write_avg_bytes": "Log writes average bytes",
}


def words(name: str) -> str:
    """A name of the report as people read it.

    >>> words("available_mbytes")
    'Available mbytes'
    """
    return IO_HEADINGS.get(name, name.replace("_", " ").capitalize())


def where(report: ReportedTest, figures: AnySummary) -> str:
    """One line: which test, on which machine, when, for how long."""
    summary = report.get("test_summary") or {}
    parts = [f"{words(report['test_type'])} test, imported"]
    if summary.get("machine_name"):
        parts.append(f"machine {summary['machine_name']}")
    if start := summary.get("test_start"):
        parts.append(start.replace("T", " ") + " local time")
    if figures.window.seconds:
        parts.append(f"measured for {duration_shown(figures.window.seconds)}")
    return ", ".join(parts)


def figures(summary: AnySummary, verdict: Verdict) -> list[Figure]:
    """The slowest database and log, and the rate."""
    found = []
    judged: list[tuple[Sequence[ReportedDatabaseFigures | ReportedInstanceFigures], str, str]] = [
        (summary.databases, "database_read", "Database reads"),
        (summary.instances, "log_write", "Log writes"),
    ]
    for places, metric, title in judged:
        means = [
            (place.transfers(metric).latency_ms_mean_of_samples, place.name) for place in places
        ]
        known = [(mean_ms, name) for mean_ms, name in means if mean_ms is not None]
        if not known:
            continue
        value, slowest = max(known, key=lambda pair: pair[0])
        check = next(
            (c for c in verdict.checks if c.metric == metric and c.measured == value), None
        )
        details = [f"slowest of {len(known)}: {slowest}"] if len(known) > 1 else []
        details += [f"limit of the mean {shown(check.limit)} ms"] if check else []
        share = value / check.limit if check and check.limit else None
        found.append(
            Figure(
                title,
                f"{shown(value)} ms",
                "plain mean of the original's samples",
                details,
                share,
                check.status if check else "",
            )
        )
    total = summary.total
    if total.database_iops is not None:
        read, write = (
            total.transfers(metric).per_s for metric in ("database_read", "database_write")
        )
        found.append(
            Figure(
                "Database I/O",
                shown(total.database_iops),
                "reads and writes per second",
                [f"{shown(read)} reads/s and {shown(write)} writes/s"],
            )
        )
    backups = [item.mib_per_s for item in summary.backups if item.mib_per_s is not None]
    if backups:
        found.append(Figure("Backup", f"{shown(sum(backups))} MiB/s", "all databases together", []))
    replays = [
        item.seconds_per_log for item in summary.recoveries if item.seconds_per_log is not None
    ]
    if replays:
        found.append(
            Figure(
                "Replay", f"{sum(replays) / len(replays):.3g} s", "a log, mean of the databases", []
            )
        )
    return found


def findings(consistency: Sequence[ReportedFinding]) -> list[str]:
    """How much does not add up, in a sentence."""
    kinds = [item["kind"] for item in consistency]
    if not kinds:
        return ["Every figure that can be computed from others agrees with them."]
    counts = ", ".join(
        f"{kinds.count(kind)} × {words(kind).lower()}" for kind in dict.fromkeys(kinds)
    )
    return [f"Not everything in the original adds up: {counts}; see the first chapter."]


def consistency_tables(report: ReportedTest, consistency: Sequence[ReportedFinding]) -> list[Table]:
    """What does not add up, and what could not be read, and what was repaired."""
    rows = [
        [MARKS.get(item["kind"], item["kind"]), item["where"], item["text"]] for item in consistency
    ]
    found = [Table("What does not add up", ["This", "Where", "Finding"], rows)] if rows else []
    for title, texts in (
        ("What could not be read", report.get("losses")),
        ("What was repaired to read it", report.get("repairs")),
    ):
        if texts:
            found.append(
                Table(title, [], [[str(number), text] for number, text in enumerate(texts, 1)])
            )
    return found


def report_tables(report: ReportedTest) -> list[Table]:
    """The tables of the original in its order."""
    pairs: tuple[tuple[str, Mapping[str, object]], ...] = (
        ("Test summary", report.get("test_summary") or {}),
        ("System parameters", report.get("jetstress_system_parameters") or {}),
    )
    found = [
        Table(title, [], [[words(name), value] for name, value in values.items()])
        for title, values in pairs
        if values
    ]
    if places := report.get("database_configuration"):
        rows = [
            [name, place.get("log_path"), place.get("database_file")]
            for name, place in places.items()
        ]
        found.append(Table("Database configuration", ["Instance", "Log path", "Database"], rows))
    tables: tuple[tuple[str, Mapping[str, Mapping[str, object]]], ...] = (
        ("Transactional I/O", report.get("transactional_io") or {}),
        (
            "Background database maintenance I/O",
            report.get("background_database_maintenance_io") or {},
        ),
        ("Log replication I/O", report.get("log_replication_io") or {}),
        ("Total I/O", report.get("total_io") or {}),
        ("Backup statistics", report.get("database_backup_statistics") or {}),
        ("Soft recovery statistics", report.get("soft_recovery_statistics") or {}),
    )
    for title, table in tables:
        found += _rows(title, [{"instance": place, **row} for place, row in table.items()])
    found += _levels(report.get("host_system_performance"), "Host system performance")
    return found


def _rows(title: str, rows: Sequence[Mapping[str, object]]) -> list[Table]:
    """Rows under the names of the first one's columns; nothing where there are none."""
    if not rows:
        return []
    names = list(rows[0])
    cells = [[row.get(name) for name in names] for row in rows]
    return [Table(title, [words(name) for name in names], cells, decimals=(3,))]


def _levels(levels: Mapping[str, ReportedLevel] | None, title: str) -> list[Table]:
    if not levels:
        return []
    rows = [
        [words(name), level.get("average"), level.get("minimum"), level.get("maximum")]
        for name, level in levels.items()
    ]
    return [Table(title, ["Counter", "Average", "Minimum", "Maximum"], rows, decimals=(3,))]


def checksum_tables(report: ReportedTest) -> list[Table]:
    """The checksum of the original."""
    checksum = report.get("checksum") or {}
    return [
        *_rows("Checksum statistics", checksum.get("statistics") or []),
        *_rows(
            "Disk subsystem during the checksum", checksum.get("disk_subsystem_performance") or []
        ),
        *_levels(checksum.get("host_performance"), "Memory and processor during the checksum"),
    ]


def other_tables(report: ReportedTest) -> list[Table]:
    """What has no name here."""
    return [
        Table(title, [], [[str(number), text] for number, text in enumerate(texts, 1)])
        for title, texts in (report.get("other") or {}).items()
    ]


def log_table(report: ReportedTest) -> Table:
    """The test log, each event with its values."""
    rows = []
    for event in report.get("test_log_events") or []:
        values = ", ".join(
            f"{words(name).lower()} {value}"
            for name, value in event.items()
            if name not in ("t", "event", "text")
        )
        text = event.get("text") or words(event["event"])
        rows.append([event["t"].replace("T", " "), f"{text}: {values}" if values else text])
    return Table("Test log", ["Local time", "What happened"], rows)


def not_measured(report: ReportedTest, summary: AnySummary) -> list[str]:
    """What the original does not hold."""
    found = [
        "Means weighted by operations, percentiles and longest transfers: the original has plain "
        "means of its samples only.",
        "Single samples: nothing can be drawn over time.",
        "The load generator: how busy or how late it was.",
        "The time zone of the machine.",
    ]
    if not summary.checksums:
        found.append(
            "Whether pages could be read back undamaged: no checksum belongs to this import."
        )
    if report["test_type"] in ("performance", "stress") and not report.get(
        "background_database_maintenance_io"
    ):
        found.append("Background database maintenance.")
    if not report.get("host_system_performance"):
        found.append("Processor and memory of the machine.")
    return found
