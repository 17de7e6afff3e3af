"""`plimsoll run`: carry out a plan file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli import course
from plimsoll.plan import read_plan


def run(
    plan_file: Annotated[Path, typer.Argument(help='A TOML file with kind = "plan".')],
    out: Annotated[Path | None, typer.Option(help="Folder for this run; a new one below runs/ if left out.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to long runs beforehand.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, write nothing.")] = False,
    destroy: course.Destroy = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only warnings and the result.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Carry out a plan, judge what was measured and write the report.

    Example: plimsoll run nightly.toml --out results/tonight
    """
    plan = course.read_or_refuse(read_plan, plan_file)
    expected = course.forecast(plan, destroy)
    if dry_run:
        typer.echo(json.dumps(plan, indent=2))
        return
    course.ask_before_much(plan, expected, agreed=yes)
    run_folder, found = course.carry_out(plan, out, quiet=quiet)
    if as_json:
        typer.echo(json.dumps({**found, "run_folder": str(run_folder)}, indent=2))
    else:
        course.print_result(run_folder, found)
    raise typer.Exit(course.exit_code(run_folder, found))
