"""Limits that a person adds.

`log_write_latency_ms_p99<5` on any field of the summary, and which fields there are.

A field is written with its name alone and is checked wherever it occurs: for every database,
instance, workload or operation, or once for the run. The catalogue here is what `plimsoll.verdict`
finds in a summary; a test holds both together. `db_` may stand for `database_`. The text states
what must hold, so `<5` fails at 5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from plimsoll.errors import InvalidValueError
from plimsoll.inputs.mistakes import nearest_names
from plimsoll.workloads.families import OPERATIONS

COMPARISONS = ("<=", ">=", "<", ">")
_EXPRESSION = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(<=|>=|==|=|<|>)\s*(\S+)\s*")

#: Figures of everything that is transferred.
TRANSFER_FIGURES = (
    "count",
    "errors",
    "per_s",
    "bytes_per_s",
    "bytes_mean",
    "bytes_mean_of_samples",
    "latency_ms_mean",
    "latency_ms_mean_of_samples",
    "latency_ms_mean_over_time",
    "latency_ms_sample_mean_max",
    "latency_ms_p50",
    "latency_ms_p90",
    "latency_ms_p95",
    "latency_ms_p99",
    "latency_ms_p999",
    "latency_ms_max",
)
RESPONSE_FIGURES = (
    "count",
    "per_s",
    "response_ms_mean",
    "response_ms_p50",
    "response_ms_p90",
    "response_ms_p95",
    "response_ms_p99",
    "response_ms_p999",
    "response_ms_max",
)
LEVEL_FIGURES = ("mean", "min", "max")
DATABASE_METRICS = (
    "database_read",
    "database_write",
    "maintenance",
    "database_read_with_maintenance",
)
INSTANCE_METRICS = ("log_write", "log_read", "log_replication", "log_read_with_replication")
TOTAL_METRICS = (*DATABASE_METRICS, *INSTANCE_METRICS)
#: Sizes that a database has too, in the names of limits with `total_` before them.
TOTAL_SIZES = ("initial_bytes", "final_bytes")
#: Figures of a backup and of a recovery; of each database, of each instance.
BACKUP_FIGURES = ("bytes", "seconds", "mib_per_s", "read_latency_ms_mean")
RECOVERY_FIGURES = (
    "seconds",
    "seconds_per_log",
    "mib_per_s",
    "pages_read_per_log",
    "writes_per_log",
)
MACHINE_LEVELS = (
    "executor_wait",
    "cpu_busy",
    "cpu_stolen",
    "cpu_throttled",
    "memory_available",
    "pressure_io_some",
    "pressure_io_full",
    "pressure_cpu_some",
    "pressure_memory_some",
    "pressure_memory_full",
)


def _joined(names: tuple[str, ...], figures: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}_{figure}" for name in names for figure in figures)


#: Every field that can be limited, by what it belongs to.
FIELDS: dict[str, tuple[str, ...]] = {
    "database": (
        *_joined(DATABASE_METRICS, TRANSFER_FIGURES),
        "iops",
        "initial_bytes",
        "final_bytes",
    ),
    "instance": (
        *_joined(INSTANCE_METRICS, TRANSFER_FIGURES),
        "page_fault_stalls_count",
        "page_fault_stalls_per_s",
        *_joined(("cache_used_bytes", "in_flight"), LEVEL_FIGURES),
        "cache_limit_bytes",
    ),
    "operation": _joined(OPERATIONS, RESPONSE_FIGURES),
    "backup": _joined(("backup",), BACKUP_FIGURES),
    "recovery": _joined(("recovery",), RECOVERY_FIGURES),
    "run": (
        "database_iops",
        "transactions_per_s",
        "errors_in_run",
        "hung_in_run",
        "missing_records",
        "write_conflicts",
        "grown_bytes",
        "pages_verified",
        "pages_damaged",
        "pages_corrected",
        *(f"total_{name}" for name in TOTAL_SIZES),
        *(f"total_{name}" for name in _joined(TOTAL_METRICS, TRANSFER_FIGURES)),
        *_joined(("transactions",), tuple(name for name in RESPONSE_FIGURES if name != "per_s")),
        "executor_busy_mean",
        "executor_busy_max",
        "reap_gap_ms_p99",
        "arrival_lag_ms_p99",
        *_joined(MACHINE_LEVELS, LEVEL_FIGURES),
    ),
}


class LimitError(InvalidValueError):
    """An expression that is no limit.

    The message says what is wrong, the hint what to write instead.
    """

    def __init__(self, message: str, hint: str) -> None:
        self.message, self.hint = message, hint
        super().__init__(f"{message}; {hint}" if hint else message)


@dataclass(frozen=True)
class Limit:
    """One limit as a person wrote it.

    Attributes:
        text: without blanks, as it is shown.
        field: a name of `FIELDS`.
        comparison: how the measured value must stand to the limit.
        limit: the number.
    """

    text: str
    field: str
    comparison: str
    limit: float

    def holds(self, measured: float) -> bool:
        """Whether a measured value is within the limit."""
        match self.comparison:
            case "<":
                return measured < self.limit
            case "<=":
                return measured <= self.limit
            case ">":
                return measured > self.limit
        return measured >= self.limit


def known_fields() -> tuple[str, ...]:
    """Every field that can be limited."""
    return tuple(dict.fromkeys(name for names in FIELDS.values() for name in names))


def parse_limit(text: str, known: tuple[str, ...] | None = None) -> Limit:
    """Read a limit.

    Args:
        text: as a person wrote it.
        known: the names that may be limited; those of a summary if left out.

    Raises:
        LimitError: it is none; the hint names fields that are written alike.

    >>> parse_limit("db_read_latency_ms_p99 < 50").field
    'database_read_latency_ms_p99'
    """
    found = _EXPRESSION.fullmatch(text)
    if not found:
        raise LimitError(
            f'"{text}" is no limit',
            "write a field, < <= > or >=, and a number: log_write_latency_ms_p99<5",
        )
    name, comparison, number = found.groups()
    if comparison not in COMPARISONS:
        raise LimitError(
            f'"{text}" compares with {comparison}', "write < <= > or >=: what must hold"
        )
    field = re.sub(r"(^|_)db_", r"\1database_", name)
    known = known_fields() if known is None else known
    if field not in known:
        raise LimitError(f'"{name}" is no field of the summary', nearest_names(field, known))
    try:
        limit = float(number)
    except ValueError:
        raise LimitError(
            f'"{number}" is not a number', "write a plain number without a unit, the field says it"
        ) from None
    if limit != limit or limit in (float("inf"), float("-inf")):
        raise LimitError(f'"{number}" is no limit', "write a finite number")
    return Limit(f"{field}{comparison}{number}", field, comparison, limit)


def unit_of(field: str) -> str:
    """The unit of a field, from the end of its name.

    >>> unit_of("log_write_latency_ms_p99"), unit_of("database_iops"), unit_of("executor_busy_mean")
    ('ms', '1/s', 'ratio')
    """
    if "_ms_" in field:
        return "ms"
    if field.endswith("_mib_per_s"):
        return "MiB/s"
    if field in ("backup_seconds", "recovery_seconds", "recovery_seconds_per_log"):
        return "s"
    if field.endswith(("_per_s", "_iops")) or field == "iops":
        return "1/s"
    if "bytes" in field or field.startswith("memory_available"):
        return "bytes"
    shares = ("executor_", "cpu_", "pressure_")
    return "ratio" if field.startswith(shares) else "count"
