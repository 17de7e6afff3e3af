"""The check that the loads of a run worked at the same time."""

from __future__ import annotations

from plimsoll import settings
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check

OVERLAP_MIN = 0.95


def overlap_checks(summary: Summary) -> list[Check]:
    """One check for each load of a run that has several; below the limit nothing is concluded."""
    return [_check(name, share) for name, share in summary.overlaps.items()]


def _check(load: str, share: float) -> Check:
    rule = settings.single_rule("load_overlap")
    enough = share >= OVERLAP_MIN
    word = "at least" if enough else "less than"
    return Check(
        name="load_overlap",
        title=rule["title"],
        scope=load,
        metric="operations",
        statistic="overlap",
        measured=100 * share,
        limit=100 * OVERLAP_MIN,
        unit="%",
        status="pass" if enough else "not_evaluated",
        reason=f"it worked {share:.1%} of the measured time, {word} {OVERLAP_MIN:.0%}",
        source=rule["source"],
    )
