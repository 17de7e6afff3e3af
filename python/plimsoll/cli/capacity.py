"""`plimsoll capacity`: how many users the storage under a directory carries, in one command and a few minutes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from plimsoll import settings
from plimsoll.cli import options
from plimsoll.cli.live import showing
from plimsoll.databases import preflight
from plimsoll.files import folder
from plimsoll.pipeline import forecast, qualify
from plimsoll.plan import capacity_search as carrying
from plimsoll.plan.complete import plan_of_options
from plimsoll.plan.load import GUIDANCE
from plimsoll.sizing.guidance import profiles


def capacity(
    path: Annotated[Path, typer.Argument(help="A directory on the storage to be tested.")],
    users: Annotated[str, typer.Option(help="Kind of user: light, average, heavy, very heavy.")] = "heavy",
    minutes: Annotated[float, typer.Option(min=0.2, help="How long it may take, about.")] = 15.0,
    iops_per_user: Annotated[float | None, typer.Option(help="Database I/O of one user, if known.")] = None,
    edition: Annotated[str, typer.Option(help="Whose habits: 2003, 2007, 2010 or 2013.")] = "2010",
    size_mib: Annotated[int | None, typer.Option(help="Database size; by free space and time if left out.")] = None,
    backend: Annotated[str, typer.Option(help="engine or raw_files.")] = str(settings.INSTANCE_DEFAULTS["backend"]),
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto",
    keep: Annotated[bool, typer.Option("--keep", help="Leave the database for the next run.")] = False,
    out: options.Out = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    max_iops: options.MaxIops = None,
    max_mib_per_s: options.MaxMibPerS = None,
    stop_if: options.StopIf = None,
    quiet: options.Quiet = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answer (or the plan of a dry run) as JSON.")
    ] = False,
) -> None:
    """Prepare a database, look for the highest rate that keeps the limits, and say how many users that is.

    Exits with 0 when a number was found, 1 when the storage carries no load at all, 3 when nothing can be said.

    Example: plimsoll capacity /mnt/array --users heavy --minutes 15
    """
    if iops_per_user is None and (users not in profiles() or edition not in GUIDANCE):
        known = ", ".join(sorted(profiles()))
        qualify.stop_with(
            qualify.EXIT_USAGE,
            f"what {users} users of edition {edition} make was not published; give --iops-per-user, or one of {known} "
            f"with edition {' or '.join(GUIDANCE)}",
        )
    if edition not in settings.editions():
        qualify.stop_with(qualify.EXIT_USAGE, f"edition is {edition}; write one of {', '.join(settings.editions())}")
    size = size_mib if size_mib is not None else carrying.database_size_mib(path, minutes)
    wanted = carrying.capacity_options(path, minutes, edition, size, backend, io_method) | {"stop_if": stop_if or []}
    plan = qualify.read_or_refuse(plan_of_options, wanted)
    options.bound_the_harm(plan, max_iops, max_mib_per_s, None)
    expected = qualify.forecast(plan, dry_run=dry_run and not as_json)
    if dry_run:
        typer.echo(json.dumps(plan, indent=2) if as_json else "\n".join(forecast.as_lines(plan, expected)))
        return
    # Who says how many minutes has agreed to them, but to no space.
    qualify.ask_before_much(plan, expected, agreed=yes, time_agreed=minutes <= settings.CAPACITY_MINUTES_AGREED)
    made_directory = not path.exists()
    run_folder, verdict = qualify.carry_out(plan, out, showing, quiet=quiet)
    summary = folder.read_json(run_folder / folder.SUMMARY)
    each = carrying.user_iops(users, edition, iops_per_user)
    found = carrying.answer(plan, summary, verdict, users, each)
    folder.write_json(run_folder / folder.CAPACITY, found)
    if not keep:
        _remove(plan, expected, path, made_directory=made_directory)
    if as_json:
        typer.echo(json.dumps({**found, "run_folder": str(run_folder)}, indent=2))
    else:
        typer.echo("\n" + "\n".join(carrying.in_words(found)))
        typer.echo(f"\nrun folder: {run_folder}")
    code = qualify.exit_code(run_folder, verdict)
    raise typer.Exit(qualify.EXIT_PASS if found["users"] is not None else code or qualify.EXIT_INCONCLUSIVE)


def _remove(plan: dict[str, Any], expected: preflight.Forecast, path: Path, *, made_directory: bool) -> None:
    for instance in plan["run"]["instances"]:
        if instance["name"] not in expected.reused:
            preflight.remove(Path(instance["directory"]))
    if made_directory and path.is_dir() and not any(path.iterdir()):
        path.rmdir()
