"""The check of a backup that was kept: whether it could be restored."""

from __future__ import annotations

from plimsoll import settings
from plimsoll.documents.backup_figures import RestoreFigures
from plimsoll.documents.phase_actions import Restore
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Status


def restored_checks(plan: Plan, summary: Summary) -> list[Check]:
    """One check for each instance whose backup was to be restored."""
    if not any(isinstance(phase.action, Restore) for phase in plan.run.phases):
        return []
    found = {item.instance: item for item in summary.restores}
    return [_check(item.name, found.get(item.name)) for item in plan.run.our_instances]


def _check(instance: str, found: RestoreFigures | None) -> Check:
    rule = settings.single_rule("backup_restored")
    status: Status
    if found is None:
        status, reason = "not_evaluated", "its backup was not restored"
    elif found.findings:
        status, reason = "fail", "; ".join(found.findings)
    else:
        status = "pass"
        reason = (
            f"{found.logs_count} logs were replayed in {found.recovery_seconds:.1f} s, and all "
            f"{found.pages_count:,} pages are sound"
        )
    return Check(
        name="backup_restored",
        title=rule["title"],
        scope=instance,
        metric="restore",
        statistic="findings",
        measured=None if found is None else len(found.findings),
        limit=0,
        unit="findings",
        status=status,
        reason=reason,
        source=rule["source"],
    )
