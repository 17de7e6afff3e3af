"""The rate of each load over the time in which it ran, with the events of the run.

Samples that a phase cut short are put together with the next: alone they hold too few operations
to be a rate. Where a load did not run, nothing is drawn. A burst far beyond what is usual does not
set the axis; it is marked at the top. Events are bars above the rates, each with its number, in so
many lanes that no two of them touch; the legend below the chart has their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plimsoll.documents.event_figures import EventFigures
from plimsoll.pages.kit import Chart
from plimsoll.pages.tables import Table, shortened
from plimsoll.pages.vega import COLOURS, DASHES, STEPS, Spec, finished, layer, nominal, quantitative
from plimsoll.report.charts import POINTS_MAX
from plimsoll.results.load_rates import LoadRates

EVENT_COLOUR, BAR_COLOUR = "#4a4a4a", "#d9dde1"
#: A span is shorter than the usual one by no more than rounding.
WHOLE_SHARE = 0.95
#: What 95 of 100 spans stay below is usual; the axis ends a third above it, where the highest rate
#: is more than twice as much.
USUAL_PERCENTILE, BEYOND, HEADROOM = 95, 2.0, 4 / 3
LANES_MAX, LANE_PX, PLOT_PX = 8, 16, 200
#: What the number of an event takes of the width, also on a phone.
LABEL_SHARE = 0.055
#: More events than these are named in the table alone.
NAMED_MAX = 12
NAME_MAX = 60


class LoadSpan(NamedTuple):
    """A rate from one moment to another, in seconds on the clock of the run."""

    begin_s: float
    end_s: float
    per_s: float


class Placed(NamedTuple):
    """Where an event stands in a chart, in seconds on the clock of the run.

    Attributes:
        number: of the event, from 1.
        lane: from 0, the uppermost.
        begun_s: when it began.
        bar_s: from when to when its bar reaches.
        label_s: what its number takes.
        taken_s: what both take together.
        ends: whether it was undone within the chart.
    """

    number: int
    lane: int
    begun_s: float
    bar_s: tuple[float, float]
    label_s: tuple[float, float]
    taken_s: tuple[float, float]
    ends: bool


def load_chart(
    load: LoadRates,
    number: int,
    events: Sequence[EventFigures],
    busy_s: Sequence[tuple[float, float]],
) -> Chart | None:
    """The chart of one load.

    Args:
        load: what it completed in each sample.
        number: of the load, from 1.
        events: those of the run, in the order of the table of events.
        busy_s: from when to when the load ran, in seconds on the clock of the run.

    Returns:
        None where it never ran.
    """
    rows = spans_of(load, busy_s)
    if not rows:
        return None
    spans = [span for row in rows for span in row]
    rates = [span.per_s for span in spans]
    domain_s = (spans[0].begin_s, spans[-1].end_s)
    placed = placed_events(events, domain_s)
    top = axis_top(rates)
    beyond = [span for span in spans if top is not None and span.per_s > top]
    words = [f"{min(rates):.4g} to {max(rates):.4g} per second"]
    if top is not None:
        words.append(
            f"{len(beyond)} of {len(spans)} values lie beyond the axis (▲ at the top), the highest "
            f"is {max(rates):.4g} per second"
        )
    name = shortened(load.workload, NAME_MAX)
    note = legend_of(events, placed) if events else ""
    description = ". ".join([f"Operations per second, {load.workload}", *words, note]).rstrip(". ")
    lanes = 1 + max((place.lane for place in placed), default=-1)
    layers = [_rates(rows, number, domain_s, top, lanes * LANE_PX)]
    layers += [_beyond(beyond, number, lanes * LANE_PX)] if beyond else []
    layers += _marks(placed) if placed else []
    spec = finished({"layer": layers}, f"Operations per second, {name}", words, description)
    spec["height"] = PLOT_PX + lanes * LANE_PX
    table = Table(
        f"Operations per second, {load.workload}",
        ["From second", "To second", "Per second"],
        [[f"{begin:.2f}", f"{end:.2f}", rate] for begin, end, rate in spans],
    )
    return Chart(f"together-{number}", table.title, description, spec, table, note)


def spans_of(
    load: LoadRates, busy_s: Sequence[tuple[float, float]], points_max: int = POINTS_MAX
) -> list[list[LoadSpan]]:
    """Rates over spans of at least a usual sample, a list for each time in which the load ran."""
    middles = load.ends_s - load.lengths_s / 2
    chosen = np.zeros(len(middles), dtype=bool)
    for begin_s, end_s in busy_s:
        chosen |= (middles >= begin_s) & (middles <= end_s)
    if not chosen.any():
        return []
    lengths = load.lengths_s[chosen]
    # By the time they take: many short samples do not make short ones usual.
    order = np.argsort(lengths)
    half = np.searchsorted(np.cumsum(lengths[order]), lengths.sum() / 2)
    wanted_s = max(float(lengths[order][half]), float(lengths.sum()) / points_max)
    found: list[list[LoadSpan]] = []
    kept = np.flatnonzero(chosen)
    for row in np.split(kept, np.flatnonzero(np.diff(kept) > 1) + 1):
        found.append(_merged(load.of(np.isin(np.arange(len(chosen)), row)), wanted_s))
    return found


def _merged(load: LoadRates, wanted_s: float) -> list[LoadSpan]:
    """Neighbours put together until they are as long as wanted; a rest goes to the last span."""
    groups: list[list[int]] = [[]]
    for index in range(len(load.ends_s)):
        if groups[-1] and load.lengths_s[groups[-1]].sum() >= WHOLE_SHARE * wanted_s:
            groups.append([])
        groups[-1].append(index)
    if len(groups) > 1 and load.lengths_s[groups[-1]].sum() < WHOLE_SHARE * wanted_s:
        rest = groups.pop()
        groups[-1] += rest
    found = []
    for group in groups:
        seconds = float(load.lengths_s[group].sum())
        if seconds:
            begin_s = float(load.ends_s[group[0]] - load.lengths_s[group[0]])
            found.append(
                LoadSpan(
                    begin_s,
                    float(load.ends_s[group[-1]]),
                    float(load.counts[group].sum()) / seconds,
                )
            )
    return found


def axis_top(rates: Sequence[float]) -> float | None:
    """Where the axis of rates ends; None where it holds all of them.

    >>> axis_top([10.0] * 99 + [100.0]), axis_top([10.0] * 99 + [15.0])
    (13.333333333333332, None)
    """
    usual = float(np.percentile(rates, USUAL_PERCENTILE))
    return HEADROOM * usual if usual and max(rates) > BEYOND * usual else None


def placed_events(events: Sequence[EventFigures], domain_s: tuple[float, float]) -> list[Placed]:
    """Every event that has room in a lane, without touching another.

    Where there is no room for all bars, events keep their numbers and lose their bars.
    """
    whole = _placed(events, domain_s, with_bars=True)
    began = sum(event.begun_s is not None for event in events)
    return whole if len(whole) == began else _placed(events, domain_s, with_bars=False)


def _placed(
    events: Sequence[EventFigures], domain_s: tuple[float, float], *, with_bars: bool
) -> list[Placed]:
    first_s, last_s = domain_s
    wide_s = LABEL_SHARE * (last_s - first_s)
    lanes: list[list[tuple[float, float]]] = []
    found = []
    for number, event in enumerate(events, 1):
        if event.begun_s is None:
            continue
        begin_s = min(max(event.begun_s, first_s), last_s)
        end_s = last_s if event.undone_s is None else min(max(event.undone_s, begin_s), last_s)
        label_from_s = min(begin_s, last_s - wide_s)
        label_s = (label_from_s, label_from_s + wide_s)
        bar_s = (begin_s, end_s) if with_bars else (begin_s, begin_s)
        taken_s = (label_s[0], max(label_s[1], bar_s[1]))
        free = (
            lane
            for lane, taken in enumerate(lanes)
            if all(taken_s[1] <= other[0] or other[1] <= taken_s[0] for other in taken)
        )
        lane = next(free, len(lanes))
        if lane >= LANES_MAX:
            continue
        if lane == len(lanes):
            lanes.append([])
        lanes[lane].append(taken_s)
        ends = event.undone_s is not None and event.undone_s <= last_s
        found.append(Placed(number, lane, begin_s, bar_s, label_s, taken_s, ends))
    return found


def legend_of(events: Sequence[EventFigures], placed: Sequence[Placed]) -> str:
    """What the numbers in the chart stand for, in a sentence."""
    drawn = {place.number for place in placed}
    missing = len(events) - len(drawn)
    more = f" {missing} of {len(events)} events have no room in the chart." if missing else ""
    if len(events) > NAMED_MAX:
        return f"The numbers are those of the table of events.{more}"
    told = [
        f"{number}: {shortened(event.name, NAME_MAX)}, {_when(event)}"
        for number, event in enumerate(events, 1)
        if number in drawn
    ]
    return f"{'Events' if len(told) > 1 else 'Event'} {'; '.join(told)}.{more}" if told else more


def _when(event: EventFigures) -> str:
    if event.undone_s is None:
        return f"from {event.begun_s:.1f} s on, not undone"
    return f"{event.begun_s:.1f} to {event.undone_s:.1f} s"


def _rates(
    rows: Sequence[Sequence[LoadSpan]],
    number: int,
    domain_s: tuple[float, float],
    top: float | None,
    lanes_px: int,
) -> Spec:
    """The curve; between times in which the load ran it is broken."""
    data: list[dict[str, float | None]] = []
    for row in rows:
        data += [{"t": round(span.begin_s, 3), "v": _short(span.per_s)} for span in row]
        # The last value has its step as well.
        data.append({"t": round(row[-1].end_s, 3), "v": _short(row[-1].per_s)})
        data.append({"t": round(row[-1].end_s, 3), "v": None})
    highest = top or max(span.per_s for row in rows for span in row) or 1.0
    scale = {
        "domain": [0, highest],
        "nice": top is None,
        "clamp": True,
        "range": [PLOT_PX + lanes_px, lanes_px],
    }
    return layer(
        {**STEPS, "color": _colour(number), "invalid": "break-paths-show-domains"},
        data[:-1],
        x=quantitative(
            "t",
            title="seconds since the run began",
            # Its lines would end where the lanes' height is missing below.
            axis={"grid": False, "labelOverlap": "greedy", "labelSeparation": 8},
            scale={"domain": [round(moment, 3) for moment in domain_s], "nice": False},
        ),
        y=quantitative("v", title="per s", scale=scale, axis={"tickCount": 5, "format": "~s"}),
        tooltip=[
            quantitative("t", title="s", format=".4~g"),
            quantitative("v", title="per s", format=".4~g"),
        ],
    )


def _beyond(spans: Sequence[LoadSpan], number: int, lanes_px: int) -> Spec:
    """Marks at the top of the axis for what lies beyond it."""
    look = {"type": "point", "shape": "triangle-up", "filled": True, "size": 70, "opacity": 1}
    data = [
        {"t": round((span.begin_s + span.end_s) / 2, 3), "v": _short(span.per_s)} for span in spans
    ]
    return layer(
        {**look, "color": _colour(number)},
        data,
        x=quantitative("t"),
        y={"value": lanes_px + 4},
        tooltip=[
            quantitative("t", title="s", format=".4~g"),
            quantitative("v", title="per s", format=".4~g"),
        ],
    )


def _marks(placed: Sequence[Placed]) -> list[Spec]:
    """Bars with numbers in their lanes, and lines through the rates where events begin and end."""
    bars = [
        {"t": place.bar_s[0], "u": place.bar_s[1], "y": place.lane * LANE_PX + 7}
        for place in placed
        if place.bar_s[1] > place.bar_s[0]
    ]
    labels = [
        {
            "t": sum(place.label_s) / 2,
            "y": place.lane * LANE_PX + 7,
            "w": str(place.number),
        }
        for place in placed
    ]
    begun = [{"t": place.begun_s, "y": place.lane * LANE_PX} for place in placed]
    ended = [
        {"t": place.bar_s[1], "y": place.lane * LANE_PX} for place in placed if place.ends and bars
    ]
    # Lanes are counted in pixels from the top; the scale of the rates does not reach there.
    pixels = {"field": "y", "type": "quantitative", "scale": None}
    bottom = {"value": PLOT_PX + LANE_PX * (1 + max(place.lane for place in placed))}
    found = [
        layer(
            {"type": "rule", "color": EVENT_COLOUR, "strokeDash": dash, "strokeWidth": width},
            data,
            x=quantitative("t"),
            y=pixels,
            y2=bottom,
        )
        for data, dash, width in ((begun, DASHES[1], 1.3), (ended, DASHES[2], 1.0))
        if data
    ]
    if bars:
        look = {"type": "rule", "color": BAR_COLOUR, "strokeWidth": 13, "strokeCap": "butt"}
        found.append(layer(look, bars, x=quantitative("t"), x2={"field": "u"}, y=pixels))
    text = {"type": "text", "fontSize": 11.5, "fontWeight": "bold", "baseline": "middle"}
    found.append(
        layer(
            {**text, "color": "#1b1b1b"}, labels, x=quantitative("t"), y=pixels, text=nominal("w")
        )
    )
    return found


def _colour(number: int) -> str:
    return COLOURS[(number - 1) % len(COLOURS)]


def _short(rate: float) -> float:
    return float(f"{rate:.4g}")
