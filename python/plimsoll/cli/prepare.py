"""`plimsoll prepare`: make the databases of a plan without putting any load on them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import reading_plan, refusing, say, stop_with
from plimsoll.errors.system_errors import system_reason


def prepare(
    plan_file: Annotated[Path, typer.Argument(help='A TOML file with kind = "plan".')],
    out: options.Out = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    destroy: options.Destroy = None,
    create: options.Create = False,
    allow_system_disk: options.AllowSystemDisk = False,
    host: options.Host = None,
    max_mib_per_s: options.MaxMibPerS = None,
    quiet: options.Quiet = False,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="DIR", help="Also copy them into a set that later runs can restore."
        ),
    ] = None,
) -> None:
    """Make and close the databases of a plan, so that a later run starts at once, or restores them
    before each run.
    """
    if save is not None:
        with refusing(plimsoll.FolderError):
            plimsoll.may_save(save)
    with reading_plan():
        plan = plimsoll.preparing(plimsoll.read_plan(plan_file, host))
    plan = plimsoll.bounded(plan, max_mib_per_s=max_mib_per_s)
    listener = showing(quiet=quiet)
    found = options.checked(
        plan,
        destroy,
        listener,
        create=create,
        allow_system_disk=allow_system_disk,
        shows_forecast=dry_run,
    )
    if dry_run:
        options.show_forecast(plan, found, as_json=False)
        return
    options.ask_before_much(plan, found, agreed=yes)
    with refusing():
        run_folder = plimsoll.make_run_folder(plan, out)
        outcome = plimsoll.measure(plan, run_folder, found=found, listener=listener)
    if outcome.error:
        code = exit_codes.FAIL
        if outcome.ending == "interrupted":
            code = exit_codes.INTERRUPTED
        elif outcome.error.family == "config":
            code = exit_codes.USAGE
        stop_with(code, outcome.error.text)
    if save is not None:
        _save(found, save)
    typer.echo(f"prepared; record in {run_folder}")


def _save(found: plimsoll.Preflight, directory: Path) -> None:
    try:
        with refusing(plimsoll.FolderError):
            plimsoll.save_set(found.run, directory, say)
    except OSError as error:
        words = system_reason(error)
        stop_with(
            exit_codes.USAGE, f"{directory}: {words}; the databases are prepared, nothing is saved"
        )
    typer.echo(f"saved in {directory}; restore it with `restore_from` in a plan")
