"""What one load completed in every sample of a run, and what came to nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plimsoll.files.parquet import Query
from plimsoll.results.generator_delays import Floats, GeneratorDelays, delays_of
from plimsoll.units import NS_PER_MS, NS_PER_S
from plimsoll.workloads.families import OPERATIONS
from plimsoll.workloads.mail.fields import OPERATIONS as TASKS

Chosen = npt.NDArray[np.bool_]

#: Operations that came to nothing, which are no part of what a load completed: orders, tasks of
#: mail users, recipients, and messages that were not delivered in time.
FAILED = (
    "store_connection_lost",
    "store_connection_refused",
    "store_no_space",
    "store_given_up",
    *(f"{task}_refused" for task in TASKS),
    "mail_recipients_refused",
    "mail_probes_lost",
)


@dataclass(frozen=True)
class LoadRates:
    """What one load completed in every sample of the run.

    Attributes:
        workload: its name.
        ends_s: when each sample ended, in seconds on the clock of the run, ascending; shape (n,).
        lengths_s: how long each lasted, in seconds; shape (n,).
        counts: operations that completed in each; shape (n,).
        response_ms: the sum of their response times in ms; shape (n,).
        delays: how late the load generator was; never, if left out.
        longest_s: the longest of their response times in seconds, where known; shape (n,).
        failed: operations that came to nothing, where known; shape (n,).
    """

    workload: str
    ends_s: Floats
    lengths_s: Floats
    counts: Floats
    response_ms: Floats
    delays: GeneratorDelays | None = None
    longest_s: Floats | None = None
    failed: Floats | None = None

    @property
    def starts_s(self) -> Floats:
        """When each sample began."""
        return self.ends_s - self.lengths_s

    def of(self, chosen: Chosen) -> LoadRates:
        """Some of the samples."""
        delays = self.delays or GeneratorDelays.none(len(self.ends_s))
        return LoadRates(
            self.workload,
            self.ends_s[chosen],
            self.lengths_s[chosen],
            self.counts[chosen],
            self.response_ms[chosen],
            delays.of(chosen),
            None if self.longest_s is None else self.longest_s[chosen],
            None if self.failed is None else self.failed[chosen],
        )


def rates_of(workload: str, ask: Query) -> LoadRates:
    """What one load completed in every sample, also in those in which it completed nothing."""
    done = "FILTER (WHERE workload = $workload AND list_contains($metrics, metric))"
    rows = ask(
        "SELECT end_ns::BIGINT AS end_ns, max(interval_ns)::BIGINT AS length_ns,"
        f" coalesce(sum(count) {done}, 0)::BIGINT AS count,"
        f" coalesce(sum(latency_ns_sum) {done}, 0)::DOUBLE AS ns,"
        f" coalesce(max(latency_ns_max) {done}, 0)::DOUBLE AS longest_ns,"
        f" (coalesce(sum(errors) {done}, 0) + coalesce(sum(count) FILTER (WHERE workload ="
        " $workload AND list_contains($failed, metric)), 0))::BIGINT AS failed"
        " FROM sample GROUP BY end_ns ORDER BY end_ns",
        {"workload": workload, "metrics": list(OPERATIONS), "failed": list(FAILED)},
    )
    ends, lengths, counts, total_ns, longest_ns, failed = (
        np.array([row[name] for row in rows], dtype=np.float64)
        for name in ("end_ns", "length_ns", "count", "ns", "longest_ns", "failed")
    )
    return LoadRates(
        workload,
        ends / NS_PER_S,
        lengths / NS_PER_S,
        counts,
        total_ns / NS_PER_MS,
        delays_of(workload, ask),
        longest_ns / NS_PER_S,
        failed,
    )
