"""How loads answered events, on series in which the answer was planted."""

from dataclasses import replace

import numpy as np
import pytest

from plimsoll.documents.staged_events import EventLimits
from plimsoll.results.events import response, response_in_words
from plimsoll.results.generator_delays import GeneratorDelays
from plimsoll.results.load_rates import LoadRates
from plimsoll.verdict.events import checks_of
from tests.support.event_answers import event
from tests.support.starved_load import arrivals, busy_host, quiet_host

SEEDS = range(20)
EVENT_S, UNDO_S, END_S = 120.0, 180.0, 300.0


def load(
    seed: int, *, dip: float = 0.0, pause_s: int = 0, correlation: float = 0.3, rate: float = 400.0
) -> LoadRates:
    """Five minutes in samples of a second.

    From 120 to 180 s the rate is lower by `dip`, the first `pause_s` of it nothing.
    """
    random = np.random.default_rng(seed)
    noise = np.zeros(int(END_S))
    for second in range(1, len(noise)):
        noise[second] = correlation * noise[second - 1] + random.normal(0.0, 0.04)
    rates = rate * (1.0 + noise)
    rates[int(EVENT_S) : int(UNDO_S)] *= 1.0 - dip
    rates[int(EVENT_S) : int(EVENT_S) + pause_s] = 0.0
    ends = np.arange(1.0, END_S + 1.0)
    counts = random.poisson(np.maximum(rates, 0.0)).astype(float)
    slow = np.where((ends > EVENT_S) & (ends <= UNDO_S), 20.0, 5.0)
    return LoadRates("mix", ends, np.ones(len(ends)), counts, slow * counts)


def answer(
    series: LoadRates,
    begun_s: float = EVENT_S,
    undone_s: float | None = UNDO_S,
    first_s: float = 0.0,
):
    found = response(series, event=(begun_s, undone_s), span=(first_s, END_S))
    assert found is not None
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_planted_throttle_is_found_with_its_depth_and_edges(seed: int) -> None:
    found = answer(load(seed, dip=0.5))
    assert found.detected_s is not None and found.recovered_s is not None
    assert found.detected_s <= 1
    assert abs(found.recovered_s - (UNDO_S - EVENT_S)) <= 1
    assert found.degraded_change_percent == pytest.approx(-50, abs=5)
    assert found.baseline_per_s == pytest.approx(400, rel=0.05) and found.baseline_s == 60
    assert (found.before_ms_mean, found.lasting_ms_mean) == (pytest.approx(5), pytest.approx(20))


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_found_where_nothing_was_planted(seed: int) -> None:
    found = answer(load(seed))
    assert found.detected_s is None and found.recovered_s is None and found.degraded_per_s is None
    assert found.pause_s == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stall_before_the_event_hides_no_event(seed: int) -> None:
    """Two seconds of nothing and what had waited, in the baseline and while it is degraded."""
    series = load(seed, dip=0.5)
    series.counts[70:74] = [0.0, 0.0, 800.0, 800.0]
    series.counts[180:183] = [2400.0, 2400.0, 2400.0]
    found = answer(series)
    assert found.detected_s is not None and found.detected_s <= 1
    assert found.recovered_s is not None
    assert abs(found.recovered_s - (UNDO_S - EVENT_S)) <= 1


def test_a_load_that_is_slower_at_the_same_rate_is_not_said_to_be_as_before() -> None:
    """A delayed disk lets arrivals through; what changed is how long they took."""
    found = answer(load(1))
    assert found.detected_s is None
    said = response_in_words(found)
    assert "in 5 ms on average before and 20 ms while it lasted" in said
    assert "nothing changed" not in said


@pytest.mark.parametrize("seed", SEEDS)
def test_what_waited_and_comes_at_once_makes_up_for_nothing(seed: int) -> None:
    """One sample near the rate before, while it is degraded, and a surge when it is undone."""
    series = load(seed, dip=0.5)
    series.counts[175] = 390.0
    series.counts[180:186] = 1200.0
    found = answer(series)
    assert found.recovered_s is not None
    assert abs(found.recovered_s - (UNDO_S - EVENT_S)) <= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_one_short_stall_is_no_event(seed: int) -> None:
    """A second of nothing and what had waited in the next, on a machine that has such seconds."""
    series = load(seed)
    for second in (70, 90, 140):
        series.counts[second : second + 2] = [0.0, 800.0]
    assert answer(series).detected_s is None


@pytest.mark.parametrize("seed", SEEDS[:5])
def test_a_pause_is_as_long_as_nothing_completed(seed: int) -> None:
    found = answer(load(seed, dip=0.2, pause_s=12))
    assert found.pause_s == 12 and found.dip_percent == 100 and found.least_per_s == 0


def test_a_load_that_rises_has_changed_too() -> None:
    """A degraded storage may be faster; that is a finding and no success."""
    found = answer(load(3, dip=-0.4))
    assert found.detected_s == 0 and found.degraded_change_percent == pytest.approx(40, abs=5)
    assert found.recovered_s == 0


def test_a_load_that_stays_down_is_not_back() -> None:
    series = load(5, dip=0.5)
    found = response(series, event=(EVENT_S, None), span=(0.0, UNDO_S))
    assert (
        found is not None
        and found.detected_s is not None
        and found.recovered_s is None
        and found.surge_per_s is None
    )


def test_what_waited_comes_as_a_surge() -> None:
    series = load(7, pause_s=10)
    series.counts[130:140] *= 2
    found = response(series, event=(EVENT_S, 130.0), span=(0.0, END_S))
    assert found is not None and found.surge_per_s == pytest.approx(800, rel=0.2)


def test_a_surge_within_the_sample_of_the_undo_is_seen() -> None:
    """Undone within a sample, everything that had waited comes in the rest of it."""
    series = load(3, dip=1.0)
    series.counts[int(UNDO_S)] = 5000.0
    found = answer(series, undone_s=UNDO_S + 0.2)
    assert found.surge_per_s == 5000.0


def test_without_a_baseline_nothing_is_concluded() -> None:
    found = answer(load(1, dip=0.5), first_s=EVENT_S - 3)
    assert found.baseline_per_s is None and found.detected_s is None and found.baseline_s == 3


def test_an_event_outside_of_all_samples_is_none() -> None:
    assert response(load(1), event=(500.0, None), span=(500.0, 600.0)) is None


#: When the disk of a starved load is held to half of its rate.
HELD = (14.02, 22.02, 200.0)


def starved_answer(seed: int, *, held: bool, told: bool = True):
    """How a load on a busy host answered; without being told how late its generator was if so."""
    series = arrivals(busy_host(seed, 36.0), 36.0, HELD if held else None)
    found = response(
        series if told else replace(series, delays=None), event=HELD[:2], span=(0.0, 36.0)
    )
    assert found is not None
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_starved_generator_is_no_finding(seed: int) -> None:
    """A machine that others load stops the generator; the storage under it did not change."""
    found = starved_answer(seed, held=False)
    assert found.detected_s is None and found.dip_percent == 0 and found.pause_s == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_throttle_is_found_beside_a_starved_generator(seed: int) -> None:
    """What excuses the generator must not hide the storage: depth and both edges are found."""
    found = starved_answer(seed, held=True)
    assert found.degraded_change_percent == pytest.approx(-50, abs=5)
    assert found.detected_s is not None and found.detected_s <= 1
    assert found.recovered_s is not None and abs(found.recovered_s - 8) <= 1


def test_the_starved_generator_would_be_found_without_its_delays() -> None:
    """The series above hold what misleads: else the two tests before would prove nothing."""
    found = [starved_answer(seed, held=False, told=False).detected_s for seed in SEEDS]
    assert sum(seen is not None for seen in found) >= 4


def test_a_quiet_host_has_nothing_to_leave_out() -> None:
    """What waited for a full pool is the storage's, however late it is let in."""
    found = response(arrivals(quiet_host(), 36.0, HELD), event=HELD[:2], span=(0.0, 36.0))
    assert found is not None and found.seen is not None
    assert found.seen.dip_percent == pytest.approx(found.dip_percent, abs=1)
    assert found.detected_s is not None and found.detected_s <= 1
    assert found.dip_percent == pytest.approx(50, abs=2)


def closed(lost: float) -> LoadRates:
    """Sessions that do half as much for ten seconds, in which the generator had no processor for a
    share of the time.
    """
    series = load(3)
    series.counts[120:130] *= 0.5
    lost_s = np.zeros(len(series.ends_s))
    lost_s[120:130] = lost
    return replace(series, delays=GeneratorDelays(np.zeros(len(lost_s)), lost_s))


def test_sessions_that_had_no_processor_are_no_finding() -> None:
    """A session that could not ask asks no more: nothing makes up for it later."""
    explained = answer(closed(0.5), undone_s=130.0)
    assert explained.detected_s is None and explained.dip_percent == 0
    assert explained.seen is not None and explained.seen.dip_percent == pytest.approx(50, abs=10)
    part = answer(closed(0.1), undone_s=130.0)
    assert part.detected_s == 0 and part.dip_percent == pytest.approx(45, abs=10)


def test_a_pause_of_the_generator_is_no_pause_of_the_storage() -> None:
    series = load(3)
    series.counts[140:144] = [0.0, 0.0, 0.0, 1600.0]
    late_s = np.zeros(len(series.ends_s))
    late_s[143] = 3.0
    ones = np.ones(len(late_s))
    own = answer(replace(series, delays=GeneratorDelays.noted(late_s, 0 * ones, ones)))
    assert own.detected_s is None and own.pause_s == 0
    assert own.seen is not None and own.seen.pause_s == 3 and own.generator_late_s == 3
    assert answer(series).pause_s == 3


def few(seed: int, per_s: float, *, held_s: float = 0.0, to_per_s: float = 0.0) -> LoadRates:
    """A load of few operations, which come as chance has it; from the event on held for a time."""
    random = np.random.default_rng(seed)
    rates = np.full(int(END_S), per_s)
    rates[int(EVENT_S) : int(EVENT_S + held_s)] = to_per_s
    ends = np.arange(1.0, END_S + 1.0)
    counts = random.poisson(rates).astype(float)
    return LoadRates("orders", ends, np.ones(len(ends)), counts, 5 * counts)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_outage_of_few_operations_is_seen(seed: int) -> None:
    """Eight orders a second are within chance of none; eighty in ten seconds are not."""
    found = answer(few(seed, 8.0, held_s=10), undone_s=130.0)
    assert found.detected_s is not None and found.detected_s <= 3
    assert found.pause_s >= 10 and found.dip_percent == 100


@pytest.mark.parametrize("seed", SEEDS)
def test_a_throttle_of_few_operations_is_seen_while_it_lasts(seed: int) -> None:
    """From 14 a second to 6, for 15 s: no sample is out, and all of them together are."""
    found = answer(few(seed, 14.0, held_s=15, to_per_s=6), undone_s=135.0)
    assert found.detected_s is not None and found.detected_s <= 8
    assert found.recovered_s is not None and found.recovered_s >= 10


@pytest.mark.parametrize("per_s", [2.0, 8.0, 14.0, 40.0])
def test_few_operations_that_come_as_chance_has_it_are_no_finding(per_s: float) -> None:
    found = [answer(few(seed, per_s)).detected_s for seed in range(50)]
    assert found == [None] * 50


def back_within(series: LoadRates, limit_s: float, undone_s: float) -> str:
    """What becomes of a limit for being back, of an event half a minute behind the begin."""
    found = answer(series, undone_s=undone_s, first_s=90.0)
    staged = event(EVENT_S, undone_s, found).replace(judge=EventLimits(recover_s_max=limit_s))
    return checks_of(staged)[1].status


@pytest.mark.parametrize("per_s", [14.0, 40.0, 140.0])
def test_a_load_that_is_back_as_chance_has_it_does_not_fail(per_s: float) -> None:
    """Ten seconds of 40 a second hold 380 operations less often than one thinks."""
    found = [
        back_within(few(seed, per_s, held_s=10, to_per_s=0.3 * per_s), 12, 130.0)
        for seed in range(100)
    ]
    assert found.count("fail") <= 1
    assert found.count("pass") >= 50


@pytest.mark.parametrize(("per_s", "left"), [(14.0, 0.4), (40.0, 0.7), (140.0, 0.7)])
def test_a_load_that_is_not_back_fails_however_few_its_operations(
    per_s: float, left: float
) -> None:
    found = [
        back_within(few(seed, per_s, held_s=180, to_per_s=left * per_s), 60, 130.0)
        for seed in range(50)
    ]
    assert found.count("pass") == 0 and found.count("fail") >= 45, found


def within(series: LoadRates, pause_s_max: float) -> str:
    """What becomes of a limit for the pause."""
    staged = event(EVENT_S, UNDO_S, answer(series)).replace(
        judge=EventLimits(pause_s_max=pause_s_max)
    )
    return checks_of(staged)[1].status


def test_a_pause_shorter_than_a_sample_is_told_by_the_longest_response_time() -> None:
    """Samples of a second hide two seconds at most; who waited for a pause shows how long."""
    quiet = load(3)
    assert answer(quiet).pause_s_most == 2
    assert [within(quiet, limit_s) for limit_s in (0.5, 1.5, 2.0, 5.0)] == [
        "not_evaluated",
        "not_evaluated",
        "pass",
        "pass",
    ]
    longest_s = np.full(len(quiet.ends_s), 0.02)
    assert within(replace(quiet, longest_s=longest_s), 0.5) == "pass"
    longest_s[150] = 0.9
    assert within(replace(quiet, longest_s=longest_s), 0.5) == "not_evaluated"
    # What came to nothing at once has waited for nothing.
    longest_s[150] = 0.02
    failed = np.zeros(len(longest_s))
    failed[150] = 40
    assert within(replace(quiet, longest_s=longest_s, failed=failed), 0.5) == "not_evaluated"


def test_samples_that_meet_leave_no_pause_of_a_billionth_between_them() -> None:
    """Ends and lengths are what clocks gave: begins are their difference, and round."""
    ends_ns = np.arange(0, int(END_S) + 1) * 1_000_675_241
    series = replace(load(3), ends_s=ends_ns[1:] / 1e9, lengths_s=np.diff(ends_ns) / 1e9)
    assert answer(series).pause_s == 0


def test_a_pause_is_judged_by_what_it_lasted_at_least_and_at_most() -> None:
    series = load(3, pause_s=4)
    found = answer(series)
    assert found.pause_s == 4 and found.pause_s_most == 5
    assert [within(series, limit_s) for limit_s in (3.9, 4.5, 5.0)] == [
        "fail",
        "not_evaluated",
        "pass",
    ]


def test_samples_that_all_hold_operations_have_no_pause() -> None:
    """Ends of samples are fractions of seconds, and what lies between them is rounding."""
    series = load(3)
    lengths_ns = np.random.default_rng(1).integers(999_900_000, 1_000_100_000, len(series.ends_s))
    lengths_s, ends_s = lengths_ns / 1e9, np.cumsum(lengths_ns) / 1e9
    assert (np.diff(ends_s) - lengths_s[1:] > 0).any()
    jittered = replace(series, ends_s=ends_s, lengths_s=lengths_s)
    assert answer(jittered).pause_s == 0


def test_a_sliver_of_a_sample_at_the_end_is_no_finding() -> None:
    """A phase ends 20 ms into a sample, in which eight operations are expected, or fifteen come."""
    for seed in range(40):
        series = load(seed)
        lengths_s, ends_s = series.lengths_s.copy(), series.ends_s.copy()
        lengths_s[-1], ends_s[-1] = 0.02, ends_s[-2] + 0.02
        series.counts[-1] = [0.0, 8.0, 15.0][seed % 3]
        assert answer(replace(series, ends_s=ends_s, lengths_s=lengths_s)).detected_s is None
