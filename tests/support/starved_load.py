"""A load on a throttled disk whose generator lacks a processor, one operation after the other.

One thread lets arrivals in at a regular rate, looks at completions and closes the samples. A disk
completes one operation after the other, as many a second as it is let. The thread is stopped for
short times, and for some seconds gets less of its processor than it needs: all of it moves what
the samples count, and the disk knows nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plimsoll.results.generator_delays import GeneratorDelays
from plimsoll.results.load_rates import LoadRates

RATE_PER_S, FREE_PER_S, POOL = 400.0, 4000.0, 64
#: Seconds of the thread's own time for one operation.
WORK_S = 0.0005


@dataclass(frozen=True)
class Thread:
    """When a thread runs.

    Attributes:
        stops: begins and ends of the times in which it does not, in seconds, ascending.
        slow: begins and ends of the times in which it has `share` of a processor.
        share: of a processor.
    """

    stops: list[tuple[float, float]]
    slow: list[tuple[float, float]]
    share: float

    def runs_at(self, moment_s: float) -> float:
        """The first moment from then on at which it runs."""
        for begin_s, end_s in self.stops:
            if begin_s <= moment_s < end_s:
                return end_s
        return moment_s

    def work_s(self, moment_s: float) -> float:
        """How long it takes for one operation then."""
        is_slow = any(begin_s <= moment_s < end_s for begin_s, end_s in self.slow)
        return WORK_S / self.share if is_slow else WORK_S


def busy_host(seed: int, end_s: float) -> Thread:
    """A thread on a host that others load.

    A stop every two seconds, of 0.1 s in the mean; every eight seconds, for two in the mean, a
    sixth of a processor, which is 17 % less than it needs.
    """
    random = np.random.default_rng(seed)

    def spans(between_s: float, lasting_s: float) -> list[tuple[float, float]]:
        found, at_s = [], float(random.exponential(between_s))
        while at_s < end_s:
            until_s = at_s + float(random.exponential(lasting_s))
            found.append((at_s, until_s))
            at_s = until_s + float(random.exponential(between_s))
        return found

    return Thread(spans(2.0, 0.1), spans(8.0, 2.0), 1 / 6)


def quiet_host() -> Thread:
    """A thread that always runs."""
    return Thread([], [], 1.0)


def arrivals(
    thread: Thread, end_s: float, throttle: tuple[float, float, float] | None = None
) -> LoadRates:
    """What a load of arrivals completes in samples of a second.

    Args:
        thread: of its generator.
        end_s: how long it goes on.
        throttle: from when until when the disk is held to how many operations a second.
    """
    reaped: list[float] = []
    late: list[tuple[float, float]] = []
    thread_s = disk_s = held_up_s = 0.0
    for number in range(int(end_s * RATE_PER_S)):
        intended_s = number / RATE_PER_S
        # A full pool holds an arrival up, and that is not the generator's doing.
        if number >= POOL and reaped[number - POOL] > max(intended_s, thread_s):
            held_up_s = reaped[number - POOL]
        due_s = max(intended_s, held_up_s)
        let_in_s = thread.runs_at(max(due_s, thread_s))
        late.append((let_in_s, let_in_s - due_s))
        thread_s = let_in_s + thread.work_s(let_in_s)
        begun_s = max(let_in_s, disk_s)
        is_held = throttle is not None and throttle[0] <= begun_s < throttle[1]
        disk_s = begun_s + 1 / (throttle[2] if throttle and is_held else FREE_PER_S)
        reaped.append(max(thread.runs_at(disk_s), reaped[-1] if reaped else 0.0))
    ends_s = np.array([thread.runs_at(second) for second in range(1, int(end_s) + 1)])
    ends_s = np.unique(ends_s)
    lag_s, gap_s = np.zeros(len(ends_s)), np.zeros(len(ends_s))
    for moment_s, lag in late:
        at = int(np.searchsorted(ends_s, moment_s))
        if at < len(ends_s):
            lag_s[at] = max(lag_s[at], lag)
    for begin_s, until_s in thread.stops:
        at = int(np.searchsorted(ends_s, until_s))
        if at < len(ends_s):
            gap_s[at] = max(gap_s[at], until_s - begin_s)
    counts, _ = np.histogram(reaped, [0.0, *ends_s])
    return LoadRates(
        "mix",
        ends_s,
        np.diff([0.0, *ends_s]),
        counts.astype(float),
        counts.astype(float),
        GeneratorDelays.noted(
            np.maximum(lag_s, gap_s), np.zeros(len(ends_s)), np.diff([0.0, *ends_s])
        ),
    )
