"""The charts of the report, each with the table that says the same.

Where there are more places than can be told apart, the slowest are drawn and the title says so; the
table has them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.documents.figures import DatabaseFigures, InstanceFigures, Transfers
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Verdict
from plimsoll.pages.chart_spans import (
    BOUNDS_MS,
    Curve,
    Unit,
    binned,
    bound_label,
    curves,
    step_points,
    time_unit,
)
from plimsoll.pages.kit import Chart, Point
from plimsoll.pages.tables import Table, shown
from plimsoll.pages.vega import (
    PERCENT_AXIS,
    PLACES_MAX,
    RATE_AXIS,
    Spec,
    finished,
    latency_axis,
    latency_bars,
    layered,
    limit_mark,
    over_time,
)
from plimsoll.results.measurements import Measurements

#: More points than this are put together: a report of a day must still open on a phone.
POINTS_MAX = 240
TABLE_ROWS_MAX = 24


@dataclass(frozen=True)
class Series:
    """What one chart over time shows."""

    metric: str
    figure: str
    title: str
    unit: str
    is_latency: bool = False
    check: str = ""


SERIES = (
    Series("database_read", "per_s", "Database reads", "per s"),
    Series("database_write", "per_s", "Database writes", "per s"),
    Series(
        "database_read",
        "latency_ms_mean",
        "Database read latency, mean",
        "ms",
        True,
        "database_read_latency_mean",
    ),
    Series("database_read", "latency_ms_p99", "Database read latency, p99", "ms", True),
    Series(
        "log_write",
        "latency_ms_mean",
        "Log write latency, mean",
        "ms",
        True,
        "log_write_latency_mean",
    ),
    Series("log_write", "latency_ms_p99", "Log write latency, p99", "ms", True),
    Series("database_write", "latency_ms_mean", "Database write latency, mean", "ms", True),
    Series("cpu_busy", "level", "Processor time of the machine in use", "%"),
)
HISTOGRAMS = (
    ("database_read", "Distribution of database read latency"),
    ("database_write", "Distribution of database write latency"),
    ("log_write", "Distribution of log write latency"),
)


def histograms(summary: Summary, measured: Measurements) -> list[Chart]:
    """How many transfers took how long."""
    charts = (_histogram(summary, measured, metric, title) for metric, title in HISTOGRAMS)
    return [chart for chart in charts if chart is not None]


def time_series(summary: Summary, verdict: Verdict, measured: Measurements) -> list[Chart]:
    """Rates and latencies over the measured time."""
    limits: dict[str, float] = {}
    for check in verdict.checks:
        limits.setdefault(check.name, check.limit)
    charts = (_over_time(summary, measured, series, limits.get(series.check)) for series in SERIES)
    return [chart for chart in charts if chart is not None]


def _over_time(
    summary: Summary, measured: Measurements, series: Series, limit: float | None
) -> Chart | None:
    unit = time_unit(measured.seconds)
    drawn = _curves(summary, measured, series, POINTS_MAX)
    if not drawn:
        return None
    chosen = (
        sorted(drawn, key=lambda curve: -curve.mean)[:PLACES_MAX]
        if len(drawn) > PLACES_MAX
        else drawn
    )
    chosen = sorted(chosen, key=lambda curve: curve.where)
    span_s = measured.span_s(POINTS_MAX)
    points = step_points(chosen, unit, span_s, above_zero=series.is_latency)
    if not points:
        return None
    labels = [curve.where for curve in chosen]
    layers = [over_time(labels, "where", unit, series.unit, _values(points, series, limit))]
    if limit is not None and series.is_latency:
        layers += limit_mark(limit, f"limit {shown(limit)} ms")
    name = f"{series.metric}-{series.figure}".replace("_", "-")
    words = _over_time_words(drawn, chosen, series, limit)
    description = ". ".join([f"{series.title} over time", *words])
    heading = f"{series.title} ({series.unit})"
    spec = finished(layered(points, *layers), heading, words, description)
    return Chart(
        name, series.title, description, spec, _time_table(summary, measured, series, unit)
    )


def _curves(
    summary: Summary, measured: Measurements, series: Series, points_max: int
) -> list[Curve]:
    names = {(place.instance, place.database): place.name for place in summary.databases}
    names |= {(place.name, 0): place.name for place in summary.instances}
    if series.figure == "level":
        names = dict.fromkeys(names, "machine")
    return curves(
        measured.series(series.metric, points_max),
        series.figure,
        names,
        100.0 if series.unit == "%" else 1.0,
    )


def _values(points: list[Point], series: Series, limit: float | None) -> Spec:
    """Scale and axis of the values."""
    if series.is_latency:
        return latency_axis([*(point["v"] for point in points), *([limit] if limit else [])])
    return RATE_AXIS if series.unit == "per s" else PERCENT_AXIS


def _over_time_words(
    drawn: list[Curve], chosen: list[Curve], series: Series, limit: float | None
) -> list[str]:
    """What the chart shows, in words that stand above it and are read aloud."""
    worst = max(drawn, key=lambda curve: curve.most)
    least = min(curve.least for curve in drawn)
    words = [f"{shown(least)} to {shown(worst.most)} {series.unit}"]
    words[0] += f", most in {worst.where}" if len(drawn) > 1 else f", {worst.where}"
    if limit is not None and series.is_latency:
        words.append(
            f"{'never above' if worst.most <= limit else 'at times above'} the limit of "
            f"{shown(limit)} ms"
        )
    if len(chosen) < len(drawn):
        words.append(f"the {len(chosen)} places with the most of {len(drawn)}")
    return words


def _time_table(summary: Summary, measured: Measurements, series: Series, unit: Unit) -> Table:
    found = _curves(summary, measured, series, TABLE_ROWS_MAX)
    values = {curve.where: dict(curve.points) for curve in found}
    times = sorted({second for points in values.values() for second in points})
    rows: list[list[Any]] = [
        [f"{second / unit.seconds:.4g}", *(points.get(second) for points in values.values())]
        for second in times
    ]
    headings = [f"From ({unit.name})", *(f"{where} ({series.unit})" for where in values)]
    note = (
        "Means of spans, weighted by operations."
        if series.figure != "latency_ms_p99"
        else "Highest p99 of a sample in the span."
    )
    return Table(
        f"{series.title}: values",
        headings,
        rows,
        note if series.figure != "level" else "Means of spans.",
    )


def _histogram(summary: Summary, measured: Measurements, metric: str, title: str) -> Chart | None:
    databases = {(place.instance, place.database): place for place in summary.databases}
    logs = {(place.name, 0): place for place in summary.instances}
    places: Mapping[tuple[str, int], DatabaseFigures | InstanceFigures] = (
        {**logs} if metric == "log_write" else {**databases}
    )
    shares: dict[str, list[float]] = {}
    counts: dict[str, list[int]] = {}
    for (instance, database), place in places.items():
        buckets = measured.buckets(metric, instance, database)
        total = sum(count for _, count in buckets)
        if total:
            counts[place.name] = binned(buckets)
            shares[place.name] = [100 * count / total for count in counts[place.name]]
    if not shares:
        return None
    filled = [
        index for index in range(len(BOUNDS_MS) + 1) if any(row[index] for row in counts.values())
    ]
    bins = range(filled[0], filled[-1] + 1)
    labels = [
        place.name
        for place in sorted(
            places.values(), key=lambda place: -(place.transfers(metric).latency_ms_mean or 0)
        )
    ]
    labels = sorted([label for label in labels if label in shares][:PLACES_MAX])
    points = [
        {"b": bound_label(index), "v": float(f"{shares[label][index]:.4g}"), "w": label}
        for index in bins
        for label in labels
    ]
    order = [bound_label(index) for index in bins]
    bars = latency_bars(order, labels, "where")
    words = _percentile_words(summary.total.transfers(metric))
    if len(labels) < len(shares):
        words.append(f"the {len(labels)} slowest of {len(shares)} places")
    description = ". ".join([title, *words])
    spec = finished(layered(points, bars), title, words, description)
    table = _histogram_table(title, list(bins), counts)
    return Chart(f"{metric}-distribution".replace("_", "-"), title, description, spec, table)


def _percentile_words(total: Transfers) -> list[str]:
    figures = (("p50", "half within"), ("p99", "99 % within"), ("max", "longest"))
    return [
        ", ".join(
            f"{word} {shown(total.number(f'latency_ms_{name}'))} ms" for name, word in figures
        )
    ]


def _histogram_table(title: str, bins: list[int], counts: dict[str, list[int]]) -> Table:
    headings = ["Latency (ms)"]
    for label in counts:
        headings += [f"{label}: transfers", f"{label}: % so far"]
    rows = []
    for index in bins:
        row: list[Any] = [bound_label(index)]
        for each in counts.values():
            row += [each[index], f"{100 * sum(each[: index + 1]) / sum(each):.3f}"]
        rows.append(row)
    return Table(
        f"{title}: values",
        headings,
        rows,
        "Each row is a range of latencies, its upper bound included.",
    )
