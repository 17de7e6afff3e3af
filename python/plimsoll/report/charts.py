"""The charts of the report as Vega-Lite specs, each with the table that says the same.

Latency stands on a logarithmic axis, so that a limit and a tenth of it can be read in one picture.
Places are told apart by colour and by dashes; the colours are Okabe and Ito's, which those who
confuse red and green can tell apart too. Where there are more places than can be told apart, the
slowest are drawn and the title says so; the table has them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import altair as alt
from altair.utils import schemapi

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
    time_unit,
)
from plimsoll.pages.kit import Chart, Point
from plimsoll.pages.tables import Table, shown
from plimsoll.results.measurements import Measurements

#: More points than this are put together: a report of a day must still open on a phone.
POINTS_MAX = 240
TABLE_ROWS_MAX = 24
PLACES_MAX = 6
TICKS_MAX = 9
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#aa4499", "#8a6d00", "#000000"]
DASHES = [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3]]
#: One place alone needs no legend: the words above the chart name it.
NO_LEGEND: dict[str, None] = {"legend": None}
LIMIT_COLOUR = "#9d1010"


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


def unchecked() -> AbstractContextManager[None]:
    """Within it charts are not held against the schema of their library, point by point.

    Tests do that once for all reports.
    """
    without: AbstractContextManager[None] = schemapi.debug_mode(False)
    return without


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
    points: list[Point] = [
        {"t": round(second / unit.seconds, 5), "v": float(f"{value:.4g}"), "w": curve.where}
        for curve in chosen
        for second, value in curve.points
        if value > 0 or not series.is_latency
    ]
    if not points:
        return None
    labels = [curve.where for curve in chosen]
    base = alt.Chart().encode(
        x=alt.X("t:Q", title=f"{unit.name} since measuring began", scale=alt.Scale(nice=False))
    )
    lines = base.mark_line(interpolate="step-after", strokeWidth=1.6, clip=True).encode(
        y=alt.Y(
            "v:Q",
            title=series.unit,
            scale=_value_scale(points, series, limit),
            axis=_value_axis(points, series, limit),
        ),
        color=place_colour(labels),
        strokeDash=place_dash(labels),
        tooltip=[
            alt.Tooltip("w:N", title="where"),
            alt.Tooltip("t:Q", title=unit.name, format=".4~g"),
            alt.Tooltip("v:Q", title=series.unit, format=".3~g"),
        ],
    )
    layers = (
        [lines]
        if limit is None or not series.is_latency
        else [lines, *limit_mark(limit, f"limit {shown(limit)} ms")]
    )
    name = f"{series.metric}-{series.figure}".replace("_", "-")
    words = _over_time_words(drawn, chosen, series, limit)
    description = ". ".join([f"{series.title} over time", *words])
    chart = alt.layer(*layers, data=alt.Data(values=points))
    spec = finished(chart, f"{series.title} ({series.unit})", words, description)
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


def _value_scale(points: list[Point], series: Series, limit: float | None) -> alt.Scale:
    if series.is_latency:
        return latency_scale([*(point["v"] for point in points), *([limit] if limit else [])])
    return alt.Scale(zero=True, domainMax=100) if series.unit == "%" else alt.Scale(zero=True)


def _value_axis(points: list[Point], series: Series, limit: float | None) -> alt.Axis:
    if series.is_latency:
        return latency_axis([*(point["v"] for point in points), *([limit] if limit else [])])
    return alt.Axis(tickCount=5, format="~s" if series.unit == "per s" else "d")


def latency_scale(values: list[float]) -> alt.Scale:
    """A logarithmic scale from a bound below all values to one above them."""
    low, high = _latency_range(values)
    return alt.Scale(type="log", domain=[low, high], nice=False)


def latency_axis(values: list[float]) -> alt.Axis:
    """Ticks at 1, 2 and 5, or at powers of ten where that would be too many."""
    low, high = _latency_range(values)
    ticks = [bound for bound in BOUNDS_MS if low <= bound <= high]
    if len(ticks) > TICKS_MAX:
        ticks = [bound for bound in ticks if f"{bound:e}".startswith("1")]
    return alt.Axis(values=ticks, format="~g", labelOverlap=False)


def _latency_range(values: list[float]) -> tuple[float, float]:
    """The bounds of 1, 2 and 5 around all values, with room for words at the highest."""
    low = max((bound for bound in BOUNDS_MS if bound <= 0.9 * min(values)), default=BOUNDS_MS[0])
    high = min((bound for bound in BOUNDS_MS if bound >= 1.3 * max(values)), default=BOUNDS_MS[-1])
    return low, high


def limit_mark(limit: float, words: str) -> list[Any]:
    """A line across a chart at a limit, with words at its left end."""
    once = alt.Data(values=[{}])
    rule = (
        alt.Chart(once)
        .mark_rule(color=LIMIT_COLOUR, strokeWidth=1.5, strokeDash=[5, 3])
        .encode(y=alt.datum(limit))
    )
    text = (
        alt.Chart(once)
        .mark_text(color=LIMIT_COLOUR, align="left", baseline="bottom", dx=4, dy=-2, fontSize=12)
        .encode(y=alt.datum(limit), x=alt.value(0), text=alt.value(words))
    )
    return [rule, text]


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
    spec = finished(alt.layer(bars, data=alt.Data(values=points)), title, words, description)
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


def latency_bars(bins: Sequence[str], labels: Sequence[str], what: str) -> alt.Chart:
    """Shares of transfers by latency, a bar for each label in each bin."""
    return (
        alt.Chart()
        .mark_bar()
        .encode(
            x=alt.X(
                "b:N",
                title="latency, ms",
                sort=list(bins),
                axis=alt.Axis(labelAngle=-40, labelOverlap=False),
            ),
            xOffset=alt.XOffset("w:N", sort=list(labels)),
            y=alt.Y("v:Q", title="% of transfers", axis=alt.Axis(tickCount=5)),
            color=place_colour(list(labels)),
            tooltip=[
                alt.Tooltip("w:N", title=what),
                alt.Tooltip("b:N", title="ms"),
                alt.Tooltip("v:Q", title="%", format=".3~g"),
            ],
        )
    )


def place_colour(labels: list[str]) -> alt.Color:
    """A colour for each label that can be told from the others, whoever looks."""
    scale = alt.Scale(domain=labels, range=COLOURS[: len(labels)])
    return alt.Color("w:N", title=None, scale=scale, **NO_LEGEND if len(labels) == 1 else {})


def place_dash(labels: list[str]) -> alt.StrokeDash:
    """Dashes that tell lines apart without colour."""
    scale = alt.Scale(domain=labels, range=DASHES[: len(labels)])
    return alt.StrokeDash("w:N", title=None, scale=scale, **NO_LEGEND if len(labels) == 1 else {})


def finished(chart: Any, title: str, words: list[str], description: str) -> dict[str, object]:
    """A chart in the size and the type of all others, with words above it and a description for who
    cannot see it.
    """
    shape = alt.TitleParams(
        title,
        subtitle=words,
        anchor="start",
        fontSize=15,
        subtitleFontSize=12.5,
        subtitleColor="#333",
        offset=8,
    )
    # One call: each of altair's copies everything that is in the chart.
    look = alt.Config(
        font="system-ui, sans-serif",
        axis=alt.AxisConfig(
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            gridColor="#e4e4e4",
            labelColor="#333",
            titleColor="#333",
        ),
        legend=alt.LegendConfig(
            orient="bottom", direction="vertical", columns=2, labelLimit=260, labelFontSize=12
        ),
        view=alt.ViewConfig(strokeWidth=0),
    )
    drawn = chart.properties(
        width="container", height=200, description=description, title=shape, config=look
    )
    spec: dict[str, object] = drawn.to_dict(validate=schemapi.DEBUG_MODE)
    return spec
