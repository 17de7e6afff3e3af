"""What a modelled run predicts: each check against its limit with the error band around it.

A figure whose band lies within the limit predicts a pass, one whose band lies beyond predicts a
fail, and one whose band spans the limit is too close to call. A check that could not be evaluated
predicts nothing, and next to checks that pass it is said so. The band is that of the model on
arrays it was not fitted to (`modelled.band`). Nothing modelled is ever a plain pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.arrays.burst_credits import lived_on_credits
from plimsoll.arrays.papers.error_band import PAPER_METRICS, array_band, nearest_point
from plimsoll.documents.array_sheet import ArraySheet
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Prediction
from plimsoll.plan.limits import parse_limit
from plimsoll.verdict.checks import NOT_EVALUATED, PASS, least_iops

PREDICTED_PASS, PREDICTED_FAIL, TOO_CLOSE = "predicted pass", "predicted fail", "too close to call"
#: Of a run with a check that could not be evaluated, and one that came to no figure of the model.
NOT_ALL_EVALUATED, NOTHING_PREDICTED = "not all evaluated", "nothing predicted"


def predicted_checks(plan: Plan, checks: Sequence[Check]) -> list[Check]:
    """The checks of a modelled run, each with `predicted` and `band_percent`."""
    array = _array_of(plan)
    found = []
    for check in checks:
        predicted, band = _predicted(check, array, plan.judgement.margin_percent)
        found.append(check.replace(predicted=predicted, band_percent=band))
    return found


def _array_of(plan: Plan) -> ArraySheet:
    array = plan.judgement.modelled
    assert array is not None, "only a modelled run predicts"
    return array


def predict(plan: Plan, checks: Sequence[Check], summary: Summary | None = None) -> Prediction:
    """What the checks of a modelled run predict.

    Args:
        plan: the completed plan; its `judgement.modelled` is the array.
        checks: as from `predicted_checks`.
        summary: for what the array counted: a rate paid for with burst credits predicts no pass.

    Returns:
        `result`, `reasons`, and the nearest validated point.
    """
    array = _array_of(plan)
    worst = [check for check in checks if check.predicted == PREDICTED_FAIL]
    close = [check for check in checks if check.predicted == TOO_CLOSE]
    unknown = [check for check in checks if check.status == NOT_EVALUATED]
    report = summary.array if summary else None
    borrowed = lived_on_credits(report)
    if worst:
        result = PREDICTED_FAIL
    elif unknown and all(check.band_percent is None for check in checks):
        result = NOTHING_PREDICTED
    elif close or borrowed:
        result = TOO_CLOSE
    else:
        result = NOT_ALL_EVALUATED if unknown else PREDICTED_PASS
    return Prediction(
        result=result,
        reasons=[
            *(_sentence(check) for check in worst + close),
            *(f"{check.title} ({check.scope}): {check.reason}" for check in unknown),
            *([borrowed] if borrowed else []),
        ],
        band_percent={
            name: array_band(array, name)
            for name in ("database_iops", "database_read", "database_write", "log_write")
        },
        nearest_validated_point=nearest_point(array),
    )


def _predicted(
    check: Check, array: ArraySheet, margin_percent: float
) -> tuple[str | None, float | None]:
    if check.status == NOT_EVALUATED or check.measured is None:
        return None, None
    if check.statistic == "window":
        # What arrives is no figure of the model.
        return (PREDICTED_PASS if check.status == PASS else PREDICTED_FAIL), None
    if check.statistic == "completed":
        # All of it completes up to the storage's limit: how near that is, the figure does not say.
        band = array_band(array, "database_iops", "mean")
        if check.status == PASS:
            return None, None
        reaches = check.measured * (1 + band / 100) >= check.limit
        return (TOO_CLOSE if reaches else PREDICTED_FAIL), band
    if check.name == "page_fault_stalls" and check.doubts:
        return TOO_CLOSE, None  # the cache's, not the array's
    if check.unit not in ("ms", "1/s") or check.statistic == "per_s":
        # Counted, or not there at all: a model has no error to be off by.
        return (PREDICTED_PASS if check.status == PASS else PREDICTED_FAIL), None
    band = _band_of(check, array)
    ends = check.measured / (1 + band / 100), check.measured / max(1 - band / 100, 0.01)
    held = [_holds(check, end, margin_percent) for end in ends]
    if held[0] != held[1]:
        return TOO_CLOSE, band
    return (PREDICTED_PASS if held[0] else PREDICTED_FAIL), band


def _band_of(check: Check, array: ArraySheet) -> float:
    if check.statistic != "stated":
        return array_band(array, check.metric, check.statistic)
    field = check.metric
    metric = next((name for name in PAPER_METRICS if field.startswith(name)), field)
    return array_band(
        array, metric, "mean" if field in PAPER_METRICS or field.endswith("_mean") else "other"
    )


def _holds(check: Check, value: float, margin_percent: float) -> bool:
    if check.statistic == "stated":
        return parse_limit(check.name).holds(value)
    if check.name == "required_iops":
        return value >= least_iops(check.limit, margin_percent)
    return bool(value <= check.limit)


def _sentence(check: Check) -> str:
    band = f", with a band of {check.band_percent:.0f} %" if check.band_percent else ""
    doubts = "".join(f"; {doubt.text}" for doubt in check.doubts)
    return f"{check.title} ({check.scope}): {check.predicted}: {check.reason}{band}{doubts}"
