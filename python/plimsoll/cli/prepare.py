"""`plimsoll prepare`: make the databases of a plan without putting any load on them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli import options
from plimsoll.cli.live import showing
from plimsoll.databases import preflight, saved_sets
from plimsoll.files.folder import FolderError
from plimsoll.pipeline import forecast, qualify
from plimsoll.plan.complete import read_plan


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
            qualify.stop_with(qualify.EXIT_USAGE, str(error))
    plan = qualify.read_or_refuse(read_plan, plan_file, host)
    kept = [phase for phase in plan["run"]["phases"] if phase["action"]["kind"] in ("prepare", "stop")]
    plan["run"]["phases"] = kept
    plan["name"] += " prepare"
    plan["run"]["max_mib_per_s"] = max_mib_per_s or plan["run"]["max_mib_per_s"]
    expected = qualify.forecast(plan, destroy, dry_run=dry_run)
    if dry_run:
        typer.echo("\n".join(forecast.as_lines(plan, expected)))
        return
    qualify.ask_before_much(plan, expected, agreed=yes)
    run_folder = qualify.make_folder(plan, out)
    outcome = qualify.measure(plan, run_folder, showing, quiet=quiet, expected=expected)
    if outcome["error"]:
        code = qualify.EXIT_FAIL
        if outcome["ending"] == "interrupted":
            code = qualify.EXIT_INTERRUPTED
        elif outcome["error"]["family"] == "config":
            code = qualify.EXIT_USAGE
        qualify.stop_with(code, outcome["error"]["text"])
    if save is not None:
        try:
            preflight.save_set(plan["run"], save, qualify.say)
        except FolderError as error:
            qualify.stop_with(qualify.EXIT_USAGE, str(error))
        except OSError as error:
            words = (error.strerror or str(error)).lower()
            qualify.stop_with(qualify.EXIT_USAGE, f"{save}: {words}; the databases are prepared, nothing is saved")
        typer.echo(f"saved in {save}; restore it with `restore_from` in a plan")
    typer.echo(f"prepared; record in {run_folder}")
