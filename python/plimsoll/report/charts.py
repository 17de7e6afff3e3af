"""The charts of the report, as Vega-Lite specs, and the script that draws them without a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import altair as alt
import vl_convert

from plimsoll.measurements import Measurements
from plimsoll.report.tables import Table

#: More points than this are thinned: a report of a day must still open on a phone.
POINTS_MAX = 600
#: Okabe and Ito's palette, told apart also by those who confuse red and green; the dashes do it without colour.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442"]


@dataclass(frozen=True)
class Chart:
    """One chart with its table behind it."""

    name: str
    title: str
    description: str
    spec: dict[str, Any]
    table: Table


@cache
def script_bundle() -> str:
    """The libraries that draw the charts, as one script."""
    # The snippet has a default that the type stub does not know.
    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    return bundle.replace("</script", "<\\/script")


def chart_list(plan: dict[str, Any], measured: Measurements) -> list[Chart]:
    """Rates and latencies over time, then distributions."""
    charts = [
        _series(measured, "database_read", "per_s", "Database reads per second"),
        _series(measured, "database_write", "per_s", "Database writes per second"),
        _series(measured, "database_read", "latency_ms_mean", "Database read latency, mean of each sample (ms)"),
        _series(measured, "log_write", "latency_ms_mean", "Log write latency, mean of each sample (ms)"),
    ]
    for metric, title in (
        ("database_read", "Distribution of database read latency"),
        ("database_write", "Distribution of database write latency"),
        ("log_write", "Distribution of log write latency"),
    ):
        charts.append(_histogram(plan, measured, metric, title))
    return [chart for chart in charts if chart is not None]


def _label(row: dict[str, Any]) -> str:
    return f"{row['instance']}/{row['database']}" if row["database"] else str(row["instance"])


def _series(measured: Measurements, metric: str, figure: str, title: str) -> Chart | None:
    rows = [row for row in measured.series(metric) if row[figure] is not None]
    labels = sorted({_label(row) for row in rows})
    if not rows:
        return None
    step = max(1, len(rows) // (POINTS_MAX * len(labels)))
    points = []
    for label in labels:
        mine = [row for row in rows if _label(row) == label][::step]
        points += [{"second": round(row["second"], 3), "value": row[figure], "where": label} for row in mine]
    spec = (
        alt.Chart(alt.Data(values=points), title=title)
        .mark_line(interpolate="step-before")
        .encode(
            x=alt.X("second:Q", title="seconds since measuring began"),
            y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=True)),
            color=_colour(labels),
            strokeDash=alt.StrokeDash("where:N", legend=None),
            tooltip=[
                alt.Tooltip("where:N", title="where"),
                alt.Tooltip("second:Q", format=".1f"),
                alt.Tooltip("value:Q", format=".3~g"),
            ],
        )
    )
    thinned = points[:: max(1, len(points) // 60)]
    table = Table(
        title, ["Second", "Where", "Value"], [[point["second"], point["where"], point["value"]] for point in thinned]
    )
    description = f"{title} over time, for {', '.join(labels)}"
    return Chart(f"{metric}-{figure}".replace("_", "-"), title, description, _finished(spec, description), table)


def _colour(labels: list[str]) -> alt.Color:
    scale = alt.Scale(domain=labels, range=[COLOURS[index % len(COLOURS)] for index in range(len(labels))])
    return alt.Color("where:N", title=None, scale=scale, legend=alt.Legend(orient="bottom"))


def _histogram(plan: dict[str, Any], measured: Measurements, metric: str, title: str) -> Chart | None:
    points: list[dict[str, Any]] = []
    for instance in plan["run"]["instances"]:
        numbers = [0] if metric == "log_write" else range(1, len(instance["databases"]) + 1)
        for number in numbers:
            buckets = measured.histogram(metric, instance["name"], number)
            total = sum(count for _, count in buckets)
            label = _label({"instance": instance["name"], "database": number})
            reached = 0
            for upper_ms, count in buckets:
                reached += count
                points.append({"ms": upper_ms, "share": 100 * reached / total, "count": count, "where": label})
    if not points:
        return None
    labels = sorted({point["where"] for point in points})
    spec = (
        alt.Chart(alt.Data(values=points), title=title)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("ms:Q", title="latency, ms (logarithmic)", scale=alt.Scale(type="log")),
            y=alt.Y("share:Q", title="% that were faster", scale=alt.Scale(domain=[0, 100])),
            color=_colour(labels),
            strokeDash=alt.StrokeDash("where:N", legend=None),
            tooltip=["where:N", alt.Tooltip("ms:Q", format=".3~g"), alt.Tooltip("share:Q", format=".4~g"), "count:Q"],
        )
    )
    description = f"{title}: share of I/O that completed within a latency, for {', '.join(labels)}"
    rows = [[point["where"], point["ms"], point["count"], point["share"]] for point in points]
    table = Table(title, ["Where", "Up to ms", "Count", "% so far"], rows[:: max(1, len(rows) // 120)])
    return Chart(f"{metric}-distribution".replace("_", "-"), title, description, _finished(spec, description), table)


def _finished(chart: Any, description: str) -> dict[str, Any]:
    finished: dict[str, Any] = chart.properties(width="container", height=220, description=description).to_dict()
    return finished
