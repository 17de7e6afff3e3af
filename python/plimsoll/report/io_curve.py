"""The page of a curve: I/O per second against latency for each block size, with its table."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.pages.kit import Chapter, Chart
from plimsoll.pages.sheet import Sheet, render_sheet
from plimsoll.pages.tables import Table
from plimsoll.pages.vega import (
    RATE_AXIS,
    Spec,
    colour,
    finished,
    latency_axis,
    layer,
    layered,
    nominal,
    quantitative,
)

#: Block size, depth, I/O per second, mean latency in ms.
Point = tuple[str, int, float, float]


def render_curve(
    title: str, points: Sequence[Point], rows: Sequence[Sequence[str]], *, failed: bool
) -> str:
    """The page as text.

    Args:
        title: what was measured.
        points: what is drawn.
        rows: the table, its headings first.
        failed: whether a point failed.
    """
    table = Table(
        "Every point",
        list(rows[0]),
        [list(row) for row in rows[1:]],
        "Each point has a folder and a report.",
    )
    best = max(points, key=lambda point: point[2], default=None)
    headline = (
        f"{best[2]:,.0f} I/O per second at most, {best[0]} at depth {best[1]}"
        if best
        else "nothing was measured"
    )
    charts = [_chart(title, points, table)] if points else []
    return render_sheet(
        Sheet(
            product="Plimsoll I/O curve",
            title=title,
            where=f"{len(points)} points",
            status="fail" if failed else "neutral",
            headline=headline,
            sentences=[
                "Latency is the mean of all transfers of a point. No limit was judged but those "
                "that were stated."
            ],
            warnings=[],
            chapters=[Chapter("curve", "I/O per second against latency", [table], charts)],
            made_by="",
        )
    )


def _chart(title: str, points: Sequence[Point], table: Table) -> Chart:
    labels = list(dict.fromkeys(point[0] for point in points))
    values = [
        {"x": iops, "v": latency, "w": block, "d": depth} for block, depth, iops, latency in points
    ]
    channels: Spec = {
        "x": quantitative("x", title="I/O per second", **RATE_AXIS),
        "y": quantitative(
            "v", title="mean latency, ms", **latency_axis([latency for *_, latency in points])
        ),
        "color": colour(labels),
        "order": quantitative("d"),
        "tooltip": [
            nominal("w", title="block"),
            quantitative("d", title="depth"),
            quantitative("x", format=".4~g", title="per s"),
            quantitative("v", format=".3~g", title="ms"),
        ],
    }
    words = [f"block sizes {', '.join(labels)}; each point is a depth, the lowest to the left"]
    chart = layered(
        values,
        layer({"type": "line", "strokeWidth": 1.4}, **channels),
        layer({"type": "point", "filled": True, "size": 50}, **channels),
    )
    name = "I/O per second against latency"
    description = ". ".join([f"{name}: {title}", *words])
    return Chart("io-curve", name, description, finished(chart, name, words, description), table)
