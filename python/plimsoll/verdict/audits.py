"""The check of an audit: whether an instance holds what was done to it."""

from __future__ import annotations

from collections.abc import Sequence

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
    counted = ", ".join(
        f"{name.replace('_', ' ')} {count:,}" for name, count in audit.counts.items()
    )
    return findings_check(
        name,
        metric=metric,
        statistic="audit",
        scope=audit.instance,
        findings=audit.findings,
        otherwise=f"everything adds up: {counted}",
    )


def findings_check(
    name: str,
    *,
    metric: str,
    statistic: str,
    scope: str,
    findings: Sequence[str] | None,
    otherwise: str,
) -> Check:
    """A check that any finding fails.

    Args:
        name: of the rule in `limits.toml`.
        metric: whose figures it looks at.
        statistic: what was done to find something.
        scope: what was looked at.
        findings: what is wrong, in sentences; None where nobody looked.
        otherwise: what is said where nothing is known to be wrong.
    """
    rule = settings.single_rule(name)
    status: Status = "not_evaluated" if findings is None else "fail" if findings else "pass"
    return Check(
        name=name,
        title=rule["title"],
        scope=scope,
        metric=metric,
        statistic=statistic,
        measured=None if findings is None else len(findings),
        limit=0,
        unit="findings",
        status=status,
        reason="; ".join(findings or ()) or otherwise,
        source=rule["source"],
    )
