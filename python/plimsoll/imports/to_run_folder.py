"""An imported report as a run folder.

The files that a run of our own leaves, as far as the report can fill them.

`reported.json` holds everything the report says under the published names; summary, plan,
environment and outcome hold what means the same under ours, and null where the original holds
nothing. The verdict is the original's, word for word, never judged anew. A latency of the original
is the plain mean of its samples, so it stands as `latency_ms_mean_of_samples`; means weighted by
operations, percentiles and maxima were not measured. Every file says `imported`. From
`reported.json` the others can be made again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from plimsoll import __version__, settings
from plimsoll.documents.backup_figures import ReportedBackup, ReportedRecovery
from plimsoll.documents.document import plain
from plimsoll.documents.environment import Environment
from plimsoll.documents.figures import (
    Level,
    ReportedDatabaseFigures,
    ReportedInstanceFigures,
    ReportedResponses,
    ReportedTotals,
    ReportedTransfers,
    ReportedWindow,
    StallLevel,
)
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.reported import (
    IoTable,
    LogEvent,
    ReportedLevel,
    ReportedParameters,
    ReportedPaths,
    ReportedTest,
    read_reported,
)
from plimsoll.documents.summary import NO_LOAD, AnySummary, Generator, ReportedChecksum, ReportedIo
from plimsoll.documents.verdict import Verdict
from plimsoll.files import folder
from plimsoll.imports.consistency_checks import as_data, check, events_of, window_s
from plimsoll.imports.jetstress.config_read import EDITION_OF_VERSION
from plimsoll.imports.report_model import checksums_of, names_of
from plimsoll.imports.report_origin import limit_set, origin_of, run_name
from plimsoll.imports.reported_verdict import verdict_of
from plimsoll.plan.limits import TRANSFER_FIGURES

MIB = 1048576
KINDS = {
    "performance": "performance",
    "stress": "stress",
    "database_backup": "backup",
    "soft_recovery": "recovery",
    "checksum": "checksum",
}


def write_run_folder(path: Path, report: ReportedTest) -> Verdict:
    """Write the files of an imported run into a folder that exists; answers the verdict."""
    folder.write_json(path / folder.REPORTED, {"schema_version": 1, **report})
    return rebuild(path)


def rebuild(path: Path) -> Verdict:
    """Make every file of an imported run again from what was reported; answers the verdict.

    Raises:
        FolderError: `reported.json` is missing or damaged.
    """
    report = read_reported(path / folder.REPORTED)
    findings = {"schema_version": 1, "findings": as_data(check(report))}
    folder.write_json(path / folder.PLAN, plan_of(report))
    folder.write_json(path / folder.ENVIRONMENT, plain(environment_of(report)))
    outcome_of(report).write(path / folder.OUTCOME)
    summary_of(report).write(path / folder.SUMMARY)
    verdict = verdict_of(report)
    verdict.write(path / folder.VERDICT)
    folder.write_json(path / folder.CONSISTENCY, findings)
    return verdict


def _edition(report: ReportedTest) -> str | None:
    version = str((report.get("test_summary") or {}).get("jetstress_version") or "")
    return EDITION_OF_VERSION.get(version.partition(".")[0])


def plan_of(report: ReportedTest) -> dict[str, object]:
    """What was asked for, as far as the report tells."""
    parameters = report.get("jetstress_system_parameters") or {}
    places = report.get("database_configuration") or {}
    mix: LogEvent = events_of(report).get("operation_mix") or {}
    shares = {
        "insert_percent": parameters.get("insert_operations_pct", mix.get("insert_pct")),
        "delete_percent": parameters.get("delete_operations_pct", mix.get("delete_pct")),
        "replace_percent": parameters.get("replace_operations_pct", mix.get("replace_pct")),
        "read_percent": parameters.get("read_operations_pct", mix.get("read_pct")),
        "lazy_commit_percent": parameters.get("lazy_commits_pct", mix.get("lazy_commit_pct")),
    }
    threads = parameters.get("thread_count_per_database", parameters.get("thread_count"))
    load = {"sessions": threads, "shared": "thread_count" in parameters} if threads else {}
    names = names_of(report)
    return {
        "kind": "plan",
        "schema_version": settings.SCHEMA_VERSION,
        "imported": origin_of(report).plain(),
        "name": run_name(report),
        "description": (report.get("test_summary") or {}).get("description"),
        "stop_if": [],
        "run": {
            "schema_version": settings.SCHEMA_VERSION,
            "hosts": [
                {"name": (report.get("test_summary") or {}).get("machine_name") or "unknown"}
            ],
            "targets": [
                {"name": name, "host": None, "path": (places.get(name) or {}).get("database_file")}
                for name in names
            ],
            "instances": [
                _instance(name, places.get(name) or {}, parameters, report, len(names))
                for name in names
            ],
            "workloads": [
                {"name": "mix", "instances": names, "mix": shares, "load": load, "sluggish": None}
            ],
            "phases": [],
        },
        "judgement": {
            "limits": limit_set(report),
            "test": KINDS[report["test_type"]],
            "required_iops": (report.get("test_summary") or {}).get("target_transactional_iops"),
            "stated_limits": [],
            "editions": [_edition(report)] * len(names),
        },
    }


def _instance(
    name: str,
    place: ReportedPaths,
    parameters: ReportedParameters,
    report: ReportedTest,
    count: int,
) -> dict[str, object]:
    def bytes_of_each(mib: float | None) -> int | None:
        return round(mib * MIB / count) if mib else None

    files = [
        path
        for path in [place.get("database_file"), *place.get("further_database_files", [])]
        if path
    ]
    maintenance = parameters.get("run_background_database_maintenance")
    return {
        "name": name,
        "target": name,
        "backend": "jetstress",
        "directory": None,
        "log_directory": place.get("log_path"),
        "page_bytes": page_bytes(report),
        "databases": [{"file_name": path, "size_bytes": None} for path in files],
        # The tool states the cache of all databases together.
        "cache_bytes_min": bytes_of_each(parameters.get("minimum_database_cache_mb")),
        "cache_bytes_max": bytes_of_each(parameters.get("maximum_database_cache_mb")),
        "copies_count": parameters.get("copies_per_database"),
        "maintenance": {} if maintenance else None,
    }


def page_bytes(report: ReportedTest) -> int | None:
    """The page size, which only a checksum tells: length by pages."""
    rows = checksums_of(report)
    sizes = {
        round(length * MIB / pages / 1024) * 1024
        for row in rows
        if (pages := row.get("seen_pages")) and (length := row.get("file_length_mb"))
    }
    return sizes.pop() if len(sizes) == 1 else None


def environment_of(report: ReportedTest) -> Environment:
    """The machine as far as the report names it."""
    summary = report.get("test_summary") or {}
    return {
        "schema_version": 1,
        "imported": origin_of(report),
        "plimsoll": __version__,
        "machine": {
            "host_name": summary.get("machine_name"),
            "memory_kib": None,
            "cpu_model": None,
            "cpus_usable": None,
        },
        "operating_system": {"distribution": summary.get("operating_system"), "kernel": None},
        "targets": [],
        "warnings": [],
        "release_build": True,
    }


def outcome_of(report: ReportedTest) -> Outcome:
    """How it ended: a report is only written of a test that did."""
    return Outcome(
        schema_version=1,
        imported=origin_of(report),
        ending="complete",
        error=None,
        debug_build=False,
        virtual_time=False,
        io_method=None,
        io_remarks=(),
        phases=(),
        devices=(),
        anchors=(),
    )


def transfers(
    per_s: float | None = None, size: float | None = None, latency_ms: float | None = None
) -> ReportedTransfers:
    """Figures of one purpose: the three that the tool reports, the others not measured."""
    known = {
        "per_s": per_s,
        "bytes_mean_of_samples": size or None,
        "latency_ms_mean_of_samples": latency_ms or None,
    }
    return ReportedTransfers.from_plain({name: known.get(name) for name in TRANSFER_FIGURES})


#: Our metrics, the table each is in, and the columns for rate, size and latency.
DATABASE_METRICS = {
    "database_read": (
        "transactional_io",
        "db_reads_per_sec",
        "db_read_avg_bytes",
        "db_read_avg_latency_ms",
    ),
    "database_write": (
        "transactional_io",
        "db_writes_per_sec",
        "db_write_avg_bytes",
        "db_write_avg_latency_ms",
    ),
    "maintenance": (
        "background_database_maintenance_io",
        "bdm_reads_per_sec",
        "bdm_read_avg_bytes",
        "",
    ),
    "database_read_with_maintenance": (
        "total_io",
        "db_reads_per_sec",
        "db_read_avg_bytes",
        "db_read_avg_latency_ms",
    ),
}
LOG_METRICS = {
    "log_write": (
        "transactional_io",
        "log_writes_per_sec",
        "log_write_avg_bytes",
        "log_write_avg_latency_ms",
    ),
    "log_read": (
        "transactional_io",
        "log_reads_per_sec",
        "log_read_avg_bytes",
        "log_read_avg_latency_ms",
    ),
    "log_replication": (
        "log_replication_io",
        "log_replication_reads_per_sec",
        "log_replication_read_avg_bytes",
        "",
    ),
    "log_read_with_replication": (
        "total_io",
        "log_reads_per_sec",
        "log_read_avg_bytes",
        "log_read_avg_latency_ms",
    ),
}


def _figures(
    report: ReportedTest, place: str, metrics: Mapping[str, tuple[str, str, str, str]]
) -> dict[str, ReportedTransfers]:
    tables: dict[str, IoTable | None] = {
        "transactional_io": report.get("transactional_io"),
        "background_database_maintenance_io": report.get("background_database_maintenance_io"),
        "log_replication_io": report.get("log_replication_io"),
        "total_io": report.get("total_io"),
    }
    found = {}
    for name, (table, *columns) in metrics.items():
        row = (tables[table] or {}).get(place) or {}
        found[name] = transfers(*(row.get(column) for column in columns))
    return found


def summary_of(report: ReportedTest) -> AnySummary:
    """The figures in the vocabulary of `summary.json`."""
    host = report.get("host_system_performance") or {}
    stalls = host.get("database_page_fault_stalls_per_sec")
    databases = [_database(report, name) for name in names_of(report)]
    instances = [_instance_figures(report, name) for name in names_of(report)]
    checksums = _checksums(report)
    return AnySummary(
        schema_version=1,
        imported=origin_of(report),
        name=run_name(report),
        ending="complete",
        error=None,
        window=_window(report),
        total=_total(report, databases, instances, checksums),
        databases=databases,
        instances=instances,
        operations=(),
        generator=Generator(
            executor_busy_mean=None,
            executor_busy_max=None,
            reap_gap_ms_p99=None,
            arrival_lag_ms_p99=None,
        ),
        page_fault_stalls=_stalls(stalls) if stalls else None,
        load=NO_LOAD,
        machine=_machine(host),
        time_splits=(),
        transaction_splits=(),
        stalls=(),
        devices=(),
        checksums=checksums,
        checksum_reads=None,
        checksum_machine=_machine((report.get("checksum") or {}).get("host_performance") or {}),
        checksum_devices=(),
        backups=_backups(report),
        recoveries=_recoveries(report),
        kernel_log=None,
        phases=(),
        io=ReportedIo(method=None, remarks=()),
        debug_build=False,
        virtual_time=False,
    )


def _total(
    report: ReportedTest,
    databases: Sequence[ReportedDatabaseFigures],
    instances: Sequence[ReportedInstanceFigures],
    checksums: Sequence[ReportedChecksum],
) -> ReportedTotals:
    summary = report.get("test_summary") or {}
    initial = summary.get("initial_database_size_bytes")
    final = summary.get("final_database_size_bytes")
    damaged = [(row.bad, row.correctable, row.wrong_page_number) for row in checksums]
    of_databases = {
        metric: _sum([place.transfers(metric) for place in databases])
        for metric in DATABASE_METRICS
    }
    of_logs = {
        metric: _sum([place.transfers(metric) for place in instances]) for metric in LOG_METRICS
    }
    return ReportedTotals(
        database_iops=summary.get("achieved_transactional_iops"),
        transactions_per_s=None,
        database_read=of_databases["database_read"],
        database_write=of_databases["database_write"],
        maintenance=of_databases["maintenance"],
        database_read_with_maintenance=of_databases["database_read_with_maintenance"],
        log_write=of_logs["log_write"],
        log_read=of_logs["log_read"],
        log_replication=of_logs["log_replication"],
        log_read_with_replication=of_logs["log_read_with_replication"],
        transactions=ReportedResponses(count=None, per_s=None),
        errors_in_run=None,
        hung_in_run=None,
        missing_records=None,
        write_conflicts=None,
        initial_bytes=initial,
        final_bytes=final,
        grown_bytes=final - initial if initial and final else None,
        pages_verified=sum(row.pages_seen or 0 for row in checksums) if checksums else None,
        pages_damaged=sum(count or 0 for row in damaged for count in row) if checksums else None,
    )


def _window(report: ReportedTest) -> ReportedWindow:
    summary = report.get("test_summary") or {}
    counts = [
        event["samples"]
        for event in report.get("test_log_events") or []
        if event["event"] == "samples_queried"
    ]
    return ReportedWindow(
        start_utc=None,
        end_utc=None,
        # The tool prints the local time of its machine and not its zone.
        start_local=summary.get("collection_start"),
        end_local=summary.get("collection_end"),
        seconds=window_s(report),
        samples_count=counts[0] if counts else None,
        published_interval_s=settings.limits()["sample_interval_s"],
        complete=True,
    )


def _paths(report: ReportedTest, name: str) -> ReportedPaths:
    return (report.get("database_configuration") or {}).get(name) or {}


def _stem(path: str) -> str:
    """The name of a file without its folders and its ending."""
    return re.split(r"[\\/]", path)[-1].rpartition(".")[0]


def _database(report: ReportedTest, name: str) -> ReportedDatabaseFigures:
    path = _paths(report, name).get("database_file")
    figures = _figures(report, name, DATABASE_METRICS)
    read, write = figures["database_read"].per_s, figures["database_write"].per_s
    return ReportedDatabaseFigures(
        name=f"{name}/{_stem(path) if path else 'database'}",
        instance=name,
        database=1,
        path=path,
        initial_bytes=None,
        final_bytes=None,
        grown_bytes_measured=None,
        iops=None if read is None or write is None else read + write,
        database_read=figures["database_read"],
        database_write=figures["database_write"],
        maintenance=figures["maintenance"],
        database_read_with_maintenance=figures["database_read_with_maintenance"],
    )


def _instance_figures(report: ReportedTest, name: str) -> ReportedInstanceFigures:
    figures = _figures(report, name, LOG_METRICS)
    return ReportedInstanceFigures(
        name=name,
        log_directory=_paths(report, name).get("log_path"),
        log_write=figures["log_write"],
        log_read=figures["log_read"],
        log_replication=figures["log_replication"],
        log_read_with_replication=figures["log_read_with_replication"],
        page_fault_stalls_count=None,
        page_fault_stalls_per_s=None,
        cache_used_bytes=None,
        cache_limit_bytes=None,
        in_flight=None,
    )


def _sum(places: Sequence[ReportedTransfers]) -> ReportedTransfers:
    """All places together: rates add up.

    The published summaries take the plain mean of latencies.
    """
    rates = [place.per_s for place in places if place.per_s is not None]
    latencies = [
        latency for place in places if (latency := place.latency_ms_mean_of_samples) is not None
    ]
    known = latencies and len(latencies) == len(places)
    return transfers(
        sum(rates) if rates else None, None, sum(latencies) / len(latencies) if known else None
    )


def _stalls(level: ReportedLevel) -> StallLevel | None:
    mean = level.get("average")
    if mean is None:
        return None
    return StallLevel(mean=mean, min=level.get("minimum"), max=level.get("maximum"))


def _machine(counters: Mapping[str, ReportedLevel]) -> dict[str, Level]:
    """The two counters of the host that mean the same on Linux, in our units."""
    found = {}
    for name, key, factor in (
        ("cpu_busy", "processor_time_pct", 0.01),
        ("memory_available", "available_mbytes", MIB),
    ):
        level = counters.get(key) or {}
        mean, low, high = level.get("average"), level.get("minimum"), level.get("maximum")
        if mean is not None and low is not None and high is not None:
            found[name] = Level(mean=mean * factor, min=low * factor, max=high * factor)
    return found


def _checksums(report: ReportedTest) -> list[ReportedChecksum]:
    files = {
        place.get("database_file"): name
        for name, place in (report.get("database_configuration") or {}).items()
    }
    found = []
    for row in checksums_of(report):
        path, seconds, length = row["database"], row["elapsed_s"], row["file_length_mb"]
        if path.startswith("("):
            continue
        instance = files.get(path)
        found.append(
            ReportedChecksum(
                instance=instance,
                database=1,
                path=path,
                pages_seen=row["seen_pages"],
                bad=row["bad_pages"],
                correctable=row["correctable_pages"],
                wrong_page_number=row["wrong_page_number_pages"],
                uninitialized=None,
                seconds=seconds,
                mib_per_s=length / seconds if length and seconds else None,
                name=f"{instance}/{_stem(path)}" if instance else path,
            )
        )
    return found


def _backups(report: ReportedTest) -> list[ReportedBackup]:
    return [
        ReportedBackup(
            instance=name,
            database=1,
            bytes=round(size * MIB) if (size := row.get("database_size_mb")) else None,
            seconds=row.get("elapsed_s"),
            mib_per_s=row.get("mb_transferred_per_sec"),
            reads_count=None,
            read_latency_ms_mean=None,
        )
        for name, row in (report.get("database_backup_statistics") or {}).items()
        if not name.startswith("(")
    ]


def _recoveries(report: ReportedTest) -> list[ReportedRecovery]:
    found = []
    for name, row in (report.get("soft_recovery_statistics") or {}).items():
        count, seconds = row.get("log_files_replayed"), row.get("elapsed_s")
        if not name.startswith("("):
            found.append(
                ReportedRecovery(
                    instance=name,
                    phase="recovery",
                    log_bytes=None,
                    seconds=seconds,
                    pages_count=None,
                    logs_count=count,
                    seconds_per_log=seconds / count if seconds and count else None,
                    mib_per_s=None,
                )
            )
    return found
