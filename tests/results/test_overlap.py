"""Whether loads were neighbours to each other: begins late, ends early, stops in between."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plimsoll.plan.complete import plan_of_options
from plimsoll.results import events
from plimsoll.results.load_rates import LoadRates
from plimsoll.results.overlap import overlaps, rests
from tests.support.event_answers import event, response

SECONDS = 200
BOTH = {"measure": ["load", "other"]}


def phase(name: str, first_s: int, last_s: int) -> Any:
    second = 1_000_000_000
    return SimpleNamespace(name=name, start_ns=first_s * second, end_ns=last_s * second)


def load(name: str, per_s: float, *idle: tuple[int, int]) -> LoadRates:
    """So many operations in every second, none in some spans."""
    ends = np.arange(1.0, SECONDS + 1)
    counts = np.full(SECONDS, per_s)
    for first_s, last_s in idle:
        counts[first_s:last_s] = 0
    return LoadRates(name, ends, np.ones(SECONDS), counts, counts * 5)


def share(*idle: tuple[int, int], staged: tuple[Any, ...] = (), per_s: float = 10) -> float:
    """How much of the time one of two loads worked."""
    rates = [load("load", per_s, *idle), load("other", 10)]
    found = overlaps(rates, [phase("measure", 0, SECONDS)], BOTH, staged)
    assert found["other"] == pytest.approx(1)
    return found["load"]


def test_ORC_10_a_load_that_begins_late_or_ends_early_was_no_neighbour_meanwhile() -> None:
    """A server that answers after 20 s; sessions that all die at 100 s."""
    assert share() == pytest.approx(1)
    assert share((0, 20)) == pytest.approx(0.9, abs=0.01)
    assert share((100, SECONDS)) == pytest.approx(0.5, abs=0.01)
    assert share((0, SECONDS)) == 0


def test_a_load_that_stops_in_between_was_no_neighbour_meanwhile() -> None:
    """From the first to the last operation is all of the time, but nothing was done in most."""
    assert share((10, 190)) == pytest.approx(0.1, abs=0.01)
    assert share((10, 60), (100, 150)) == pytest.approx(0.5, abs=0.01)


def test_samples_that_a_phase_cuts_are_counted() -> None:
    """A phase of 15 s whose begin and end lie within samples: both loads worked all of it."""
    cut: Any = SimpleNamespace(name="measure", start_ns=10_400_000_000, end_ns=25_400_000_000)
    rates = [load("load", 100), load("other", 100)]
    assert overlaps(rates, [cut], BOTH) == {"load": pytest.approx(1), "other": pytest.approx(1)}
    rates[0].counts[10:13] = 0
    assert overlaps(rates, [cut], BOTH)["load"] == pytest.approx(1 - 2.6 / 15)


def test_a_load_of_few_operations_has_gaps() -> None:
    rates = [load("load", 0), load("other", 10)]
    rates[0].counts[::20] = 1
    assert overlaps(rates, [phase("measure", 0, SECONDS)], BOTH)["load"] == 1


@pytest.mark.parametrize("count", [1, 10, 11])
def test_a_few_operations_at_an_end_are_no_load_for_all_of_the_time(count: int) -> None:
    """Ten operations in the first second, or in the last, and nothing while the other works."""
    for at in (0, SECONDS - 1):
        rates = [load("load", 0), load("other", 10)]
        rates[0].counts[at] = count
        found = overlaps(rates, [phase("measure", 0, SECONDS)], BOTH)
        assert found == {"load": pytest.approx(1 / SECONDS), "other": 1}
    # A load that makes so few, over the time, is there.
    rates[0].counts[:] = 0
    rates[0].counts[[60, 120]] = 1
    assert overlaps(rates, [phase("measure", 0, SECONDS)], BOTH)["load"] == 1


def test_users_that_ask_for_much_at_once_and_then_nothing_for_long_are_there_all_the_time() -> None:
    """A few users of mail: six tasks of eight operations each, the first after 30 s."""
    rates = [load("load", 0), load("other", 10)]
    rates[0].counts[30:170:25] = 8
    phases = [phase("measure", 0, SECONDS)]
    assert overlaps(rates, phases, BOTH)["load"] == 1
    # Where they are gone for most of the time it shows all the same.
    often = [load("load", 0), load("other", 10)]
    often[0].counts[0:60:2] = 8
    assert overlaps(often, phases, BOTH)["load"] == pytest.approx(0.3, abs=0.02)


def test_a_load_that_rests_by_plan_has_gaps() -> None:
    """The night of a working day, and workers that wait before each burst."""
    rates = [load("load", 10, (10, 60), (100, 150)), load("other", 10)]
    found = overlaps(rates, [phase("measure", 0, SECONDS)], BOTH, uneven=["load"])
    assert found == {"load": pytest.approx(1), "other": pytest.approx(1)}
    access = {"size_bytes": 512, "share_percent": 100, "read_percent": 50, "random_percent": 100}
    stages = [{"rate_percent": 1, "for_s": 60}, {"rate_percent": 100, "for_s": 60}]
    plan = plan_of_options(
        {
            "target": [{"name": "disk", "path": "/nowhere"}],
            "instance": [{"name": "share", "backend": "files"}, {"name": "mail"}],
            "workload": [
                {"name": "even", "instances": ["share"]},
                {"name": "bursts", "instances": ["share"], "access": [{**access, "delay_ms": 9}]},
                {
                    "name": "day",
                    "instances": ["mail"],
                    "load": {"transactions_per_s": 10, "stages": stages},
                },
            ],
        }
    )
    assert [rests(item) for item in plan.run.workloads] == [False, True, True]


def test_where_nobody_works_nobody_had_the_storage_alone() -> None:
    """A storage that stands still makes all loads wait: its latency is judged, not the overlap."""
    rates = [load(name, 10, (50, 100)) for name in ("load", "other")]
    found = overlaps(rates, [phase("measure", 0, SECONDS)], BOTH)
    assert found == {"load": pytest.approx(1), "other": pytest.approx(1)}


def test_a_load_that_answers_an_event_is_judged_by_its_answer() -> None:
    """A node that dies takes its load along for a while, which the event has limits for."""
    staged = event(50.0, None, response(40.0))
    assert share((50, 90), staged=(staged,)) == pytest.approx(1)
    unseen = event(50.0, None, response(None, seen=False))
    assert share((50, 90), staged=(unseen,)) == pytest.approx(0.8, abs=0.01)


def test_an_outage_of_few_operations_is_an_answer_and_no_missing_neighbour() -> None:
    """Eight orders a second, none for ten seconds while another works: the event has stopped it."""
    orders = load("load", 8, (100, 110))
    answered = events.response(orders, event=(100.0, 110.0), span=(0.0, SECONDS))
    assert answered is not None and answered.detected_s is not None
    staged = event(100.0, 110.0, answered)
    found = overlaps([orders, load("other", 10)], [phase("measure", 0, SECONDS)], BOTH, [staged])
    assert found["load"] == 1


@pytest.mark.parametrize("idle", [(150, SECONDS), (0, 30)])
def test_a_load_that_an_event_stops_at_an_end_of_the_time_answers_as_well(
    idle: tuple[int, int],
) -> None:
    """Its server is killed for the rest of the phase, or in its first second for half a minute."""
    begun_s, back_s = idle[0] + 0.5, idle[1] - idle[0] if idle[1] < SECONDS else None
    assert share(idle, staged=(event(begun_s, None, response(back_s)),)) == pytest.approx(1)
    elsewhen = event(100.0, 101.0, response(1.0))
    assert share(idle, staged=(elsewhen,)) < 0.9


def test_loads_that_are_measured_one_after_the_other_are_no_neighbours() -> None:
    """A plan may measure each alone, and then both: only the last is a matter of overlap."""
    rates = [load("load", 10, (50, 100)), load("other", 10, (0, 50))]
    phases = [phase("first", 0, 50), phase("second", 50, 100), phase("both", 100, SECONDS)]
    running = {"first": ["load"], "second": ["other"], "both": ["load", "other"]}
    found = overlaps(rates, phases, running)
    assert found == {"load": pytest.approx(1), "other": pytest.approx(1)}
    assert overlaps(rates, phases[:2], running) == {}
