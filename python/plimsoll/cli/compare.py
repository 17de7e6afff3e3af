"""`plimsoll compare`: runs beside each other, with the confidence of each difference and an exit
code for scripts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.folder_errors import reading
from plimsoll.cli.sections import terminal_width
from plimsoll.cli.terminal import refusing, stop_with
from plimsoll.errors.system_errors import system_reason

Sides = Annotated[
    list[Path],
    typer.Argument(
        help="Run folders, or results of papers: published:netapp-2007; the first is the baseline.",
        metavar="A B...",
    ),
]


def compare(
    sides: Sides,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with 1 when this holds: 'database_iops_change_percent<-5'. May be repeated.",
            metavar="EXPR",
        ),
    ] = None,
    confident: Annotated[
        bool,
        typer.Option(
            "--confident", help="Let --fail-if count only what 95 % intervals leave no doubt about."
        ),
    ] = False,
    figures: Annotated[
        str | None,
        typer.Option(
            help="Compare only these, chosen beforehand: the fewer, the narrower their intervals.",
            metavar="NAME,...",
        ),
    ] = None,
    across_page_sizes: Annotated[
        bool,
        typer.Option(
            "--across-page-sizes", help="Compare runs of different page sizes all the same."
        ),
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with charts.", metavar="FILE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare runs with the first of them.

    Improvement factors, how sure they are, and what else differs.

    A folder of a repeated run (--repeat) is one side. Exits with 0, 1 when a condition holds, 2
    when the runs cannot be compared, 3 when a condition could not be evaluated.

    Example: plimsoll compare runs/before runs/after --fail-if 'database_iops_change_percent<-5'
    """
    with reading(*sides):
        found = plimsoll.compare_runs(
            sides,
            fail_if=fail_if or [],
            confident=confident,
            across_page_sizes=across_page_sizes,
            figures=[name.strip() for name in figures.split(",")] if figures is not None else [],
        )
        if html is not None:
            _write_page(html, found)
        if as_json:
            typer.echo(json.dumps(found.content.plain(), indent=2, ensure_ascii=False))
        else:
            typer.echo("\n".join(found.lines(terminal_width(100))))
            _say_conditions(found.findings)
            if html is not None:
                typer.echo(f"page: {html}")
    if any(finding.holds for finding in found.findings):
        raise typer.Exit(exit_codes.FAIL)
    if any(finding.holds is None for finding in found.findings):
        raise typer.Exit(exit_codes.INCONCLUSIVE)


def _say_conditions(findings: Sequence[Any]) -> None:
    words = {True: "HOLDS", False: "does not hold", None: "could not be evaluated"}
    for finding in findings:
        typer.echo(
            f"condition {finding.text} {words[finding.holds]} for {finding.side}: {finding.words}"
        )


def _write_page(path: Path, found: plimsoll.Comparison) -> None:
    with refusing():
        page = found.page()
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{path}: {system_reason(error)}; name another file")
