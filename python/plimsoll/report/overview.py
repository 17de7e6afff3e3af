"""The first two charts of a report.

How many I/O the storage made over time, and how long they took beside their limits.

All places of a run stand together here: rates are sums, latencies are means weighted by operations.
Each place has its own curve further below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.documents.verdict import Verdict
from plimsoll.files.parquet import Row
from plimsoll.pages.chart_spans import Curve, Unit, step_points, time_unit
from plimsoll.pages.kit import Chart
from plimsoll.pages.tables import Table, shown
from plimsoll.pages.vega import RATE_AXIS, finished, latency_axis, layered, limit_mark, over_time
from plimsoll.report.charts import POINTS_MAX, TABLE_ROWS_MAX
from plimsoll.results.measurements import Measurements

#: What a run may have done to the storage, in the order of the legend.
METRICS = {
    "database_read": "database reads",
    "database_write": "database writes",
    "log_write": "log writes",
    "file_read": "reads",
    "file_write": "writes",
}


@dataclass(frozen=True)
class Limit:
    """A limit of a mean latency, with what it is for."""

    what: str
    ms: float


def overview(verdict: Verdict, measured: Measurements) -> list[Chart]:
    """IOPS over time, and mean latency over time with its limits.

    Nothing where no I/O was measured.
    """
    rates, latencies = _totals(measured, POINTS_MAX)
    if not rates:
        return []
    unit = time_unit(measured.seconds)
    span_s = measured.span_s(POINTS_MAX)
    tables = _totals(measured, TABLE_ROWS_MAX)
    return [
        _chart("overview-iops", "Rate of I/O", "per s", rates, unit, span_s, (), tables[0]),
        _chart(
            "overview-latency",
            "Latency, mean",
            "ms",
            latencies,
            unit,
            span_s,
            _limits(verdict),
            tables[1],
        ),
    ]


def _totals(measured: Measurements, points_max: int) -> tuple[list[Curve], list[Curve]]:
    """Rates and mean latencies of all places together, for each metric that was measured."""
    rates, latencies = [], []
    for metric, title in METRICS.items():
        per_s, latency = sums(measured.series(metric, points_max))
        if any(value > 0 for _, value in per_s):
            rates.append(Curve(title, per_s))
            latencies.append(Curve(title, latency))
    return rates, latencies


def sums(rows: Sequence[Row]) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Operations per second of all places, and their mean latency in ms, by second.

    >>> one = {"second": 0.0, "per_s": 100.0, "latency_ms_mean": 1.0}
    >>> sums([one, one | {"per_s": 300.0, "latency_ms_mean": 5.0}])
    ([(0.0, 400.0)], [(0.0, 4.0)])
    """
    found: dict[float, tuple[float, float]] = {}
    for row in rows:
        per_s, busy_ms = found.get(row["second"], (0.0, 0.0))
        found[row["second"]] = (
            per_s + row["per_s"],
            busy_ms + row["per_s"] * (row["latency_ms_mean"] or 0.0),
        )
    seconds = sorted(found)
    return (
        [(second, found[second][0]) for second in seconds],
        [(second, found[second][1] / found[second][0]) for second in seconds if found[second][0]],
    )


def _limits(verdict: Verdict) -> list[Limit]:
    """The lowest limit of the mean latency of each metric that was judged."""
    found: dict[str, float] = {}
    for check in verdict.checks:
        if check.statistic == "mean" and check.unit == "ms" and check.metric in METRICS:
            found[check.metric] = min(check.limit, found.get(check.metric, check.limit))
    return [Limit(METRICS[metric], ms) for metric, ms in found.items()]


def _chart(
    name: str,
    title: str,
    unit: str,
    drawn: list[Curve],
    time: Unit,
    span_s: float,
    limits: Sequence[Limit],
    table: list[Curve],
) -> Chart:
    is_latency = unit == "ms"
    points = step_points(drawn, time, span_s, above_zero=is_latency)
    labels = [curve.where for curve in drawn]
    bounds = [
        *(value for curve in drawn for _, value in curve.points if value > 0),
        *(limit.ms for limit in limits),
    ]
    axis = latency_axis(bounds) if is_latency else RATE_AXIS
    lines = over_time(labels, "what", time, unit, axis)
    marks = [
        mark
        for limit in limits
        for mark in limit_mark(limit.ms, f"limit of {limit.what} {shown(limit.ms)} ms")
    ]
    words = [f"{curve.where} {shown(curve.least)} to {shown(curve.most)} {unit}" for curve in drawn]
    above = {
        limit.what
        for limit in limits
        for curve in drawn
        if curve.where == limit.what and curve.most > limit.ms
    }
    if limits:
        words.append(
            f"at times above its limit: {', '.join(sorted(above))}"
            if above
            else "never above a limit"
        )
    description = ". ".join([f"{title} of all places over time", *words])
    spec = finished(
        layered(points, lines, *marks),
        f"{title} ({unit})",
        words,
        description,
    )
    return Chart(name, title, description, spec, _table(title, unit, time, table))


def _table(title: str, unit: str, time: Unit, curves: list[Curve]) -> Table:
    values = [dict(curve.points) for curve in curves]
    seconds = sorted({second for points in values for second in points})
    rows: list[list[Any]] = [
        [f"{second / time.seconds:.4g}", *(points.get(second) for points in values)]
        for second in seconds
    ]
    headings = [f"From ({time.name})", *(f"{curve.where} ({unit})" for curve in curves)]
    return Table(
        f"{title}, all places: values", headings, rows, "Means of spans, weighted by operations."
    )
