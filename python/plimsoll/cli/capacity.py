"""`plimsoll capacity`: how many users the storage under a directory carries, in one command and a
few minutes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes, settings
from plimsoll.cli import options
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import reading_plan, refusing


def capacity(
    path: Annotated[Path, typer.Argument(help="A directory on the storage to be tested.")],
    users: Annotated[
        str, typer.Option(help="Kind of user: light, average, heavy, very heavy.")
    ] = "heavy",
    minutes: Annotated[float, typer.Option(min=0.2, help="How long it may take, about.")] = 15.0,
    iops_per_user: Annotated[
        float | None, typer.Option(help="Database I/O of one user, if known.")
    ] = None,
    edition: Annotated[
        str,
        typer.Option(
            help="Exchange generation whose defaults are used: 2003, 2007, 2010, 2013, or as "
            "derived from it 2016 and 2019."
        ),
    ] = "2010",
    size_mib: Annotated[
        int | None, typer.Option(help="Database size; by free space and time if left out.")
    ] = None,
    backend: options.Backend = "engine",
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto",
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the database for the next run.")
    ] = False,
    out: options.Out = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    create: options.Create = False,
    allow_system_disk: options.AllowSystemDisk = False,
    max_iops: options.MaxIops = None,
    max_mib_per_s: options.MaxMibPerS = None,
    stop_if: options.StopIf = None,
    quiet: options.Quiet = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answer (or the plan of a dry run) as JSON.")
    ] = False,
) -> None:
    """Prepare a database, look for the highest rate that keeps the limits, and say how many users
    that is.

    Exits with 0 when a number was found, 1 when the storage carries no load at all, 3 when nothing
    can be said, or when the load generator was the first limit.

    Example: plimsoll capacity /mnt/array --users heavy --minutes 15
    """
    with refusing(plimsoll.InvalidValueError):
        plimsoll.check_user(users, edition, iops_per_user)
    with reading_plan():
        plan = plimsoll.build_capacity_plan(
            path,
            minutes,
            edition,
            size_mib=size_mib,
            backend=backend,
            io_method=io_method,
            stop_if=stop_if or [],
        )
    with refusing():
        plan = plimsoll.bounded(plan, max_iops=max_iops, max_mib_per_s=max_mib_per_s)
    listener = showing(quiet=quiet)
    found = options.checked(
        plan,
        None,
        listener,
        create=create,
        allow_system_disk=allow_system_disk,
        shows_forecast=dry_run and not as_json,
    )
    if dry_run:
        options.show_forecast(plan, found, as_json=as_json)
        return
    # Who says how many minutes has agreed to them, but to no space.
    options.ask_before_much(
        plan, found, agreed=yes, time_agreed=minutes <= settings.CAPACITY_MINUTES_AGREED
    )
    made_directory = not path.exists()
    with refusing():
        result = plimsoll.qualify(plan, out, found=found, listener=listener)
        answer = plimsoll.users_carried(plan, result, users, iops_per_user)
    if not keep:
        plimsoll.delete_prepared(found)
        if made_directory and path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    if as_json:
        typer.echo(json.dumps({**answer.plain(), "run_folder": str(result.folder)}, indent=2))
    else:
        typer.echo("\n" + "\n".join(plimsoll.users_in_words(answer)))
        typer.echo(f"\nrun folder: {result.folder}")
    code = result.exit_code
    if answer.users is not None:
        code = exit_codes.BY_RESULT[answer.result]
    raise typer.Exit(code if answer.users is not None else code or exit_codes.INCONCLUSIVE)
