"""An imported report as a run folder: the files that a run of our own leaves, as far as the report can fill them.

`reported.json` holds everything the report says under the published names; summary, plan, environment and outcome hold
what means the same under ours, and null where the original holds nothing. The verdict is the original's, word for word,
never judged anew. A latency of the original is the plain mean of its samples, so it stands as
`latency_ms_mean_of_samples`; means weighted by operations, percentiles and maxima were not measured. Every file says
`imported`. From `reported.json` the others can be made again.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from plimsoll import __version__, settings
from plimsoll.documents import verdict as verdict_document
from plimsoll.files import folder
from plimsoll.imports.consistency_checks import JUDGED, as_data, check, window_s
from plimsoll.imports.jetstress.config_read import EDITION_OF_VERSION
from plimsoll.imports.report_model import checksums_of, names_of
from plimsoll.plan.limits import TRANSFER_FIGURES

MIB = 1048576
TOOL = "Jetstress"
KINDS = {
    "performance": "performance",
    "stress": "stress",
    "database_backup": "backup",
    "soft_recovery": "recovery",
    "checksum": "checksum",
}


def write_run_folder(path: Path, report: dict[str, Any]) -> dict[str, Any]:
    """Write the files of an imported run into a folder that exists; answers the verdict."""
    folder.write_json(path / folder.REPORTED, {"schema_version": 1, **report})
    return rebuild(path)


def is_imported(path: Path) -> bool:
    """Whether a folder holds an imported run."""
    return (path / folder.REPORTED).is_file()


def rebuild(path: Path) -> dict[str, Any]:
    """Make every file of an imported run again from what was reported; answers the verdict.

    Raises:
        FolderError: `reported.json` is missing or damaged.
    """
    report = folder.read_json(path / folder.REPORTED)
    if not isinstance(report, dict) or "test_type" not in report:
        raise folder.FolderError(f"{path / folder.REPORTED} holds no imported report; import the original again")
    verdict = verdict_of(report)
    files = {
        folder.PLAN: plan_of(report),
        folder.ENVIRONMENT: environment_of(report),
        folder.OUTCOME: outcome_of(report),
        folder.SUMMARY: summary_of(report),
        folder.VERDICT: verdict,
        folder.CONSISTENCY: {"schema_version": 1, "findings": as_data(check(report))},
    }
    for name, content in files.items():
        folder.write_json(path / name, content)
    return verdict


def origin_of(report: dict[str, Any]) -> dict[str, Any]:
    """The mark of an imported run: from which file and tool."""
    summary = report.get("test_summary") or {}
    source = report.get("source") or {}
    return {
        "tool": TOOL,
        "tool_version": summary.get("jetstress_version"),
        "engine_version": summary.get("ese_version"),
        "files": source.get("files") or [],
        "format": source.get("format"),
        "test_type": report["test_type"],
        "repairs": report.get("repairs") or [],
        "losses": report.get("losses") or [],
    }


def run_name(report: dict[str, Any]) -> str:
    """What to call an imported run."""
    summary = report.get("test_summary") or {}
    parts = [report["test_type"].replace("_", " "), summary.get("machine_name")]
    name = " ".join(part for part in parts if part)
    return re.sub(r"[^A-Za-z0-9 ._-]+", "-", name)[:60].strip() or "imported"


def _edition(report: dict[str, Any]) -> str | None:
    version = str((report.get("test_summary") or {}).get("jetstress_version") or "")
    return EDITION_OF_VERSION.get(version.partition(".")[0])


def plan_of(report: dict[str, Any]) -> dict[str, Any]:
    """What was asked for, as far as the report tells."""
    parameters = report.get("jetstress_system_parameters") or {}
    events = {event["event"]: event for event in report.get("test_log_events") or []}
    places = report.get("database_configuration") or {}
    mix = events.get("operation_mix") or {}
    shares = {
        f"{kind}_percent": parameters.get(f"{kind}_operations_pct", mix.get(f"{kind}_pct"))
        for kind in ("insert", "delete", "replace", "read")
    }
    shares["lazy_commit_percent"] = parameters.get("lazy_commits_pct", mix.get("lazy_commit_pct"))
    threads = parameters.get("thread_count_per_database", parameters.get("thread_count"))
    load = {"sessions": threads, "shared": "thread_count" in parameters} if threads else {}
    names = names_of(report)
    return {
        "kind": "plan",
        "schema_version": settings.SCHEMA_VERSION,
        "imported": origin_of(report),
        "name": run_name(report),
        "description": (report.get("test_summary") or {}).get("description"),
        "stop_if": [],
        "run": {
            "schema_version": settings.SCHEMA_VERSION,
            "hosts": [{"name": (report.get("test_summary") or {}).get("machine_name") or "unknown"}],
            "targets": [
                {"name": name, "host": None, "path": (places.get(name) or {}).get("database_file")} for name in names
            ],
            "instances": [_instance(name, places.get(name) or {}, parameters, report, len(names)) for name in names],
            "workloads": [{"name": "mix", "instances": names, "mix": shares, "load": load, "sluggish": None}],
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
    name: str, place: dict[str, Any], parameters: dict[str, Any], report: dict[str, Any], count: int
) -> dict[str, Any]:
    def cache(key: str) -> int | None:
        value = parameters.get(key)
        return round(value * MIB / count) if value else None

    files = [path for path in [place.get("database_file"), *place.get("further_database_files", [])] if path]
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
        "cache_bytes_min": cache("minimum_database_cache_mb"),
        "cache_bytes_max": cache("maximum_database_cache_mb"),
        "copies_count": parameters.get("copies_per_database"),
        "maintenance": {} if maintenance else None,
    }


def page_bytes(report: dict[str, Any]) -> int | None:
    """The page size, which only a checksum tells: length by pages."""
    rows = checksums_of(report)
    sizes = {
        round(row["file_length_mb"] * MIB / row["seen_pages"] / 1024) * 1024
        for row in rows
        if row.get("seen_pages") and row.get("file_length_mb")
    }
    return sizes.pop() if len(sizes) == 1 else None


def limit_set(report: dict[str, Any]) -> str:
    """The limits that the log announced; by the kind of test where it did not."""
    for event in report.get("test_log_events") or []:
        if event["event"] == "db_read_latency_thresholds":
            return "lenient" if event["maximum_ms"] > 100 else "strict"
    return "lenient" if report["test_type"] == "stress" else "strict"


def environment_of(report: dict[str, Any]) -> dict[str, Any]:
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


def outcome_of(report: dict[str, Any]) -> dict[str, Any]:
    """How it ended: a report is only written of a test that did."""
    return {
        "schema_version": 1, "imported": origin_of(report), "ending": "complete", "error": None, "debug_build": False,
        "virtual_time": False, "io_method": None, "io_remarks": [], "phases": [], "devices": [], "anchors": [],
    }  # fmt: skip


def transfers(per_s: float | None = None, size: float | None = None, latency_ms: float | None = None) -> dict[str, Any]:
    """Figures of one purpose: the three that the tool reports, the others not measured."""
    known = {"per_s": per_s, "bytes_mean_of_samples": size or None, "latency_ms_mean_of_samples": latency_ms or None}
    return {name: known.get(name) for name in TRANSFER_FIGURES}


#: Our metrics, the table each is in, and the columns for rate, size and latency.
DATABASE_METRICS = {
    "database_read": ("transactional_io", "db_reads_per_sec", "db_read_avg_bytes", "db_read_avg_latency_ms"),
    "database_write": ("transactional_io", "db_writes_per_sec", "db_write_avg_bytes", "db_write_avg_latency_ms"),
    "maintenance": ("background_database_maintenance_io", "bdm_reads_per_sec", "bdm_read_avg_bytes", ""),
    "database_read_with_maintenance": ("total_io", "db_reads_per_sec", "db_read_avg_bytes", "db_read_avg_latency_ms"),
}
LOG_METRICS = {
    "log_write": ("transactional_io", "log_writes_per_sec", "log_write_avg_bytes", "log_write_avg_latency_ms"),
    "log_read": ("transactional_io", "log_reads_per_sec", "log_read_avg_bytes", "log_read_avg_latency_ms"),
    "log_replication": ("log_replication_io", "log_replication_reads_per_sec", "log_replication_read_avg_bytes", ""),
    "log_read_with_replication": ("total_io", "log_reads_per_sec", "log_read_avg_bytes", "log_read_avg_latency_ms"),
}


def _figures(report: dict[str, Any], place: str, metrics: dict[str, tuple[str, str, str, str]]) -> dict[str, Any]:
    found = {}
    for name, (table, *columns) in metrics.items():
        row = (report.get(table) or {}).get(place) or {}
        found[name] = transfers(*(row.get(column) for column in columns))
    return found


def summary_of(report: dict[str, Any]) -> dict[str, Any]:
    """The figures in the vocabulary of `summary.json`."""
    names, summary = names_of(report), report.get("test_summary") or {}
    databases, instances = (
        [_database(report, name) for name in names],
        [_instance_figures(report, name) for name in names],
    )
    checksums = _checksums(report)
    initial, final = summary.get("initial_database_size_bytes"), summary.get("final_database_size_bytes")
    stalls = (report.get("host_system_performance") or {}).get("database_page_fault_stalls_per_sec")
    return {
        "schema_version": 1,
        "imported": origin_of(report),
        "name": run_name(report),
        "ending": "complete",
        "error": None,
        "window": _window(report),
        "total": {
            "database_iops": summary.get("achieved_transactional_iops"),
            "transactions_per_s": None,
            **{metric: _sum([item[metric] for item in databases]) for metric in DATABASE_METRICS},
            **{metric: _sum([item[metric] for item in instances]) for metric in LOG_METRICS},
            "transactions": dict.fromkeys(("count", "per_s")),
            "errors_in_run": None, "hung_in_run": None, "missing_records": None, "write_conflicts": None,
            "initial_bytes": initial,
            "final_bytes": final,
            "grown_bytes": final - initial if initial and final else None,
            "pages_verified": sum(item["pages_seen"] or 0 for item in checksums) if checksums else None,
            "pages_damaged": sum(sum(item[key] or 0 for key in ("bad", "correctable", "wrong_page_number")) for item in checksums) if checksums else None,
        },
        "databases": databases,
        "instances": instances,
        "operations": [],
        "generator": dict.fromkeys(("executor_busy_mean", "executor_busy_max", "reap_gap_ms_p99", "arrival_lag_ms_p99")),
        "page_fault_stalls": _level(stalls) if stalls else None,
        "load": {"outstanding_mean": dict.fromkeys(("database_read", "database_write", "log_write")), "workloads": [], "searches": []},
        "machine": _machine(report.get("host_system_performance")),
        "time_splits": [], "transaction_splits": [], "stalls": [], "devices": [],
        "checksums": checksums,
        "checksum_reads": None,
        "checksum_machine": _machine((report.get("checksum") or {}).get("host_performance")),
        "checksum_devices": [],
        "backups": _backups(report),
        "recoveries": _recoveries(report),
        "kernel_log": None,
        "phases": [],
        "io": {"method": None, "remarks": []},
        "debug_build": False,
        "virtual_time": False,
    }  # fmt: skip


def _window(report: dict[str, Any]) -> dict[str, Any]:
    summary, seconds = report.get("test_summary") or {}, window_s(report)
    counts = [event["samples"] for event in report.get("test_log_events") or [] if event["event"] == "samples_queried"]
    return {
        "start_utc": None,
        "end_utc": None,
        # The tool prints the local time of its machine and not its zone.
        "start_local": summary.get("collection_start"),
        "end_local": summary.get("collection_end"),
        "seconds": seconds,
        "samples_count": counts[0] if counts else None,
        "published_interval_s": settings.limits()["sample_interval_s"],
        "complete": True,
    }


def _database(report: dict[str, Any], name: str) -> dict[str, Any]:
    path = ((report.get("database_configuration") or {}).get(name) or {}).get("database_file")
    figures = _figures(report, name, DATABASE_METRICS)
    rates = [figures[metric]["per_s"] for metric in ("database_read", "database_write")]
    stem = re.split(r"[\\/]", path)[-1].rpartition(".")[0] if path else "database"
    return {
        "name": f"{name}/{stem}", "instance": name, "database": 1, "path": path, "initial_bytes": None, "final_bytes": None,
        "grown_bytes_measured": None, "iops": sum(rates) if None not in rates else None, **figures,
    }  # fmt: skip


def _instance_figures(report: dict[str, Any], name: str) -> dict[str, Any]:
    place = (report.get("database_configuration") or {}).get(name) or {}
    return {
        "name": name, "log_directory": place.get("log_path"), **_figures(report, name, LOG_METRICS),
        "page_fault_stalls_count": None, "page_fault_stalls_per_s": None, "cache_used_bytes": None,
        "cache_limit_bytes": None, "in_flight": None,
    }  # fmt: skip


def _sum(places: list[dict[str, Any]]) -> dict[str, Any]:
    """All places together: rates add up; the published summaries take the plain mean of latencies."""
    rates = [place["per_s"] for place in places]
    latencies = [place["latency_ms_mean_of_samples"] for place in places]
    known = latencies and None not in latencies
    return transfers(
        sum(rate for rate in rates if rate is not None) if any(rate is not None for rate in rates) else None,
        None,
        sum(latencies) / len(latencies) if known else None,
    )


def _level(level: dict[str, Any]) -> dict[str, Any]:
    return {"mean": level.get("average"), "min": level.get("minimum"), "max": level.get("maximum")}


def _machine(counters: dict[str, Any] | None) -> dict[str, Any]:
    """The two counters of the host that mean the same on Linux, in our units."""
    found = {}
    for name, key, factor in (("cpu_busy", "processor_time_pct", 0.01), ("memory_available", "available_mbytes", MIB)):
        level = (counters or {}).get(key)
        if level and None not in _level(level).values():
            found[name] = {figure: value * factor for figure, value in _level(level).items()}
    return found


def _checksums(report: dict[str, Any]) -> list[dict[str, Any]]:
    files = {place.get("database_file"): name for name, place in (report.get("database_configuration") or {}).items()}
    found = []
    for row in checksums_of(report):
        if row["database"].startswith("("):
            continue
        seconds, length = row["elapsed_s"], row["file_length_mb"]
        instance = files.get(row["database"])
        stem = re.split(r"[\\/]", row["database"])[-1].rpartition(".")[0]
        found.append(
            {
                "instance": instance, "database": 1, "path": row["database"], "pages_seen": row["seen_pages"],
                "bad": row["bad_pages"], "correctable": row["correctable_pages"],
                "wrong_page_number": row["wrong_page_number_pages"], "uninitialized": None, "seconds": seconds,
                "mib_per_s": length / seconds if length and seconds else None, "name": f"{instance}/{stem}" if instance else row["database"],
            }
        )  # fmt: skip
    return found


def _backups(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "instance": name, "database": 1, "bytes": round(row["database_size_mb"] * MIB) if row.get("database_size_mb") else None,
            "seconds": row.get("elapsed_s"), "mib_per_s": row.get("mb_transferred_per_sec"), "reads_count": None,
            "read_latency_ms_mean": None,
        }
        for name, row in (report.get("database_backup_statistics") or {}).items()
        if not name.startswith("(")
    ]  # fmt: skip


def _recoveries(report: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for name, row in (report.get("soft_recovery_statistics") or {}).items():
        count, seconds = row.get("log_files_replayed"), row.get("elapsed_s")
        if not name.startswith("("):
            found.append(
                {
                    "instance": name, "phase": "recovery", "log_bytes": None, "seconds": seconds, "pages_count": None, "logs_count": count,
                    "seconds_per_log": seconds / count if seconds and count else None, "mib_per_s": None,
                }
            )  # fmt: skip
    return found


RESULTS = {"pass": "pass", "passed": "pass", "fail": "fail", "failed": "fail"}


def verdict_of(report: dict[str, Any]) -> dict[str, Any]:
    """The verdict of the original, its limits beside the figures it judged; nothing is judged anew."""
    summary = report.get("test_summary") or {}
    said = str(summary.get("overall_result") or "")
    result = RESULTS.get(said.lower(), "inconclusive")
    tool = f"{TOOL} {summary.get('jetstress_version') or 'of an unknown version'}"
    word = said or "No result stated"
    achieved = summary.get("achieved_transactional_iops")
    throughput = f"{achieved:.0f} database IOPS" if achieved is not None else "no rate stated"
    reasons = [f"{tool} said: {word}", *(f"issue: {text}" for text in report.get("issues") or [])]
    return {
        "schema_version": verdict_document.SCHEMA_VERSION,
        "imported": origin_of(report),
        "result": result,
        "headline": f"{word} (imported: said by {tool})",
        "limits": limit_set(report),
        "limits_meaning": settings.limits()["sets"][limit_set(report)],
        "reasons": reasons,
        "throughput": throughput,
        "checks": _checks(report, result),
        "bottlenecks": [],
        "qualifying": False,
        "not_qualifying_because": ["the figures were imported: Plimsoll measured and judged nothing of it"],
        "doubts": [],
        "generator_limited": [],
        "required_iops": summary.get("target_transactional_iops"),
        "achieved_iops": achieved,
        "headroom": None,
        "user_equivalents": [],
    }


def _checks(report: dict[str, Any], result: str) -> list[dict[str, Any]]:
    """The averages that the tool judges, each with its limit; the maxima it judged too are printed nowhere."""
    events = {event["event"]: event for event in report.get("test_log_events") or []}
    if report["test_type"] not in ("performance", "stress"):
        return []
    found = []
    for key, event, _ in JUDGED:
        metric = "database_read" if key.startswith("db") else "log_write"
        rules = [
            rule
            for rule in settings.limits()["check"]
            if rule["metric"] == metric and rule["statistic"] in ("mean", "sample_mean_max")
        ]
        for rule in rules:
            is_mean = rule["statistic"] == "mean"
            limit = (events.get(event) or {}).get(
                "average_ms" if is_mean else "maximum_ms", rule["limit"][limit_set(report)]
            )
            for place, row in (report.get("transactional_io") or {}).items():
                measured = row.get(key) if is_mean else None
                found.append(_one_check(rule, place, measured, limit, result))
    return found


def _one_check(rule: dict[str, Any], place: str, measured: float | None, limit: float, result: str) -> dict[str, Any]:
    if measured is not None:
        status = "pass" if measured <= limit else "fail"
        reason = f"{measured:g} ms, the plain mean of the original's samples; its limit is {limit:g} ms"
    else:
        status, reason = "not_evaluated", "not measured: the original's report does not print it"
        if result == "pass":
            reason += ", but the original would have failed beyond it"
    return {
        "name": rule["name"], "title": rule["title"], "scope": place, "metric": rule["metric"],
        "statistic": "mean_of_samples" if rule["statistic"] == "mean" else rule["statistic"], "measured": measured, "limit": limit,
        "unit": "ms", "status": status, "reason": reason, "source": "the test log of the original, or the published thresholds", "doubts": [],
    }  # fmt: skip


def local_time(report: dict[str, Any]) -> datetime | None:
    """When the test began, on the clock of its machine."""
    events = report.get("test_log_events") or []
    text = (report.get("test_summary") or {}).get("test_start") or (events[0]["t"] if events else None)
    return datetime.fromisoformat(text) if text else None
