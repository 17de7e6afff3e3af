"""What is known of mail users while a run goes on.

Tasks done, refused and waiting, and a score that the real one does not exceed.

Samples carry the 99th percentile of their interval, not distributions. Of the intervals that hold
96 % of a task's results let T be the highest 99th percentile: then 0.96 x 0.99 = 95.04 % of the
results are no longer than T, so the 95th percentile is at most T. The weighted mean of these bounds
is at least the score; the report has the score itself.
"""

from __future__ import annotations

import math

from plimsoll.documents.plan import MailAsked, Plan
from plimsoll.files.parquet import Columns
from plimsoll.workloads.mail.tasks import loadable

#: Share of the results whose intervals count.
SHARE = 0.96
NS_PER_MS = 1_000_000


class MailSoFar:
    """See the module text.

    Args:
        plan: the completed plan.
        codes: the numbers that stand for metrics in samples.
    """

    def __init__(self, plan: Plan, codes: dict[str, int]) -> None:
        asked = dict(plan.judgement.mail)
        self._weights = _weights(list(asked.values()))
        self._tasks = {task.name: task.metric for task in loadable("mail_store")}
        self._codes = codes
        #: Results by the 99th percentile of their interval, rounded up to a hundredth of itself;
        #: intervals of days need no memory.
        self._counts: dict[str, dict[float, int]] = {}
        self._done = self._refused = 0
        self._waiting = 0.0
        self.is_asked = bool(asked)

    def begin(self) -> None:
        """Forget what was before: a phase that is measured begins."""
        self._counts, self._done, self._refused = {}, 0, 0

    def add(self, table: Columns, after_ns: int) -> None:
        """Take the samples that ended after a moment."""
        if not self.is_asked:
            return
        fresh = table["end_ns"] > after_ns
        for name, metric in self._tasks.items():
            rows = fresh & (table["metric"] == self._code(metric)) & (table["count"] > 0)
            for count, p99_ns in zip(
                table["count"][rows].tolist(), table["latency_ns_p99"][rows].tolist(), strict=True
            ):
                bounds = self._counts.setdefault(name, {})
                bound = _rounded_up(p99_ns / NS_PER_MS)
                bounds[bound] = bounds.get(bound, 0) + count
                self._done += count
            refused = fresh & (table["metric"] == self._code(f"{metric}_refused"))
            self._refused += int(table["count"][refused].sum())
        last = (table["end_ns"] == table["end_ns"][-1]) & (
            table["metric"] == self._code("mail_waiting")
        )
        if last.any():
            self._waiting = float(table["value"][last].sum())

    def _code(self, metric: str) -> int:
        return self._codes.get(metric, -1)

    def score_ms_at_most(self) -> float | None:
        """A bound of the score over the weighted tasks that have results; None without any."""
        judged = {name: self._counts[name] for name in self._weights if self._counts.get(name)}
        weight = sum(self._weights[name] for name in judged)
        return (
            sum(self._weights[name] * bound_of(counts) for name, counts in judged.items()) / weight
            if weight
            else None
        )

    def in_words(self) -> str | None:
        """A line; None where no mail users are."""
        if not self.is_asked:
            return None
        score = self.score_ms_at_most()
        bound = "no result yet" if score is None else f"score so far at most {score:,.0f} ms"
        return (
            f"mail: {self._done:,} tasks done, {self._refused:,} refused, {self._waiting:,.0f} "
            f"waiting, {bound}"
        )


def _weights(asked: list[MailAsked]) -> dict[str, float]:
    found: dict[str, float] = {}
    for item in asked:
        for name, weight in item.score_weights.items():
            found[name] = found.get(name, 0) + weight
    return found


def _rounded_up(value_ms: float) -> float:
    """A value to three digits, never smaller."""
    if value_ms <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value_ms)) - 2)
    return math.ceil(value_ms / unit - 1e-9) * unit


def bound_of(counts: dict[float, int]) -> float:
    """What the 95th percentile is at most, from counts by the 99th percentile of their intervals.

    >>> bound_of({10.0: 97, 500.0: 3}), bound_of({10.0: 90, 500.0: 10})
    (10.0, 500.0)
    """
    total, reached = sum(counts.values()), 0
    for bound in sorted(counts):
        reached += counts[bound]
        if reached >= SHARE * total:
            return bound
    return max(counts)
