"""Whether the rate of a load has changed, by more than chance and the load generator make of it.

Three signs: one sample far out, two or more in a row out on the same side, and of loads with few
operations a row that is out in sum, though no sample of it is. What a late generator moves from
one sample to the next weighs the less, the more samples are looked at together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from plimsoll.results.generator_delays import Floats, GeneratorDelays
from plimsoll.results.load_rates import Chosen, LoadRates

#: Standard deviations of the baseline: one sample so far out has changed, or two samples running
#: that are out on the same side.
BAND_ALONE_SD, BAND_SD = 8.0, 4.0
#: So many samples are looked at together where each of them is out.
ROW_MAX = 10
#: Standard deviations of its sum by which a row of so many samples is out, and the share of the
#: rate before that it lacks or has too much: storages drift by less.
SUM_SD, SUM_SHARE = 5.0, 0.25
SUM_ROW_MIN, SUM_ROW_MAX = 3, 30
#: Standard deviations by which a load that is back may lack of its rate by chance.
CHANCE_SD = 3.0
#: What a normal distribution loses in the mean where it is cut off at one standard deviation above
#: its own, in standard deviations: the density there less the share beyond.
CUT_AT_USUAL_SD = 0.0833
#: Neighbours that are added up to see whether they scatter together.
TOGETHER = 5


@dataclass(frozen=True)
class Band:
    """What a load did before an event, in operations per second.

    Attributes:
        baseline: the mean rate.
        usual: the standard deviation of the middle half of the samples.
        scatter: that of all samples.
        together: how much more sums of neighbours scatter than independent samples; 1 if not.
        count: of samples.
    """

    baseline: float
    usual: float
    scatter: float
    together: float = 1.0
    count: int = 60

    @classmethod
    def of(cls, settled: Floats, baseline: float, length_s: float) -> Band:
        """That of samples of a mean length before an event."""
        # Counts of independent events scatter by their root; a baseline that happens to be flatter
        # proves no narrower band.
        chance = math.sqrt(max(baseline * length_s, 1.0)) / length_s
        scatter = max(float(np.std(settled, ddof=1)), chance)
        # What most samples scatter by: one stall before the event must not hide the event.
        usual = max(min(scatter, usual_scatter(settled)), chance)
        return cls(baseline, usual, scatter, _together(settled), len(settled))

    @property
    def unseen(self) -> float:
        """The fall in the rate that is not told from chance, in operations per second."""
        return min(BAND_ALONE_SD * self.scatter, BAND_SD * self.usual)

    def lacking_by_chance(self, samples: int) -> float:
        """The share of the baseline that samples in a row may lack by chance, one time in 700.

        What chance makes more in some samples counts up to `usual`, as where a load is back; the
        baseline is itself a mean of samples.
        """
        deviation = math.sqrt(1 / samples + 1 / self.count) * self.together
        return self.usual / self.baseline * (CHANCE_SD * deviation + CUT_AT_USUAL_SD)


def usual_scatter(rates: Floats) -> float:
    """The standard deviation that the middle half of the samples stands for.

    Source: of a normal distribution the median distance from the median is 0.6745 of it.
    """
    return float(np.median(np.abs(rates - np.median(rates)))) / 0.6745


def _together(rates: Floats) -> float:
    variance = float(np.var(rates, ddof=1))
    if len(rates) < 2 * TOGETHER or not variance:
        return 1.0
    sums = np.convolve(rates, np.ones(TOGETHER), "valid")
    ratio = float(np.var(sums, ddof=1)) / (TOGETHER * variance)
    # So much of it is chance where they do not.
    return max(ratio - 2 * math.sqrt(2 * TOGETHER / len(rates)), 1.0)


def first_change(load: LoadRates, delays: GeneratorDelays, band: Band, first: int) -> int | None:
    """The sample with which the rate changed, from one of them on; None where it did not."""
    samples = range(first, len(load.counts))
    found = next((at for at in samples if _changed(load, delays, band, at)), None)
    in_sum = _row(load, delays, band, first)
    if in_sum is None:
        return found
    begin = _begin_of(load, band, *in_sum)
    return begin if found is None else min(found, begin)


def _changed(load: LoadRates, delays: GeneratorDelays, band: Band, first: int) -> bool:
    """Whether the rate has changed in a sample.

    It is far out alone, or it begins a row of samples that are out on the same side. Either by more
    than the generator's own delays can have made of it.
    """
    lengths_s, beyond = load.lengths_s, load.counts - band.baseline * load.lengths_s
    side = math.copysign(1.0, beyond[first])
    out_ops = side * beyond
    # The shorter a sample, the more of its rate is chance.
    chance = np.sqrt(np.maximum(band.baseline * lengths_s, 1.0))
    made_s = delays.ahead_s if side > 0 else delays.lacking_s
    alone = out_ops[first] - band.baseline * made_s(first, first)
    if alone > BAND_ALONE_SD * max(band.scatter * lengths_s[first], chance[first]):
        return True
    is_out = out_ops > BAND_SD * np.maximum(band.usual * lengths_s, chance)
    if not is_out[first]:
        return False
    for last in range(first + 1, min(first + ROW_MAX, len(lengths_s))):
        if not is_out[last]:
            return False
        row = slice(first, last + 1)
        left = out_ops[row].sum() - band.baseline * made_s(first, last)
        if left > BAND_SD * band.usual * lengths_s[row].sum():
            return True
    return False


def _row(
    load: LoadRates, delays: GeneratorDelays, band: Band, first: int
) -> tuple[int, int] | None:
    """The earliest and shortest row from a sample on that is out in sum: its first and last."""
    out_ops = np.concatenate(([0.0], np.cumsum(load.counts - band.baseline * load.lengths_s)))
    ends_s = np.concatenate(([0.0], np.cumsum(load.lengths_s)))
    rows: list[tuple[int, int]] = []
    for count in range(SUM_ROW_MIN, min(SUM_ROW_MAX, len(load.counts) - first) + 1):
        out = (out_ops[count:] - out_ops[:-count])[first:]
        seconds = (ends_s[count:] - ends_s[:-count])[first:]
        least = _least(band, count, seconds, out > 0)
        begins = first + np.flatnonzero(np.abs(out) > least)
        rows += [(int(begin), int(begin) + count - 1) for begin in begins]
    for begin, last in sorted(rows):
        out = out_ops[last + 1 : last + 2] - out_ops[begin]
        made_s = delays.ahead_s if out > 0 else delays.lacking_s
        seconds = ends_s[last + 1 : last + 2] - ends_s[begin]
        least = _least(band, last - begin + 1, seconds, out > 0)
        if np.abs(out) - band.baseline * made_s(begin, last) > least:
            return begin, last
    return None


def _least(band: Band, count: int, seconds: Floats, is_above: Chosen) -> Floats:
    """By how many operations a row of samples must be out to have changed."""
    by_chance = SUM_SD * _sum_scatter(band, count, seconds)
    # Few counts lie farther above their mean than below it.
    by_chance = by_chance + SUM_SD**2 / 4 * is_above
    return np.maximum(by_chance, SUM_SHARE * band.baseline * seconds)


def _sum_scatter(band: Band, count: Floats | int, seconds: Floats) -> Floats:
    """The standard deviation of the sum of a row, that of the rate before it included."""
    each = band.scatter * seconds / count
    return each * np.sqrt(count * band.together * (1 + count / band.count))


def _begin_of(load: LoadRates, band: Band, first: int, last: int) -> int:
    """The sample from which a row is farthest out: what lies before is chance."""
    row = slice(first, last + 1)
    beyond = (load.counts - band.baseline * load.lengths_s)[row]
    rests = np.cumsum(beyond[::-1])[::-1]
    seconds = np.cumsum(load.lengths_s[row][::-1])[::-1]
    scatter = _sum_scatter(band, np.arange(len(beyond), 0.0, -1.0), seconds)
    return first + int(np.argmax(np.abs(rests[:-1]) / scatter[:-1]))
