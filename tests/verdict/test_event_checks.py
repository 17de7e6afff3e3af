"""What the checks of events make of the answers of loads."""

import pytest

from plimsoll.documents.event_figures import (
    DegradedFigures,
    EventFigures,
    LoadResponse,
    SeenResponse,
)
from plimsoll.documents.staged_events import EventLimits
from plimsoll.verdict.events import checks_of


def event(load: LoadResponse, **judge: float) -> EventFigures:
    return EventFigures(
        name="path 2",
        kind="command",
        phase="measure",
        begun_s=600.0,
        applied_s=600.1,
        undone_s=900.0,
        is_proved=True,
        problem=None,
        io_errors=0,
        judge=EventLimits(**judge),
        loads=[load],
    )


def answer(pause_s: float, dip_percent: float, seen: SeenResponse | None = None) -> LoadResponse:
    return LoadResponse(
        workload="mix",
        baseline_per_s=400.0,
        baseline_s=60.0,
        detected_s=0.5,
        pause_s=pause_s,
        least_per_s=0.0,
        dip_percent=dip_percent,
        recovered_s=20.0,
        degraded_per_s=300.0,
        degraded_change_percent=-25.0,
        surge_per_s=500.0,
        before_ms_mean=5.0,
        lasting_ms_mean=9.0,
        generator_late_s=2.5,
        seen=seen,
    )


@pytest.mark.parametrize(
    ("pause_s", "seen_s", "expected"),
    [(1.0, 1.5, "pass"), (1.0, 3.5, "not_evaluated"), (2.5, 5.0, "fail")],
)
def test_what_only_a_late_generator_excuses_is_no_pass(
    pause_s: float, seen_s: float, expected: str
) -> None:
    """A pause beyond the limit of which the generator can be all: nobody knows, so nobody says."""
    seen = SeenResponse(pause_s=seen_s, dip_percent=90.0, recovered_s=30.0)
    figures = event(answer(pause_s, 40.0, seen), pause_s_max=2, dip_max=0.95, recover_s_max=60)
    staged, pause, dip, recovery = checks_of(figures)
    assert staged.status == "pass"
    assert (pause.name, pause.status) == ("event_pause", expected)
    assert (dip.status, recovery.status) == ("pass", "pass")
    if expected == "not_evaluated":
        assert "3.5 s were seen" in pause.reason and "late by up to 2.5 s" in pause.reason


def test_dip_and_recovery_are_doubted_likewise() -> None:
    seen = SeenResponse(pause_s=1.0, dip_percent=90.0, recovered_s=30.0)
    figures = event(answer(1.0, 40.0, seen), dip_max=0.6, recover_s_max=25)
    assert [check.status for check in checks_of(figures)[1:]] == ["not_evaluated"] * 2
    assert [check.status for check in checks_of(event(answer(1.0, 40.0), dip_max=0.6))] == [
        "pass",
        "pass",
    ]


def test_a_load_that_did_nothing_before_an_event_has_no_answer_to_it() -> None:
    """It was dead already: the event has neither stopped it nor has it withstood the event."""
    dead = answer(300.0, 0.0).replace(
        baseline_per_s=0.0, detected_s=None, dip_percent=None, recovered_s=None
    )
    _, *judged = checks_of(event(dead, pause_s_max=2, dip_max=0.5, recover_s_max=60))
    assert [check.status for check in judged] == ["not_evaluated"] * 3
    assert {check.reason for check in judged} == {
        "it did nothing before the event, which its rate could be held against"
    }


def test_where_nobody_would_see_that_a_load_stopped_nothing_is_concluded() -> None:
    """Ten operations a sample scatter by three of them: zero is no more than chance."""
    load = answer(0.0, 0.0).replace(detected_s=None, recovered_s=None, unseen_percent=126.0)
    _, pause, dip, recovery = checks_of(event(load, pause_s_max=5, dip_max=0.2, recover_s_max=10))
    assert pause.status == "pass"
    assert {dip.status, recovery.status} == {"not_evaluated"}
    assert "no one would see it if the load stopped" in dip.reason
    often = load.replace(unseen_percent=20.0)
    checks = checks_of(event(often, pause_s_max=5, dip_max=0.2, recover_s_max=10))
    assert [check.status for check in checks[1:]] == ["pass"] * 3


def test_a_dip_that_no_one_would_see_is_no_pass() -> None:
    """A fall by 30 % is chance for this load, and 20 % are allowed: nothing seen says nothing."""
    load = answer(0.0, 0.0).replace(detected_s=None, recovered_s=None, unseen_percent=30.0)
    _, dip = checks_of(event(load, dip_max=0.2))
    assert (dip.status, dip.measured) == ("not_evaluated", None)
    assert "a fall by less than 30 % of one sample is not told from chance" in dip.reason
    _, dip = checks_of(event(load, dip_max=0.3))
    assert dip.status == "pass"


def test_limits_that_no_load_answers_are_not_evaluated() -> None:
    """No load runs in the phase of the event: each limit says so, and none is left out."""
    alone = event(answer(0, 0), pause_s_max=2, dip_max=0.5, recover_s_max=60).replace(loads=())
    _, *judged = checks_of(alone)
    assert [(check.name, check.status) for check in judged] == [
        ("event_pause", "not_evaluated"),
        ("event_dip", "not_evaluated"),
        ("event_recovery", "not_evaluated"),
    ]
    assert {check.limit for check in judged} == {2, 50, 60}
    assert all("no load runs in the phase measure" in check.reason for check in judged)


@pytest.mark.parametrize(("most", "expected"), [(40, "pass"), (39, "fail")])
def test_orders_that_came_to_nothing_are_operations_that_failed(most: int, expected: str) -> None:
    load = answer(0, 0).replace(failed_count=38)
    _, errors = checks_of(event(load, errors_max=most).replace(io_errors=2))
    assert (errors.status, errors.measured) == (expected, 40)
    assert "2 I/O errors and 38 failed operations of mix" in errors.reason


def test_errors_while_an_earlier_event_goes_on_accuse_no_later_one() -> None:
    """A server that the first event killed is not back: what it refuses is not the second's."""
    near = answer(0, 0).replace(baseline_per_s=None, disturbed_by="server killed", failed_count=40)
    _, errors = checks_of(event(near, errors_max=0))
    assert (errors.status, errors.measured) == ("not_evaluated", 40)
    assert "event server killed is too near" in errors.reason
    _, errors = checks_of(event(near, errors_max=40))
    assert errors.status == "pass"


def test_latencies_while_an_earlier_event_goes_on_accuse_no_later_one() -> None:
    """A controller is away, and a path as well: what the path costs alone, no one can tell."""
    slow = DegradedFigures(
        scope="mail/1",
        metric="database_read",
        count=900,
        latency_ms_mean=90.0,
        latency_ms_sample_mean_max=150.0,
    )
    near = answer(0, 0).replace(baseline_per_s=None, disturbed_by="controller")
    for load, expected in ((near, "not_evaluated"), (answer(0, 0), "fail")):
        figures = event(load).replace(judge=EventLimits(degraded_limits="strict"), degraded=[slow])
        _, *found = checks_of(figures)
        assert {check.status for check in found} == {expected}
    assert "90 ms is above" in found[0].reason


def test_an_event_without_a_sample_is_known_to_have_cost_nothing_by_no_one() -> None:
    """The next event begins in the same moment: no time is its own, in which it did no harm."""
    cut = answer(0, 0).replace(
        baseline_per_s=None, detected_s=None, failed_count=0, samples_count=0, cut_by="path 3"
    )
    _, errors = checks_of(event(cut, errors_max=0))
    assert errors.status == "not_evaluated"
    assert "no sample lies between the event and the moment when event path 3" in errors.reason
    _, errors = checks_of(event(cut, errors_max=0).replace(io_errors=1))
    assert errors.status == "fail"


@pytest.mark.parametrize(("per_s", "expected"), [(0.5, "not_evaluated"), (2.0, "fail")])
def test_a_pause_that_few_operations_leave_by_chance_is_no_fault(per_s: float, expected: str):
    """One operation every two seconds leaves nine seconds without one now and then."""
    load = answer(9.0, 0.0).replace(
        baseline_per_s=per_s, detected_s=None, recovered_s=None, pause_chance_s=10 / per_s
    )
    _, pause = checks_of(event(load, pause_s_max=5))
    assert (pause.status, pause.measured) == (expected, 9.0)
    if expected == "not_evaluated":
        assert "leave gaps of up to 20 s by chance" in pause.reason
