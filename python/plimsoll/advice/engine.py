"""Evaluating rules over subjects.

Findings, what is met, what does not apply, and what could not be decided.

A subject is one thing a file describes (a host, a volume, a run) with the facts known about it. A
fact that is not stated is not in the table, and a rule that needs it is reported as not evaluated
with the names it missed: silence about a rule always means that it was looked at and held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from plimsoll.advice.rules import SCOPES, SEVERITIES, Check, Rule, Severity
from plimsoll.inputs.expression import ExpressionError, Fact, UnknownFactError, evaluate, names_in

#: Stated with every result, as every paper states it of its own figures.
LIMITS_OF_THE_RESULT = (
    "Rules are general practice; they do not replace a test of the own design with the own "
    "profile.",
    "Findings rest on what the files state; nothing was measured or looked up for them.",
    "Published results and test reports are no benchmarks and do not compare products.",
)


@dataclass(frozen=True)
class Subject:
    """One thing rules can look at.

    Attributes:
        scope: one of the scopes of `rules.py`.
        name: what the file calls it.
        facts: what is known about it, by name.
        file_name: the file that describes it.
        line: where the file describes it; 0 when no line applies.
    """

    scope: str
    name: str
    facts: dict[str, Fact]
    file_name: str = ""
    line: int = 0


@dataclass(frozen=True)
class Finding:
    """A rule that does not hold for a subject, the facts that show it, and the rules that say the
    same.
    """

    rule: Rule
    subject: Subject
    evidence: dict[str, Fact]
    also: tuple[Rule, ...] = ()

    @property
    def severity(self) -> Severity:
        """How serious the rule is."""
        return self.rule.severity

    @property
    def place(self) -> str:
        """File and line of the subject, as far as known."""
        return (
            f"{self.subject.file_name}:{self.subject.line}"
            if self.subject.line
            else self.subject.file_name
        )


@dataclass(frozen=True)
class NotEvaluated:
    """A rule that could not be decided, for which subjects, and why."""

    rule: Rule
    subjects: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Advice:
    """The outcome of every rule.

    Attributes:
        findings: rules that do not hold, most serious first.
        met: rules that hold for every subject they apply to, with the number of subjects.
        to_weigh: rules that apply and have nothing a file could decide; a person weighs them.
        not_applicable: rules whose condition is not given.
        not_evaluated: rules that could not be decided.
        limits: what the result is not.
    """

    findings: tuple[Finding, ...]
    met: dict[str, int]
    to_weigh: tuple[Rule, ...]
    not_applicable: tuple[Rule, ...]
    not_evaluated: tuple[NotEvaluated, ...]
    limits: tuple[str, ...] = LIMITS_OF_THE_RESULT


@dataclass
class _Outcome:
    """What one rule came to, while it is worked out."""

    findings: list[Finding] = field(default_factory=list)
    met: int = 0
    suggested: bool = False
    reasons: dict[str, list[str]] = field(default_factory=dict)
    looked_at: bool = False


def advise(
    rules: Iterable[Rule],
    subjects: Sequence[Subject],
    described: frozenset[str],
    keys_behind: Mapping[str, str] | None = None,
) -> Advice:
    """Evaluate every rule over every subject of its scopes.

    Args:
        rules: the rules.
        subjects: what the files describe.
        described: scopes the files could describe, even where they describe nothing in them.
        keys_behind: the key to write for a missing fact, where it has another name.

    Returns:
        The outcome; the same input always gives the same order.
    """
    findings: list[Finding] = []
    met: dict[str, int] = {}
    to_weigh: list[Rule] = []
    not_applicable: list[Rule] = []
    not_evaluated: list[NotEvaluated] = []
    rules = list(rules)
    for rule in rules:
        if rule.decided_with:
            continue
        also = tuple(other for other in rules if other.decided_with == rule.id)
        outcome = _outcome(rule, subjects, described, keys_behind or {})
        findings += [replace(finding, also=also) for finding in outcome.findings]
        for each in (rule, *also):
            if outcome.met and not outcome.findings:
                met[each.id] = outcome.met
            not_evaluated += [
                NotEvaluated(each, tuple(names), reason)
                for reason, names in outcome.reasons.items()
            ]
            if outcome.suggested:
                to_weigh.append(each)
            elif not (outcome.findings or outcome.met or outcome.reasons):
                not_applicable.append(each)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Advice(
        tuple(findings), met, tuple(to_weigh), tuple(not_applicable), tuple(not_evaluated)
    )


def _outcome(
    rule: Rule,
    subjects: Sequence[Subject],
    described: frozenset[str],
    keys_behind: Mapping[str, str],
) -> _Outcome:
    outcome = _Outcome(suggested=not rule.checks)
    for check in rule.checks:
        if check.scope not in described:
            continue
        outcome.looked_at = True
        for subject in subjects:
            if subject.scope == check.scope:
                _apply(rule, check, subject, outcome, keys_behind)
    if rule.checks and not outcome.looked_at:
        needed = " or ".join(
            dict.fromkeys(kind for check in rule.checks for kind in SCOPES[check.scope])
        )
        outcome.reasons[f"needs {needed}, which was not given"] = []
    return outcome


def _apply(
    rule: Rule, check: Check, subject: Subject, outcome: _Outcome, keys_behind: Mapping[str, str]
) -> None:
    """Decide one rule for one subject."""
    try:
        if check.when_tree is not None and not evaluate(check.when_tree, subject.facts):
            return
        if check.check_tree is None:
            outcome.suggested = True
            return
        holds = bool(evaluate(check.check_tree, subject.facts))
    except UnknownFactError:
        missing = dict.fromkeys(keys_behind.get(name, name) for name in _missing(check, subject))
        outcome.reasons.setdefault("not stated: " + ", ".join(missing), []).append(subject.name)
        return
    except ExpressionError as error:
        outcome.reasons.setdefault(f"the rule {error}", []).append(subject.name)
        return
    if holds:
        outcome.met += 1
    else:
        outcome.findings.append(Finding(rule, subject, _evidence(check, subject)))


def _missing(check: Check, subject: Subject) -> list[str]:
    """Names the check refers to that the subject has no fact for."""
    trees = [tree for tree in (check.when_tree, check.check_tree) if tree is not None]
    names = dict.fromkeys(name for tree in trees for name in names_in(tree))
    return [name for name in names if name not in subject.facts and name not in ("true", "false")]


def _evidence(check: Check, subject: Subject) -> dict[str, Fact]:
    """The facts a check looked at, then those that only describe the subject."""
    trees = [tree for tree in (check.check_tree, check.when_tree) if tree is not None]
    names = dict.fromkeys(name for tree in trees for name in names_in(tree))
    checked = set(names_in(check.check_tree)) if check.check_tree is not None else set()
    evidence = {
        name: subject.facts[name]
        for name in names
        if name in subject.facts
        and (name in checked or subject.facts[name] not in (0, True, False))
    }
    shown = {name.removesuffix("_count") for name in evidence}
    listed = {
        name: fact
        for name, fact in subject.facts.items()
        if isinstance(fact, list) and fact and name in shown
    }
    return evidence | listed
