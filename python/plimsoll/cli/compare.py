"""`plimsoll compare`: runs beside each other, with the confidence of each difference and an exit code for scripts."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from plimsoll import exit_codes
from plimsoll.cli.folder_errors import reading
from plimsoll.cli.terminal import stop_with
from plimsoll.documents.comparison import Comparison, Condition

Sides = Annotated[list[Path], typer.Argument(help="Run folders; the first is the baseline.", metavar="A B...")]


def compare(
    sides: Sides,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with 1 when this holds: 'database_iops_change_percent<-5'. May be repeated.", metavar="EXPR"
        ),
    ] = None,
    confident: Annotated[
        bool, typer.Option("--confident", help="Let --fail-if count only what 95 % intervals leave no doubt about.")
    ] = False,
    across_page_sizes: Annotated[
        bool, typer.Option("--across-page-sizes", help="Compare runs of different page sizes all the same.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with charts.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare runs with the first of them: improvement factors, how sure they are, and what else differs.

    A folder of a repeated run (--repeat) is one side. Exits with 0, 1 when a condition holds, 2 when the runs cannot be
    compared, 3 when a condition could not be evaluated.

    Example: plimsoll compare runs/before runs/after --fail-if 'database_iops_change_percent<-5'
    """
    from plimsoll import compare
    from plimsoll.compare.gates import Finding, evaluate, parse_condition
    from plimsoll.compare.text import lines_of
    from plimsoll.plan.limits import LimitError

    if len(sides) < 2:
        stop_with(exit_codes.USAGE, "a comparison needs two run folders or more: plimsoll compare A B")
    conditions, problems = [], []
    for text in fail_if or []:
        try:
            conditions.append(parse_condition(text))
        except LimitError as error:
            problems.append(f"--fail-if: {error.message}" + (f"\n    hint: {error.hint}" if error.hint else ""))
    findings: list[Finding] = []
    with reading(*sides):
        try:
            read = compare.read_sides(sides)
            found = compare.compare(read, across_page_sizes=across_page_sizes)
        except compare.ComparisonError as error:
            problems += error.problems
        if problems:
            stop_with(exit_codes.USAGE, *problems)
        for condition in conditions:
            findings += evaluate(condition, read, found, confident=confident)
        found = found.replace(conditions=[Condition(**asdict(finding)) for finding in findings])
        if html is not None:
            _write_page(html, found, read, findings)
        if as_json:
            typer.echo(json.dumps(found.plain(), indent=2, ensure_ascii=False))
        else:
            typer.echo("\n".join(lines_of(found)))
            _say_conditions(findings)
            if html is not None:
                typer.echo(f"page: {html}")
    if any(finding.holds for finding in findings):
        raise typer.Exit(exit_codes.FAIL)
    if any(finding.holds is None for finding in findings):
        raise typer.Exit(exit_codes.INCONCLUSIVE)


def _say_conditions(findings: list[Any]) -> None:
    words = {True: "HOLDS", False: "does not hold", None: "could not be evaluated"}
    for finding in findings:
        typer.echo(f"condition {finding.text} {words[finding.holds]} for {finding.side}: {finding.words}")


def _write_page(path: Path, found: Comparison, sides: Any, findings: list[Any]) -> None:
    try:
        from plimsoll.compare import ComparisonError
        from plimsoll.compare.page import render
    except ModuleNotFoundError as error:
        stop_with(
            exit_codes.USAGE, f"--html needs {error.name}, which is not installed (pip install 'plimsoll[report]')"
        )
    try:
        page = render(found, sides, findings)
    except ComparisonError as error:
        stop_with(exit_codes.USAGE, *error.problems)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{path}: {(error.strerror or str(error)).lower()}; name another file")
