"""What a test was carried out to find out, in a sentence or two that stand before everything else.

A search: the highest rate, or the most sessions, that passed, the lowest that did not, and what the
first limit was. A backup: its rate. A recovery: seconds for each log. A test that asks whether
limits are kept has no answer of its own: its verdict is the answer.
"""

from __future__ import annotations

from plimsoll.documents.outcome import SearchEnd
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
    >>> of_sessions = {"search": "max_sessions", "passed_sessions": 20, "failed_sessions": 21}
    >>> _of_search(found.replace(**of_sessions)).split("; ")[0]
    'most sessions of mix: 20 with 480.0 transactions/s and 470 database IOPS pass, 21 do not'
    """
    limit = limit_in_words(found.limited_by)
    looked_for, level = looked_for_by(found)
    if found.passed_per_s is None and found.limited_by is None:
        return f"{looked_for}: no {level} was tried for long enough to tell"
    iops = f" and {found.passed_iops:.0f} database IOPS" if found.passed_iops is not None else ""
    if found.search == "max":
        passed = f"{found.passed_per_s or 0:.1f} transactions/s{iops}"
        digits = ".3g" if found.passed_per_s is None else ".1f"
        failed = f"{found.failed_per_s or 0:{digits}} transactions/s do not"
    else:
        passed = f"{found.passed_sessions} with {found.passed_per_s or 0:.1f} transactions/s{iops}"
        failed = f"{found.failed_sessions} {'does' if found.failed_sessions == 1 else 'do'} not"
    if found.passed_per_s is None:
        failed = "" if found.failed_per_s is None else f"; {failed}"
        return f"{looked_for}: none passes{failed}; first limit: {limit}"
    if found.failed_per_s is None:
        failed = f"no higher {level} was seen to fail"
    return f"{looked_for}: {passed} pass, {failed}; first limit: {limit}"


def looked_for_by(search: SearchEnd) -> tuple[str, str]:
    """What a search looked for, and what one of its tries is called."""
    if search.search == "max":
        return f"highest rate of {search.workload}", "rate"
    return f"most sessions of {search.workload}", "number"
