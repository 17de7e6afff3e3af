"""`plimsoll advise`: best-practice rules over a topology, requirements, a plan or a finished run, alone or together."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from plimsoll.advice.engine import Advice, Finding, Subject
from plimsoll.advice.engine import advise as evaluate_rules
from plimsoll.advice.rules import SEVERITIES, SHIPPED_RULES, Rule, read_rules
from plimsoll.advice.suggestions import Suggestion
from plimsoll.cli.input_errors import refuse
from plimsoll.inputs.expression import Fact
from plimsoll.inputs.mistakes import InputError, Mistake, nearest_names
from plimsoll.inputs.schema import require_kind
from plimsoll.inputs.toml_lines import read_located
from plimsoll.pages.sections import Section, print_sections, write_html

SHIPPED = "shipped"
NEVER = "never"
EXIT_FINDINGS = 1
KINDS = ("topology", "requirements", "plan")


@dataclass
class Described:
    """What the given files describe."""

    subjects: list[Subject] = field(default_factory=list)
    scopes: set[str] = field(default_factory=set)
    suggestions: list[Suggestion] = field(default_factory=list)
    keys_behind: dict[str, str] = field(default_factory=dict)


def advise(
    files: Annotated[
        list[Path], typer.Argument(help="Topology, requirements or plan files, or folders of finished runs.")
    ],
    rules: Annotated[
        list[str] | None, typer.Option(help='Rules file, repeatable; "shipped" is the built-in one.')
    ] = None,
    fail_on: Annotated[
        str, typer.Option(help="Exit with 1 for findings this serious: error, warning, info or never.")
    ] = NEVER,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write the result as an HTML page.")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="List every rule that holds or does not apply, too.")] = False,
) -> None:
    """Check a design against best practice: findings with evidence and fix, single points of failure, open questions.

    Example: plimsoll advise examples/topology_two_hosts.toml
    """
    known_rules, errors = _read_rules(rules or [SHIPPED])
    described, input_errors = _read_files(files)
    errors += input_errors
    if fail_on not in (*SEVERITIES, NEVER):
        hint = nearest_names(fail_on, (*SEVERITIES, NEVER))
        errors.append(InputError("options", [Mistake(0, "--fail-on", f'is "{fail_on}", which is unknown', hint)]))
    if errors:
        refuse(errors)
    advice = evaluate_rules(known_rules, described.subjects, frozenset(described.scopes), described.keys_behind)
    if html:
        try:
            write_html(
                html, "Advice", advice_sections(advice, described.suggestions, show_all=True), " ".join(advice.limits)
            )
        except InputError as error:
            refuse([error])
    if as_json:
        typer.echo(json.dumps(advice_json(advice, described.suggestions), indent=2))
    else:
        print_sections(advice_sections(advice, described.suggestions, show_all))
    if fail_on != NEVER:
        serious = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
        if any(finding.severity in serious for finding in advice.findings):
            raise typer.Exit(EXIT_FINDINGS)


def _read_rules(names: list[str]) -> tuple[list[Rule], list[InputError]]:
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
                InputError(name, [Mistake(0, rule_id, "is a rule of another file, too") for rule_id in twice])
            )
        rules += more
    return rules, errors


def _read_files(files: list[Path]) -> tuple[Described, list[InputError]]:
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
            described.subjects.append(run_facts.plan_subject(run_facts.read_json(path), str(path)))
            described.scopes |= run_facts.DESCRIBED_BY_PLAN
        described.keys_behind |= run_facts.KEYS_BEHIND
        return
    document = read_located(path)
    readers = {"catalogue": "plimsoll select --catalogue", "cost": "plimsoll cost", "rules": "plimsoll advise --rules"}
    kind = require_kind(document, KINDS, readers)
    if kind == "topology":
        from plimsoll.advice.topology import check_topology
        from plimsoll.advice.topology_facts import DESCRIBED, KEYS_BEHIND, topology_subjects

        described.subjects += topology_subjects(check_topology(document))
        described.scopes |= DESCRIBED
        described.keys_behind |= KEYS_BEHIND
    elif kind == "requirements":
        from plimsoll.advice import requirement_facts
        from plimsoll.advice.suggestions import suggest
        from plimsoll.sizing.catalogue import read_catalogue

        sizing = requirement_facts.sized(path)
        described.subjects.append(requirement_facts.requirement_subject(sizing, str(path)))
        described.scopes |= requirement_facts.DESCRIBED
        described.suggestions += suggest(requirement_facts.figures_of(sizing), read_catalogue().rows)
    else:
        from plimsoll.advice import run_facts
        from plimsoll.plan.complete import complete_plan

        described.subjects.append(run_facts.plan_subject(complete_plan(document), document.name))
        described.scopes |= run_facts.DESCRIBED_BY_PLAN
        described.keys_behind |= run_facts.KEYS_BEHIND


def advice_json(advice: Advice, suggestions: list[Suggestion]) -> dict[str, Any]:
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
        "to_weigh": [_rule_json(rule) for rule in advice.to_weigh],
        "suggestions": [asdict(suggestion) for suggestion in suggestions],
        "met": advice.met,
        "not_applicable": [rule.id for rule in advice.not_applicable],
        "limits": list(advice.limits),
    }


def _finding_json(finding: Finding) -> dict[str, Any]:
    subject = finding.subject
    return _rule_json(finding.rule) | {
        "scope": subject.scope,
        "name": subject.name,
        "file": subject.file_name,
        "line": subject.line,
        "evidence": finding.evidence,
        "also": [rule.id for rule in finding.also],
    }


def _rule_json(rule: Rule) -> dict[str, Any]:
    keys = ("id", "subject", "condition", "severity", "recommendation", "fix", "source")
    return {key: value for key, value in asdict(rule).items() if key in keys}


def advice_sections(advice: Advice, suggestions: list[Suggestion], show_all: bool) -> list[Section]:
    """The result as sections for the terminal and the HTML page."""
    counts = ", ".join(f"{_count(advice, severity)} {severity}" for severity in SEVERITIES)
    unknown = len({entry.rule.id for entry in advice.not_evaluated})
    summary = [
        f"Findings: {counts}. {len(advice.met)} rules hold, {unknown} could not be evaluated, "
        f"{len(advice.to_weigh)} are for a person to weigh, {len(advice.not_applicable)} do not apply."
    ]
    sections = [Section("Summary", summary)]
    sections += [_finding_section(rule_id, advice) for rule_id in dict.fromkeys(f.rule.id for f in advice.findings)]
    if suggestions:
        rows = [(s.subject, s.proposal, s.reasoning, s.source) for s in suggestions]
        sections.append(Section("Suggestions", (), ("For", "Proposal", "Because", "Source"), rows))
    sections.append(_not_evaluated_section(advice))
    weigh = [(rule.id, rule.condition, rule.recommendation, rule.source) for rule in advice.to_weigh]
    if show_all:
        sections.append(Section("To weigh", (), ("Rule", "When", "Recommendation", "Source"), weigh))
        sections.append(
            Section("Rules that hold", [", ".join(f"{rule} ({count})" for rule, count in advice.met.items())])
        )
        sections.append(Section("Rules that do not apply", [", ".join(rule.id for rule in advice.not_applicable)]))
    sections.append(Section("What this is not", [f"- {limit}" for limit in advice.limits]))
    return sections


def _finding_section(rule_id: str, advice: Advice) -> Section:
    """One rule with every subject it fails for."""
    findings = [finding for finding in advice.findings if finding.rule.id == rule_id]
    rule, also = findings[0].rule, findings[0].also
    said_by = "; ".join([f"{rule.id}: {rule.source}", *(f"{other.id}: {other.source}" for other in also)])
    rows = [(finding.subject.name, finding.place, _evidence(finding.evidence)) for finding in findings]
    paragraphs = [f"Applies to: {rule.condition}", f"Fix: {rule.fix}", f"Source: {said_by}"]
    title = f"{rule.severity.upper()} {rule.id}: {rule.recommendation}"
    return Section(title, paragraphs, ("Where", "File", "Evidence"), rows)


def _not_evaluated_section(advice: Advice) -> Section:
    """Rules that could not be decided, gathered by reason."""
    reasons: dict[str, list[str]] = {}
    for entry in advice.not_evaluated:
        names = (
            f" ({', '.join(entry.subjects[:3])}{', ...' if len(entry.subjects) > 3 else ''})" if entry.subjects else ""
        )
        reasons.setdefault(entry.reason, []).append(entry.rule.id + names)
    rows = [(reason, ", ".join(rules)) for reason, rules in reasons.items()]
    return Section("Not evaluated", [] if rows else ["Nothing."], ("Why", "Rules") if rows else (), rows)


def _evidence(evidence: dict[str, Fact]) -> str:
    """The facts as `name = value`; a list in place of its count."""
    shown = {
        name: fact
        for name, fact in evidence.items()
        if name.removesuffix("_count") not in evidence or name[-6:] != "_count"
    }
    return "; ".join(f"{name} = {_fact(fact)}" for name, fact in shown.items())


def _fact(fact: Fact) -> str:
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, list):
        more = f" and {len(fact) - 6} more" if len(fact) > 6 else ""
        return (", ".join(str(item) for item in fact[:6]) + more) if fact else "none"
    return f"{fact:,g}" if isinstance(fact, (int, float)) else str(fact)


def _count(advice: Advice, severity: str) -> int:
    return Counter(finding.severity for finding in advice.findings)[severity]  # type: ignore[index]
