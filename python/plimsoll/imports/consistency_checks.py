"""What does not add up in an imported report.

Totals, sums, rates times sizes, verdicts, times, counts.

Each rule recomputes a printed figure from other printed ones. A *contradiction* cannot be explained
by rounding, a *rounding* lies within the last digits, an *oddity* is no error by itself but must be
known before figures are used, and *missing* is what the report should have held. Source of the
rules: the contradictions that were found by hand in the published papers. Nothing is corrected:
figures stay as printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Literal

from plimsoll.documents.reported import (
    IoTable,
    LogEvent,
    ReportedFinding,
    ReportedTest,
)
from plimsoll.imports.jetstress.log_lines import shares_of
from plimsoll.imports.jetstress.report_labels import COUNTERS
from plimsoll.imports.report_model import checksums_of, names_of

CONTRADICTION, ROUNDING, ODDITY, MISSING = "contradiction", "rounding", "oddity", "missing"
MIB = 1048576
#: Figures have three decimals; sums of two or three of them differ by this from unrounded ones at
#: most.
RATE_SLACK, RATE_EXACT = 0.0021, 0.00051
BYTES_SLACK = 1.5
#: A whole comparison of products of rounded figures: farther apart than this share is no rounding.
SHARE_SLACK = 0.02
STRICT_UNTIL_S = 6 * 3600
PAGE_SIZES = (2048, 4096, 8192, 16384, 32768)


@dataclass(frozen=True)
class Finding:
    """One thing that does not add up."""

    rule: str
    kind: str
    where: str
    text: str


def check(report: ReportedTest) -> list[Finding]:
    """Every finding in one report, contradictions first."""
    found = [finding for rule in RULES for finding in rule(report)]
    order = (CONTRADICTION, MISSING, ODDITY, ROUNDING)
    return sorted(found, key=lambda finding: order.index(finding.kind))


def as_data(findings: list[Finding]) -> list[ReportedFinding]:
    """Findings as they are kept in a run folder."""
    return [
        ReportedFinding(
            rule=finding.rule, kind=finding.kind, where=finding.where, text=finding.text
        )
        for finding in findings
    ]


def compared(
    rule: str,
    where: str,
    what: str,
    printed: float | None,
    computed: float | None,
    exact: float,
    slack: float,
) -> Iterator[Finding]:
    """A printed figure against a computed one: nothing, a rounding or a contradiction."""
    if printed is None or computed is None or abs(printed - computed) <= exact:
        return
    kind = ROUNDING if abs(printed - computed) <= slack else CONTRADICTION
    yield Finding(
        rule, kind, where, f"{what}: {printed:.10g} is printed, {computed:.10g} is computed"
    )


def _tables(report: ReportedTest) -> tuple[IoTable, IoTable, IoTable, IoTable]:
    return (
        report.get("transactional_io") or {},
        report.get("background_database_maintenance_io") or {},
        report.get("log_replication_io") or {},
        report.get("total_io") or {},
    )


def _value(table: IoTable, place: str, key: str) -> float | None:
    value = (table.get(place) or {}).get(key)
    return None if value is None else float(value)


def _total_reads(report: ReportedTest) -> Iterator[Finding]:
    """Reads in total are those of transactions and of maintenance.

    Their size is the mean weighted by rate.
    """
    own, maintenance, replication, total = _tables(report)
    for place in total:
        pairs = (
            (
                "database reads",
                "db_reads_per_sec",
                "db_read_avg_bytes",
                maintenance,
                "bdm_reads_per_sec",
                "bdm_read_avg_bytes",
            ),
            (
                "log reads",
                "log_reads_per_sec",
                "log_read_avg_bytes",
                replication,
                "log_replication_reads_per_sec",
                "log_replication_read_avg_bytes",
            ),
        )
        for what, rate, size, other, other_rate, other_size in pairs:
            a, b = _value(own, place, rate), _value(other, place, other_rate) or 0.0
            if a is None:
                continue
            yield from compared(
                "total_reads",
                place,
                f"total {what}/s",
                _value(total, place, rate),
                a + b,
                RATE_EXACT,
                RATE_SLACK,
            )
            sizes = (_value(own, place, size) or 0.0) * a + (
                _value(other, place, other_size) or 0.0
            ) * b
            if a + b:
                # Where reads are rare, three decimals of their rate leave room in the mean.
                slack = BYTES_SLACK + sizes / (a + b) * 0.001 / (a + b)
                yield from compared(
                    "total_bytes",
                    place,
                    f"average bytes of total {what}",
                    _value(total, place, size),
                    sizes / (a + b),
                    slack,
                    4 * slack,
                )


def _achieved(report: ReportedTest) -> Iterator[Finding]:
    """Achieved I/O is the sum over the databases of reads and writes."""
    own = _tables(report)[0]
    parts = [
        _value(own, place, key)
        for place in names_of(report)
        for key in ("db_reads_per_sec", "db_writes_per_sec")
    ]
    known = [part for part in parts if part is not None]
    if known and len(known) == len(parts):
        printed = (report.get("test_summary") or {}).get("achieved_transactional_iops")
        decimals = (
            0.01 if isinstance(printed, float) and round(printed, 2) == printed else RATE_SLACK
        )
        yield from compared(
            "achieved_iops",
            "all",
            "achieved transactional I/O per second",
            printed,
            sum(known),
            RATE_EXACT,
            max(decimals, RATE_SLACK) + 1e-9,
        )


def _shares(report: ReportedTest) -> Iterator[Finding]:
    parameters = report.get("jetstress_system_parameters") or {}
    shares = (
        parameters.get("insert_operations_pct"),
        parameters.get("delete_operations_pct"),
        parameters.get("replace_operations_pct"),
        parameters.get("read_operations_pct"),
    )
    known = [share for share in shares if share is not None]
    if len(known) == len(shares):
        total = sum(known)
        yield from compared(
            "operation_mix", "parameters", "operations in percent", total, 100, 0.5, 0.5
        )
    for name in ("run_background_database_maintenance", "copies_per_database"):
        if parameters and name not in parameters:
            yield Finding(
                "parameters_missing",
                MISSING,
                "parameters",
                f"{name.replace('_', ' ')} is not among the parameters",
            )


def _levels(report: ReportedTest) -> Iterator[Finding]:
    titles = {label.name: label.label for label in COUNTERS}
    for where, levels in (
        ("host", report.get("host_system_performance")),
        ("checksum host", (report.get("checksum") or {}).get("host_performance")),
    ):
        for name, level in (levels or {}).items():
            low, mean, high = level.get("minimum"), level.get("average"), level.get("maximum")
            if low is None or mean is None or high is None:
                continue
            if not low <= mean <= high:
                yield Finding(
                    "average_between",
                    CONTRADICTION,
                    where,
                    f"{titles.get(name, name)}: the average {mean} lies outside {low} to {high}",
                )


#: Columns of a checksum whose sums are printed.
_SUMMED: tuple[
    Literal[
        "seen_pages",
        "bad_pages",
        "correctable_pages",
        "wrong_page_number_pages",
        "file_length_mb",
    ],
    ...,
] = (
    "seen_pages",
    "bad_pages",
    "correctable_pages",
    "wrong_page_number_pages",
    "file_length_mb",
)


def _checksum(report: ReportedTest) -> Iterator[Finding]:
    """Pages times their size are the length of the files.

    The row of sums adds up, but for the time.
    """
    statistics = checksums_of(report)
    rows = [row for row in statistics if not row["database"].startswith("(")]
    for row in rows:
        pages, length = row.get("seen_pages"), row.get("file_length_mb")
        if pages and length:
            page = length * MIB / pages
            near = min(PAGE_SIZES, key=lambda size: abs(size - page))
            if abs(pages * near - length * MIB) > MIB:
                yield Finding(
                    "checksum_pages",
                    CONTRADICTION,
                    row["database"],
                    f"{pages} pages and {length} MB make {page:.1f} bytes a page, which is no page "
                    f"size",
                )
    total = next((row for row in statistics if row["database"].lower() == "(sum)"), None)
    if total and rows:
        for key in _SUMMED:
            yield from compared(
                "checksum_sums",
                "(Sum)",
                key.replace("_", " "),
                total.get(key),
                sum(row[key] or 0 for row in rows),
                0.5,
                0.5,
            )
        times = [seconds for row in rows if (seconds := row["elapsed_s"]) is not None]
        whole = total["elapsed_s"]
        if len(times) == len(rows) > 1 and whole is not None and whole < sum(times):
            yield Finding(
                "checksum_time",
                ODDITY,
                "(Sum)",
                f"the time of the sum, {whole} s, is the wall clock (longest: "
                f"{max(times)} s) and no sum",
            )
    final = (report.get("test_summary") or {}).get("final_database_size_bytes")
    pages = sum(row.get("seen_pages") or 0 for row in rows)
    if final and pages and not any(pages * size == final for size in PAGE_SIZES):
        yield Finding(
            "checksum_final_size",
            CONTRADICTION,
            "all",
            f"{pages} pages were seen, which are {final / pages:.1f} bytes each of the final size "
            f"{final}",
        )


def _backup(report: ReportedTest) -> Iterator[Finding]:
    """MB/s is size by time, and reads times their size."""
    own = _tables(report)[0]
    for place, row in (report.get("database_backup_statistics") or {}).items():
        if place.startswith("("):
            continue
        size, seconds, rate = (
            row.get("database_size_mb"),
            row.get("elapsed_s"),
            row.get("mb_transferred_per_sec"),
        )
        if size and seconds and rate:
            yield from compared(
                "backup_rate",
                place,
                "MB/s from size and time",
                rate,
                size / seconds,
                0.0051,
                0.0101,
            )
        reads, read_bytes = (
            _value(own, place, "db_reads_per_sec"),
            _value(own, place, "db_read_avg_bytes"),
        )
        if reads and read_bytes and rate:
            computed = reads * read_bytes / MIB
            yield from compared(
                "backup_reads",
                place,
                "MB/s from reads and their bytes",
                rate,
                computed,
                SHARE_SLACK * rate,
                SHARE_SLACK * rate,
            )
        # Whole MiB and two pages of 32 KiB; sizes are printed with two decimals.
        if size and size % 1 > 0.005 and abs(size % 1 - 0.0625) > 0.006:
            text = (
                f"the size {size} MB is no whole number of MiB and 64 KiB, as other files of the "
                f"engine are"
            )
            yield Finding("backup_size", ODDITY, place, text)


def events_of(report: ReportedTest) -> dict[str, LogEvent]:
    """The events of a report's log by what they are; of several the last."""
    return {event["event"]: event for event in report.get("test_log_events") or []}


#: Figure of the table, limit in the log, and its name in the log's results.
JUDGED = (
    ("db_read_avg_latency_ms", "db_read_latency_thresholds", "I/O Database Reads Average Latency"),
    ("log_write_avg_latency_ms", "log_write_latency_thresholds", "I/O Log Writes Average Latency"),
)


def _verdict(report: ReportedTest) -> Iterator[Finding]:
    """A pass has every average within its limit, a fail has a reason."""
    own, events = _tables(report)[0], events_of(report)
    result = str((report.get("test_summary") or {}).get("overall_result") or "").lower()
    over = []
    for key, event, title in JUDGED:
        limit = events.get(event, {}).get(
            "average_ms", {"db_read_avg_latency_ms": 20, "log_write_avg_latency_ms": 10}[key]
        )
        over += [
            f"{title} of {place} is {value:g} ms, above {limit:g}"
            for place in own
            if (value := _value(own, place, key)) is not None and value > limit
        ]
    damaged = [
        row["database"]
        for row in checksums_of(report)
        if (row.get("bad_pages") or 0) + (row.get("wrong_page_number_pages") or 0)
    ]
    over += [f"{place} has damaged pages" for place in damaged]
    stalls = (
        (report.get("host_system_performance") or {}).get("database_page_fault_stalls_per_sec")
        or {}
    ).get("average")
    over += (
        [f"page fault stalls are {stalls:g}/s, above 1"]
        if stalls is not None and stalls > 1
        else []
    )
    if result.startswith("pass"):
        yield from (
            Finding("pass_over_limit", CONTRADICTION, "verdict", f"the test passed, but {text}")
            for text in over
        )
    elif result.startswith("fail") and not over and not report.get("issues"):
        yield Finding(
            "fail_without_reason",
            ODDITY,
            "verdict",
            "the test failed, but every printed average is within its limit and no issue is named",
        )
    if "soft_recovery_statistics" in report:
        slow = [
            f"{place} {value:g} ms"
            for place in own
            if (value := _value(own, place, "db_read_avg_latency_ms")) is not None and value > 20
        ]
        if slow:
            yield Finding(
                "replay_latency",
                ODDITY,
                "replay",
                f"database reads of the replay take {', '.join(slow)}; no limit applies to a "
                f"replay",
            )


def _log_results(report: ReportedTest) -> Iterator[Finding]:
    """The results in the log are those of the table, rounded."""
    own, total = _tables(report)[0], _tables(report)[3]
    results = {
        (event["instance"], event["metric"]): event["value_ms"]
        for event in report.get("test_log_events") or []
        if event["event"] == "instance_result"
    }
    for (place, metric), value in results.items():
        key = {
            "I/O Log Reads Average Latency": "log_read_avg_latency_ms",
            **{title: key for key, _, title in JUDGED},
        }.get(metric)
        if key is None:
            continue
        candidates = [
            found for table in (own, total) if (found := _value(table, place, key)) is not None
        ]
        if candidates and min(abs(value - found) for found in candidates) > 0.0501:
            write = results.get((place, "I/O Log Writes Average Latency"))
            why = (
                " (it repeats the latency of log writes)"
                if metric.startswith("I/O Log Reads") and value == write
                else ""
            )
            shown = " and ".join(f"{found:g}" for found in candidates)
            yield Finding(
                "log_result",
                ODDITY,
                place,
                f"{metric}: the log says {value:g} ms{why}, the tables say {shown}",
            )


def _times(report: ReportedTest) -> Iterator[Finding]:
    summary = report.get("test_summary") or {}
    keys: tuple[Literal["test_start", "collection_start", "collection_end", "test_end"], ...] = (
        "test_start",
        "collection_start",
        "collection_end",
        "test_end",
    )
    times = [(key, datetime.fromisoformat(text)) for key in keys if (text := summary.get(key))]
    for (first, before), (second, after) in pairwise(times):
        if after < before:
            yield Finding(
                "time_order",
                CONTRADICTION,
                "test summary",
                f"{second.replace('_', ' ')} lies before {first.replace('_', ' ')}",
            )
    seconds = window_s(report)
    kind = report.get("test_type")
    if seconds and kind == "performance" and seconds > STRICT_UNTIL_S:
        yield Finding(
            "type_and_duration",
            ODDITY,
            "test",
            f"a performance test of {seconds / 3600:.0f} h was judged by the strict limits; the "
            f"usual rule takes the lenient ones above 6 h",
        )
    if seconds and kind == "stress" and seconds <= STRICT_UNTIL_S:
        yield Finding(
            "type_and_duration",
            ODDITY,
            "test",
            f"a stress test of {seconds / 3600:.0f} h was judged by the lenient limits; the usual "
            f"rule takes the strict ones up to 6 h",
        )
    events = report.get("test_log_events") or []
    intervals = [
        event["interval_ms"]
        for event in events
        if event["event"] == "perf_logging_begins" and event["interval_ms"]
    ]
    counts = [event["samples"] for event in events if event["event"] == "samples_queried"]
    if seconds and intervals and counts:
        expected = seconds / (intervals[0] / 1000)
        if abs(counts[0] - expected) >= 1:
            yield Finding(
                "sample_count",
                ODDITY,
                "counters",
                f"{counts[0]} samples were queried of {expected:.0f} that the time of collection "
                f"holds",
            )


def window_s(report: ReportedTest) -> float | None:
    """How long counters were collected."""
    summary = report.get("test_summary") or {}
    start, end = summary.get("collection_start"), summary.get("collection_end")
    if not start or not end:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _cache(report: ReportedTest) -> Iterator[Finding]:
    """The warm-up ends at nine tenths of the cache.

    Flushing starts at 1 % and stops at 2 % of it.
    """
    events = events_of(report)
    cache = (report.get("jetstress_system_parameters") or {}).get("maximum_database_cache_mb")
    met, flush = events.get("prerequisite_met"), events.get("flush_thresholds")
    if cache and met:
        yield from compared(
            "cache_bound",
            "log",
            "lower bound of the cache",
            met["lower_bound_bytes"],
            0.9 * cache * MIB,
            100,
            100,
        )
        if met["last_bytes"] < met["lower_bound_bytes"]:
            yield Finding(
                "cache_bound",
                CONTRADICTION,
                "log",
                "collection began although the cache was below its bound",
            )
    if cache and flush:
        yield from compared(
            "flush_thresholds",
            "log",
            "start of flushing in MB",
            flush["start_mb"],
            0.01 * cache,
            0.051,
            0.051,
        )
        yield from compared(
            "flush_thresholds",
            "log",
            "stop of flushing in MB",
            flush["stop_mb"],
            0.02 * cache,
            0.051,
            0.051,
        )


def _sizes(report: ReportedTest) -> Iterator[Finding]:
    summary, places = report.get("test_summary") or {}, report.get("database_configuration") or {}
    initial, final = (
        summary.get("initial_database_size_bytes"),
        summary.get("final_database_size_bytes"),
    )
    if initial and final and final < initial:
        yield Finding(
            "database_shrank",
            CONTRADICTION,
            "sizes",
            f"the databases shrank from {initial} to {final} bytes, which the engine never does",
        )
    files = sum(1 + len(place.get("further_database_files") or []) for place in places.values())
    yield from compared(
        "database_count",
        "sizes",
        "database files",
        summary.get("database_files_count"),
        files or None,
        0,
        0,
    )


def _log_writes(report: ReportedTest) -> Iterator[Finding]:
    """The share of log writes, log reads without a copy, replication without reads."""
    own, _, replication, total = _tables(report)
    parameters = report.get("jetstress_system_parameters") or {}
    copies = parameters.get("copies_per_database")
    writes, log_writes = (
        sum(_value(own, place, key) or 0 for place in own)
        for key in ("db_writes_per_sec", "log_writes_per_sec")
    )
    if writes and log_writes and not 0.35 <= log_writes / writes <= 0.51:
        yield Finding(
            "log_write_share",
            ODDITY,
            "all",
            f"log writes are {log_writes / writes:.2f} of database writes; published rules say "
            f"0.35 to 0.50",
        )
    log_reads = sum(_value(total or own, place, "log_reads_per_sec") or 0 for place in total or own)
    if copies == 1 and log_reads:
        yield Finding(
            "log_reads_without_copy",
            ODDITY,
            "all",
            f"logs are read {log_reads:g} times a second although there is no further copy to feed",
        )
    if copies and copies > 1 and total and not replication:
        yield Finding(
            "replication_missing",
            MISSING,
            "all",
            f"{copies} copies are stated, but no log replication is reported",
        )


def _log_volume(report: ReportedTest) -> Iterator[Finding]:
    """Bytes written to the logs against the logs that were counted.

    Needs a generation phase, whose log counts them.
    """
    seconds, own = window_s(report), _tables(report)[0]
    generated = events_of(report).get("log_files_generated")
    if seconds is None or generated is None:
        return
    for place, share in zip(own, shares_of(generated), strict=False):
        rate, size = (
            _value(own, place, "log_writes_per_sec"),
            _value(own, place, "log_write_avg_bytes"),
        )
        if rate and size and share:
            mib = rate * size * seconds / MIB / (5 * share)
            if not 0.9 <= mib <= 1.3:
                yield Finding(
                    "log_volume",
                    ODDITY,
                    place,
                    f"{mib:.2f} MiB were written for each counted log of 1 MB",
                )


RULES = (
    _total_reads,
    _achieved,
    _shares,
    _levels,
    _checksum,
    _backup,
    _verdict,
    _log_results,
    _times,
    _cache,
    _sizes,
    _log_writes,
    _log_volume,
)
