"""Whether a delay of the load generator can be what a failed check is beyond its limit.

The delay's largest share is taken away.

What takes a share of the time adds at most that share to a mean latency, and takes at most that
share from a rate. What delays each completion by so much adds at most that to each latency. How
much of a single slow transfer is a delay's nobody knows, so the longest ones can be its doing
whole. What is left must be within the limit; the answer is the arithmetic.
"""

from __future__ import annotations

from plimsoll.documents.verdict import Check
from plimsoll.plan.limits import parse_limit

#: Figures of single transfers, which one delay can make up.
OF_SINGLE = ("_max", "_p999")


def without_share(check: Check, kind: str, share: float) -> str | None:
    """The arithmetic by which a share of the time excuses a check; None where it cannot.

    Args:
        check: one that failed.
        kind: "latency", "response" or "rate".
        share: of the time, from 0 to 1.
    """
    if check.measured is None:
        return None
    if kind != "rate" and not _is_mean(check):
        return "all of a single slow transfer can be its doing"
    if share >= 1:
        return "all of the figure can be its doing"
    if kind == "rate":
        best = check.measured / (1 - share)
        text = f"without it {_number(check.measured)} could be up to {_number(best)}"
    else:
        best = check.measured * (1 - share)
        text = f"{_number(check.measured)} ms less {share:.1%} are {_number(best)} ms"
    reaches = "reaches" if kind == "rate" else "is within"
    return f"{text}, which {reaches} {_limit(check)}" if _holds(check, kind, best) else None


def without_delay(check: Check, kind: str, delay_ms: float, judged_ms: float) -> str | None:
    """The arithmetic by which a delay of each completion excuses a check; None where it cannot.

    Args:
        check: one that failed.
        kind: "latency", "response" or "rate".
        delay_ms: of nearly every completion at most.
        judged_ms: what is longer by it: the mean latency, or for a rate the time in which it came
            about.
    """
    if check.measured is None:
        return None
    if kind == "rate":
        return without_share(check, kind, delay_ms / judged_ms)
    if check.metric.endswith(OF_SINGLE) and not _is_mean(check):
        return "all of a single slow transfer can be its doing"
    best = check.measured - delay_ms
    text = (
        f"{_number(check.measured)} ms less {_number(delay_ms)} ms are {_number(max(best, 0.0))} ms"
    )
    return f"{text}, which is within {_limit(check)}" if _holds(check, kind, best) else None


def _is_mean(check: Check) -> bool:
    return check.statistic in ("mean", "sample_mean_max") or check.metric.endswith(
        ("_mean", "_sample_mean_max")
    )


def _holds(check: Check, kind: str, value: float) -> bool:
    if check.statistic == "stated":
        return parse_limit(check.name).holds(value)
    return value >= check.limit if kind == "rate" else value <= check.limit


def _limit(check: Check) -> str:
    return (
        f"the limit of {_number(check.limit)}"
        if check.name != "required_iops"
        else f"the {_number(check.limit)} required"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
