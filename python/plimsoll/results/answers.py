"""What a test was carried out to find out, in a sentence or two that stand before everything else.

A search: the highest rate that passed, the lowest that did not, and what the first limit was. A
backup: its rate. A recovery: seconds for each log. A test that asks whether limits are kept has no
answer of its own: its verdict is the answer.
"""

from __future__ import annotations

from plimsoll.documents.summary import AnySummary, SearchFound
from plimsoll.plan.capacity_search import limit_in_words
from plimsoll.results import backup_recovery


def answers(summary: AnySummary) -> list[str]:
    """The answers of a run, in sentences; none for most."""
    searches = summary.load.searches if summary.load else ()
    return [*(_of_search(search) for search in searches), *backup_recovery.in_words(summary)]


def _of_search(found: SearchFound) -> str:
    """A search with its bracket.

    >>> found = SearchFound(workload="mix", end="narrow", passed_per_s=480.0, passed_iops=470.0,
    ...     confirmed=True, failed_per_s=489.6, limited_by="log_write_latency_mean",
    ...     confidence_percent=None, tolerance_percent=2, steps_count=9)
    >>> _of_search(found).split("; ")[1]
    'first limit: average log write latency'
    >>> _of_search(found.replace(passed_per_s=None, failed_per_s=None, limited_by=None))
    'highest rate of mix: no rate was tried for long enough to tell'
    """
    limit = limit_in_words(found.limited_by)
    if found.passed_per_s is None and found.limited_by is None:
        return f"highest rate of {found.workload}: no rate was tried for long enough to tell"
    if found.passed_per_s is None:
        failed = (
            f"; {found.failed_per_s:.3g} transactions/s do not"
            if found.failed_per_s is not None
            else ""
        )
        return f"highest rate of {found.workload}: none passes{failed}; first limit: {limit}"
    iops = f" and {found.passed_iops:.0f} database IOPS" if found.passed_iops is not None else ""
    failed = (
        f"{found.failed_per_s:.1f} transactions/s do not"
        if found.failed_per_s is not None
        else "no higher rate was seen to fail"
    )
    return (
        f"highest rate of {found.workload}: {found.passed_per_s:.1f} transactions/s{iops} pass, "
        f"{failed}; first limit: {limit}"
    )
