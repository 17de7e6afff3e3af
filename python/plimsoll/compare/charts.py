"""The charts of a comparison.

Factors with their intervals, values side by side, distributions, and both runs over time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.compare.sides import Side
from plimsoll.compare.text import factor_text, interval_text
from plimsoll.documents.comparison import Comparison
from plimsoll.pages.chart_spans import BOUNDS_MS, binned, bound_label, time_unit
from plimsoll.pages.kit import Chart, Point
from plimsoll.pages.tables import Table, shown
from plimsoll.pages.vega import (
    COLOURS,
    PLACES_MAX,
    RATE_AXIS,
    Spec,
    colour,
    finished,
    latency_axis,
    latency_bars,
    layer,
    layered,
    nominal,
    over_time,
    quantitative,
)
from plimsoll.report.charts import POINTS_MAX

TABLE_ROWS_MAX = 24
#: What is drawn as bars and over time: the figure's name, and the metrics and figure of its curve.
KEY_FIGURES = (
    ("database_iops", ("database_read", "database_write"), False),
    ("total_database_read_latency_ms_mean", ("database_read",), True),
    ("total_log_write_latency_ms_mean", ("log_write",), True),
)


def comparison_charts(found: Comparison, sides: Sequence[Side]) -> list[Chart]:
    """Every chart for which there is data."""
    drawn = list(sides[:PLACES_MAX])
    charts = [factor_chart(found)]
    charts += [value_chart(bars) for name, _, _ in KEY_FIGURES if (bars := bars_of(found, name))]
    charts += [_over_time(found, drawn, *figure) for figure in KEY_FIGURES]
    charts += [_distribution(drawn, "database_read", "Distribution of database read latency")]
    return [chart for chart in charts if chart is not None]


def factor_chart(found: Comparison) -> Chart | None:
    """Factors of all sides with their intervals, on a logarithmic axis around 1."""
    labels = [side.name for side in found.sides[1:]][:PLACES_MAX]
    rows = [
        (f"{figure.title} ({figure.unit})", labels[index], against, against.factor)
        for figure in found.figures
        if figure.better != "neither"
        for index, against in enumerate(figure.against_first[:PLACES_MAX])
        if against.factor
    ]
    if not rows:
        return None
    points: list[Point] = [
        {
            "f": title,
            "w": side,
            "v": _short(factor),
            "l": _short(max(against.low or factor, factor / 100)),
            "h": _short(min(against.high or factor, factor * 100)),
        }
        for title, side, against, factor in rows
    ]
    order = list(dict.fromkeys(title for title, _, _, _ in rows))
    # Factors that are all nearly 1 must not fill the picture with noise.
    scale = {
        "type": "log",
        "domain": [
            min(0.8, *(point["l"] for point in points)),
            max(1.25, *(point["h"] for point in points)),
        ],
    }
    channels: Spec = {
        "y": nominal("f", title=None, sort=order, axis={"labelLimit": 280}),
        "yOffset": nominal("w", sort=labels),
        "color": colour(labels),
    }
    layers = [
        layer(
            {"type": "rule", "strokeWidth": 2},
            **channels,
            x=quantitative("l", scale=scale, title=None),
            x2={"field": "h"},
        ),
        layer(
            {"type": "point", "filled": True, "size": 60},
            **channels,
            x=quantitative(
                "v",
                title="factor, more is better",
                scale=scale,
                axis={"format": "~g", "tickCount": 6},
            ),
            tooltip=[
                nominal("w", title="side"),
                nominal("f", title="figure"),
                quantitative("v", format=".3~g"),
            ],
        ),
        layer({"type": "rule", "color": "#333", "strokeDash": [4, 3]}, [{}], x={"datum": 1}),
    ]
    best = max(rows, key=lambda row: row[3])
    worst = min(rows, key=lambda row: row[3])
    words = [
        f"largest {factor_text(best[2])}: {best[0]}, {best[1]}",
        f"smallest {factor_text(worst[2])}: {worst[0]}, {worst[1]}",
    ]
    first = found.sides[0].name
    title = f"Improvement factors against {first}"
    description = ". ".join([title, *words])
    spec = finished(layered(points, *layers), title, words, description)
    spec["height"] = 40 + 22 * len(order) * max(1, len(labels) // 2)
    table = Table(
        f"{title}: values",
        ["Figure", "Side", "Factor", "95 %"],
        [
            [name, side, factor_text(against), interval_text(against)]
            for name, side, against, _ in rows
        ],
    )
    return Chart("factors", title, description, spec, table)


@dataclass(frozen=True)
class Bars:
    """One figure of every side.

    Attributes:
        name: of the figure, as limits use it.
        title: for people.
        unit: of its values; empty where it has none.
        sides: for each its name, its value and the relative error of that, as far as they are
            known.
    """

    name: str
    title: str
    unit: str
    sides: Sequence[tuple[str, float | None, float | None]]


def bars_of(found: Comparison, name: str) -> Bars | None:
    """A figure of a comparison; None where the comparison does not have it."""
    figure = next((row for row in found.figures if row.name == name), None)
    if figure is None:
        return None
    sides = zip(found.sides, figure.sides, strict=True)
    return Bars(
        name,
        figure.title,
        figure.unit,
        [(side.name, item.value, item.relative_error) for side, item in sides],
    )


def value_chart(bars: Bars) -> Chart:
    """One figure of every side as bars, with its own interval of twice the standard error."""
    points: list[Point] = []
    rows: list[list[Any]] = []
    for side, value, error in bars.sides:
        rows.append([side, value, None if error is None or value is None else value * error])
        if value is not None:
            reach = 2 * value * (error or 0.0)
            points.append(
                {
                    "w": side,
                    "v": _short(value),
                    "l": _short(max(0.0, value - reach)),
                    "h": _short(value + reach),
                }
            )
    order = [side for side, _, _ in bars.sides]
    # Names of sides are long and may be many: they stand one below the other.
    y = nominal("w", title=None, sort=order, axis={"labelLimit": 220})
    ticks = {"tickCount": 5, "format": "~s" if bars.unit != "ms" else "~g"}
    layers = [
        layer(
            {"type": "bar", "color": COLOURS[0], "height": {"band": 0.7}},
            y=y,
            x=quantitative("v", title=bars.unit or None, axis=ticks),
            tooltip=[
                nominal("w", title="side"),
                quantitative("v", title=bars.unit, format=".4~g"),
            ],
        ),
        layer(
            {"type": "rule", "color": "#000", "strokeWidth": 2},
            y=y,
            x=quantitative("l"),
            x2={"field": "h"},
        ),
    ]
    # Each in a line of its own: a line that is wider than the chart makes it narrow and is cut off.
    words = [f"{point['w']} {shown(float(point['v']))} {bars.unit}" for point in points]
    if len(points) > PLACES_MAX:
        values = [float(point["v"]) for point in points]
        words = [f"{len(points)} sides, {shown(min(values))} to {shown(max(values))} {bars.unit}"]
    if any(row[2] for row in rows):
        words.append("lines: twice the standard error to both sides")
    title = bars.title
    description = ". ".join([f"{title} of every side", *words])
    heading = f"{title} ({bars.unit})" if bars.unit else title
    spec = finished(layered(points, *layers), heading, words, description)
    spec["height"] = max(120, 26 * len(points))
    table = Table(
        f"{title}: values of every side", ["Side", f"Value ({bars.unit})", "Standard error"], rows
    )
    return Chart(f"values-{bars.name}".replace("_", "-"), title, description, spec, table)


def _over_time(
    found: Comparison, sides: Sequence[Side], name: str, metrics: tuple[str, ...], is_latency: bool
) -> Chart | None:
    figure = next((row for row in found.figures if row.name == name), None)
    curves = {side.name: _curve(side, metrics, POINTS_MAX, is_latency) for side in sides}
    curves = {label: curve for label, curve in curves.items() if len(curve) > 1}
    if figure is None or len(curves) < 2:
        return None
    unit = time_unit(max(second for curve in curves.values() for second, _ in curve))
    points = [
        {"t": round(second / unit.seconds, 4), "v": _short(value), "w": label}
        for label, curve in curves.items()
        # The last value has its step as well, as long as the one before it.
        for second, value in [*curve, (2 * curve[-1][0] - curve[-2][0], curve[-1][1])]
    ]
    labels = list(curves)
    values = [_short(value) for curve in curves.values() for _, value in curve]
    axis = latency_axis(values) if is_latency else RATE_AXIS
    lines = over_time(labels, "side", unit, figure.unit, axis)
    words = [
        f"{label}: {shown(float(min(value for _, value in curve)))} to "
        f"{shown(float(max(value for _, value in curve)))} {figure.unit}"
        for label, curve in curves.items()
    ]
    title = f"{figure.title} over time"
    description = ". ".join([title, *words])
    spec = finished(
        layered(points, lines),
        f"{title} ({figure.unit})",
        words,
        description,
    )
    coarse = {
        side.name: dict(_curve(side, metrics, TABLE_ROWS_MAX, is_latency))
        for side in sides
        if side.name in curves
    }
    times = sorted({second for curve in coarse.values() for second in curve})
    rows = [
        [f"{second / unit.seconds:.4g}", *(curve.get(second) for curve in coarse.values())]
        for second in times
    ]
    table = Table(
        f"{title}: values",
        [f"From ({unit.name})", *coarse],
        rows,
        "Means of spans, of the first run of each side.",
    )
    return Chart(f"time-{name}".replace("_", "-"), title, description, spec, table)


def _curve(
    side: Side, metrics: tuple[str, ...], points_max: int, is_latency: bool
) -> list[tuple[float, float]]:
    """Means of equal spans of a side's first run; a span without operations has no latency."""
    rows = side.first.moments(metrics)
    if not rows:
        return []
    per_span = -(-len(rows) // points_max)
    found, second = [], 0.0
    for start in range(0, len(rows), per_span):
        span = rows[start : start + per_span]
        length = sum(seconds for seconds, _, _, _ in span)
        count = sum(operations for _, operations, _, _ in span)
        # The rest at the end of a run is too short to be drawn beside whole spans.
        if length * 4 >= per_span * rows[0][0] and (count or not is_latency):
            value = (
                sum(latency for _, _, _, latency in span) / 1e6 / count
                if is_latency
                else count / length
            )
            found.append((round(second, 3), value))
        second += length
    return found


def _distribution(sides: Sequence[Side], metric: str, title: str) -> Chart | None:
    counts = {
        side.name: binned(buckets) for side in sides if (buckets := side.first.buckets(metric))
    }
    if len(counts) < 2:
        return None
    filled = [
        index for index in range(len(BOUNDS_MS) + 1) if any(row[index] for row in counts.values())
    ]
    bins = range(filled[0], filled[-1] + 1)
    labels = list(counts)
    points = [
        {
            "b": bound_label(index),
            "v": _short(100 * counts[label][index] / sum(counts[label])),
            "w": label,
        }
        for index in bins
        for label in labels
    ]
    bars = latency_bars([bound_label(index) for index in bins], labels, "side")
    most = {
        label: bound_label(max(bins, key=lambda index: counts[label][index])) for label in labels
    }
    words = [f"{label} mostly {most[label]} ms" for label in labels]
    description = ". ".join([title, *words])
    spec = finished(layered(points, bars), title, words, description)
    rows = [
        [
            bound_label(index),
            *(f"{100 * sum(row[: index + 1]) / sum(row):.3f}" for row in counts.values()),
        ]
        for index in bins
    ]
    headings = ["Latency (ms)", *(f"{label}: % so far" for label in labels)]
    return Chart(
        f"{metric}-distribution".replace("_", "-"),
        title,
        description,
        spec,
        Table(f"{title}: values", headings, rows),
    )


def _short(value: float) -> float:
    return float(f"{value:.4g}")
