"""A run folder made of rows written by hand.

Ten seconds of an engine on one disk, into which a bottleneck is planted.

The quiet run: 100 reads a second of 5 ms, of which the block layer counted 4.8, log writes of 1 ms
on the same disk, a generator that is mostly asleep. A test changes what it plants and leaves the
rest."""

import json
from pathlib import Path
from typing import Any

import duckdb

from plimsoll.files import folder
from plimsoll.plan.complete import plan_of_options
from tests.support.plain_stages import judge, summarize, whole_outcome

SECOND = 1_000_000_000
MS = 1_000_000
SECONDS = 10
ENVIRONMENT: dict[str, Any] = {"machine": {"memory_kib": 1024}, "warnings": [], "targets": []}

#: Rows of every second: (metric, database) to columns. `each_ns` is the latency of each event.
QUIET: dict[tuple[str, int], dict[str, float]] = {
    ("database_read", 1): {"count": 100, "each_ns": 5 * MS, "bytes": 100 * 32768},
    ("database_write", 1): {"count": 50, "each_ns": 3 * MS, "bytes": 50 * 32768},
    ("log_write", 0): {"count": 40, "each_ns": MS, "bytes": 40 * 4096},
    ("read", 1): {"count": 50, "each_ns": 11 * MS},
    ("replace", 1): {"count": 50, "each_ns": 11 * MS},
    ("log_flush_wait", 1): {"count": 100, "each_ns": MS},
    ("handing_over", 1): {"value": 100 * 0.05 * MS},
    ("handing_over", 0): {"value": 40 * 0.05 * MS},
    ("reap_gap", 0): {
        "count": 1000,
        "each_ns": 0.02 * MS,
        "latency_ns_p50": 20_000,
        "latency_ns_p99": 40_000,
    },
    ("page_fault_stall", 0): {"count": 0},
    ("executor_busy", 0): {"value": 0.1},
    ("executor_wait", 0): {"value": 0.01},
    ("cpu_busy", 0): {"value": 0.2},
    ("cpu_stolen", 0): {"value": 0.0},
    ("cpu_throttled", 0): {"value": 0.0},
    ("pressure_io_some", 0): {"value": 0.3},
    ("pressure_cpu_some", 0): {"value": 0.05},
} | {
    (f"device_{name}", row): {"value": value}
    for row in (0, 1)
    for name, value in {
        "reads": 100.0,
        "read_bytes": 100 * 32768.0,
        "read_time": 100 * 4.8 * MS,
        "writes": 90.0,
        "write_bytes": 50 * 32768 + 40 * 4096.0,
        "write_time": 90 * 0.7 * MS,
        "flushes": 40.0,
        "flush_time": 40 * 0.2 * MS,
        "busy": 0.6,
        "queue": 0.7,
    }.items()
}


def judged(
    path: Path,
    planted: dict[tuple[str, int], dict[str, float]],
    stalls: list[dict[str, Any]] | None = None,
    **plan: Any,
) -> dict[str, Any]:
    """The verdict on the quiet run with some rows changed, some stalls, and further keys of the
    plan.
    """
    summary = summarize(run_folder(path, planted, stalls, **plan))
    return judge(folder.read_json(path / folder.PLAN), summary, ENVIRONMENT)


def run_folder(
    path: Path,
    planted: dict[tuple[str, int], dict[str, float]],
    stalls: list[dict[str, Any]] | None = None,
    **plan: Any,
) -> Path:
    """The folder of the quiet run with what is planted."""
    options = {
        "name": "planted",
        "target": [{"name": "disk", "path": "/data"}],
        "instance": [{"name": "one", "database_size_mib": 64 * 1024}],
        "phase": [
            {"kind": "prepare"},
            {"kind": "measure", "duration_s": SECONDS},
            {"kind": "stop"},
        ],
    }
    path.mkdir(exist_ok=True)
    folder.write_json(path / folder.PLAN, plan_of_options({**options, **plan}).plain())
    folder.write_json(path / folder.OUTCOME, whole_outcome(_outcome(stalls or [])))
    kernel_log = {"readable": True, "reason": None, "disks": ["vda"], "lines": []}
    folder.write_json(path / folder.KERNEL_LOG, {"schema_version": 1, **kernel_log})
    rows = {key: {**QUIET.get(key, {}), **planted.get(key, {})} for key in {**QUIET, **planted}}
    content = [
        _row(second, *key, values)
        for second in range(1, SECONDS + 1)
        for key, values in sorted(rows.items())
    ]
    _write(path / folder.SAMPLES, content)
    _write(
        path / folder.HISTOGRAMS,
        [_bucket(*key, values) for key, values in sorted(rows.items()) if "each_ns" in values],
    )
    return path


def stall(
    begun_s: float, page_ms: float, flush_ms: float, engine_ms: float = 0.0
) -> dict[str, Any]:
    """A transaction that spent its time on one page read, on the engine, then on one log write."""
    begun = int((1 + begun_s) * SECOND)
    read_done = begun + int(page_ms * MS)
    commit = read_done + int(engine_ms * MS)
    finished = commit + int(flush_ms * MS)
    read = {
        "purpose": "database_read",
        "asked_ns": begun,
        "submitted_ns": begun,
        "completed_ns": read_done,
    }
    log = {
        "purpose": "log_write",
        "asked_ns": commit,
        "submitted_ns": commit,
        "completed_ns": finished,
    }
    return {
        "phase": 1,
        "instance": 0,
        "database": 1,
        "operation": "replace",
        "begun_ns": begun,
        "commit_begun_ns": commit,
        "finished_ns": finished,
        "page_io": read if page_ms else None,
        "log_io": log if flush_ms else None,
    }


def _outcome(stalls: list[dict[str, Any]]) -> dict[str, Any]:
    database = {"path": "/data/one/database001.edb", "size_bytes": 64 << 30, "records_ever": 5}
    times = {"prepare": (0, 1), "measure": (1, 1 + SECONDS), "stop": (1 + SECONDS, 2 + SECONDS)}
    checksum = {
        "instance": 0,
        "database": 1,
        "pages_seen": 1,
        "bad": 0,
        "correctable": 0,
        "wrong_page_number": 0,
    }
    phases = [
        {
            "name": kind,
            "kind": kind,
            "start_ns": start * SECOND,
            "end_ns": end * SECOND,
            "complete": True,
            "databases": [[database]],
            "checksums": [checksum] if kind == "stop" else [],
        }
        for kind, (start, end) in times.items()
    ]
    return {
        "ending": "complete",
        "error": None,
        "debug_build": False,
        "virtual_time": False,
        "io_method": "io_uring",
        "io_remarks": [],
        "anchors": [{"monotonic_ns": 0, "utc_ns": 0, "host_offset_ns": 0}],
        "phases": phases,
        "devices": [{"instance": "one", "databases": "vda", "log": "vda"}],
        "stalls": stalls,
    }


def _row(second: int, metric: str, database: int, values: dict[str, float]) -> dict[str, Any]:
    count, each = int(values.get("count", 0)), values.get("each_ns", 0.0)
    return {
        "end_ns": (1 + second) * SECOND,
        "interval_ns": SECOND,
        "phase": "measure",
        "host": "local",
        "instance": "one",
        "database": database,
        "workload": "",
        "metric": metric,
        "count": count,
        "errors": int(values.get("errors", 0)),
        "bytes": int(values.get("bytes", 0)),
        "latency_ns_sum": int(count * each),
        "latency_ns_max": int(values.get("latency_ns_max", each)),
        "latency_ns_p50": int(values.get("latency_ns_p50", each)),
        "latency_ns_p99": int(values.get("latency_ns_p99", each)),
        "value": float(values.get("value", 0.0)),
    }


def _bucket(metric: str, database: int, values: dict[str, float]) -> dict[str, Any]:
    upper = int(values.get("latency_ns_p99", values["each_ns"]))
    count = int(values.get("count", 0)) * SECONDS
    place = {
        "phase": "measure",
        "instance": "one",
        "database": database,
        "workload": "",
        "metric": metric,
    }
    sums = {"latency_ns_sum": int(count * values["each_ns"]), "latency_ns_max": upper}
    return {**place, **sums, "upper_ns": upper, "count": count}


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    source = path.with_suffix(".json")
    source.write_text(json.dumps(rows))
    duckdb.sql(f"COPY (SELECT * FROM read_json('{source}')) TO '{path}' (FORMAT parquet)")
    source.unlink()
