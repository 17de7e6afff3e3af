"""The checks of mail users.

Score, latencies, queues, delivery, errors, and whether accepted mail is there.

Limits are data (`mail_check` in `data/limits.toml`). A figure that was not measured is not
evaluated, never a pass; a limit that a set does not have is not checked. An audit that does not add
up is a fault of whoever keeps the mail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plimsoll import settings
from plimsoll.documents.mail import MailFigures
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.results.digits import apart
from plimsoll.verdict.audits import audit_check

AUDIT = "mail_audit"
SECONDS_PER_MINUTE = 60
#: Where nothing can be judged: what is missing.
NO_PATH = (
    "no data_path names where the server's storage is mounted here, so its device was not watched"
)
NO_PROBES = "no probe was sent; see probes_per_minute"

#: A measured figure, or None and why there is none.
Found = tuple[float | None, str]


def _score(item: MailFigures) -> Found:
    score = item.score
    few = "; ".join(score.missing)
    enough = score.weight_judged >= settings.MAIL["weight_share_min"] * score.weight_total
    return (score.ms if enough else None), f"too few results: {few}"


def _worst(item: MailFigures) -> Found:
    return item.score.worst_ms, "no weighted task has results enough"


def _send(item: MailFigures) -> Found:
    row = next(row for row in item.tasks if row.task == "SendMail")
    enough = row.done_count >= settings.MAIL["results_min"]
    return (
        row.ms_p95 if enough else None
    ), f"{row.done_count} mails were sent; {settings.MAIL['results_min']} are needed"


def _delivery(item: MailFigures) -> Found:
    """A probe that was lost is one that took for ever.

    Where one in twenty was, no percentile is finite.
    """
    sent = item.delivery.count + item.probes_lost if item.delivery else item.probes_lost
    if sent and item.probes_lost / sent > 0.05:
        return float(settings.MAIL["probe_timeout_s"]) * 1000, ""
    return (item.delivery.ms_p95 if item.delivery else None), NO_PROBES


def _achieved(item: MailFigures) -> Found:
    return (item.done_count / item.planned_count if item.planned_count else None), "no task was due"


def _queue_end(item: MailFigures) -> Found:
    waiting = item.levels.waiting_end
    if waiting is None or not item.planned_count:
        return None, "nothing of the kind was measured"
    a_minute = item.planned_count / item.seconds * SECONDS_PER_MINUTE
    return (max(0.0, waiting - 1) / a_minute if a_minute else None), ""


def _errors(item: MailFigures) -> Found:
    """What was refused; while a load answers events, they are judged by it."""
    if item.answers_refused_count and item.errors_share_quiet is None:
        return None, "every task fell into the time from an event until the load was back"
    quiet = item.errors_share_quiet
    return (item.errors_share if quiet is None else quiet), NOTHING


def _moves(item: MailFigures) -> Found:
    """Of the moves that were due; the one that is under way at the end counts as moved."""
    moves = item.moves
    if moves is None or not moves.planned_count:
        return None, "no move was due in the measured time"
    return min((moves.moved_count + 1) / moves.planned_count, 1.0), ""


FROM_INTENDED_START = ("mail_score", "mail_task_p95", "mail_send_p95")
NOTHING = "nothing of the kind was measured"
MEASURED: dict[str, Callable[[MailFigures], Found]] = {
    "mail_score": _score,
    "mail_task_p95": _worst,
    "mail_service_mean": lambda item: (item.service_ms_mean, NOTHING),
    "mail_open_max": lambda item: (item.levels.commands_open_max, NOTHING),
    "mail_queued_max": lambda item: (item.levels.queued_max, NOTHING),
    "mail_volume_mean": lambda item: (
        item.volume.latency_ms_mean if item.volume else None,
        NO_PATH,
    ),
    "mail_volume_max": lambda item: (item.volume.latency_ms_max if item.volume else None, NO_PATH),
    "mail_send_p95": _send,
    "mail_command_p95": lambda item: (item.command_ms_p95, NOTHING),
    "mail_delivery_p95": _delivery,
    "mail_errors": _errors,
    "mail_achieved": _achieved,
    "mail_moves": _moves,
    "mail_queue_end": _queue_end,
}
#: A check of what only some loads ask for.
ONLY_WHERE_ASKED: dict[str, Callable[[MailFigures], bool]] = {
    "mail_moves": lambda item: item.moves is not None
}


def mail_checks(plan: Plan, summary: Summary) -> list[Check]:
    """The checks of every workload of mail users, and one for each audit."""
    rules = [
        rule for rule in settings.limits()["mail_check"] if plan.judgement.limits in rule["limit"]
    ]
    checks = [
        _check(rule, plan, item)
        for item in summary.mail
        for rule in rules
        if rule["name"] not in ONLY_WHERE_ASKED or ONLY_WHERE_ASKED[rule["name"]](item)
    ]
    return [*checks, *(audit_check(AUDIT, "mail", item) for item in summary.mail_audits)]


def _check(rule: settings.LimitRule, plan: Plan, item: MailFigures) -> Check:
    limit, unit = rule["limit"][plan.judgement.limits], rule["unit"]
    measured, lacking = MEASURED[rule["name"]](item)
    status: Status = "not_evaluated"
    reason = lacking
    if measured is not None:
        holds = measured >= limit if rule.get("least") else measured < limit
        status = "pass" if holds else "fail"
        word = (
            ("reaches" if holds else "is below")
            if rule.get("least")
            else ("is below" if holds else "is not below")
        )
        told, bound = apart(
            measured, limit, lambda value, decimals: _shown(value, unit, decimals), 2
        )
        reason = f"{told} {word} the limit of {bound}"
        if rule["name"] == "mail_score":
            reason += _made_of(item)
        if rule["name"] == "mail_task_p95":
            reason = f"{item.score.worst_task}: {reason}"
    if rule["name"] == "mail_errors" and item.answers_refused_count:
        reason += (
            f"; {item.answers_refused_count} more, from an event until the load was back, are left "
            "out with that time: the event is judged by them (`errors_max`)"
        )
    return Check(
        name=rule["name"],
        title=rule["title"],
        scope=item.workload,
        # Times from the intended start become longer where the generator is late; other times do
        # not.
        metric="mail_response_ms" if rule["name"] in FROM_INTENDED_START else "mail",
        statistic="mail",
        measured=measured,
        limit=limit,
        unit=unit,
        status=status,
        reason=reason,
        source=rule["source"],
    )


def _made_of(item: MailFigures) -> str:
    """What a score is made of, so that nobody takes one for another."""
    score = item.score
    of = f", weights {score.weights}"
    if score.missing:
        of += (
            f"; over {score.weight_judged:g} of {score.weight_total:g}: {'; '.join(score.missing)}"
        )
    if item.left_out:
        of += f"; the server cannot do {', '.join(item.left_out)}"
    return of


def _shown(value: float, unit: str, decimals: int = 2) -> str:
    """A value with its unit, to a digit that still tells it from its limit.

    >>> _shown(999.99, "ms"), _shown(0.98765, "ratio"), _shown(69, "count")
    ('999.99 ms', '98.765 %', '69')
    """
    if unit == "ratio":
        return f"{round(100 * value, decimals + 1):.15g} %"
    number = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return number if unit == "count" else f"{number} {unit}"


def overloaded(summary: Summary) -> bool:
    """Whether the run ended because its users fell too far behind.

    That is a result, and no fault of the run.
    """
    return summary.error is not None and summary.error.family == "overloaded"


def in_a_sentence(figures: Sequence[MailFigures]) -> str:
    """The rate of mail users for a headline: score, tasks, users."""
    found = []
    for item in figures:
        score = (
            "no score"
            if item.score.ms is None
            else f"score {item.score.ms:.1f} ms ({item.score.weights})"
        )
        found.append(
            f"{item.users} users, {score}, {item.done_count / item.seconds:.3g} tasks/s of "
            f"{item.planned_count / item.seconds:.3g}"
        )
    return "; ".join(found)
