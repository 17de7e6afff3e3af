"""`claims.toml`: figures that a paper prints, what it says of them, and whether that follows.

For statements in prose and tables of improvements that no report holds: "25 times", "42 % fewer",
"more than 18 times", "the same". A claim has an expression over the figures; what is stated is a
text, so that its last digit is known. A claim of sameness is one that the expression, a quotient,
differs from 1 by less than a share. Nothing is executed: `sizing.expression`.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from plimsoll.imports.consistency_checks import CONTRADICTION, Finding
from plimsoll.imports.papers.checks import compared
from plimsoll.inputs.expression import ExpressionError, evaluate, parse_expression
from plimsoll.inputs.schema import Collector, Field, Numbers, Tables, Text, require_kind
from plimsoll.inputs.toml_lines import read_located

EQUALS, MORE, LESS, SAME = "equals", "more than", "less than", "same"
#: Differences below are called the same by anybody.
SAME_SHARE = 0.05

CLAIM_FIELDS = {
    "where": Field(Text(), required=True, meaning="where it stands"),
    "says": Field(
        Text((EQUALS, MORE, LESS, SAME)),
        default=EQUALS,
        meaning="how the statement stands to the computed value",
    ),
    "stated": Field(Text(), meaning='the number as printed, in quotes: "27.3"; none for same'),
    "expression": Field(
        Text(), required=True, meaning="the same from the figures; for same, a quotient"
    ),
}
FIELDS = {
    "source": Field(Text(), required=True, meaning="which paper"),
    "figures": Field(Numbers(), required=True, meaning="printed figures by name"),
    "claim": Field(Tables(CLAIM_FIELDS, 1), required=True, meaning="statements on them"),
}


def check_claims(path: Path) -> tuple[str, list[Finding]]:
    """The source of a file of claims, and what of them does not follow.

    Raises:
        InputError: with every mistake of the file.
    """
    document = read_located(path)
    require_kind(document, ("claims",), {"solution": "plimsoll esrp", "plan": "plimsoll run"})
    collector = Collector(document)
    content = collector.top(FIELDS)
    found: list[Finding] = []
    for index, claim in enumerate(content["claim"] or []):
        where = ("claim", index)
        stated = _stated(claim["stated"])
        if claim["says"] != SAME and stated is None:
            collector.add(
                (*where, "stated"), "is not a number", 'write it as printed: stated = "27.3"'
            )
        try:
            value = float(
                evaluate(parse_expression(claim["expression"] or "0"), content["figures"] or {})
            )
        except (ExpressionError, TypeError, ValueError) as error:
            collector.add((*where, "expression"), str(error), "use the names of [figures]")
            continue
        if claim["says"] == SAME or stated is not None:
            found += _follows(claim["where"], claim["says"], claim["stated"], stated, value)
    collector.raise_if_any()
    return content["source"], found


def _stated(text: str | None) -> Decimal | None:
    try:
        value = Decimal(text) if text else None
    except ArithmeticError:
        return None
    return value if value is not None and value.is_finite() and abs(value.adjusted()) < 30 else None


def _follows(
    where: str, says: str, text: str, stated: Decimal | None, value: float
) -> list[Finding]:
    if says == SAME:
        change = 100 * (value - 1)
        return (
            [
                Finding(
                    "claim",
                    CONTRADICTION,
                    where,
                    f"the same is stated, but the change is {change:+.0f} %",
                )
            ]
            if abs(value - 1) > SAME_SHARE
            else []
        )
    assert stated is not None
    computed = Decimal(repr(value))
    if (says == MORE and computed <= stated) or (says == LESS and computed >= stated):
        return [
            Finding(
                "claim",
                CONTRADICTION,
                where,
                f"{says} {text} is stated, {computed:.6g} is computed",
            )
        ]
    return list(compared("claim", where, "the statement", text, computed)) if says == EQUALS else []
