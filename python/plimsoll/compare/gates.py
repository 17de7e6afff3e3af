"""`--fail-if`: expressions that end a comparison with exit code 1 when they hold.

The grammar is that of `--limit`: a field, < <= > or >=, and a number. Three kinds of fields:

    log_write_latency_ms_p99>5                 a field of the summary of any side but the first, at
    any place database_iops_change_percent<-5            how far a side's field is above or below
    the first's, in percent database_iops_factor<0.95                  the improvement factor, more
    than 1 where the side is better

With `confident`, a change or factor counts only where the whole interval of 95 % fulfils the
expression; where there is no interval, nothing can be said. What cannot be evaluated is never taken
for harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.compare.figures import FIGURES, LESS, value_of
from plimsoll.compare.sides import Side
from plimsoll.documents.comparison import Comparison, Difference
from plimsoll.plan.limits import Limit, known_fields, parse_limit
from plimsoll.verdict.summary_fields import values_of

FACTOR, CHANGE = "_factor", "_change_percent"
#: Figures that only a comparison computes.
_OWN_FIGURES = {figure.name: figure for figure in FIGURES if figure.name not in known_fields()}
#: Words in the names of fields of which less is better.
_LESS_IS_BETTER = (
    "latency",
    "response",
    "stalls",
    "errors",
    "hung",
    "lag",
    "gap",
    "damaged",
    "conflicts",
    "missing",
)


@dataclass(frozen=True)
class Finding:
    """One expression on one side.

    Attributes:
        text: the expression.
        side: which side it was evaluated on.
        holds: whether it holds; None where it could not be evaluated.
        words: what was found, in a sentence.
    """

    text: str
    side: str
    holds: bool | None
    words: str


def parse_condition(text: str) -> Limit:
    """Read an expression.

    Raises:
        LimitError: it is none; the hint names fields that are written alike.

    >>> parse_condition("db_read_latency_ms_p99_change_percent > 10").field
    'database_read_latency_ms_p99_change_percent'
    """
    fields = (*known_fields(), *(figure.name for figure in FIGURES))
    known = dict.fromkeys(name + ending for ending in ("", FACTOR, CHANGE) for name in fields)
    return parse_limit(text, tuple(known))


def compared_by(condition: Limit) -> str | None:
    """The figure whose change or factor an expression is about, None of a side's own value.

    >>> compared_by(parse_condition("database_iops_factor<0.95"))
    'database_iops'
    >>> compared_by(parse_condition("database_iops<100"))
    """
    for ending in (FACTOR, CHANGE):
        if condition.field.endswith(ending):
            return condition.field.removesuffix(ending)
    return None


def evaluate(
    condition: Limit, sides: Sequence[Side], found: Comparison, *, confident: bool
) -> list[Finding]:
    """Evaluate an expression on every side but the first.

    Args:
        condition: as from `parse_condition`.
        sides: what was compared.
        found: what `compare` answered.
        confident: whether an interval must fulfil it wholly.
    """
    for ending in (FACTOR, CHANGE):
        if condition.field.endswith(ending):
            name = condition.field.removesuffix(ending)
            row = next((row for row in found.figures if row.name == name), None)
            if row is not None:
                return [
                    _of_figure(
                        condition,
                        side.name,
                        row.against_first[index],
                        ending,
                        row.better,
                        confident,
                    )
                    for index, side in enumerate(sides[1:])
                ]
            if confident:
                words = "its confidence is not known; only the figures of the table have one"
                return [Finding(condition.text, side.name, None, words) for side in sides[1:]]
            return [_of_places(condition, sides[0], side, name, ending) for side in sides[1:]]
    return [_of_summary(condition, side) for side in sides[1:]]


def _of_figure(
    condition: Limit, side: str, against: Difference, ending: str, better: str, confident: bool
) -> Finding:
    measured = against.factor if ending == FACTOR else against.change_percent
    if measured is None:
        return Finding(condition.text, side, None, against.why or "")
    if not confident:
        return Finding(condition.text, side, condition.holds(measured), f"it is {measured:.4g}")
    low, high = against.low, against.high
    if low is None or high is None:
        return Finding(
            condition.text,
            side,
            None,
            f"it is {measured:.4g}, but its confidence is not known: {against.why}",
        )
    if ending == CHANGE:
        bounds = (1 / high, 1 / low) if better == LESS else (low, high)
        low, high = (100 * (bound - 1) for bound in bounds)
    holds = condition.holds(low) and condition.holds(high)
    return Finding(
        condition.text,
        side,
        holds,
        f"it is {measured:.4g}, with 95 % between {low:.4g} and {high:.4g}",
    )


def _of_places(condition: Limit, first: Side, side: Side, name: str, ending: str) -> Finding:
    """A factor or change of a field at every place that both sides have.

    It holds when it holds anywhere.
    """
    before, after = (
        {scope: value for scope, value in _values(one, name) if value} for one in (first, side)
    )
    common = [scope for scope in before if scope in after]
    if not common:
        return Finding(
            condition.text, side.name, None, "both sides have no such value, or it is zero"
        )
    less = any(word in name for word in _LESS_IS_BETTER)
    measured = {}
    for scope in common:
        ratio = after[scope] / before[scope]
        measured[scope] = 100 * (ratio - 1) if ending == CHANGE else (1 / ratio if less else ratio)
    return _anywhere(condition, side.name, measured)


def _of_summary(condition: Limit, side: Side) -> Finding:
    measured = {
        scope: value for scope, value in _values(side, condition.field) if value is not None
    }
    if not measured:
        return Finding(condition.text, side.name, None, "this side has no such value")
    return _anywhere(condition, side.name, measured)


def _anywhere(condition: Limit, side: str, measured: dict[str, float]) -> Finding:
    fulfilled = {scope: value for scope, value in measured.items() if condition.holds(value)}
    scope, value = next(iter((fulfilled or measured).items()))
    place = "" if scope == "run" else f" at {scope}"
    return Finding(condition.text, side, bool(fulfilled), f"it is {value:.4g}{place}")


def _values(side: Side, name: str) -> list[tuple[str, float | None]]:
    """The values of a field at every place: of the run, or the mean of whole runs."""
    places: dict[str, list[float]] = {}
    for run in side.runs:
        for scope, value in values_of(run.summary, name):
            if value is not None:
                places.setdefault(scope, []).append(float(value))
        if name in _OWN_FIGURES and (own := value_of(_OWN_FIGURES[name], run)) is not None:
            places.setdefault("run", []).append(own)
    return [(scope, sum(values) / len(values)) for scope, values in places.items()]
