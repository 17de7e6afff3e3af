"""Which figures are compared, and which way is better.

The names are those of `plimsoll.plan.limits`, so that `--fail-if` and `--limit` speak of the same
things. A figure that neither way is better (reads for a write, memory) has no improvement, only a
change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.compare.sides import RunRead
from plimsoll.documents.document import DocumentError
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.report.published_cells import own_figures
from plimsoll.verdict.summary_fields import values_of

MORE, LESS, NEITHER = "more", "less", "neither"
#: Ends the name of a plain mean of samples.
OF_SAMPLES = "_of_samples"
RESPONSES = ("insert", "delete", "replace", "read")


@dataclass(frozen=True)
class Figure:
    """One figure of a run.

    Attributes:
        name: as in `plimsoll.plan.limits`.
        title: for people.
        unit: of its values.
        better: whether more or less of it is better.
        metrics: what of the samples it is made of; empty where samples cannot tell it.
        kind: how: "per_s", "bytes_per_s" or "latency_ms".
        scale: from the unit of the summary to the unit shown.
        load: whose it is, where an event has figures of several loads.
    """

    name: str
    title: str
    unit: str
    better: str
    metrics: tuple[str, ...] = ()
    kind: str = ""
    scale: float = 1.0
    load: str | None = None


_READS, _WRITES = ("database_read",), ("database_write",)
_LOG_READS = ("log_read", "log_replication")
MIB = 1 / 1048576

FIGURES = (
    Figure("database_iops", "Database IOPS", "1/s", MORE, _READS + _WRITES, "per_s"),
    Figure("total_database_read_per_s", "Database reads", "1/s", MORE, _READS, "per_s"),
    Figure("total_database_write_per_s", "Database writes", "1/s", MORE, _WRITES, "per_s"),
    Figure("total_log_read_with_replication_per_s", "Log reads", "1/s", MORE, _LOG_READS, "per_s"),
    Figure("total_log_write_per_s", "Log writes", "1/s", MORE, ("log_write",), "per_s"),
    Figure("transactions_per_s", "Transactions", "1/s", MORE, RESPONSES, "per_s"),
    Figure(
        "total_database_read_latency_ms_mean",
        "Database read latency, mean",
        "ms",
        LESS,
        _READS,
        "latency_ms",
    ),
    Figure("total_database_read_latency_ms_p99", "Database read latency, p99", "ms", LESS),
    Figure(
        "total_database_write_latency_ms_mean",
        "Database write latency, mean",
        "ms",
        LESS,
        _WRITES,
        "latency_ms",
    ),
    Figure(
        "total_log_read_with_replication_latency_ms_mean",
        "Log read latency, mean",
        "ms",
        LESS,
        _LOG_READS,
        "latency_ms",
    ),
    Figure(
        "total_log_write_latency_ms_mean",
        "Log write latency, mean",
        "ms",
        LESS,
        ("log_write",),
        "latency_ms",
    ),
    Figure("total_log_write_latency_ms_p99", "Log write latency, p99", "ms", LESS),
    Figure(
        "transactions_response_ms_mean",
        "Transaction response, mean",
        "ms",
        LESS,
        RESPONSES,
        "latency_ms",
    ),
    Figure("transactions_response_ms_p99", "Transaction response, p99", "ms", LESS),
    Figure("mail_score_ms", "Score of mail users, weighted p95", "ms", LESS),
    Figure(
        "total_database_read_bytes_per_s",
        "Database reads",
        "MiB/s",
        MORE,
        _READS,
        "bytes_per_s",
        MIB,
    ),
    Figure(
        "total_database_write_bytes_per_s",
        "Database writes",
        "MiB/s",
        MORE,
        _WRITES,
        "bytes_per_s",
        MIB,
    ),
    Figure("backup_mib_per_s", "Backup, all databases", "MiB/s", MORE),
    Figure("checksum_mib_per_s", "Checksum, all databases", "MiB/s", MORE),
    Figure("recovery_seconds_per_log", "Soft recovery for each log of 1 MiB", "s", LESS),
    Figure("reads_per_write", "Database reads for each write", "", NEITHER),
    Figure("memory_used_bytes", "Memory of the host in use, mean", "MiB", NEITHER, scale=MIB),
    Figure(
        "memory_available_mean", "Memory of the host available, mean", "MiB", NEITHER, scale=MIB
    ),
    Figure("cache_used_bytes", "Cache of all instances in use, mean", "MiB", NEITHER, scale=MIB),
    Figure("cpu_busy_mean", "Processor time in use, mean", "%", NEITHER, scale=100.0),
)


#: What published client loads print.
CLIENT_FIGURES = (
    Figure("orders_per_min", "Orders of the web shop", "1/min", MORE),
    Figure("orders_per_user_per_min", "Orders of each user", "1/min", MORE),
    Figure("mail_p95_weighted_ms", "Mail tasks, weighted mean of the p95", "ms", LESS),
    Figure("file_iops_per_user", "File server I/O for each user", "1/s", MORE),
)


_CLIENT_NAMES = frozenset(figure.name for figure in CLIENT_FIGURES)


def client_figures(run: RunRead) -> Mapping[str, float]:
    """What loads of users did, under the names of the papers; nothing where a plan is not ours."""
    if not isinstance(run.summary, Summary):
        return {}
    try:
        plan = Plan.from_plain(run.plan)
    except DocumentError:
        return {}
    return own_figures(plan, run.summary)


def as_imported() -> tuple[Figure, ...]:
    """The figures where a side was imported.

    Other tools print plain means of samples, so these are compared throughout.
    """
    return tuple(
        replace(
            figure,
            name=f"{figure.name}{OF_SAMPLES}",
            title=f"{figure.title} of samples",
            metrics=(),
            kind="",
        )
        if figure.name.endswith("_latency_ms_mean")
        else figure
        for figure in FIGURES
    )


def value_of(figure: Figure, run: RunRead) -> float | None:
    """A figure of one run in the unit shown, None where it was not measured."""
    value = _raw_value(figure.name, run) if run.stated is None else run.stated.get(figure.name)
    return None if value is None else value * figure.scale


def _raw_value(name: str, run: RunRead) -> float | None:
    summary = run.summary
    if name in _CLIENT_NAMES:
        return client_figures(run).get(name)
    match name:
        case "backup_mib_per_s":
            return _sum([item.mib_per_s for item in summary.backups])
        case "checksum_mib_per_s":
            return _sum([item.mib_per_s for item in summary.checksums])
        case "recovery_seconds_per_log":
            return _mean([item.seconds_per_log for item in summary.recoveries])
        case "mail_score_ms":
            return _mean([item.score.ms for item in summary.mail])
        case "reads_per_write":
            reads, writes = summary.total.database_read.per_s, summary.total.database_write.per_s
            return reads / writes if reads and writes else None
        case "memory_used_bytes":
            memory_kib = run.environment.get("machine", {}).get("memory_kib")
            available = summary.machine.get("memory_available")
            return memory_kib * 1024 - available.mean if memory_kib and available else None
        case "cache_used_bytes":
            levels = [item.cache_used_bytes for item in summary.instances]
            return sum(level.mean for level in levels if level) if any(levels) else None
    found = values_of(summary, name)
    return None if not found or found[0][1] is None else float(found[0][1])


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
