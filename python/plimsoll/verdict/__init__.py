"""From a summary to a verdict.

Pass, fail or inconclusive, with one reason for every check, and the bottleneck of each failed one.

Limits are data (`data/limits.toml`), each with its source. A check that could not be evaluated
makes the result inconclusive, never a pass. A failed check counts as inconclusive only where the
load generator itself could have caused it, or more load than planned (`doubts`); errors and damage
fail whatever else happened. A result qualifies storage only under conditions that are listed when
they are not met (`qualifying`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll import settings
from plimsoll.documents.document import ABSENT
from plimsoll.documents.environment import Environment
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import (
    SCHEMA_VERSION,
    Bottleneck,
    Check,
    Result,
    UserEquivalent,
    Verdict,
)
from plimsoll.plan.load import has_stages
from plimsoll.results import backup_recovery
from plimsoll.results.digits import rates_apart
from plimsoll.verdict import homes, mail, store
from plimsoll.verdict.bottleneck import bottleneck_of_check, bottleneck_of_stall
from plimsoll.verdict.cautions import cautions, ceilings
from plimsoll.verdict.checks import FAIL, NOT_EVALUATED, PASS, all_checks, faults_of, least_iops
from plimsoll.verdict.confounders import (
    doubts_of,
    generator_limited,
    held_back,
    more_than_planned,
)
from plimsoll.verdict.prediction import (
    NOT_ALL_EVALUATED,
    NOTHING_PREDICTED,
    PREDICTED_FAIL,
    PREDICTED_PASS,
    TOO_CLOSE,
    predict,
    predicted_checks,
)
from plimsoll.verdict.qualification import not_tested, obstacles, through_page_cache, warnings_of
from plimsoll.verdict.text import NO_QUALIFICATION, named
from plimsoll.verdict.users import in_words, user_equivalents

__all__ = ["FAIL", "INCONCLUSIVE", "NOT_EVALUATED", "PASS", "judge"]

INCONCLUSIVE: Literal["inconclusive"] = "inconclusive"
RESULTS_BY_PREDICTION: dict[str, Result] = {
    PREDICTED_PASS: PASS,
    PREDICTED_FAIL: FAIL,
    TOO_CLOSE: INCONCLUSIVE,
    NOT_ALL_EVALUATED: INCONCLUSIVE,
    NOTHING_PREDICTED: INCONCLUSIVE,
}


def judge(plan: Plan, summary: Summary, environment: Environment) -> Verdict:
    """Judge a run.

    Args:
        plan: the completed plan.
        summary: as from `plimsoll.results.summary`.
        environment: as from `plimsoll.host.environment`.

    Returns:
        The content of `verdict.json`; `docs/reference/verdict.md` says what each key means.
    """
    checks = [
        check.replace(
            doubts=[
                *held_back(check, plan, summary),
                *more_than_planned(check, summary),
                *doubts_of(_decided_by(check, plan), summary),
            ]
            if check.status == FAIL
            else ()
        )
        for check in all_checks(plan, summary)
    ]
    achieved = summary.total.database_iops
    sustained = summary.sustained_iops or 0.0
    equivalents = user_equivalents(plan, sustained) if _shows_what_it_makes(plan, summary) else []
    throughput = _throughput(plan, summary, equivalents)
    result, reasons = _result(checks, summary, throughput)
    hindrances = obstacles(plan, summary, environment)
    faults = [*hung_ending(summary), *faults_of(checks)]
    margin = _margin(plan)
    headline = _headline(result, faults, margin, hindrances, cached=through_page_cache(summary))
    prediction = None
    if plan.judgement.modelled:
        checks = predicted_checks(plan, checks)
        prediction = predict(plan, checks, summary)
        if summary.ending == "complete":
            result = RESULTS_BY_PREDICTION[prediction.result]
            reasons = list(prediction.reasons) or [
                f"within limits, the error band included, at {throughput}"
            ]
            by = f" by {faults[0]}" if faults and prediction.result == PREDICTED_FAIL else ""
            headline = f"{prediction.result.capitalize()}{by}{margin}"
        headline = f"{headline} (MODELLED, not measured)"
    required = plan.judgement.required_iops
    return Verdict(
        schema_version=SCHEMA_VERSION,
        result=result,
        headline=headline,
        limits=plan.judgement.limits,
        limits_meaning=settings.limits()["sets"][plan.judgement.limits],
        reasons=reasons,
        throughput=throughput,
        checks=checks,
        bottlenecks=_bottlenecks(checks, summary),
        qualifying=not hindrances,
        not_qualifying_because=hindrances,
        warnings=warnings_of(summary),
        not_tested=not_tested(plan),
        doubts=_doubts(checks),
        generator_limited=generator_limited(summary),
        cautions=cautions(plan, summary),
        required_iops=required,
        achieved_iops=achieved,
        sustained_iops=sustained,
        headroom=sustained / required if required else None,
        user_equivalents=equivalents,
        prediction=prediction or ABSENT,
    )


def _decided_by(check: Check, plan: Plan) -> Check:
    """A check with the limit that decides it: a required rate is held to what its margin leaves."""
    if check.name != "required_iops":
        return check
    return check.replace(limit=least_iops(check.limit, plan.judgement.margin_percent))


def hung_ending(summary: Summary) -> list[str]:
    """Hung I/O in the words of the headline, where a run ended by it."""
    hung = summary.error is not None and summary.error.text.startswith("hung I/O")
    return ["hung I/O"] if hung else []


def _margin(plan: Plan) -> str:
    """The margin that is granted to a required rate, in the words of the headline.

    Nobody must have to look for it.
    """
    judgement = plan.judgement
    required = judgement.required_iops is not None
    return (
        f" with a margin of {judgement.margin_percent:g} %"
        if required and judgement.margin_percent
        else ""
    )


def _headline(
    result: Result, faults: list[str], margin: str, hindrances: list[str], *, cached: bool
) -> str:
    by = f" by {faults[0]}" if result == FAIL and faults else ""
    tail = NO_QUALIFICATION if hindrances and result != PASS else ""
    through = " through the page cache" if cached else ""
    return f"{named(result, rehearsal=bool(hindrances))}{by}{margin}{through}{tail}"


def _shows_what_it_makes(plan: Plan, summary: Summary) -> bool:
    """Whether a rate is worth so many users.

    Not of a run that was cut off, held back, measured with cold caches, or over the hours of a day.
    """
    warm = any(phase.kind == "warm_up" and phase.complete for phase in summary.phases)
    of_one_rate = not any(has_stages(load) for load in plan.run.workloads)
    return summary.ending == "complete" and warm and of_one_rate and not ceilings(plan)


def _throughput(plan: Plan, summary: Summary, equivalents: Sequence[UserEquivalent]) -> str:
    """The rate in a sentence: against what was required, or that nothing was, and what it is worth
    in users.
    """
    achieved, required = summary.sustained_iops or 0.0, plan.judgement.required_iops
    mean = summary.total.database_iops
    if not summary.window.seconds and not required:
        return _throughput_without_load(summary)
    worth = in_words(equivalents)
    worth = f"; {worth}" if worth else ""
    how = f" sustained ({mean:.0f} on average)" if round(achieved) < round(mean) else ""
    if summary.mail and not required:
        return mail.in_a_sentence(summary.mail)
    if summary.homes and not required:
        return homes.in_a_sentence(summary.homes)
    if summary.store and not required:
        return store.in_a_sentence(summary.store, achieved)
    if required:
        told, bound = rates_apart(achieved, required)
        room = rates_apart(achieved / required, 1, 2)[0]
        return f"{told} database IOPS{how} of {bound} required, headroom {room}{worth}"
    return f"{achieved:.0f} database IOPS{how}, no requirement stated{worth}"


def _throughput_without_load(summary: Summary) -> str:
    """What a test without a load has found: a backup, a recovery, or pages read and verified."""
    found = backup_recovery.in_words(summary)
    if not found and summary.checksums:
        pages = sum(item.pages_seen for item in summary.checksums)
        rate = sum(item.mib_per_s for item in summary.checksums)
        found = [f"{pages:,} pages verified at {rate:.0f} MiB/s"]
    return "; ".join(found) or "nothing was measured"


def _result(checks: Sequence[Check], summary: Summary, throughput: str) -> tuple[Result, list[str]]:
    failed = [check for check in checks if check.status == FAIL]
    certain = [check for check in failed if not check.doubts]
    missing = [check for check in checks if check.status == NOT_EVALUATED]
    error = summary.error
    ended_by = [error.text] if error else []
    if certain or (error and error.family in ("disk", "corruption", "overloaded", "cluster")):
        return FAIL, [*ended_by, *_reasons(failed)]
    if failed:
        return INCONCLUSIVE, [*ended_by, *_doubts(failed), *_reasons(failed)]
    if summary.ending != "complete":
        return INCONCLUSIVE, [
            *(ended_by or ["the run did not come to its end"]),
            *_reasons(missing),
        ]
    if missing:
        lost = any(gap.measured_lost for gap in summary.gaps)
        why = (
            "what was measured before the run was cut off cannot be judged; a new run measures it "
            "again, as `plimsoll resume --again` would have"
        )
        return INCONCLUSIVE, [*([why] if lost else []), *_reasons(missing)]
    at = "within limits at" if summary.window.seconds else "no damage, no errors:"
    return PASS, [f"{at} {throughput}"]


def _doubts(checks: Sequence[Check]) -> list[str]:
    """Each kind of doubt once, with the figures of the first check it concerns."""
    first: dict[str, str] = {}
    for check in checks:
        for doubt in check.doubts:
            first.setdefault(doubt.name, doubt.text)
    return list(first.values())


def _reasons(checks: Sequence[Check]) -> list[str]:
    return [f"{check.title} ({check.scope}): {check.reason}" for check in checks]


def _bottlenecks(checks: Sequence[Check], summary: Summary) -> list[Bottleneck]:
    """One entry for each failed check, then one for each of the longest stalls."""
    of_checks = [bottleneck_of_check(check, summary) for check in checks if check.status == FAIL]
    return [
        *(entry for entry in of_checks if entry),
        *(bottleneck_of_stall(stall) for stall in summary.stalls),
    ]
