"""A study in words, and as a page."""

from __future__ import annotations

from plimsoll.arrays.text import WARNING
from plimsoll.compare.charts import Bars, value_chart
from plimsoll.documents.study import StudyFindings
from plimsoll.pages.kit import Chapter, Chart
from plimsoll.pages.sheet import Sheet, render_sheet
from plimsoll.pages.tables import Table, shown
from plimsoll.pages.vega import COLOURS, Spec, finished, layer, layered, limit_line, quantitative
from plimsoll.study.tables import (
    differences_tables,
    figures_table,
    ranking_table,
    variants_table,
)
from plimsoll.study.text import sentences, title_of, warnings_of

CHARTS_MAX = 5
_CURVES = ("database_iops", "total_database_read_latency_ms_mean")


def render(found: StudyFindings) -> str:
    """The page as text."""
    titles = {row.name: title_of(row) for row in found.figures}
    charts = [_curve(found, name) for name in _CURVES] if found.axis else []
    names = dict.fromkeys((found.rank_by, *_CURVES, "total_log_write_latency_ms_mean", "headroom"))
    sides = [side.name for side in found.sides]
    drawn = [row for name in names for row in found.figures if row.name == name]
    for row in drawn[:CHARTS_MAX]:
        values = [(item.value, item.relative_error) for item in row.sides]
        bars = [(side, *value) for side, value in zip(sides, values, strict=True)]
        charts.append(value_chart(Bars(row.name, row.title, row.unit, bars)))
    chapters = [
        Chapter(
            "ranking",
            "Ranking",
            [ranking_table(found, titles)],
            [chart for chart in charts if chart is not None],
        ),
        Chapter("figures", "Every figure of every variant", [figures_table(found)]),
        Chapter("differences", f"Differences from {found.baseline}", differences_tables(found)),
        Chapter("variants", "Variants", [variants_table(found)]),
    ]
    lines = sentences(found)
    return render_sheet(
        Sheet(
            product=f"Plimsoll study{', MODELLED' if found.modelled else ''}",
            title=found.name,
            where=found.source or f"{len(found.sides)} variants, ranked by {found.rank_by}",
            status="neutral",
            headline=lines[0] if lines else "No variant is finished",
            sentences=[*([found.description] if found.description else []), *lines[1:]],
            warnings=warnings_of(found),
            chapters=[chapter for chapter in chapters if chapter.tables or chapter.charts],
            made_by="plimsoll study",
            modelled=WARNING if found.modelled else "",
        )
    )


def _curve(found: StudyFindings, name: str) -> Chart | None:
    """A figure along the axis, with the limit of the read latency where it is one."""
    row = next((row for row in found.figures if row.name == name), None)
    axis = found.axis
    if row is None or axis is None:
        return None
    points = [
        {"x": value, "v": float(f"{side.value:.4g}")}
        for value, side in zip(axis.values, row.sides, strict=True)
        if side.value is not None
    ]
    if len(points) < 2:
        return None
    channels: Spec = {
        "x": quantitative("x", title=axis.title, scale={"nice": False, "padding": 8}),
        "y": quantitative("v", title=row.unit, axis={"tickCount": 5}),
    }
    tooltip = [
        quantitative("x", title=axis.title),
        quantitative("v", title=row.unit, format=".4~g"),
    ]
    layers = [
        layer({"type": "line", "color": COLOURS[0]}, **channels),
        layer(
            {"type": "point", "color": COLOURS[0], "filled": True, "size": 50},
            **channels,
            tooltip=tooltip,
        ),
    ]
    words = [f"{shown(float(points[0]['v']))} to {shown(float(points[-1]['v']))} {row.unit}"]
    if name == _CURVES[1]:
        layers.append(limit_line(axis.limit_ms))
        words.append(f"dashed: the published limit of {shown(axis.limit_ms)} ms")
    title = f"{row.title} by {axis.title}"
    description = ". ".join([title, *words])
    spec = finished(layered(points, *layers), title, words, description)
    rows = [[f"{point['x']:g}", point["v"]] for point in points]
    table = Table(f"{title}: values", [axis.title, title_of(row)], rows)
    return Chart(f"curve-{name}".replace("_", "-"), title, description, spec, table)
