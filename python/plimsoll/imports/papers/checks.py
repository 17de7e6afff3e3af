"""What does not add up between the tables of a paper and the reports in its appendices, and among
the tables.

Printed figures are compared at their last printed digit: half a unit is agreement, a whole one a
rounding (truncated, or made of unrounded parts), more a contradiction. Source of the rules: what
was found by hand in the published papers.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_DOWN, Decimal
from itertools import pairwise

from plimsoll.documents.reported import ReportedTest
from plimsoll.imports.consistency_checks import CONTRADICTION, ODDITY, ROUNDING, Finding
from plimsoll.imports.papers.tables import PaperTables
from plimsoll.imports.report_origin import local_time

GIB = Decimal(2**30)


def number(text: str | float | None) -> Decimal | None:
    """The number of a figure without its unit."""
    return None if text is None else Decimal(str(text).split()[0])


def compared(
    rule: str, where: str, what: str, printed: str | float | None, computed: Decimal | None
) -> Iterator[Finding]:
    """A printed figure against a computed one, at its last digit."""
    stated = number(printed)
    if stated is None or computed is None:
        return
    exponent = stated.as_tuple().exponent
    unit = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
    distance = abs(stated - computed)
    if distance * 2 <= unit:
        return
    cut_off = computed.quantize(unit, ROUND_DOWN) == stated
    # A sum of unrounded parts may miss the last of several digits; no rounding moves a whole number
    # by one.
    kind = ROUNDING if cut_off or (distance <= unit and unit <= Decimal("0.01")) else CONTRADICTION
    how = " (cut off, not rounded)" if cut_off else ""
    yield Finding(
        rule, kind, where, f"{what}: {stated} is printed, {computed:.6g} is computed{how}"
    )


def check_paper(tables: PaperTables, reports: list[ReportedTest]) -> list[Finding]:
    """Every finding in a paper beyond those of its single reports."""
    found = [
        finding
        for rule in (_capacities, _sizes, _sixth, _seventh_and_eighth, _ninth, _memory, _dates)
        for finding in rule(tables, reports)
    ]
    return [*found, *_over_time(reports)]


def _capacities(tables: PaperTables, reports: list[ReportedTest]) -> Iterator[Finding]:
    fourth, fifth = tables.get("table_4", {}), tables.get("table_5", {})
    first = tables.get("table_1", {})
    raw, formatted = (
        number(fourth.get("total_raw_capacity_gb")),
        number(fourth.get("total_formatted_capacity_gb")),
    )
    each, disks = (
        number(fourth.get("raw_capacity_per_disk_gb")),
        number(fourth.get("physical_disks")),
    )
    if each is not None and disks is not None:
        yield from compared(
            "raw_capacity",
            "table 4",
            "raw capacity in GB",
            fourth.get("total_raw_capacity_gb"),
            each * disks,
        )
    if raw and formatted:
        yield from compared(
            "storage_utilisation",
            "table 4",
            "storage capacity utilisation in percent",
            fourth.get("storage_capacity_utilization_pct"),
            formatted / raw * 100,
        )
    size = number(first.get("total_database_size_gb"))
    if raw and size:
        yield from compared(
            "database_utilisation",
            "table 4",
            "database capacity utilisation in percent",
            fourth.get("database_capacity_utilization_pct"),
            size / raw * 100,
        )
    other = number(fifth.get("total_formatted_capacity_gb"))
    if formatted and other and formatted != other and abs(formatted - other) < formatted / 100:
        yield Finding(
            "formatted_capacity",
            CONTRADICTION,
            "tables 4 and 5",
            f"the same disks have a formatted capacity of {formatted} GB and of {other} GB",
        )


def _sizes(tables: PaperTables, reports: list[ReportedTest]) -> Iterator[Finding]:
    """The size of table 1 is that of the performance run, and its share of the volumes."""
    first = tables.get("table_1", {})
    size, databases = (
        number(first.get("total_database_size_gb")),
        number(first.get("databases_per_host")),
    )
    volume = number(first.get("database_lun_size"))
    if volume and first["database_lun_size"].endswith("TB"):
        volume *= 1024
    if size and volume and databases:
        yield from compared(
            "volume_share",
            "table 1",
            "share of the volumes in percent",
            first.get("used_by_database_pct"),
            size / (volume * databases) * 100,
        )
    performance = _performance(reports, tables)
    if size is None or performance is None:
        return
    own = _final_gib(performance)
    if own is not None and abs(own - size) >= 1:
        others = [
            report
            for report in reports
            if (final := _final_gib(report)) is not None and abs(final - size) < 1
        ]
        start = others[0]["test_summary"].get("test_start") if others else None
        whose = f"; it is that of the run of {start[:10]}" if start else ""
        yield Finding(
            "tested_size",
            CONTRADICTION,
            "table 1",
            f"the databases of the performance test have {own:.1f} GB, {size} GB are "
            f"printed{whose}",
        )


def _final_gib(report: ReportedTest) -> Decimal | None:
    final = (report.get("test_summary") or {}).get("final_database_size_bytes")
    return Decimal(final) / GIB if final else None


def _performance(reports: list[ReportedTest], tables: PaperTables) -> ReportedTest | None:
    """The report that table 6 is made of: the one nearest to its rate."""
    wanted = number(tables.get("table_6", {}).get("database_disk_transfers_per_sec"))
    rated = [
        report
        for report in reports
        if (report.get("test_summary") or {}).get("achieved_transactional_iops") is not None
    ]
    if wanted is None or not rated:
        return None
    return min(
        rated,
        key=lambda report: abs(
            Decimal(repr(report["test_summary"]["achieved_transactional_iops"])) - wanted
        ),
    )


_SIXTH = (
    ("database_disk_reads_per_sec", "db_reads_per_sec", False),
    ("database_disk_writes_per_sec", "db_writes_per_sec", False),
    ("average_database_disk_read_latency_ms", "db_read_avg_latency_ms", True),
    ("average_database_disk_write_latency_ms", "db_write_avg_latency_ms", True),
    ("log_disk_writes_per_sec", "log_writes_per_sec", False),
    ("average_log_disk_write_latency_ms", "log_write_avg_latency_ms", True),
)


def _sixth(tables: PaperTables, reports: list[ReportedTest]) -> Iterator[Finding]:
    """Sums of rates and means of latencies of the performance run."""
    sixth, report = tables.get("table_6", {}), _performance(reports, tables)
    if report is None:
        return
    achieved = Decimal(repr(report["test_summary"]["achieved_transactional_iops"]))
    yield from compared(
        "table_6",
        "table 6",
        "database transfers",
        sixth.get("database_disk_transfers_per_sec"),
        achieved,
    )
    for name, column, is_mean in _SIXTH:
        values = [
            row.get(column)
            for place, row in report["transactional_io"].items()
            if not place.startswith("(")
        ]
        if values and None not in values:
            whole = sum((Decimal(repr(value)) for value in values), Decimal(0))
            yield from compared(
                "table_6",
                "table 6",
                name.replace("_", " "),
                sixth.get(name),
                whole / len(values) if is_mean else whole,
            )


def _seventh_and_eighth(tables: PaperTables, reports: list[ReportedTest]) -> Iterator[Finding]:
    seventh, eighth = tables.get("table_7", {}), tables.get("table_8", {})
    for report in reports:
        rates = [
            Decimal(repr(row["mb_transferred_per_sec"]))
            for place, row in (report.get("database_backup_statistics") or {}).items()
            if not place.startswith("(") and row.get("mb_transferred_per_sec") is not None
        ]
        if rates:
            whole = sum(rates, Decimal(0))
            yield from compared(
                "table_7",
                "table 7",
                "MB/s of a database",
                seventh.get("mb_read_per_sec_per_database"),
                whole / len(rates),
            )
            yield from compared(
                "table_7",
                "table 7",
                "MB/s of the server",
                seventh.get("mb_read_per_sec_total_per_server"),
                whole,
            )
        logs = [
            (count, Decimal(repr(seconds)))
            for place, row in (report.get("soft_recovery_statistics") or {}).items()
            if not place.startswith("(")
            and (count := row.get("log_files_replayed"))
            and (seconds := row.get("elapsed_s")) is not None
        ]
        if logs:
            each = [seconds / count for count, seconds in logs]
            yield from compared(
                "table_8",
                "table 8",
                "seconds of a log",
                eighth.get("average_time_to_play_one_log_s"),
                sum(each, Decimal(0)) / len(each),
            )
            nominal = number(eighth.get("log_files_nominal"))
            counts = {count for count, _ in logs}
            if nominal is not None and counts != {int(nominal)}:
                shown = ", ".join(str(count) for count in sorted(counts))
                yield Finding(
                    "log_count",
                    CONTRADICTION,
                    "table 8",
                    f"{nominal} logs are stated, {shown} were replayed of each database; the time "
                    f"of one follows from these",
                )


def _ninth(tables: PaperTables, reports: list[ReportedTest]) -> Iterator[Finding]:
    """The most users of table 9 against what the highest rate carries."""
    rows = tables.get("table_9", {}).get("rows") or []
    each = number(tables.get("table_1", {}).get("iops_per_mailbox"))
    rates = [
        rate
        for report in reports
        if (rate := (report.get("test_summary") or {}).get("achieved_transactional_iops"))
    ]
    if not rows or not each or not rates:
        return
    carried = int(Decimal(repr(max(rates))) / each)
    most = max(int(users.replace(",", "")) for users, _ in rows)
    stated = int(str(tables.get("max_users_stated", most)).replace(",", ""))
    if len({carried, most, stated}) > 1:
        yield Finding(
            "user_limit",
            CONTRADICTION,
            "table 9",
            f"{max(rates)} I/O per second by {each} are {carried} users; {stated} are stated and "
            f"table 9 ends at {most}",
        )


def _memory(tables: PaperTables, reports: list[ReportedTest]) -> Iterator[Finding]:
    stated = number(tables.get("table_2", {}).get("host_memory_gb"))
    free = [
        most
        for report in reports
        if (level := (report.get("host_system_performance") or {}).get("available_mbytes"))
        and (most := level.get("maximum"))
    ]
    if stated and free and Decimal(repr(max(free))) / 1024 < stated / 2:
        yield Finding(
            "host_memory",
            CONTRADICTION,
            "table 2",
            f"{stated} GB of memory are stated, but at most {max(free) / 1024:.1f} GB were ever "
            f"free of a machine that did nothing else",
        )


def _dates(tables: PaperTables, reports: list[ReportedTest]) -> Iterator[Finding]:
    stated = tables.get("tested_date")
    days = sorted(
        {
            begun.date().isoformat()
            for report in reports
            if (begun := local_time(report)) is not None
        }
    )
    if stated and days and days != [stated]:
        yield Finding(
            "tested_date",
            ODDITY,
            "front page",
            f"{stated} is stated, the runs are of {', '.join(days)}",
        )


def _over_time(reports: list[ReportedTest]) -> Iterator[Finding]:
    """Databases grow from one run to the next, unless they were restored or made again between."""
    dated = [
        (begun, report["test_summary"])
        for report in reports
        if (begun := local_time(report)) is not None
        and (report.get("test_summary") or {}).get("initial_database_size_bytes")
    ]
    for (_, before), (begun, after) in pairwise(sorted(dated, key=lambda item: item[0])):
        final = before.get("final_database_size_bytes")
        initial = after.get("initial_database_size_bytes")
        if final and initial and initial < final:
            yield Finding(
                "restored",
                ODDITY,
                f"run of {begun:%Y-%m-%d}",
                f"it begins with {initial} bytes, the run before ended with {final}: databases "
                f"were restored or made again between",
            )
