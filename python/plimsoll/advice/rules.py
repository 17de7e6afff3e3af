"""Best-practice rules as data: what they say, who says it, and the condition that decides.

A rule may be checked in several scopes (a host, a volume, the requirements, a finished run). In
each, `when` says whether the rule applies and `check` what must hold; both are expressions over the
facts of the scope, see `expression.py`. A scope without a `check` yields plain advice where it
applies; a rule without scopes is advice for a person to weigh. The shipped rules are paraphrased
from five storage papers; the severity is this project's grading of their wording.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plimsoll.inputs.expression import ExpressionError, parse_expression
from plimsoll.inputs.mistakes import nearest_names
from plimsoll.inputs.schema import READERS, Collector, Field, Given, Tables, Text, require_kind
from plimsoll.inputs.toml_lines import KeyPath, read_located
from plimsoll.sizing.catalogue import DATA_FOLDER

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
SHIPPED_RULES = DATA_FOLDER / "rules.toml"

#: The scopes, and which inputs describe each; the reason shown when a rule finds no subject.
SCOPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        [
            "design",
            "host",
            "machine",
            "virtual_switch",
            "switch",
            "array",
            "disk_group",
            "volume",
            "database",
            "component",
            "network",
            "host_loss",
        ],
        ("a topology",),
    ),
    "requirements": ("requirements",),
    "plan": ("a plan", "a finished run"),
    "run": ("a finished run",),
}

_CHECK_FIELDS = {
    "scope": Field(Text(tuple(SCOPES)), required=True, meaning="what the rule looks at"),
    "when": Field(Text(), meaning="condition under which it applies; always when left out"),
    "check": Field(Text(), meaning="what must hold; plain advice when left out"),
}
_RULE_FIELDS = {
    "id": Field(Text(), required=True, meaning="a short unique name"),
    "subject": Field(Text(), required=True, meaning="what it is about"),
    "condition": Field(Text(), required=True, meaning="when it applies, in words"),
    "severity": Field(Text(SEVERITIES), required=True, meaning="error, warning or info"),
    "recommendation": Field(Text(), required=True, meaning="what to do, in a sentence"),
    "fix": Field(Text(), meaning="how to get there; the recommendation when left out"),
    "source": Field(Text(), required=True, meaning="who says so, and where"),
    "checks": Field(Tables(_CHECK_FIELDS), default=[], meaning="how it is decided"),
    "for_a_person": Field(Text(), meaning="why no file can decide it, where it has no check"),
    "decided_with": Field(
        Text(), meaning="the rule that says the same and whose findings it shares"
    ),
}


@dataclass(frozen=True)
class Check:
    """How a rule is decided in one scope; expressions are kept as text and as checked trees."""

    scope: str
    when: str
    check: str
    when_tree: ast.expr | None
    check_tree: ast.expr | None


@dataclass(frozen=True)
class Rule:
    """One rule with everything a reader needs to weigh it."""

    id: str
    subject: str
    condition: str
    severity: Severity
    recommendation: str
    fix: str
    source: str
    checks: tuple[Check, ...]
    decided_with: str = ""
    for_a_person: str = ""


def read_rules(path: Path = SHIPPED_RULES) -> tuple[Rule, ...]:
    """Read a rules file.

    Raises:
        InputError: with every mistake in the file, expressions included.
    """
    document = read_located(path)
    require_kind(document, ("rules",), READERS)
    fields = {
        "name": Field(Text(), required=True, meaning="what to call the rules"),
        "rules": Field(
            Tables(_RULE_FIELDS, count_minimum=1, unique="id"),
            required=True,
            meaning="at least one",
        ),
    }
    collector = Collector(document)
    content = collector.top(fields)
    rules = [
        _rule(entry, ("rules", index), collector)
        for index, entry in enumerate(content["rules"] or [])
    ]
    primaries = {rule.id for rule in rules if rule.id and not rule.decided_with}
    for index, rule in enumerate(rules):
        place = ("rules", index, "decided_with")
        if rule.decided_with and rule.decided_with not in primaries:
            hint = nearest_names(rule.decided_with, primaries)
            collector.add(
                place, f'is "{rule.decided_with}", which is no rule with checks of its own', hint
            )
        elif rule.decided_with and rule.checks:
            collector.add(place, "stands next to checks of its own", "leave out one of the two")
    collector.raise_if_any()
    return tuple(rules)


def _rule(entry: Given, path: KeyPath, collector: Collector) -> Rule:
    checks = []
    for index, check in enumerate(entry["checks"] or []):
        place = (*path, "checks", index)
        when_tree = _tree(check["when"], (*place, "when"), collector)
        check_tree = _tree(check["check"], (*place, "check"), collector)
        checks.append(
            Check(check["scope"], check["when"] or "", check["check"] or "", when_tree, check_tree)
        )
    return Rule(
        id=entry["id"],
        subject=entry["subject"],
        condition=entry["condition"],
        severity=entry["severity"],
        recommendation=entry["recommendation"],
        fix=entry["fix"] or entry["recommendation"],
        source=entry["source"],
        checks=tuple(checks),
        decided_with=entry["decided_with"] or "",
        for_a_person=entry["for_a_person"] or "",
    )


def _tree(text: str | None, path: KeyPath, collector: Collector) -> ast.expr | None:
    if text is None:
        return None
    try:
        return parse_expression(text)
    except ExpressionError as error:
        collector.add(path, str(error), 'for instance "storage_port_count >= 2 and flow_control"')
        return None
