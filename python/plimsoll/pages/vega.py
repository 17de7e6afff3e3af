"""Vega-Lite specs: fields of the data as channels, layers, and the look that all charts share.

Latency stands on a logarithmic axis, so that a limit and a tenth of it can be read in one picture.
Places are told apart by colour and by dashes; the colours are Okabe and Ito's, which those who
confuse red and green can tell apart too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.pages.chart_spans import BOUNDS_MS, Unit

#: A spec or a part of one, as JSON.
Spec = dict[str, object]
#: The rows of a chart's data.
Rows = Sequence[Mapping[str, object]]

#: The version of the language; `vl-convert` holds what draws it.
LANGUAGE = "https://vega.github.io/schema/vega-lite/v6.json"
#: More places than these cannot be told apart.
PLACES_MAX = 6
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#aa4499", "#8a6d00", "#000000"]
DASHES = [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3]]
LIMIT_COLOUR = "#9d1010"
LIMIT_DASH = [5, 3]
STEPS = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.6}
#: Scale and axis of what is counted in a second, and of shares.
RATE_AXIS: Spec = {"scale": {"zero": True}, "axis": {"tickCount": 5, "format": "~s"}}
PERCENT_AXIS: Spec = {
    "scale": {"zero": True, "domainMax": 100},
    "axis": {"tickCount": 5, "format": "d"},
}
_TICKS_MAX = 9


def quantitative(field: str, /, **more: object) -> Spec:
    """A channel that shows the numbers of a field."""
    return {"field": field, "type": "quantitative", **more}


def nominal(field: str, /, **more: object) -> Spec:
    """A channel that shows the words of a field."""
    return {"field": field, "type": "nominal", **more}


def layer(mark: Spec, values: Rows | None = None, /, **encoding: object) -> Spec:
    """One kind of mark with its channels, and with data where it has its own."""
    data = {} if values is None else {"data": {"values": values}}
    return {**data, "mark": mark, "encoding": encoding}


def layered(values: Rows, *layers: Spec) -> Spec:
    """Layers, one over the other, on the same data."""
    return {"data": {"values": values}, "layer": list(layers)}


def over_time(
    labels: Sequence[str], what: str, time: Unit, unit: str, y: Spec, *, digits: int = 3
) -> Spec:
    """A layer of curves over the measured time, one for each label.

    Args:
        labels: what the curves are of, in the data's field `w`.
        what: what a label is, in one word.
        time: the unit of the data's field `t`.
        unit: of the data's field `v`.
        y: scale and axis of the values.
        digits: of the value that is shown for a point.
    """
    return layer(
        {**STEPS, "clip": True},
        x=quantitative("t", title=f"{time.name} since measuring began", scale={"nice": False}),
        y=quantitative("v", title=unit, **y),
        color=colour(labels),
        strokeDash=dash(labels),
        tooltip=[
            nominal("w", title=what),
            quantitative("t", title=time.name, format=".4~g"),
            quantitative("v", title=unit, format=f".{digits}~g"),
        ],
    )


def latency_bars(bins: Sequence[str], labels: Sequence[str], what: str) -> Spec:
    """Shares of transfers by latency, a bar for each label in each bin."""
    axis = {"labelAngle": -40, "labelOverlap": False}
    return layer(
        {"type": "bar"},
        x=nominal("b", title="latency, ms", sort=bins, axis=axis),
        xOffset=nominal("w", sort=labels),
        y=quantitative("v", title="% of transfers", axis={"tickCount": 5}),
        color=colour(labels),
        tooltip=[
            nominal("w", title=what),
            nominal("b", title="ms"),
            quantitative("v", title="%", format=".3~g"),
        ],
    )


def latency_axis(values: Sequence[float]) -> Spec:
    """Scale and axis for latencies in ms: logarithmic, from a bound below all to one above them.

    Ticks stand at 1, 2 and 5, or at powers of ten where that would be too many; there is room for
    words at the highest value.
    """
    low = max((bound for bound in BOUNDS_MS if bound <= 0.9 * min(values)), default=BOUNDS_MS[0])
    high = min((bound for bound in BOUNDS_MS if bound >= 1.3 * max(values)), default=BOUNDS_MS[-1])
    ticks = [bound for bound in BOUNDS_MS if low <= bound <= high]
    if len(ticks) > _TICKS_MAX:
        ticks = [bound for bound in ticks if f"{bound:e}".startswith("1")]
    return {
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": {"values": ticks, "format": "~g", "labelOverlap": False},
    }


def limit_mark(limit: float, words: str) -> list[Spec]:
    """A line across a chart at a limit, with words at its left end."""
    look = {"align": "left", "baseline": "bottom", "dx": 4, "dy": -2, "fontSize": 12}
    return [
        limit_line(limit, strokeWidth=1.5),
        layer(
            {"type": "text", "color": LIMIT_COLOUR, **look},
            [{}],
            y={"datum": limit},
            x={"value": 0},
            text={"value": words},
        ),
    ]


def limit_line(limit: float, /, **more: object) -> Spec:
    """A dashed line across a chart at a limit."""
    mark = {"type": "rule", "color": LIMIT_COLOUR, "strokeDash": LIMIT_DASH, **more}
    return layer(mark, [{}], y={"datum": limit})


def colour(labels: Sequence[str]) -> Spec:
    """A colour for each label that can be told from the others, whoever looks."""
    return _told_apart(labels, COLOURS)


def dash(labels: Sequence[str]) -> Spec:
    """Dashes that tell lines apart without colour."""
    return _told_apart(labels, DASHES)


def _told_apart(labels: Sequence[str], looks: Sequence[object]) -> Spec:
    scale = {"domain": labels, "range": looks[: len(labels)]}
    # One place alone needs no legend: the words above the chart name it.
    alone = {"legend": None} if len(labels) == 1 else {}
    return nominal("w", title=None, scale=scale, **alone)


def finished(drawn: Spec, title: str, words: Sequence[str], description: str) -> Spec:
    """A chart in the size and the type of all others, with words above it and a description for who
    cannot see it.
    """
    return {
        "$schema": LANGUAGE,
        "title": {
            "text": title,
            "subtitle": words,
            "anchor": "start",
            "fontSize": 15,
            "subtitleFontSize": 12.5,
            "subtitleColor": "#333",
            "offset": 8,
        },
        "description": description,
        "width": "container",
        "height": 200,
        "config": {
            "font": "system-ui, sans-serif",
            "axis": {
                "labelFontSize": 12,
                "titleFontSize": 12,
                "titleFontWeight": "normal",
                "gridColor": "#e4e4e4",
                "labelColor": "#333",
                "titleColor": "#333",
            },
            "legend": {
                "orient": "bottom",
                "direction": "vertical",
                "columns": 2,
                "labelLimit": 260,
                "labelFontSize": 12,
            },
            "view": {"strokeWidth": 0},
        },
        **drawn,
    }
