"""How long something took that mail users or their store did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.documents.mail import MailTiming
from plimsoll.files.parquet import Query
from plimsoll.results.distributions import Counted, buckets_of, quantiles_ms

PERCENTILES = ("p50", "p95", "p99")


def timing_of(
    metric: str,
    title: str,
    counted: Mapping[str, Counted],
    workload: str,
    ask: Query,
    phases: Sequence[str],
) -> MailTiming:
    """The times of a metric of a workload in some phases, in milliseconds.

    Args:
        metric: what was timed.
        title: what people call it.
        counted: what was counted in those phases, by metric; it has this one.
        workload: whose it is.
        ask: of the tables of the run.
        phases: names of the phases.
    """
    row = counted[metric]
    return MailTiming(
        name=title,
        count=row.count,
        ms_mean=row.ms_mean,
        **quantiles_ms(buckets_of(ask, workload, metric, phases), "ms", PERCENTILES),
        ms_max=row.ms_max,
    )
