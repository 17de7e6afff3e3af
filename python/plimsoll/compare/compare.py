"""The comparison itself: every side beside the first, figure by figure, as plain data.

An improvement factor says how many times better a side is: more operations, or less time. 2 is
twice as good, 0.5 half. Its interval of 95 % comes from Welch's t on the logarithms of both sides.
The words: `same` where no difference of `SAME_SHARE` is left to doubt, `better` and `worse` where
chance alone is ruled out, `not told apart` between. Without an interval a factor is still printed.
Where runs of our own are too short or too few for one, it is called `without confidence`; of what
papers and other tools print once, the words mean the direction only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from plimsoll.compare.blocks import Estimate, of_blocks, of_runs
from plimsoll.compare.differences import (
    environment_rows,
    is_imported,
    plan_rows,
    refusals,
    unlike_tests,
    unlike_users,
    warnings_about,
)
from plimsoll.compare.figures import (
    CLIENT_FIGURES,
    FIGURES,
    LESS,
    NEITHER,
    OF_SAMPLES,
    Figure,
    as_imported,
    value_of,
)
from plimsoll.compare.sides import ComparisonError, RunRead, Side, moments_of
from plimsoll.compare.student_t import quantile
from plimsoll.compare.withheld import withheld_share
from plimsoll.documents.comparison import (
    ComparedFigure,
    ComparedSide,
    ComparedValue,
    Comparison,
    Difference,
)

SCHEMA_VERSION: Literal[1] = 1
CONFIDENCE = 0.95
#: Differences within this share count as none: the margin the published tool grants a required
#: rate.
SAME_SHARE = 0.05
#: Without an interval, latencies this near count as the same; the published comparison called 0.28
#: and 0.34 ms so.
SAME_MS = 0.1
BETTER, WORSE, SAME, UNDECIDED, CHANGED = "better", "worse", "same", "not told apart", "changed"
#: What a difference is called that may be large, but of which no one can say how sure it is.
NO_CONFIDENCE = "without confidence"
#: Rates and sizes too small for a factor to mean anything.
NOTHING = 1e-12


def compare(
    sides: Sequence[Side], *, across_page_sizes: bool = False, only: Sequence[str] = ()
) -> Comparison:
    """Compare every side with the first.

    Args:
        sides: at least two.
        across_page_sizes: whether runs of different page sizes may be compared, with a warning.
        only: names of the figures to compare, chosen before they are seen; none for all. The fewer
            stand side by side, the narrower their intervals are.

    Raises:
        ComparisonError: the sides must not be compared, or samples are damaged.
    """
    problems = [*unlike_tests(sides), *([] if across_page_sizes else refusals(sides))]
    if problems:
        raise ComparisonError(problems)
    imported = any(is_imported(run) for side in sides for run in side.runs)
    published = any(run.stated is not None for side in sides for run in side.runs)
    wanted = [*(as_imported() if imported else FIGURES), *(CLIENT_FIGURES if published else ())]
    unlike = unlike_users(sides) if published else []
    if unlike:
        # More users make more orders: only figures of each user say the same of both.
        wanted = [figure for figure in wanted if figure.name != "orders_per_min"]
    if only:
        wanted = [figure for figure in wanted if figure.name.removesuffix(OF_SAMPLES) in only]
    estimates = [(figure, [estimate_of(figure, side) for side in sides]) for figure in wanted]
    count = max(
        1, sum(has_interval(known[0], other) for _, known in estimates for other in known[1:])
    )
    figures = [
        row for figure, known in estimates if (row := figure_row(figure, known, count)) is not None
    ]
    found = {figure.name.removesuffix(OF_SAMPLES) for figure in figures}
    return Comparison(
        schema_version=SCHEMA_VERSION,
        confidence=CONFIDENCE,
        same_share=SAME_SHARE,
        sides=[_described(side) for side in sides],
        warnings=[
            *warnings_about(sides),
            *unlike,
            *(f"{name} was not measured on two sides" for name in only if name not in found),
        ],
        figures=figures,
        plan=plan_rows(sides),
        environment=environment_rows(sides),
    )


def _described(side: Side) -> ComparedSide:
    first = side.first
    results = [run.verdict.result if run.verdict else None for run in side.runs]
    worst = next((result for result in ("fail", "inconclusive", "pass") if result in results), None)
    return ComparedSide(
        name=side.name,
        path=str(side.path.absolute() if first.stated is None else side.path),
        plan=first.plan.get("name"),
        runs_count=len(side.runs),
        left_out=side.left_out,
        start_utc=first.summary.window.start_utc,
        measured_s=first.summary.window.seconds,
        result=worst,
    )


def has_interval(first: Estimate, other: Estimate) -> bool:
    """Whether a factor of two estimates has an interval."""
    return first.relative_error is not None and other.relative_error is not None


def figure_row(figure: Figure, estimates: Sequence[Estimate], count: int) -> ComparedFigure | None:
    """One figure of every side; None where no two sides have it."""
    known = [estimate for estimate in estimates if estimate.value is not None]
    if len(known) < 2 or all(abs(estimate.value or 0) < NOTHING for estimate in known):
        return None
    return ComparedFigure(
        name=figure.name,
        title=figure.title,
        unit=figure.unit,
        better=figure.better,
        sides=[value_row(estimate) for estimate in estimates],
        against_first=[
            difference(figure, estimates[0], estimate, count) for estimate in estimates[1:]
        ],
        load=figure.load,
    )


def value_row(estimate: Estimate) -> ComparedValue:
    """An estimate as a comparison holds it."""
    return ComparedValue(
        value=estimate.value,
        relative_error=estimate.relative_error,
        basis=estimate.basis or None,
        count=estimate.count,
        block_s=estimate.block_s,
        why_no_confidence=estimate.why_not or None,
    )


def estimate_of(figure: Figure, side: Side) -> Estimate:
    """A figure of a side with its confidence.

    From whole runs where there are several, otherwise from blocks.
    """
    values = [value for run in side.runs if (value := value_of(figure, run)) is not None]
    if not values:
        return Estimate(None, why_not="not measured")
    if len(values) > 1:
        return of_runs(values)
    return _of_one_run(figure, side.first, values[0])


def _of_one_run(figure: Figure, run: RunRead, value: float) -> Estimate:
    if not figure.metrics:
        percentile = figure.name.endswith("p99")
        why = (
            "samples hold no distributions" if percentile else "it is one number for the whole run"
        )
        return Estimate(value, why_not=why, is_open=run.stated is None and not is_imported(run))
    if run.stated is not None:
        return Estimate(value, why_not="a paper prints one number")
    found = of_blocks(value, moments_of(run.moments(figure.metrics), figure.kind), figure.scale)
    return replace(found, withheld=withheld_share(figure, run.summary))


def difference(figure: Figure, first: Estimate, other: Estimate, count: int = 1) -> Difference:
    """How a side stands to the first in one figure.

    Args:
        figure: says which way is better.
        first: the baseline.
        other: what is compared with it.
        count: how many intervals stand side by side: together they hold with the confidence that is
            stated, each alone with more.
    """
    empty = Difference(
        factor=None, low=None, high=None, change_percent=None, word=None, basis=None, why=None
    )
    if first.value is None or other.value is None:
        return empty.replace(why="not measured on both sides")
    if abs(first.value) < NOTHING or abs(other.value) < NOTHING:
        return empty.replace(why="zero on one side")
    ratio = first.value / other.value if figure.better == LESS else other.value / first.value
    found = empty.replace(factor=ratio, change_percent=100 * (other.value / first.value - 1))
    if first.relative_error is None or other.relative_error is None:
        why = "; ".join(
            dict.fromkeys(estimate.why_not for estimate in (first, other) if estimate.why_not)
        )
        unsure = [estimate for estimate in (first, other) if estimate.relative_error is None]
        word = _word_alone(figure, first.value, other.value, ratio)
        is_open = all(estimate.is_open for estimate in unsure)
        return found.replace(word=NO_CONFIDENCE if is_open and word != SAME else word, why=why)
    low, high = _interval(ratio, first, other, count)
    # What was withheld from the first made the other look better, and the other way round.
    low, high = low * (1 - first.withheld), high / max(1 - other.withheld, NOTHING)
    basis = " and ".join(dict.fromkeys((first.basis, other.basis)))
    return found.replace(low=low, high=high, word=_word(figure, low, high), basis=basis)


def _interval(ratio: float, first: Estimate, other: Estimate, count: int) -> tuple[float, float]:
    """Welch's interval on the logarithm of the ratio, so wide that as many of them hold together
    (Bonferroni).
    """
    parts = [(first.relative_error or 0.0) ** 2, (other.relative_error or 0.0) ** 2]
    variance = sum(parts)
    if variance == 0:
        return ratio, ratio
    degrees = variance**2 / (parts[0] ** 2 / first.degrees + parts[1] ** 2 / other.degrees)
    reach = quantile(1 - (1 - CONFIDENCE) / 2 / count, max(1.0, degrees)) * math.sqrt(variance)
    # Beyond what a float holds an interval says no more than "anything".
    reach = min(reach, 50.0)
    return ratio * math.exp(-reach), ratio * math.exp(reach)


def _word(figure: Figure, low: float, high: float) -> str:
    if low >= 1 / (1 + SAME_SHARE) and high <= 1 + SAME_SHARE:
        return SAME
    if low <= 1 <= high:
        return UNDECIDED
    if figure.better == NEITHER:
        return CHANGED
    return BETTER if low > 1 else WORSE


def _word_alone(figure: Figure, first: float, other: float, ratio: float) -> str:
    """The direction of a difference nobody knows the confidence of."""
    near = figure.unit == "ms" and abs(first - other) <= SAME_MS
    if near or 1 / (1 + SAME_SHARE) <= ratio <= 1 + SAME_SHARE:
        return SAME
    if figure.better == NEITHER:
        return CHANGED
    return BETTER if ratio > 1 else WORSE
