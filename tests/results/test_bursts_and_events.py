"""What an event slows is no burst of the storage before it."""

import pytest

from plimsoll.documents.event_figures import EventFigures
from plimsoll.documents.outcome import PhaseOutcome
from plimsoll.results.rate_steps import plateaus
from plimsoll.results.sustained import Beat
from plimsoll.results.undisturbed import beats_outside
from plimsoll.units import NS_PER_S
from tests.support.event_answers import event, response

MEASURED = PhaseOutcome(
    name="measure",
    kind="measure",
    start_ns=0,
    end_ns=240 * NS_PER_S,
    complete=True,
    databases=(),
)


def falls_at(moment_s: int) -> list[list[Beat]]:
    """Four minutes at 1,000 operations per second, and from then on at half of it."""
    return [
        [
            Beat(end_ns=end * NS_PER_S, seconds=1.0, operations=500.0 if end > moment_s else 1000.0)
            for end in range(1, 241)
        ]
    ]


def kind(beats: list[list[Beat]], *events: EventFigures) -> str:
    return plateaus(beats_outside(events, [MEASURED], beats)).kind


@pytest.mark.parametrize("undone_s", [None, 200.0])
def test_a_fall_that_lasts_to_the_end_is_the_answer_to_the_event(undone_s: float | None) -> None:
    beats = falls_at(120)
    assert kind(beats) == "burst"
    assert kind(beats, event(120.0, undone_s, response(None))) == "none"


def test_a_burst_before_an_event_is_one_all_the_same() -> None:
    assert kind(falls_at(60), event(200.0, 210.0, response(12.0))) == "burst"
    # An event that was undone, and whose load was back, explains no later fall.
    assert kind(falls_at(120), event(20.0, 30.0, response(12.0))) == "burst"


def test_where_an_event_lasts_all_the_time_no_step_is_looked_for() -> None:
    assert kind(falls_at(120), event(0.0, None, response(None))) == "none"
