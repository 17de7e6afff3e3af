"""Run folders of mail users that no server has seen.

The files that the run's contract promises, from stated latencies.

Latencies are given one by one, so that every percentile, the score and each level are known
beforehand. Distributions keep two digits, as those of a run do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from plimsoll.files import folder
from plimsoll.plan.complete import plan_of_options
from plimsoll.units import NS_PER_S
from tests.support.plain_stages import whole_outcome

START_S, SECONDS = 10, 60
#: A word for the audit of a run in which everything adds up.
SOUND = {
    "accounts": 50,
    "messages_sent": 90,
    "recipients_accepted": 360,
    "recipients_refused": 0,
    "recipients_unknown": 0,
    "received": 300,
    "deleted": 60,
    "doubled": 0,
    "missing": 0,
    "probes_sent": 6,
    "probes_seen": 6,
    "sent_copies": 90,
}


@dataclass
class MailRun:
    """What happened to mail users.

    Attributes:
        tasks: responses of each task in ms, by its metric.
        planned: tasks that came due, by metric; as many as were done where nothing is said.
        refused: tasks that the server refused, by metric.
        commands: latencies in ms, by metric.
        counters: events, by metric.
        levels: the value at each sample, by metric.
        audit: counts of the audit; none where the run did not come so far.
        findings: what did not add up.
        error: family and text of what ended the run.
        endpoints: levels and counts of each endpoint, by its number and metric.
        second_every: of so many tasks one is of the second endpoint; none where 0.
    """

    tasks: Mapping[str, Sequence[float]]
    planned: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    commands: Mapping[str, Sequence[float]] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, Sequence[float]] = field(default_factory=dict)
    audit: Mapping[str, int] | None = field(default_factory=lambda: SOUND)
    findings: Sequence[str] = ()
    error: tuple[str, str] | None = None
    endpoints: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    second_every: int = 2


def usual_run() -> MailRun:
    """50 users of the average profile on a server that answers within some milliseconds."""
    random = np.random.default_rng(1)
    return MailRun(
        tasks={
            "mail_read_and_process_messages": list(random.lognormal(3.0, 0.6, 1500)),
            "mail_send_mail": list(random.lognormal(3.5, 0.5, 60)),
            "mail_request_meeting": list(random.lognormal(3.5, 0.5, 40)),
        },
        commands={
            "mail_login": [12.0] * 50,
            "mail_page": list(random.lognormal(0.5, 0.4, 1500)),
            "mail_body": list(random.lognormal(0.8, 0.5, 900)),
            "mail_store": list(random.lognormal(1.2, 0.5, 900)),
            "mail_submit": list(random.lognormal(2.8, 0.5, 100)),
            "mail_delivery": [180.0, 190.0, 210.0, 220.0, 205.0, 198.0],
        },
        counters={
            "mail_messages_sent": 90,
            "mail_recipients_accepted": 360,
            "mail_messages_read": 900,
            "mail_bytes_read": 46_080_000,
            "mail_probes_sent": 6,
        },
        levels={
            "mail_open": [1.0, 2.0, 3.0],
            "mail_waiting": [0.0, 1.0, 0.0],
            "mail_queued": [1.0, 4.0, 2.0],
            "mail_commands_open": [2.0, 5.0, 3.0],
        },
    )


def mail_plan(
    passwords: Path,
    instance: Mapping[str, Any] | None = None,
    workload: Mapping[str, Any] | None = None,
    **further: Any,
) -> dict[str, Any]:
    """Options of a plan of 50 users of two front ends."""
    return {
        "name": "mail",
        "target": [{"name": "server"}],
        "instance": [
            {
                "name": "mail",
                "backend": "imap",
                "endpoints": ["imap://127.0.0.1:10143", "imap://127.0.0.2:10143"],
                "deliver": ["lmtp://127.0.0.1:10024"],
                "address": "u{n}@mail.example.org",
                "password_file": str(passwords),
                **(instance or {}),
            }
        ],
        "workload": [
            {
                "name": "mail",
                "weights": "mail-only",
                "day_h": 0.5,
                "load": {"users": 50},
                **(workload or {}),
            },
        ],
        "phase": [
            {"kind": "prepare"},
            {"kind": "measure", "duration_s": SECONDS},
            {"kind": "audit"},
            {"kind": "stop"},
        ],
        **further,
    }


def make_mail_folder(path: Path, run: MailRun | None = None, **plan: Any) -> Path:
    """The files of a run of mail users, up to `outcome.json`."""
    run = run or usual_run()
    path.mkdir(parents=True)
    passwords = path.parent / "passwords"
    passwords.write_text("*:a-word-of-tests\n", encoding="utf-8")
    completed = plan_of_options(mail_plan(passwords, **plan)).plain()
    folder.write_json(path / folder.PLAN, completed)
    golden = Path(__file__).parents[1] / "golden" / "run" / folder.ENVIRONMENT
    environment = json.loads(golden.read_text(encoding="utf-8")) | {"warnings": [], "targets": []}
    folder.write_json(path / folder.ENVIRONMENT, environment)
    folder.write_json(path / folder.OUTCOME, whole_outcome(_outcome(run)))
    nothing = {"readable": True, "reason": None, "disks": [], "lines": []}
    folder.write_json(path / folder.KERNEL_LOG, nothing)
    (path / folder.EVENTS).write_text("", encoding="utf-8")
    _write(path / folder.SAMPLES, _samples(run))
    _write(path / folder.HISTOGRAMS, _histograms(run))
    return path


def _outcome(run: MailRun) -> dict[str, Any]:
    times = {
        "prepare": (0, START_S),
        "measure": (START_S, START_S + SECONDS),
        "audit": (START_S + SECONDS, START_S + SECONDS + 5),
        "stop": (START_S + SECONDS + 5, START_S + SECONDS + 6),
    }
    ended = run.error is not None
    phases: list[dict[str, Any]] = []
    for kind, (start, end) in times.items():
        if ended and kind in ("audit", "stop"):
            continue
        databases = [
            [
                {"path": f"endpoint-{number}", "size_bytes": 0, "records_ever": 180}
                for number in (1, 2)
            ],
        ]
        audits = [
            {
                "instance": 0,
                "seconds": 5.0,
                "counts": dict(run.audit or {}),
                "findings": list(run.findings),
            }
        ]
        phases.append(
            {
                "name": kind,
                "kind": kind,
                "start_ns": start * NS_PER_S,
                "end_ns": end * NS_PER_S,
                "complete": not (ended and kind == "measure"),
                "databases": databases,
                "audits": audits if kind == "audit" and run.audit is not None else [],
            }
        )
    error = None if run.error is None else {"family": run.error[0], "text": run.error[1]}
    return {
        "schema_version": 1,
        "ending": "failed" if ended else "complete",
        "error": error,
        "debug_build": False,
        "virtual_time": False,
        "io_method": "io_uring",
        "io_remarks": [],
        "phases": phases,
        "devices": [{"instance": "mail", "databases": None, "log": None}],
        "anchors": [{"monotonic_ns": 0, "utc_ns": 1_700_000_000 * NS_PER_S, "host_offset_ns": 0}],
    }


def _timings(run: MailRun) -> list[tuple[str, int, Sequence[float]]]:
    """Metric, endpoint and latencies in ms of all that is timed.

    Tasks go to the two front ends in turn, if nothing else is said.
    """
    found: list[tuple[str, int, Sequence[float]]] = []
    every = run.second_every
    for metric, values in run.tasks.items():
        numbers = range(len(values))
        second = [number for number in numbers if every and number % every == every - 1]
        first = sorted(set(numbers) - set(second))
        found += [
            (metric, 1, [values[number] for number in first]),
            (metric, 2, [values[number] for number in second]),
            (f"{metric}_service", 1, values),
        ]
    return [*found, *((metric, 1, values) for metric, values in run.commands.items())]


def _samples(run: MailRun) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    count = len(next(iter(run.levels.values()), [0.0]))
    step_s = SECONDS / count

    def row(
        number: int, metric: str, database: int, workload: str = "mail", **values: float
    ) -> None:
        rows.append(
            {
                "end_ns": int((START_S + (number + 1) * step_s) * NS_PER_S),
                "interval_ns": int(step_s * NS_PER_S),
                "phase": "measure",
                "host": "local",
                "instance": "mail",
                "workload": workload,
                "metric": metric,
                "database": database,
                "count": 0,
                "errors": 0,
                "bytes": 0,
                "latency_ns_sum": 0,
                "latency_ns_max": 0,
                "latency_ns_p50": 0,
                "latency_ns_p99": 0,
                "value": 0.0,
                **values,
            }
        )

    for number in range(count):
        for metric, database, values in _timings(run):
            part = np.asarray(values[number::count])
            if len(part):
                row(
                    number,
                    metric,
                    database,
                    count=len(part),
                    latency_ns_sum=int(part.sum() * 1e6),
                    latency_ns_max=int(part.max() * 1e6),
                    latency_ns_p50=int(np.median(part) * 1e6),
                    latency_ns_p99=int(np.quantile(part, 0.99) * 1e6),
                )
        for metric, levels in run.levels.items():
            row(number, metric, 0, value=levels[number])
        row(number, "executor_busy", 0, workload="", value=0.1)
        for database, metrics in run.endpoints.items():
            row(number, "endpoint_sessions", database, value=metrics["endpoint_sessions"])
    for database, metrics in run.endpoints.items():
        for metric in ("endpoint_connections", "endpoint_refused", "endpoint_moved"):
            if metric in metrics:
                row(0, metric, database, count=int(metrics[metric]))
    for metric, values in run.tasks.items():
        row(
            0,
            f"{metric}_planned",
            1,
            count=run.planned.get(metric, len(values) + run.refused.get(metric, 0)),
        )
        if run.refused.get(metric):
            row(0, f"{metric}_refused", 1, count=run.refused[metric])
    for metric, total in run.counters.items():
        row(0, metric, 1, count=total)
    kinds = {"database": np.uint32, "value": float}
    text = ("phase", "host", "instance", "workload", "metric")
    return {
        name: np.array(
            [item[name] for item in rows],
            dtype=object if name in text else kinds.get(name, np.uint64),
        )
        for name in rows[0]
    }


def two_digits(value_ns: float) -> int:
    """The upper bound of the bucket of a latency: two digits, rounded up."""
    unit = 10 ** max(0, math.floor(math.log10(max(value_ns, 1))) - 1)
    return math.ceil(value_ns / unit) * unit


def _histograms(run: MailRun) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for metric, database, values in _timings(run):
        buckets: dict[int, int] = {}
        for value in values:
            upper = two_digits(value * 1e6)
            buckets[upper] = buckets.get(upper, 0) + 1
        rows += [
            {
                "phase": "measure",
                "instance": "mail",
                "database": database,
                "workload": "mail",
                "metric": metric,
                "upper_ns": upper,
                "count": count,
                "latency_ns_sum": int(sum(values) * 1e6),
                "latency_ns_max": int(max(values) * 1e6),
            }
            for upper, count in sorted(buckets.items())
        ]
    text = ("phase", "instance", "workload", "metric")
    return {
        name: np.array([item[name] for item in rows], dtype=object if name in text else np.uint64)
        for name in rows[0]
    }


def _write(path: Path, rows: dict[str, Any]) -> None:
    with duckdb.connect() as database:
        database.register("rows", rows)
        database.execute(f"COPY rows TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
