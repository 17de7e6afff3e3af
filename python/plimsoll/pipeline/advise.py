"""Best-practice rules over whatever describes a design.

Topologies, requirements, plans and finished runs, alone or together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from plimsoll.advice.drawings import TopologyDrawing, topology_drawings
from plimsoll.advice.engine import Advice, Finding, Subject
from plimsoll.advice.engine import advise as evaluate_rules
from plimsoll.advice.rules import SEVERITIES, SHIPPED_RULES, Rule, read_rules
from plimsoll.advice.suggestions import Suggestion
from plimsoll.files.paths import StrPath, paths_of
from plimsoll.inputs.mistakes import InputError, Mistake, SeveralInputsError
from plimsoll.inputs.schema import require_kind
from plimsoll.inputs.toml_lines import read_located

SHIPPED = "shipped"
KINDS = ("topology", "requirements", "plan")


@dataclass
class Described:
    """What the given files describe."""

    subjects: list[Subject] = field(default_factory=list)
    scopes: set[str] = field(default_factory=set)
    suggestions: list[Suggestion] = field(default_factory=list)
    keys_behind: dict[str, str] = field(default_factory=dict)
    drawings: list[TopologyDrawing] = field(default_factory=list)


@dataclass(frozen=True)
class Advised:
    """What the rules say of a design.

    Attributes:
        advice: findings, rules that hold, that could not be evaluated, that do not apply.
        suggestions: what else could be chosen.
        drawings: of each topology: cables, machines before and after a loss, disks and volumes.
    """

    advice: Advice
    suggestions: list[Suggestion]
    drawings: list[TopologyDrawing] = field(default_factory=list)

    def as_data(self) -> dict[str, object]:
        """Everything as plain data."""
        return advice_json(self.advice, self.suggestions)

    def count(self, severity: str) -> int:
        """Findings this serious."""
        return _count(self.advice, severity)


def advise(files: StrPath | Sequence[StrPath], rules: Sequence[str] = (SHIPPED,)) -> Advised:
    """Check a design against best practice.

    Findings with evidence and fix, single points of failure, open questions.

    Args:
        files: topology, requirements or plan files, or folders of finished runs.
        rules: files of rules; `shipped` are the built-in ones.

    Raises:
        SeveralInputsError: with every mistake of every file.
    """
    known_rules, errors = _read_rules(rules)
    described, input_errors = _read_files(paths_of(files))
    if errors or input_errors:
        raise SeveralInputsError([*errors, *input_errors])
    advice = evaluate_rules(
        known_rules, described.subjects, frozenset(described.scopes), described.keys_behind
    )
    return Advised(advice, described.suggestions, described.drawings)


def _read_rules(names: Sequence[str]) -> tuple[list[Rule], list[InputError]]:
    rules: list[Rule] = []
    errors: list[InputError] = []
    for name in names:
        try:
            more = read_rules(SHIPPED_RULES if name == SHIPPED else Path(name))
        except InputError as error:
            errors.append(error)
            continue
        twice = {rule.id for rule in rules} & {rule.id for rule in more}
        if twice:
            errors.append(
                InputError(
                    name,
                    [Mistake(0, rule_id, "is a rule of another file, too") for rule_id in twice],
                )
            )
        rules += more
    return rules, errors


def _read_files(files: Sequence[Path]) -> tuple[Described, list[InputError]]:
    described, errors = Described(), []
    for path in files:
        try:
            _read_one(path, described)
        except InputError as error:
            errors.append(error)
    return described, errors


def _read_one(path: Path, described: Described) -> None:
    """Add what one file or run folder describes; the readers are imported only when needed."""
    if path.is_dir() or path.suffix == ".json":
        from plimsoll.advice import run_facts

        if path.is_dir():
            described.subjects += run_facts.run_subjects(path)
            described.scopes |= run_facts.DESCRIBED_BY_RUN
        else:
            described.subjects.append(
                run_facts.plan_subject(run_facts.read_object(path), str(path))
            )
            described.scopes |= run_facts.DESCRIBED_BY_PLAN
        described.keys_behind |= run_facts.KEYS_BEHIND
        return
    document = read_located(path)
    readers = {
        "catalogue": "plimsoll select --catalogue",
        "cost": "plimsoll cost",
        "rules": "plimsoll advise --rules",
    }
    kind = require_kind(document, KINDS, readers)
    if kind == "topology":
        from plimsoll.advice.topology import check_topology
        from plimsoll.advice.topology_facts import DESCRIBED, KEYS_BEHIND, topology_subjects

        topology = check_topology(document)
        described.subjects += topology_subjects(topology)
        described.drawings += topology_drawings(topology)
        described.scopes |= DESCRIBED
        described.keys_behind |= KEYS_BEHIND
    elif kind == "requirements":
        from plimsoll.advice import requirement_facts
        from plimsoll.advice.suggestions import suggest
        from plimsoll.sizing.catalogue import read_catalogue

        sizing = requirement_facts.sized(path)
        described.subjects.append(requirement_facts.requirement_subject(sizing, str(path)))
        described.scopes |= requirement_facts.DESCRIBED
        described.suggestions += suggest(
            requirement_facts.figures_of(sizing), read_catalogue().rows
        )
    else:
        from plimsoll.advice import run_facts
        from plimsoll.plan.complete import complete_plan

        described.subjects.append(
            run_facts.plan_subject(complete_plan(document).plain(), document.name)
        )
        described.scopes |= run_facts.DESCRIBED_BY_PLAN
        described.keys_behind |= run_facts.KEYS_BEHIND


def advice_json(advice: Advice, suggestions: list[Suggestion]) -> dict[str, object]:
    """The result as plain data."""
    return {
        "kind": "advice",
        "schema_version": 1,
        "counts": {severity: _count(advice, severity) for severity in SEVERITIES}
        | {
            "met": len(advice.met),
            "not_evaluated": len({entry.rule.id for entry in advice.not_evaluated}),
            "not_applicable": len(advice.not_applicable),
            "to_weigh": len(advice.to_weigh),
        },
        "findings": [_finding_json(finding) for finding in advice.findings],
        "not_evaluated": [
            {"rule": entry.rule.id, "subjects": list(entry.subjects), "reason": entry.reason}
            for entry in advice.not_evaluated
        ],
        "to_weigh": [
            _rule_json(rule) | {"for_a_person": rule.for_a_person} for rule in advice.to_weigh
        ],
        "suggestions": [asdict(suggestion) for suggestion in suggestions],
        "met": advice.met,
        "not_applicable": [rule.id for rule in advice.not_applicable],
        "limits": list(advice.limits),
    }


def _finding_json(finding: Finding) -> dict[str, object]:
    subject = finding.subject
    return _rule_json(finding.rule) | {
        "scope": subject.scope,
        "name": subject.name,
        "file": subject.file_name,
        "line": subject.line,
        "evidence": finding.evidence,
        "also": [rule.id for rule in finding.also],
    }


def _rule_json(rule: Rule) -> dict[str, object]:
    keys = ("id", "subject", "condition", "severity", "recommendation", "fix", "source")
    return {key: value for key, value in asdict(rule).items() if key in keys}


def _count(advice: Advice, severity: str) -> int:
    return sum(finding.severity == severity for finding in advice.findings)
