"""The checks of nodes that die: whether the survivor held what came to it, how long the failover
took, and whether what was acknowledged is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll import settings
from plimsoll.documents.event_figures import EventFigures
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.results.digits import apart
from plimsoll.results.events import failover_in_words
from plimsoll.verdict.audits import audit_check, findings_check


def node_checks(summary: Summary) -> list[Check]:
    """The checks of every event that killed a node, and of every audit of records."""
    return [
        *(check for event in summary.events for check in _checks(event)),
        *(audit_check("records_audit", "records", item) for item in summary.records_audits),
    ]


def fit_in_words(summary: Summary) -> list[str]:
    """Where a survivor had too little for what came to it, as the plan allows."""
    return [
        f"after event {event.name} the survivor was short: {sentence}"
        for event in summary.events
        for sentence in event.fit_lacking
    ]


def _digits(value: float, digits: int) -> str:
    return f"{value:.{digits}g}"


def _checks(event: EventFigures) -> Iterator[Check]:
    if event.fit:
        how = "the plan lets it be short" if event.fit_lacking else "it holds all of it"
        yield findings_check(
            "node_fit",
            metric="nodes",
            statistic="fit",
            scope=event.name,
            findings=[],
            otherwise=f"{how}: {'; '.join(event.fit_lacking or event.fit)}",
        )
    limit_s = event.judge.failover_s_max
    if limit_s is None:
        return
    if not event.failovers and event.problem is None:
        reason = (
            "no instance of this run died with it, so no failover is known; judge a server by the "
            "pause and the recovery of its loads: pause_s_max, recover_s_max"
        )
        yield _failover(event.name, None, limit_s, ("not_evaluated", reason))
    for item in event.failovers:
        status: Status = "fail" if item.served_s is None or item.served_s > limit_s else "pass"
        reason = failover_in_words(item)
        if item.served_s is not None:
            told, bound = apart(item.served_s, limit_s, _digits, 4)
            word = "above" if status == "fail" else "within"
            reason = f"{told} s is {word} {bound} s"
        scope = f"{event.name}, {item.instance}"
        yield _failover(scope, item.served_s, limit_s, (status, reason))


def _failover(
    scope: str, measured: float | None, limit_s: float, outcome: tuple[Status, str]
) -> Check:
    rule = settings.single_rule("event_failover")
    status, reason = outcome
    return Check(
        name="event_failover",
        title=rule["title"],
        scope=scope,
        metric="operations",
        statistic="failover",
        measured=measured,
        limit=limit_s,
        unit="s",
        status=status,
        reason=reason,
        source=rule["source"],
    )
