"""Run folders that no disk has seen.

The files of a run, made from stated rates, for tests of summary and report.

Every sample has the same rates, so each figure of the report is known in advance. `EMC` holds the
published figures of the two-hour run of the EMC VNXe3300 report, appendix C. What a real run adds
beside them (headers, metadata) is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from plimsoll.files import folder
from plimsoll.plan.complete import plan_of_options
from plimsoll.report import write_report
from plimsoll.units import NS_PER_S
from tests.support.plain_stages import judge, summarize, whole_outcome

#: Latency ms, rate per s and bytes of each purpose; of the two databases of the published run.
EMC: list[dict[str, tuple[float, float, float]]] = [
    {
        "database_read": (12.056, 102.641, 33763.495),
        "database_write": (8.037, 62.924, 37486.773),
        "maintenance": (12.056, 27.226, 261718.563),
        "log_write": (2.914, 51.545, 5173.336),
        "log_replication": (5.267, 1.093, 232553.766),
    },
    {
        "database_read": (13.492, 101.639, 33465.724),
        "database_write": (8.912, 62.285, 37574.287),
        "maintenance": (13.492, 23.42, 261690.19),
        "log_write": (4.192, 48.531, 5464.255),
        "log_replication": (6.509, 1.091, 232054.978),
    },
]
OPERATIONS = {"insert": 40, "delete": 20, "replace": 5, "read": 35}
LOGS = ("log_write", "log_replication")
START_S = 120
#: Where the latencies of a distribution lie, as multiples of their mean, and how many of a thousand
#: lie there.
SHAPE = ((0.3, 300), (0.6, 350), (1.2, 200), (2.0, 100), (4.0, 45), (8.0, 4), (14.0, 1))


def make_folder(
    path: Path,
    seconds: int = 7200,
    interval_s: int = 15,
    rates: list[dict[str, tuple[float, float, float]]] = EMC,
    further: list[dict[str, Any]] | None = None,
) -> Path:
    """The files of a finished run, up to `outcome.json`.

    `further` are samples as from `transfers`.
    """
    path.mkdir(parents=True)
    plan = _plan(seconds, interval_s, len(rates))
    folder.write_json(path / folder.PLAN, plan)
    folder.write_json(path / folder.ENVIRONMENT, _environment())
    folder.write_json(path / folder.OUTCOME, whole_outcome(_outcome(plan, seconds)))
    kernel_log = {"readable": True, "reason": None, "disks": ["sda", "sdb"], "lines": []}
    folder.write_json(path / folder.KERNEL_LOG, kernel_log)
    lines = [
        {
            "time_ns": int(at * NS_PER_S),
            "utc_ns": 0,
            "level": "info",
            "kind": kind,
            "phase": phase,
            "text": text,
        }
        for at, kind, phase, text in (
            (0, "phase_started", "prepare", "prepare started"),
            (START_S, "phase_started", "measure", "measure started"),
            (START_S + seconds, "phase_ended", "measure", "measure ended"),
        )
    ]
    (path / folder.EVENTS).write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    _write(path / folder.SAMPLES, _samples(rates, seconds, interval_s, further))
    _write(path / folder.HISTOGRAMS, _histograms(rates, seconds))
    return path


def make_slow_folder(path: Path) -> Path:
    """The published run on a storage whose reads take 25 ms."""
    return make_folder(
        path,
        rates=[{**place, "database_read": (25.0, *place["database_read"][1:])} for place in EMC],
    )


def finish(run_folder: Path) -> Path:
    """The stages after a run: summary, verdict, report."""
    plan, environment = (
        folder.read_json(run_folder / name) for name in (folder.PLAN, folder.ENVIRONMENT)
    )
    summary = summarize(run_folder)
    folder.write_json(run_folder / folder.SUMMARY, summary)
    folder.write_json(run_folder / folder.VERDICT, judge(plan, summary, environment))
    write_report(run_folder)
    return run_folder


def _plan(seconds: int, interval_s: int, count: int) -> dict[str, Any]:
    return plan_of_options(
        {
            "name": "published run",
            "sample_interval_ms": interval_s * 1000,
            "target": [{"name": "array", "path": "/srv/array"}],
            "instance": [
                {"name": f"instance{number}", "database_size_mib": 1_000_000, "copies": 2}
                for number in range(1, count + 1)
            ],
            "phase": [
                {"kind": "prepare"},
                {"kind": "measure", "duration_s": seconds},
                {"kind": "stop"},
                {"kind": "checksum"},
            ],
        }
    ).plain()


def _environment() -> dict[str, Any]:
    golden = Path(__file__).parents[1] / "golden" / "run" / folder.ENVIRONMENT
    environment: dict[str, Any] = json.loads(golden.read_text(encoding="utf-8"))
    return environment | {"warnings": []}


def _outcome(plan: dict[str, Any], seconds: int) -> dict[str, Any]:
    times = {
        "prepare": (0, START_S),
        "measure": (START_S, START_S + seconds),
        "stop": (START_S + seconds, START_S + seconds + 2),
        "checksum": (START_S + seconds + 2, START_S + seconds + 102),
    }
    instances = plan["run"]["instances"]
    phases = []
    for kind, (start, end) in times.items():
        size = 1_043_452_723_200 + (0 if kind == "prepare" else 536_870_912)
        databases = [
            [
                {
                    "path": f"/srv/array/{instance['name']}/database001.edb",
                    "size_bytes": size,
                    "records_ever": 1,
                }
            ]
            for instance in instances
        ]
        checksums = [
            {
                "instance": index,
                "database": 1,
                "path": databases[index][0]["path"],
                "pages_seen": size // 32768,
                "bad": 0,
                "correctable": 0,
                "wrong_page_number": 0,
                "uninitialized": 0,
                "seconds": 100.0 - index,
                "mib_per_s": size / 1048576 / (100.0 - index),
            }
            for index in range(len(instances))
        ]
        phases.append(
            {
                "name": kind,
                "kind": kind,
                "start_ns": start * NS_PER_S,
                "end_ns": end * NS_PER_S,
                "complete": True,
                "databases": databases,
                "checksums": checksums if kind == "checksum" else [],
            }
        )
    return {
        "schema_version": 1,
        "ending": "complete",
        "error": None,
        "debug_build": False,
        "virtual_time": False,
        "io_method": "io_uring",
        "io_remarks": [],
        "phases": phases,
        "devices": [
            {"instance": item["name"], "databases": "sda", "log": "sdb"} for item in instances
        ],
        "anchors": [{"monotonic_ns": 0, "utc_ns": 1_303_357_561 * NS_PER_S, "host_offset_ns": 0}],
    }


def _places(
    rates: list[dict[str, tuple[float, float, float]]],
) -> list[tuple[str, int, str, str, float, float, float]]:
    """Instance, database, workload, metric, mean ms, rate and size of everything that has
    transfers.
    """
    found = []
    for number, metrics in enumerate(rates, 1):
        for metric, (latency_ms, per_s, size) in metrics.items():
            found.append(
                (
                    f"instance{number}",
                    0 if metric in LOGS else 1,
                    "",
                    metric,
                    latency_ms,
                    per_s,
                    size,
                )
            )
        for operation, percent in OPERATIONS.items():
            # 10.482 batches of 32 transactions a second, of both databases.
            found.append(
                (
                    f"instance{number}",
                    1,
                    "mix",
                    operation,
                    15.0,
                    10.482 * 32 / 2 * percent / 100,
                    0.0,
                )
            )
    return found


def _samples(
    rates: list[dict[str, tuple[float, float, float]]],
    seconds: int,
    interval_s: int,
    further: list[dict[str, Any]] | None,
) -> dict[str, Any]:
    """Rows of one table: first what has transfers, then levels.

    Rates that are no whole number differ between samples.
    """
    ends = START_S + np.arange(interval_s, seconds + interval_s, interval_s)
    parts: list[dict[str, Any]] = []
    for instance, database, workload, metric, latency_ms, per_s, size in _places(rates):
        counts = np.diff(np.rint(np.concatenate(([0], ends - START_S)) * per_s)).astype(np.uint64)
        parts.append(
            _rows(ends, interval_s, instance, database, workload, metric)
            | {
                "count": counts,
                "bytes": np.rint(counts * size).astype(np.uint64),
                "latency_ns_sum": np.rint(counts * latency_ms * 1e6).astype(np.uint64),
                "latency_ns_max": np.full(len(ends), int(latency_ms * 15e6), np.uint64),
                "latency_ns_p99": np.full(len(ends), int(latency_ms * 4e6), np.uint64),
            }
        )
    for number in range(1, len(rates) + 1):
        for metric, value in (
            ("cache_used", 5.0e8),
            ("cache_limit", 5.4e8),
            ("in_flight", 2.6),
            ("executor_busy", 0.2),
        ):
            parts.append(
                _rows(ends, interval_s, f"instance{number}", 0, "", metric)
                | {"value": np.full(len(ends), value)}
            )
        parts.append(_rows(ends, interval_s, f"instance{number}", 0, "", "page_fault_stall"))
        # Both published databases together grew by 1024 MiB in steps of 8 MiB.
        steps = np.floor(np.linspace(0, 64.99, len(ends))) * 8 * 1048576
        parts.append(
            _rows(ends, interval_s, f"instance{number}", 1, "", "database_size") | {"value": steps}
        )
    parts += [*_machine(ends, interval_s, len(rates)), *(further or [])]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def transfers(
    phase: str,
    instance: str,
    metric: str,
    database: int,
    ends_s: Any,
    interval_s: int,
    each: tuple[int, int, int],
) -> dict[str, Any]:
    """Samples of one metric with the same count, bytes and sum of latencies in each."""
    ends = np.asarray(ends_s)
    count, size, latency_ns = (np.full(len(ends), value, np.uint64) for value in each)
    rows = _rows(ends, interval_s, instance, database, "", metric, phase)
    return rows | {"count": count, "bytes": size, "latency_ns_sum": latency_ns}


def levels(
    phase: str, instance: str, metric: str, ends_s: Any, interval_s: int, values: Any
) -> dict[str, Any]:
    """Samples of one level of an instance."""
    ends = np.asarray(ends_s)
    rows = _rows(ends, interval_s, instance, 0, "", metric, phase)
    return rows | {"value": np.asarray(values, dtype=float)}


def _machine(ends: Any, interval_s: int, count: int) -> list[dict[str, Any]]:
    """Processor and memory in both phases, and the disks under the checksum.

    One for the databases, one for the logs.
    """
    swing = np.tile([0.1, 0.3], len(ends))[: len(ends)]
    parts = [
        _rows(ends, interval_s, "instance1", 0, "", "cpu_busy") | {"value": swing},
        _rows(ends, interval_s, "instance1", 0, "", "memory_available")
        | {"value": np.full(len(ends), 15.2e9)},
    ]
    late = ends[-1] + 2 + np.arange(10, 110, 10)
    checksum = {"cpu_busy": 0.21, "memory_available": 15.7e9}
    for metric, value in checksum.items():
        parts.append(
            _rows(late, 10, "instance1", 0, "", metric, "checksum") | {"value": np.full(10, value)}
        )
    device = {
        "reads": 12954.46,
        "read_time": 12954.46 * 48e6,
        "read_bytes": 12954.46 * 65536,
        "busy": 0.99,
        "queue": 62.0,
    }
    for number in range(1, count + 1):
        for row, busy in ((1, True), (0, False)):
            for figure in (
                "reads",
                "writes",
                "read_time",
                "write_time",
                "read_bytes",
                "write_bytes",
                "busy",
                "queue",
            ):
                values = np.full(10, device.get(figure, 0.0) if busy else 0.0)
                parts.append(
                    _rows(late, 10, f"instance{number}", row, "", f"device_{figure}", "checksum")
                    | {"value": values}
                )
    return parts


def _rows(
    ends: Any,
    interval_s: int,
    instance: str,
    database: int,
    workload: str,
    metric: str,
    phase: str = "measure",
) -> dict[str, Any]:
    whole = dict.fromkeys(
        (
            "count",
            "errors",
            "bytes",
            "latency_ns_sum",
            "latency_ns_max",
            "latency_ns_p50",
            "latency_ns_p99",
        ),
        np.zeros(len(ends), np.uint64),
    )
    words = {
        "phase": phase,
        "host": "local",
        "instance": instance,
        "workload": workload,
        "metric": metric,
    }
    return {
        "end_ns": (ends * NS_PER_S).astype(np.uint64),
        "interval_ns": np.full(len(ends), interval_s * NS_PER_S, np.uint64),
        **{name: np.full(len(ends), word, dtype=object) for name, word in words.items()},
        "database": np.full(len(ends), database, np.uint32),
        **whole,
        "value": np.zeros(len(ends)),
    }


def _histograms(rates: list[dict[str, tuple[float, float, float]]], seconds: int) -> dict[str, Any]:
    rows = []
    for instance, database, workload, metric, latency_ms, per_s, _ in _places(rates):
        for factor, share in SHAPE:
            rows.append(
                {
                    "phase": "measure",
                    "instance": instance,
                    "database": database,
                    "workload": workload,
                    "metric": metric,
                    "upper_ns": int(latency_ms * factor * 1e6),
                    "count": round(per_s * seconds * share / 1000),
                    "latency_ns_sum": int(per_s * seconds * latency_ms * 1e6),
                    "latency_ns_max": int(latency_ms * 15e6),
                }
            )
    text = ("phase", "instance", "workload", "metric")
    return {
        name: np.array([row[name] for row in rows], dtype=object if name in text else np.uint64)
        for name in rows[0]
    }


def _write(path: Path, rows: dict[str, Any]) -> None:
    with duckdb.connect() as database:
        database.register("rows", rows)
        database.execute(f"COPY rows TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
