"""Several events in one phase: none is judged by what another has done.

The series hold what was planted, so that what is true is known.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.documents.event_figures import EventFigures, StoppedBy
from plimsoll.documents.staged_events import EventLimits, StagedEvent
from plimsoll.documents.verdict import Check
from plimsoll.results.event_spans import undone_in
from plimsoll.results.events import answer
from plimsoll.results.load_rates import LoadRates
from plimsoll.verdict.events import checks_of

RATE = 400.0
NO_LIMITS = EventLimits()


@dataclass(frozen=True)
class Planted:
    """An event that, so late after it began, stops the load for a while, holds it down, and is
    undone.
    """

    begun_s: float
    lasts_s: float
    pause_s: float = 0.0
    dip: float = 0.0
    is_undone: bool = True
    late_s: float = 0.0

    @property
    def hurts(self) -> bool:
        return self.pause_s > 0 or self.dip > 0


def series(planted: list[Planted], end_s: float, seed: int = 1, length_s: float = 1.0) -> LoadRates:
    """Operations that come one by one, at the rate of each moment."""
    random = np.random.default_rng(seed)
    moments = np.sort(random.uniform(0.0, end_s, random.poisson(RATE * end_s)))
    keep = np.ones(len(moments), bool)
    for event in planted:
        since_s = moments - event.begun_s
        keep &= ~((since_s >= event.late_s) & (since_s < event.late_s + event.pause_s))
        is_held = (since_s >= event.late_s) & (since_s < event.lasts_s)
        keep &= ~(is_held & (random.uniform(size=len(moments)) < event.dip))
    ends = length_s * np.arange(1.0, int(end_s / length_s) + 1)
    counts = np.histogram(moments[keep], [0.0, *ends])[0].astype(float)
    return LoadRates("mix", ends, np.full(len(ends), length_s), counts, counts * 5)


def staged(number: int, event: Planted, judge: EventLimits) -> StagedEvent:
    undone_s = event.begun_s + event.lasts_s if event.is_undone else None
    return StagedEvent(
        name=f"event {number}",
        phase="measure",
        kind="command",
        planned_s=event.begun_s,
        begun_s=event.begun_s,
        applied_s=event.begun_s,
        undo_begun_s=undone_s,
        undone_s=undone_s,
        proved=True,
        exit_code=0,
        output="",
        undo_exit_code=0,
        undo_output="",
        error=None,
        judge=judge,
    )


def figures(
    load: LoadRates, planted: list[Planted], judges: list[EventLimits], end_s: float
) -> list[EventFigures]:
    """How a load answered what was planted in a phase."""
    pairs = zip(planted, judges, strict=True)
    events = [staged(number, event, judge) for number, (event, judge) in enumerate(pairs, 1)]
    found: list[EventFigures] = []
    for event in events:
        response = answer(load, event, events, found, (0.0, end_s))
        found.append(
            EventFigures(
                name=event.name,
                kind=event.kind,
                phase=event.phase,
                begun_s=event.begun_s,
                applied_s=event.applied_s,
                undone_s=event.undone_s,
                is_proved=True,
                problem=None,
                io_errors=0,
                judge=event.judge,
                loads=[response],
            )
        )
    return found


def judged(
    planted: list[Planted], judges: list[EventLimits], end_s: float, seed: int = 1
) -> list[list[Check]]:
    load = series(planted, end_s, seed)
    return [checks_of(event)[1:] for event in figures(load, planted, judges, end_s)]


def test_an_event_that_was_undone_is_not_judged_by_the_next_one() -> None:
    """The first does nothing; the second, 20 s after its undo, stops the load for 12 s."""
    planted = [Planted(70, 10), Planted(100, 20, pause_s=12)]
    limits = EventLimits(pause_s_max=5, dip_max=0.6, recover_s_max=15)
    first, second = judged(planted, [limits, limits], 200)
    assert [check.status for check in first] == ["pass", "pass", "pass"]
    assert [check.status for check in second] == ["fail", "fail", "pass"]


def test_what_an_earlier_event_changed_is_no_rate_before_a_later_one() -> None:
    """Held to a tenth from 70 to 100 s; the next, at 115 s, stops it at two tenths of its rate."""
    planted = [Planted(70, 30, dip=0.9), Planted(115, 30, dip=0.6)]
    (_, second) = figures(series(planted, 220), planted, [NO_LIMITS] * 2, 220)
    (load,) = second.loads
    assert load.baseline_per_s == pytest.approx(RATE, rel=0.05)
    assert load.degraded_change_percent == pytest.approx(-60, abs=5)


def test_a_baseline_is_looked_for_before_an_earlier_event_that_leaves_too_few_samples() -> None:
    """The load was back while the first lasted; three seconds after its undo comes the second."""
    planted = [Planted(70, 40, pause_s=4), Planted(113, 30, dip=0.5)]
    (_, second) = figures(series(planted, 220), planted, [NO_LIMITS] * 2, 220)
    (load,) = second.loads
    assert load.baseline_per_s == pytest.approx(RATE, rel=0.05) and load.disturbed_by is None


def test_an_event_from_which_the_load_was_not_back_leaves_no_rate_before_the_next() -> None:
    """A drive that stays away costs half of the rate; what a path costs then, no one can tell."""
    planted = [Planted(70, 999, dip=0.5, is_undone=False), Planted(120, 999, dip=0.5)]
    limits = EventLimits(pause_s_max=5, dip_max=0.2, recover_s_max=15)
    first, second = judged(planted, [limits, limits], 200)
    assert [check.status for check in first] == ["pass", "fail", "fail"]
    assert {check.status for check in second} == {"not_evaluated"}
    assert all("event 1 is too near" in check.reason for check in second)


def test_what_comes_to_nothing_of_a_load_that_is_not_back_is_no_fault_of_the_next_event() -> None:
    """A killed server refuses ten orders a second, also after a path was taken away."""
    planted = [Planted(70, 999, dip=0.5, is_undone=False), Planted(120, 9)]
    load = series(planted, 200)
    load = replace(load, failed=np.where(load.starts_s >= 70, 10.0, 0.0))
    limits = EventLimits(errors_max=0)
    first, second = (checks_of(event)[1] for event in figures(load, planted, [limits, limits], 200))
    assert (first.status, first.measured) == ("fail", 500)
    assert second.status == "not_evaluated" and "event 1 is too near" in second.reason


def test_the_undo_of_an_earlier_event_ends_the_time_of_a_later_one() -> None:
    """What was put back stops the load for 6 s: the path, staged meanwhile, has not."""
    planted = [Planted(70, 50), Planted(90, 999, is_undone=False)]
    load = series([Planted(120, 6, pause_s=6)], 200)
    _, second = figures(load, planted, [NO_LIMITS, EventLimits(pause_s_max=2)], 200)
    assert [check.status for check in checks_of(second)[1:]] == ["pass"]
    assert second.loads[0].cut_by == "event 1"


@pytest.mark.parametrize(
    ("begun_s", "before", "expected"),
    [(100.7, 0.0, 8.0), (100.3, 0.0, 8.0), (100.0, 0.0, 8.0), (100.7, 3.0, 0.0), (101.0, 0.0, 0.0)],
)
def test_what_fails_in_the_very_sample_of_an_event_is_its_doing(
    begun_s: float, before: float, expected: float
) -> None:
    """A killed server takes eight orders with it at once, and is back within the second; where
    orders failed before, no one knows which these were.
    """
    load = series([], 200)
    failed = np.zeros(len(load.ends_s))
    failed[90:100], failed[100] = before, 8.0
    (found,) = figures(
        replace(load, failed=failed), [Planted(begun_s, 5)], [EventLimits(errors_max=0)], 200
    )
    (check,) = checks_of(found)[1:]
    assert check.measured == expected and check.status == ("fail" if expected else "pass")


def test_a_load_that_never_did_anything_has_not_done_it_without_errors() -> None:
    """A server that was dead from the begin on has refused nothing."""
    idle = series([Planted(0, 200, pause_s=200)], 200)
    limits = EventLimits(errors_max=0)
    (found,) = figures(idle, [Planted(100, 20)], [limits], 200)
    (check,) = checks_of(found)[1:]
    assert check.status == "not_evaluated" and "it did nothing before the event" in check.reason
    (failing,) = figures(
        replace(idle, failed=np.ones(len(idle.ends_s))), [Planted(100, 20)], [limits], 200
    )
    assert checks_of(failing)[1].status == "fail"


@pytest.mark.parametrize("by_event", [True, False])
def test_what_the_end_cuts_off_is_neither_passed_nor_failed(*, by_event: bool) -> None:
    """The load stops 4 s before the end, and is held down until 8 s before another."""
    end_s = 200.0
    stops = [Planted(110, 999, pause_s=999)]
    limits = EventLimits(pause_s_max=5, recover_s_max=60)
    later = [Planted(114, 5)] if by_event else []
    found = judged(
        [*stops, *later], [limits, *([NO_LIMITS] if later else [])], 200 if by_event else 114
    )
    assert [check.status for check in found[0]] == ["not_evaluated"] * 2
    words = "event 2 changed something" if by_event else "when its phase ended"
    assert all(words in check.reason for check in found[0])
    # Where it had all the time that it is allowed, it failed.
    (known,) = judged(stops, [limits], end_s)
    assert [check.status for check in known] == ["fail"] * 2


@pytest.mark.parametrize("by_event", [True, False])
@pytest.mark.parametrize("behind_s", [1.2, 2.0, 9.0])
def test_where_too_little_time_lies_behind_an_event_nothing_seen_is_no_pass(
    behind_s: float, *, by_event: bool
) -> None:
    """What it does may come a few seconds later, with its phase or with another event over."""
    limits = EventLimits(pause_s_max=5, dip_max=0.6, recover_s_max=60, errors_max=0)
    end_s = 200.0 if by_event else 110 + behind_s
    later = [Planted(110 + behind_s, 5)] if by_event else []
    found = judged([Planted(110, 5), *later], [limits, NO_LIMITS][: 1 + by_event], end_s)[0]
    assert [check.status for check in found] == ["not_evaluated"] * 4
    words = "event 2 changed something" if by_event else "its phase ended"
    for check in found:
        assert f"only {behind_s:g} s lie between" in check.reason and words in check.reason
        assert "10 s are wanted" in check.reason
    (enough,) = judged([Planted(110, 5)], [limits], 121)
    assert [check.status for check in enough] == ["pass"] * 4


@pytest.mark.parametrize(
    ("stopped_by", "words", "advice"),
    [
        (None, "its phase ended", "let the phase last longer"),
        ("person", "a person ended the run", "let the run come to its end"),
        ("condition", "a stop condition ended the run", "let the run come to its end"),
        ("failure", "the run failed", "let the run come to its end"),
    ],
)
@pytest.mark.parametrize("pause_s", [0.0, 2.0])
def test_a_run_that_was_ended_is_not_told_to_last_longer(
    stopped_by: StoppedBy | None, words: str, advice: str, pause_s: float
) -> None:
    """Two seconds after the event somebody has seen enough; the plan let it last for long."""
    limits = EventLimits(pause_s_max=5, recover_s_max=60, errors_max=0)
    planted = [Planted(110, 99, pause_s=pause_s)]
    (found,) = figures(series(planted, 112), planted, [limits], 112)
    (load,) = found.loads
    ended = load if stopped_by is None else load.replace(stopped_by=stopped_by)
    for check in checks_of(found.replace(loads=[ended]))[1:]:
        assert check.status == "not_evaluated"
        assert words in check.reason and check.reason.endswith(advice), check.reason


def test_what_was_seen_to_break_a_limit_fails_however_little_time_was_left() -> None:
    """Nothing for 4 s, 6 s before the end."""
    limits = EventLimits(pause_s_max=2, dip_max=0.6)
    (found,) = judged([Planted(110, 99, pause_s=4)], [limits], 116)
    assert [check.status for check in found] == ["fail"] * 2


def test_time_before_a_command_has_done_its_work_is_not_time_to_see_it() -> None:
    """It takes a minute until the cable is out, five seconds before the end."""
    limits = EventLimits(pause_s_max=5, recover_s_max=60)
    (found,) = figures(series([], 175), [Planted(110, 99)], [limits], 175)
    late = found.replace(applied_s=170.0)
    assert [check.status for check in checks_of(late)[1:]] == ["not_evaluated"] * 2
    assert "5 s lie between" in checks_of(late)[1].reason
    assert [check.status for check in checks_of(found)[1:]] == ["pass"] * 2


def test_a_recovery_without_the_time_to_prove_it_is_unknown() -> None:
    """Back 8 s before the end: ten seconds prove it. Half down at the end is not back."""
    limits = EventLimits(recover_s_max=30)
    (found,) = judged([Planted(70, 22, dip=0.5)], [limits], 100)
    assert [check.status for check in found] == ["not_evaluated"]
    assert "10 s more prove it" in found[0].reason
    (down,) = judged([Planted(70, 99, dip=0.5)], [limits], 101)
    assert [check.status for check in down] == ["fail"]
    (proved,) = judged([Planted(70, 22, dip=0.5)], [limits], 110)
    assert [check.status for check in proved] == ["pass"]


@pytest.mark.parametrize(
    ("undone_s", "expected"), [(104.0, None), (106.0, "late"), (230.0, "late")]
)
def test_an_undo_that_reaches_into_a_later_phase_is_said(undone_s: float, expected: str | None):
    """Five in a hundred of what is measured then may be degraded, and no more."""
    event = staged(1, Planted(70, undone_s - 70), NO_LIMITS)
    phases = {"measure": (0.0, 99.0), "stop": (99.0, 100.0), "late": (100.0, 200.0)}
    assert undone_in(event, {name: phases[name] for name in ("measure", "late")}) == expected
    (found,) = figures(series([], 200), [Planted(70, 9)], [NO_LIMITS], 99)
    (check,) = checks_of(found.replace(undone_in=expected))
    assert check.status == ("not_evaluated" if expected else "pass")
    assert ("undone only when late was measured" in check.reason) == bool(expected)


def in_groups(end_s: float, between_s: float, stops: tuple[float, float], seed: int) -> LoadRates:
    """Users of mail: eight operations at once, and then nothing for a while."""
    random = np.random.default_rng(seed)
    moments = np.cumsum(random.exponential(between_s, int(4 * end_s / between_s)))
    moments = moments[~((moments >= stops[0]) & (moments < stops[1]))]
    ends = np.arange(1.0, end_s + 1)
    counts = 8.0 * np.histogram(moments, [0.0, *ends])[0]
    return LoadRates("mix", ends, np.ones(len(ends)), counts, counts * 5)


@pytest.mark.parametrize("between_s", [1.0, 4.0, 12.0])
def test_users_that_ask_in_groups_leave_gaps_that_no_event_made(between_s: float) -> None:
    """Quiet runs do not fail; where the server is away for long enough, they do."""
    event = Planted(150, 30)
    limits = [EventLimits(pause_s_max=5)]
    failed = 0
    for seed in range(100):
        quiet = in_groups(400, between_s, (0, 0), seed)
        (found,) = figures(quiet, [event], limits, 400)
        failed += checks_of(found)[1].status == "fail"
    assert failed <= 1
    away = in_groups(900, between_s, (150, 600), 1)
    (found,) = figures(away, [event], limits, 900)
    assert [check.status for check in checks_of(found)[1:]] == ["fail"]


@pytest.mark.filterwarnings("error")
def test_a_load_that_did_nothing_before_an_event_lacks_nothing_behind_it() -> None:
    """A server that answers nothing until the event starts it; no sum is divided by nothing."""
    load = series([Planted(0, 80, pause_s=80)], 200)
    (found,) = figures(load, [Planted(80, 20)], [EventLimits(recover_s_max=15)], 200)
    assert found.loads[0].baseline_per_s == 0 and found.loads[0].recovered_s == 0
    assert [check.status for check in checks_of(found)[1:]] == ["not_evaluated"]


@st.composite
def sequences(draw: st.DrawFn) -> tuple[list[Planted], float]:
    planted, at_s = [], draw(st.floats(65, 80))
    for _ in range(draw(st.integers(2, 3))):
        late_s = draw(st.sampled_from([0.0, 0.0, 3.0]))
        # A dip of a second may be taken for chance.
        lasts_s = late_s + draw(st.floats(4, 30))
        pause_s = draw(st.sampled_from([0.0, 0.0, 1.5, 3.0, 6.0]))
        dip = draw(st.sampled_from([0.0, 0.0, 0.4, 0.7]))
        pause_s = min(pause_s, lasts_s - late_s)
        planted.append(Planted(at_s, lasts_s, pause_s, dip, late_s=late_s))
        at_s += lasts_s + draw(st.floats(0.5, 80))
    behind_s = draw(st.floats(0, 30))
    near_s = planted[-1].begun_s + draw(st.floats(0.1, 12))
    return planted, draw(st.sampled_from([at_s + behind_s, near_s]))


@settings(deadline=None)
@given(sequences(), st.integers(0, 10_000), st.sampled_from([0.5, 1.0]))
def test_no_event_is_charged_with_what_another_did(
    sequence: tuple[list[Planted], float], seed: int, length_s: float
) -> None:
    """Limits that the truth keeps never fail, and limits that it breaks never pass."""
    planted, end_s = sequence
    load = series(planted, end_s, seed, length_s)
    lasting = [
        (load.starts_s >= event.begun_s) & (load.starts_s < event.begun_s + event.lasts_s)
        if event.hurts
        else load.starts_s < 0
        for event in planted
    ]
    load = replace(load, failed=10.0 * np.any(lasting, axis=0))
    failed = [10 * int(own.sum()) for own in lasting]
    wide = [
        EventLimits(
            pause_s_max=event.pause_s + 0.1,
            dip_max=min((1.0 if event.pause_s else event.dip) + 0.25, 1.0),
            recover_s_max=event.lasts_s + 2,
            errors_max=count,
        )
        for event, count in zip(planted, failed, strict=True)
    ]
    for event, found in zip(planted, figures(load, planted, wide, end_s), strict=True):
        told = [(check.name, check.status, check.reason) for check in checks_of(found)[1:]]
        assert all(status != "fail" for _, status, _ in told), (event, told)
        (response,) = found.loads
        if response.baseline_per_s is not None and response.pause_goes_on_s is None:
            assert response.pause_s <= event.pause_s + 0.1, event
            assert response.pause_s_most is not None and response.judged_s is not None
            is_over = response.judged_s >= event.late_s + event.pause_s + length_s
            assert not is_over or response.pause_s_most >= event.pause_s - 0.1, event
        if not event.hurts:
            assert response.detected_s is None, event
    narrow = [
        EventLimits(
            pause_s_max=max(event.pause_s - 0.2, 0.0) if event.pause_s else None,
            dip_max=event.dip - 0.1 if event.dip else None,
            recover_s_max=event.lasts_s - 2 if event.dip else None,
            # A sample in which the next event begins is of neither.
            errors_max=count - 11 if count > 10 else None,
        )
        for event, count in zip(planted, failed, strict=True)
    ]
    for event, found in zip(planted, figures(load, planted, narrow, end_s), strict=True):
        told = [(check.name, check.status, check.reason) for check in checks_of(found)[1:]]
        assert all(status != "pass" for _, status, _ in told), (event, told)
