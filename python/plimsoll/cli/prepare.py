"""`plimsoll prepare`: make the databases of a plan without putting any load on them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll import premises, saved_sets
from plimsoll.cli import course, options, outlook
from plimsoll.folder import FolderError
from plimsoll.plan import read_plan


def prepare(
    plan_file: Annotated[Path, typer.Argument(help='A TOML file with kind = "plan".')],
    out: options.Out = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    destroy: options.Destroy = None,
    host: options.Host = None,
    max_mib_per_s: options.MaxMibPerS = None,
    quiet: options.Quiet = False,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="DIR", help="Also copy them into a set that later runs can restore."),
    ] = None,
) -> None:
    """Make and close the databases of a plan, so that a later run starts at once, or restores them before each run."""
    if save is not None:
        try:
            saved_sets.may_save(save)
        except (FolderError, OSError) as error:
            course.stop_with(course.EXIT_USAGE, str(error))
    plan = course.read_or_refuse(read_plan, plan_file, host)
    kept = [phase for phase in plan["run"]["phases"] if phase["action"]["kind"] in ("prepare", "stop")]
    plan["run"]["phases"] = kept
    plan["name"] += " prepare"
    plan["run"]["max_mib_per_s"] = max_mib_per_s or plan["run"]["max_mib_per_s"]
    expected = course.forecast(plan, destroy, dry_run=dry_run)
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
    if save is not None:
        try:
            premises.save_set(plan["run"], save, course.say)
        except FolderError as error:
            course.stop_with(course.EXIT_USAGE, str(error))
        except OSError as error:
            words = (error.strerror or str(error)).lower()
            course.stop_with(course.EXIT_USAGE, f"{save}: {words}; the databases are prepared, nothing is saved")
        typer.echo(f"saved in {save}; restore it with `restore_from` in a plan")
    typer.echo(f"prepared; record in {run_folder}")
