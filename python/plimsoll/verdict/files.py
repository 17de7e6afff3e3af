"""The check that only files have.

Whether each user made the I/O that was planned, in every window of the measured time.

A load outside of its band is no fault of the storage and no success either: it was another load, so
nothing is concluded from it.
"""

from __future__ import annotations

from plimsoll import settings
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import FilesFigures, Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.verdict.digits import apart

NAME = "files_window"


def window_checks(plan: Plan, summary: Summary) -> list[Check]:
    """One check for each workload on files that states users."""
    found = []
    for figures in summary.files:
        asked = plan.judgement.files.get(figures.workload)
        if asked is not None and asked.window_iops_per_user:
            low, high = asked.window_iops_per_user
            found.append(_check(figures, low, high))
    return found


def _check(figures: FilesFigures, low: float, high: float) -> Check:
    rule = settings.single_rule(NAME)
    windows = figures.windows
    status: Status = "not_evaluated"
    measured = None
    if windows is None:
        reason = f"less than a window of {settings.FILES['window_s']} s was measured"
    else:
        measured = windows.min if windows.min < low else windows.max
        bound = low if measured < low else high
        told, _ = apart(measured, bound, lambda rate, digits: f"{rate:.{digits}g}", 3)
        band = f"{low:g} to {high:g} I/O per second and user"
        if windows.outside_count:
            reason = (
                f"{told} is outside of {band} in {windows.outside_count} of "
                f"{windows.count} windows of "
                f"{settings.FILES['window_s']} s: the load was not as planned"
            )
        else:
            status = "pass"
            reason = (
                f"{windows.min:.3g} to {windows.max:.3g} lies within {band} in all {windows.count} "
                f"windows"
            )
    return Check(
        name=NAME,
        title=rule["title"],
        scope=figures.workload,
        metric="file_io",
        statistic="window",
        measured=measured,
        limit=high,
        unit="1/s",
        status=status,
        reason=reason,
        source=rule["source"],
    )
