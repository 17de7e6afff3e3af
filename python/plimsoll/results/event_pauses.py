"""How long a load completed nothing after an event, as exactly as its samples tell.

Samples without an operation are the least that a pause lasted. It may have begun with the sample
before them and ended with the sample after them. An operation that waited for it shows it as well:
no pause was longer than the longest response time, and the time until something was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from plimsoll.results.event_spans import ROUNDING_S
from plimsoll.results.load_rates import LoadRates

#: Nothing for so many times the mean time between two operations is no chance.
GAPS_MIN = 10


@dataclass(frozen=True)
class Pause:
    """The longest time without a completed operation, in seconds.

    Attributes:
        least_s: what it lasted at least, less what the generator was late.
        most_s: what it lasted at most.
        goes_on_s: how long it has gone on where the time ended in one that is no chance; else 0.
    """

    least_s: float
    most_s: float
    goes_on_s: float


def chance_of(before: LoadRates, per_s: float) -> float:
    """How long a load completes nothing by chance, in seconds, by what it did before an event.

    Users ask for several things at once, and then for nothing: between such groups lies more than
    between operations. Of groups that begin at random, a share exp(-length / mean gap) of all
    samples holds none.

    Args:
        before: at least one sample.
        per_s: its rate.
    """
    is_idle = before.counts == 0
    if not per_s or is_idle.all():
        return math.inf
    gap_s = 1 / per_s
    if is_idle.any():
        gap_s = max(gap_s, float(before.lengths_s.mean() / -np.log(is_idle.mean())))
    if 2 * is_idle.sum() > len(is_idle):
        # Groups that last for several samples lie farther apart.
        begins = np.count_nonzero(np.diff(np.concatenate(([False], is_idle)).astype(int)) > 0)
        gap_s = max(gap_s, float(before.lengths_s[is_idle].sum()) / begins)
    return GAPS_MIN * gap_s


def longest_pause(load: LoadRates, begun_s: float, chance_s: float | None) -> Pause:
    """The longest pause of a load.

    Args:
        load: the samples from an event on, at least one.
        begun_s: when the event began; what lasts from before counts from then on.
        chance_s: how long it completes nothing by chance, if that is known.
    """
    assert load.delays is not None
    gaps = list(_gaps(load, begun_s))
    leasts = [
        gap.least_s - load.delays.lacking_s(gap.first, gap.last) if gap.first <= gap.last else 0.0
        for gap in gaps
    ]
    # Samples meet at a moment that two sums tell.
    least_s = max((least for least in leasts if least > ROUNDING_S), default=0.0)
    most_s = max(gap.most_s for gap in gaps)
    none_failed = load.failed is None or not load.failed.any()
    if load.longest_s is not None and none_failed and chance_s:
        most_s = min(most_s, max(float(load.longest_s.max()) + chance_s, least_s))
    is_chance = chance_s is not None and leasts[-1] <= chance_s
    return Pause(least_s, max(most_s, least_s), 0.0 if is_chance else max(leasts[-1], 0.0))


@dataclass(frozen=True)
class _Gap:
    """A time between two operations: its idle samples, and its bounds in seconds."""

    first: int
    last: int
    least_s: float
    most_s: float


def _gaps(load: LoadRates, begun_s: float) -> Iterator[_Gap]:
    """Between the begin and the first operation, between operations, and behind the last one."""
    starts_s, ends_s = np.maximum(load.starts_s, begun_s), load.ends_s
    busy = [int(at) for at in np.flatnonzero(load.counts > 0)]
    begin_s, end_s = float(starts_s[0]), float(ends_s[-1])
    if not busy:
        yield _Gap(0, len(ends_s) - 1, end_s - begin_s, end_s - begun_s)
        return
    first, last = busy[0], busy[-1]
    yield _Gap(0, first - 1, float(starts_s[first]) - begin_s, float(ends_s[first]) - begun_s)
    for before, after in pairwise(busy):
        yield _Gap(
            before + 1,
            after - 1,
            float(starts_s[after] - ends_s[before]),
            float(ends_s[after] - starts_s[before]),
        )
    yield _Gap(
        last + 1, len(ends_s) - 1, end_s - float(ends_s[last]), end_s - float(starts_s[last])
    )
