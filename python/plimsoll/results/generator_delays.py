"""What of a load's rate its own generator can have made, sample by sample.

A generator that got no processor lets arrivals in late and looks at completions late: operations
move from one sample to a later one, and nobody can tell that from a storage that paused. By how
much is known: the longest time by which it was late bounds what moved over the edge of a sample,
rate times that time. Sessions, which wait for each other, lose what they did not ask for while the
generator stood still. What a load leaves undone beyond that is the storage's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plimsoll.files.parquet import Query
from plimsoll.units import NS_PER_S

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class GeneratorDelays:
    """How late the generator of a load was, in every sample of the run.

    Attributes:
        late_s: the longest time by which it let an arrival in late, left completions unseen, or did
            not run at all, in seconds; shape (n,).
        lost_s: of a load of sessions, the seconds of each sample in which the generator was ready
            and had no processor, was throttled, or did not run; zeros for arrivals, which are made
            up for; shape (n,).
    """

    late_s: Floats
    lost_s: Floats

    @classmethod
    def none(cls, length: int) -> GeneratorDelays:
        """Those of a generator that was never late, as in virtual time."""
        return cls(np.zeros(length), np.zeros(length))

    @classmethod
    def noted(cls, late_s: Floats, lost_s: Floats, lengths_s: Floats) -> GeneratorDelays:
        """Those of samples of some lengths, with lateness in the samples that it began in.

        An arrival is noted when it is let in; it was late in the samples before as well, by what
        they lie nearer to when it was due.
        """
        late_s = late_s.copy()
        for at in range(len(late_s) - 2, -1, -1):
            late_s[at] = max(late_s[at], late_s[at + 1] - lengths_s[at + 1])
        return cls(late_s, lost_s)

    def of(self, chosen: npt.NDArray[np.bool_]) -> GeneratorDelays:
        """The delays of some samples."""
        return GeneratorDelays(self.late_s[chosen], self.lost_s[chosen])

    def beyond(self, usual: npt.NDArray[np.bool_]) -> GeneratorDelays:
        """What was lost beyond the median of some samples, which their rate has in it already."""
        if not usual.any():
            return self
        return GeneratorDelays(
            self.late_s, np.maximum(self.lost_s - float(np.median(self.lost_s[usual])), 0.0)
        )

    def lacking_s(self, first: int, last: int) -> float:
        """The seconds of the load that the samples `first` to `last` may lack by the generator.

        What was late at the end of the last one is let in, and noted, in the one after it.
        """
        return float(self.late_s[first : last + 2].max() + self.lost_s[first : last + 1].sum())

    def carried_s(self, at: int) -> float:
        """The seconds of the load that a sample left to the next one: both know of it."""
        return float(self.late_s[at : at + 2].min()) if at >= 0 else 0.0

    def ahead_s(self, first: int, last: int) -> float:
        """The seconds of the load that samples may have too much: what was late before them."""
        return float(self.late_s[max(first - 1, 0) : last + 1].max())


def delays_of(workload: str, ask: Query) -> GeneratorDelays:
    """How late the generator of a load was in every sample, in their order.

    Args:
        workload: its name.
        ask: asks the table `sample`.
    """
    rows = ask(
        "SELECT"
        " coalesce(max(latency_ns_max) FILTER (WHERE metric = 'arrival_lag' AND"
        " workload = $workload), 0)::DOUBLE AS lag,"
        " coalesce(max(latency_ns_max) FILTER (WHERE metric = 'reap_gap'), 0)::DOUBLE AS gap,"
        " coalesce(sum(latency_ns_sum) FILTER (WHERE metric = 'clock_gap'), 0)::DOUBLE AS still,"
        " coalesce(max(value) FILTER (WHERE metric = 'executor_wait'), 0)::DOUBLE AS waited,"
        " coalesce(max(value) FILTER (WHERE metric = 'cpu_throttled'), 0)::DOUBLE AS throttled,"
        " coalesce(max(value) FILTER (WHERE metric = 'cpu_stolen'), 0)::DOUBLE AS stolen,"
        " max(interval_ns)::DOUBLE AS length"
        " FROM sample GROUP BY end_ns ORDER BY end_ns",
        {"workload": workload},
    )
    lag, gap, still, waited, throttled, stolen, length = (
        np.array([row[name] for row in rows], dtype=np.float64)
        for name in ("lag", "gap", "still", "waited", "throttled", "stolen", "length")
    )
    # A throttled or stolen processor shows as waiting too, where the kernel counts it there.
    share = np.maximum(waited, np.maximum(throttled, stolen))
    lost = np.minimum(share * length + still, length)
    is_open = bool((lag > 0).any())
    return GeneratorDelays.noted(
        np.maximum(np.maximum(lag, gap), still) / NS_PER_S,
        np.zeros(len(lost)) if is_open else lost / NS_PER_S,
        length / NS_PER_S,
    )
