"""The verdict of an imported report, word for word, with the averages that its tool judged.

Nothing is judged again: the maxima that the tool judged too are printed nowhere, and stay open.
"""

from __future__ import annotations

from plimsoll import settings
from plimsoll.documents import verdict as verdict_document
from plimsoll.documents.reported import LogEvent, ReportedTest
from plimsoll.documents.verdict import Check, Result, Status, Verdict
from plimsoll.imports.consistency_checks import JUDGED, events_of
from plimsoll.imports.report_origin import TOOL, limit_set, origin_of

RESULTS: dict[str, Result] = {
    "pass": "pass",
    "passed": "pass",
    "fail": "fail",
    "failed": "fail",
}


#: The figures of tests that the published tool sets no limits for.
FIGURES_WITHOUT_LIMITS = {
    "database_backup": "database_backup_statistics",
    "soft_recovery": "soft_recovery_statistics",
}


def verdict_of(report: ReportedTest) -> Verdict:
    """The verdict of the original, its limits next to the figures it judged.

    Nothing is judged again.
    """
    summary = report.get("test_summary") or {}
    said = str(summary.get("overall_result") or "")
    result = RESULTS.get(said.lower(), _without_a_word(report))
    tool = f"{TOOL} {summary.get('jetstress_version') or 'of an unknown version'}"
    word = said or (
        "Carried out; no limit is set for it" if result == "pass" else "No result stated"
    )
    achieved = summary.get("achieved_transactional_iops")
    throughput = f"{achieved:.0f} database IOPS" if achieved is not None else "no rate stated"
    reasons = [f"{tool} said: {word}", *(f"issue: {text}" for text in report.get("issues") or [])]
    return Verdict(
        schema_version=verdict_document.SCHEMA_VERSION,
        imported=origin_of(report),
        result=result,
        headline=f"{word} (imported: said by {tool})",
        limits=limit_set(report),
        limits_meaning=settings.limits()["sets"][limit_set(report)],
        reasons=reasons,
        throughput=throughput,
        checks=_checks(report, result),
        bottlenecks=(),
        qualifying=False,
        not_qualifying_because=(
            "the figures were imported: Plimsoll measured and judged nothing of it",
        ),
        doubts=(),
        generator_limited=(),
        required_iops=summary.get("target_transactional_iops"),
        achieved_iops=achieved,
        headroom=None,
        user_equivalents=(),
    )


def _without_a_word(report: ReportedTest) -> Result:
    """The result of a report that states none.

    The published tool sets no limits for a backup or a replay and so states no result: one that was
    carried out and told its figures has passed all there is.
    """
    wanted = FIGURES_WITHOUT_LIMITS.get(report["test_type"])
    if wanted is None or report.get("issues"):
        return "inconclusive"
    return "pass" if report.get(wanted) else "inconclusive"


def _checks(report: ReportedTest, result: Result) -> list[Check]:
    """The averages that the tool judges, each with its limit.

    The maxima it judged too are printed nowhere.
    """
    events = events_of(report)
    if report["test_type"] not in ("performance", "stress"):
        return []
    found = []
    for key, event, _ in JUDGED:
        metric = "database_read" if key.startswith("db") else "log_write"
        rules = [
            rule
            for rule in settings.limits()["check"]
            if rule["metric"] == metric and rule["statistic"] in ("mean", "sample_mean_max")
        ]
        stated: LogEvent = events.get(event) or {}
        for rule in rules:
            is_mean = rule["statistic"] == "mean"
            own = stated.get("average_ms") if is_mean else stated.get("maximum_ms")
            limit = rule["limit"][limit_set(report)] if own is None else own
            for place, row in (report.get("transactional_io") or {}).items():
                measured = row.get(key) if is_mean else None
                found.append(_one_check(rule, place, measured, limit, result))
    return found


def _one_check(
    rule: settings.LimitRule, place: str, measured: float | None, limit: float, result: Result
) -> Check:
    status: Status
    if measured is not None:
        status = "pass" if measured <= limit else "fail"
        reason = (
            f"{measured:g} ms, the plain mean of the original's samples; its limit is {limit:g} ms"
        )
    else:
        status, reason = "not_evaluated", "not measured: the original's report does not print it"
        if result == "pass":
            reason += ", but the original would have failed beyond it"
    return Check(
        name=rule["name"],
        title=rule["title"],
        scope=place,
        metric=rule["metric"],
        statistic="mean_of_samples" if rule["statistic"] == "mean" else rule["statistic"],
        measured=measured,
        limit=limit,
        unit="ms",
        status=status,
        reason=reason,
        source="the test log of the original, or the published thresholds",
        doubts=(),
    )
