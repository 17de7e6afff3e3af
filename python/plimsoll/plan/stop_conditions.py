"""Conditions that stop a run before it harms others: `db_read_latency_ms_p99>50 for 30s`.

A condition compares one figure of the samples with a number; it stops the run when it has held
without a break for the stated time. Figures are those of all instances together: rates and errors
are sums, a mean is weighted by operations, and a percentile is the highest of any database in a
sample, because percentiles of several places cannot be added up. An interval without operations has
no latency; it neither fulfils nor ends a condition, as a storage that answers nothing is not well.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from plimsoll.errors import InvalidValueError
from plimsoll.files.parquet import Columns

#: What can be named, and the metric of the samples it stands for. The short forms are what
#: administrators write.
TRANSFERS = (
    "database_read",
    "database_write",
    "log_write",
    "log_replication",
    "maintenance",
    "checksum",
    "prepare",
)
SHORT_NAMES = {"db_read": "database_read", "db_write": "database_write"}
STATISTICS = (
    "latency_ms_mean",
    "latency_ms_p50",
    "latency_ms_p99",
    "latency_ms_max",
    "per_s",
    "errors",
)
_FORM = re.compile(
    r"\s*([a-z0-9_]+)\s*(<=|>=|<|>)\s*([0-9.]+)\s*(?:for\s+([0-9.]+)\s*(s|min|h)?)?\s*"
)
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_SECONDS = {None: 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}
EXAMPLE = "write it like 'db_read_latency_ms_p99>50 for 30s'"


class ConditionError(InvalidValueError):
    """A condition that says nothing, with a hint.

    Attributes:
        hint: what to write instead.
    """

    def __init__(self, problem: str, hint: str = EXAMPLE) -> None:
        super().__init__(problem)
        self.hint = hint


@dataclass
class Condition:
    """One condition, and since when it has held.

    Attributes:
        text: as it was written.
        metric: which rows of the samples it looks at.
        statistic: which figure of them.
        compare: the comparison.
        limit: the number compared with.
        for_s: how long it must hold.
    """

    text: str
    metric: str
    statistic: str
    compare: Callable[[float, float], bool]
    limit: float
    for_s: float
    held_since_ns: int | None = None

    def look(self, table: Columns, metric_code: int) -> str | None:
        """Take a batch of samples; answers why the run should stop, once the condition has held
        long enough.
        """
        chosen = table["metric"] == metric_code
        for end_ns in sorted(set(table["end_ns"][chosen].tolist())):
            rows = chosen & (table["end_ns"] == end_ns)
            value = _figure({name: column[rows] for name, column in table.items()}, self.statistic)
            if value is None:
                continue
            interval_ns = int(table["interval_ns"][rows].max())
            if not self.compare(value, self.limit):
                self.held_since_ns = None
                continue
            if self.held_since_ns is None:
                self.held_since_ns = end_ns - interval_ns
            if end_ns - self.held_since_ns >= self.for_s * 1e9:
                return (
                    f"{self.text}: it was {value:.4g} and has held for "
                    f"{(end_ns - self.held_since_ns) / 1e9:.0f} s"
                )
        return None


def _figure(rows: Columns, statistic: str) -> float | None:
    count = int(rows["count"].sum())
    match statistic:
        case "per_s":
            return count / (int(rows["interval_ns"].max()) / 1e9)
        case "errors":
            return float(rows["errors"].sum())
        case "latency_ms_mean":
            return float(rows["latency_ns_sum"].sum()) / count / 1e6 if count else None
    column = statistic.replace("latency_ms", "latency_ns")
    return float(rows[column].max()) / 1e6 if count else None


def parse(text: str) -> Condition:
    """Read a condition.

    Raises:
        ConditionError: it has another form, or names something that is not measured.

    >>> parse("db_read_latency_ms_p99>50 for 30s").metric
    'database_read'
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ConditionError(f'"{text}" is not a condition')
    name, sign, limit, duration, unit = match.groups()
    for metric in (*SHORT_NAMES, *TRANSFERS):
        statistic = name.removeprefix(f"{metric}_")
        if statistic != name and statistic in STATISTICS:
            try:
                number, for_s = float(limit), float(duration or 0) * _SECONDS[unit]
            except ValueError as error:
                raise ConditionError(f'"{text}" has a number that is none') from error
            return Condition(
                text.strip(),
                SHORT_NAMES.get(metric, metric),
                statistic,
                _COMPARE[sign],
                number,
                for_s,
            )
    known = [
        f"{metric}_{statistic}" for metric in (*SHORT_NAMES, *TRANSFERS) for statistic in STATISTICS
    ]
    close = get_close_matches(name, known, n=2)
    hint = (
        f"did you mean {' or '.join(close)}?"
        if close
        else f"join one of {', '.join((*SHORT_NAMES, *TRANSFERS))} "
    )
    raise ConditionError(
        f'"{name}" is not measured', hint if close else f"{hint}and one of {', '.join(STATISTICS)}"
    )
