"""The check of a backup that was kept, or of a clone: whether it could be restored."""

from __future__ import annotations

from plimsoll.documents.backup_figures import RestoreFigures
from plimsoll.documents.phase_actions import Restore
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check
from plimsoll.verdict.audits import findings_check


def restored_checks(plan: Plan, summary: Summary) -> list[Check]:
    """One check for each instance whose backup or clone was to be restored."""
    if not any(isinstance(phase.action, Restore) for phase in plan.run.phases):
        return []
    found = {item.instance: item for item in summary.restores}
    return [_check(item.name, found.get(item.name)) for item in plan.run.our_instances]


def _check(instance: str, found: RestoreFigures | None) -> Check:
    told = (
        "no copy of it was restored"
        if found is None
        else f"{found.logs_count} logs were replayed in {found.recovery_seconds:.1f} s, and all "
        f"{found.pages_count:,} pages are sound"
    )
    return findings_check(
        "backup_restored",
        metric="restore",
        statistic="findings",
        scope=instance,
        findings=None if found is None else found.findings,
        otherwise=told,
    )
