"""The check of an audit: whether an instance holds what was done to it."""

from __future__ import annotations

from plimsoll import settings
from plimsoll.documents.mail import MailAudit
from plimsoll.documents.summary import StoreAudit
from plimsoll.documents.verdict import Check, Status


def audit_check(name: str, metric: str, audit: MailAudit | StoreAudit) -> Check:
    """An audit that does not add up fails.

    Args:
        name: of the rule in `limits.toml`.
        metric: whose figures it looks at.
        audit: what it found.
    """
    rule = settings.single_rule(name)
    status: Status = "fail" if audit.findings else "pass"
    counted = ", ".join(
        f"{name.replace('_', ' ')} {count:,}" for name, count in audit.counts.items()
    )
    return Check(
        name=name,
        title=rule["title"],
        scope=audit.instance,
        metric=metric,
        statistic="audit",
        measured=len(audit.findings),
        limit=0,
        unit="findings",
        status=status,
        reason="; ".join(audit.findings) or f"everything adds up: {counted}",
        source=rule["source"],
    )
