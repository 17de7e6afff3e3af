"""`plimsoll prepare`: make the databases of a plan without putting any load on them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli import course, options, outlook
from plimsoll.plan import read_plan


def prepare(
    plan_file: Annotated[Path, typer.Argument(help='A TOML file with kind = "plan".')],
    out: options.Out = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    destroy: options.Destroy = None,
    max_mib_per_s: options.MaxMibPerS = None,
    quiet: options.Quiet = False,
) -> None:
    """Make and close the databases of a plan, so that a later run starts at once."""
    plan = course.read_or_refuse(read_plan, plan_file)
    kept = [phase for phase in plan["run"]["phases"] if phase["action"]["kind"] in ("prepare", "stop")]
    plan["run"]["phases"] = kept
    plan["name"] += " prepare"
    plan["run"]["max_mib_per_s"] = max_mib_per_s or plan["run"]["max_mib_per_s"]
    expected = course.forecast(plan, destroy)
    if dry_run:
        typer.echo("\n".join(outlook.as_lines(plan, expected)))
        return
    course.ask_before_much(plan, expected, agreed=yes)
    run_folder = course.make_folder(plan, out)
    outcome = course.measure(plan, run_folder, quiet=quiet, expected=expected)
    if outcome["error"]:
        code = course.EXIT_FAIL
        if outcome["ending"] == "interrupted":
            code = course.EXIT_INTERRUPTED
        elif outcome["error"]["family"] == "config":
            code = course.EXIT_USAGE
        course.stop_with(code, outcome["error"]["text"])
    typer.echo(f"prepared; record in {run_folder}")
