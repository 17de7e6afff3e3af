"""`plimsoll advise`: best-practice rules over a topology, requirements, a plan or a finished run,
alone or together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import plimsoll
from plimsoll.cli.input_errors import refuse
from plimsoll.cli.sections import print_sections
from plimsoll.inputs.mistakes import Mistake, nearest_names
from plimsoll.pages.sections import Section, write_html

if TYPE_CHECKING:
    from plimsoll import Advised, Fact

NEVER = "never"
EXIT_FINDINGS = 1


def advise(
    files: Annotated[
        list[Path],
        typer.Argument(help="Topology, requirements or plan files, or folders of finished runs."),
    ],
    rules: Annotated[
        list[str] | None,
        typer.Option(help='Rules file, repeatable; "shipped" is the built-in one.'),
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(help="Exit with 1 for findings this serious: error, warning, info or never."),
    ] = NEVER,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole result as JSON.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Also write the result as an HTML page.")
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="List every rule that holds or does not apply, too.")
    ] = False,
) -> None:
    """Check a design against best practice.

    Findings with evidence and fix, single points of failure, open questions.

    Example: plimsoll advise examples/topology_two_hosts.toml
    """
    errors: list[plimsoll.InputError] = []
    severities = (*plimsoll.SEVERITIES, NEVER)
    if fail_on not in severities:
        hint = nearest_names(fail_on, severities)
        errors = [
            plimsoll.InputError(
                "options", [Mistake(0, "--fail-on", f'is "{fail_on}", which is unknown', hint)]
            )
        ]
    try:
        advised = plimsoll.advise(files, rules or [plimsoll.SHIPPED])
        if not errors and html:
            write_html(
                html,
                "Advice",
                advice_sections(advised, show_all=True),
                " ".join(advised.advice.limits),
            )
    except plimsoll.SeveralInputsError as error:
        errors = [*error.errors, *errors]
    except plimsoll.InputError as error:
        errors = [error]
    if errors:
        refuse(errors)
    if as_json:
        typer.echo(json.dumps(advised.as_data(), indent=2))
    else:
        print_sections(advice_sections(advised, show_all))
    if fail_on != NEVER:
        serious = plimsoll.SEVERITIES[: plimsoll.SEVERITIES.index(fail_on) + 1]
        if any(finding.severity in serious for finding in advised.advice.findings):
            raise typer.Exit(EXIT_FINDINGS)


def advice_sections(advised: Advised, show_all: bool) -> list[Section]:
    """The result as sections for the terminal and the HTML page."""
    advice, suggestions = advised.advice, advised.suggestions
    counts = ", ".join(f"{advised.count(severity)} {severity}" for severity in plimsoll.SEVERITIES)
    unknown = len({entry.rule.id for entry in advice.not_evaluated})
    summary = [
        f"Findings: {counts}. {len(advice.met)} rules hold, {unknown} could not be evaluated, "
        f"{len(advice.to_weigh)} are for a person to weigh, {len(advice.not_applicable)} do not "
        f"apply."
    ]
    sections = [Section("Summary", summary)]
    sections += [
        _finding_section(rule_id, advice)
        for rule_id in dict.fromkeys(f.rule.id for f in advice.findings)
    ]
    if suggestions:
        rows = [(s.subject, s.proposal, s.reasoning, s.source) for s in suggestions]
        sections.append(Section("Suggestions", (), ("For", "Proposal", "Because", "Source"), rows))
    sections.append(_not_evaluated_section(advice))
    weigh = [
        (rule.id, rule.condition, rule.recommendation, rule.for_a_person, rule.source)
        for rule in advice.to_weigh
    ]
    if show_all:
        sections.append(
            Section(
                "To weigh",
                (),
                ("Rule", "When", "Recommendation", "Why no file decides it", "Source"),
                weigh,
            )
        )
        sections.append(
            Section(
                "Rules that hold",
                [", ".join(f"{rule} ({count})" for rule, count in advice.met.items())],
            )
        )
        sections.append(
            Section(
                "Rules that do not apply", [", ".join(rule.id for rule in advice.not_applicable)]
            )
        )
    if advised.drawings:
        drawn = [(drawing.caption, drawing.svg) for drawing in advised.drawings]
        shown = [] if show_all else ["Drawings are in the page that --html writes."]
        sections.append(Section("Drawings", shown, drawings=drawn))
    sections.append(Section("What this is not", [f"- {limit}" for limit in advice.limits]))
    return sections


def _finding_section(rule_id: str, advice: plimsoll.Advice) -> Section:
    """One rule with every subject it fails for."""
    findings = [finding for finding in advice.findings if finding.rule.id == rule_id]
    rule, also = findings[0].rule, findings[0].also
    said_by = "; ".join(
        [f"{rule.id}: {rule.source}", *(f"{other.id}: {other.source}" for other in also)]
    )
    rows = [
        (finding.subject.name, finding.place, _evidence(finding.evidence)) for finding in findings
    ]
    paragraphs = [f"Applies to: {rule.condition}", f"Fix: {rule.fix}", f"Source: {said_by}"]
    title = f"{rule.severity.upper()} {rule.id}: {rule.recommendation}"
    return Section(title, paragraphs, ("Where", "File", "Evidence"), rows)


def _not_evaluated_section(advice: plimsoll.Advice) -> Section:
    """Rules that could not be decided, gathered by reason."""
    reasons: dict[str, list[str]] = {}
    for entry in advice.not_evaluated:
        names = (
            f" ({', '.join(entry.subjects[:3])}{', ...' if len(entry.subjects) > 3 else ''})"
            if entry.subjects
            else ""
        )
        reasons.setdefault(entry.reason, []).append(entry.rule.id + names)
    rows = [(reason, ", ".join(rules)) for reason, rules in reasons.items()]
    return Section(
        "Not evaluated", [] if rows else ["Nothing."], ("Why", "Rules") if rows else (), rows
    )


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
