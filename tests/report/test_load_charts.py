"""The rates of loads over the time of a run, and where events stand in them."""

import json
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from plimsoll.documents.event_figures import EventFigures
from plimsoll.report.load_charts import (
    LANES_MAX,
    Placed,
    axis_top,
    legend_of,
    load_chart,
    placed_events,
    spans_of,
)
from plimsoll.results.load_rates import LoadRates
from tests.support.event_answers import event, response

ALWAYS = [(0.0, 1e9)]


def load(lengths_s: Sequence[float], counts: Sequence[float], name: str = "orders") -> LoadRates:
    lengths = np.array(lengths_s)
    return LoadRates(name, np.cumsum(lengths), lengths, np.array(counts), 0.0 * lengths)


def events(*begun_and_undone: tuple[float, float | None]) -> list[EventFigures]:
    return [
        event(begun_s, undone_s, response(None)).replace(name=f"event {number}")
        for number, (begun_s, undone_s) in enumerate(begun_and_undone, 1)
    ]


def layers(spec: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(json.dumps(spec))["layer"]
    return found


def test_a_sample_that_a_phase_cut_short_is_no_drop() -> None:
    """Five milliseconds between two phases hold no operation at a hundred a second."""
    found = spans_of(load([1, 1, 0.6, 0.005, 0.395, 1], [100, 100, 61, 0, 39, 100]), ALWAYS)
    assert len(found) == 1
    assert [span.per_s for span in found[0]] == [pytest.approx(100, rel=0.02)] * len(found[0])
    assert found[0][-1].end_s == pytest.approx(4)


def test_a_short_sample_at_the_end_is_drawn_with_the_one_before_it() -> None:
    (row,) = spans_of(load([1, 1, 1, 0.01], [100, 100, 100, 0]), ALWAYS)
    assert [span.end_s for span in row] == [1, 2, pytest.approx(3.01)]
    assert min(span.per_s for span in row) > 99


def test_a_load_is_drawn_only_while_it_runs() -> None:
    """Before its start and after its end it is not at zero: it is not there."""
    rates = load([1] * 10, [0, 0, 5, 5, 5, 0, 0, 5, 5, 0])
    found = spans_of(rates, [(2.0, 5.0), (7.0, 9.0)])
    assert [(row[0].begin_s, row[-1].end_s) for row in found] == [(2, 5), (7, 9)]
    assert {span.per_s for row in found for span in row} == {5}


def test_a_pause_is_still_drawn() -> None:
    (row,) = spans_of(load([1] * 5, [9, 9, 0, 0, 9]), ALWAYS)
    assert [span.per_s for span in row] == [9, 9, 0, 0, 9]


def test_one_burst_leaves_the_usual_range_legible() -> None:
    """A tenth of the height for what the load does all day tells nothing."""
    rates = load([1] * 100, [*[100] * 50, 5000, *[110] * 49])
    (row,) = spans_of(rates, ALWAYS)
    top = axis_top([span.per_s for span in row])
    assert top is not None and 110 < top < 220
    chart = load_chart(rates, 1, [], ALWAYS)
    assert chart is not None
    assert "1 of 100" in chart.description and "5000" in chart.description
    assert any(item["mark"].get("shape") == "triangle-up" for item in layers(chart.spec))


def test_where_nothing_is_far_out_the_axis_holds_all() -> None:
    assert axis_top([100.0, 110, 150, 90]) is None
    assert axis_top([0.0] * 99 + [5.0]) is None
    assert axis_top([100.0] * 50 + [200.0] * 50) is None


@pytest.mark.parametrize(
    "moments",
    [
        [(100, 160), (103, 165), (106, None), (107, 108), (109, 300), (110, 111)],
        [(0, 1), (0, 1), (0, 1), (299, 300), (300, None), (300, 300)],
        [(100 + 0.1 * number, None) for number in range(8)],
    ],
)
def test_labels_of_events_never_overlap_and_never_leave_the_chart(
    moments: list[tuple[float, float | None]],
) -> None:
    """Six events within seconds of one another, at the edges too."""
    found = placed_events(events(*moments), (0.0, 300.0))
    assert [place.number for place in found] == list(range(1, len(moments) + 1))
    for place in found:
        assert place.label_s[0] >= 0 and place.label_s[1] <= 300
    for one, other in combinations(found, 2):
        assert one.lane != other.lane or _apart(one, other), (one, other)


def _apart(one: Placed, other: Placed) -> bool:
    return one.taken_s[1] <= other.taken_s[0] or other.taken_s[1] <= one.taken_s[0]


def test_more_events_than_lanes_are_counted_in_words() -> None:
    many = events(*[(100 + 0.01 * number, None) for number in range(64)])
    found = placed_events(many, (0.0, 300.0))
    assert 0 < len(found) < 64 and max(place.lane for place in found) < LANES_MAX
    assert f"{64 - len(found)} of 64" in legend_of(many, found)


def test_the_legend_says_what_the_numbers_are() -> None:
    some = events((100, 160.25), (103, None))
    words = legend_of(some, placed_events(some, (0.0, 300.0)))
    assert "1: event 1, 100.0 to 160.2 s" in words
    assert "2: event 2, from 103.0 s" in words


def test_a_long_name_is_shortened_in_chart_and_legend() -> None:
    long = [item.replace(name="n" * 500) for item in events((100, 160))]
    chart = load_chart(load([1] * 300, [5] * 300, "w" * 500), 1, long, ALWAYS)
    assert chart is not None
    assert len(chart.note) < 150 and len(str(chart.spec["title"])) < 300
    assert "w" * 500 in chart.description


def test_a_load_that_did_nothing_has_a_chart_and_one_that_never_ran_has_none() -> None:
    chart = load_chart(load([1] * 3, [0, 0, 0]), 1, [], ALWAYS)
    assert chart is not None and "0 to 0 per second" in chart.description
    assert load_chart(load([1] * 3, [0, 0, 0]), 1, [], []) is None
    assert load_chart(load([], []), 1, [], ALWAYS) is None
