"""`plimsoll resume`: go on with a run that a crash has cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.folder_errors import reading
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import refusing, stop_with


def resume(
    run_folder: Annotated[
        Path, typer.Argument(help="The folder of the run that was cut off.", metavar="DIR")
    ],
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Measure for the whole time once more, not only the rest of it."
        ),
    ] = False,
    destroy: options.Destroy = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    verbose: options.Verbose = False,
    detach_it: options.Detach = False,
) -> None:
    """Go on with a run after a crash of its process or of the host.

    Find the storage, recover, do what was left to do.

    The storage is known by the UUID of its file system or the serial of its device; another one is
    refused. What was measured before the gap is kept and not judged.

    Example: plimsoll resume runs/nightly-20260101T000000Z
    """
    run_folder = run_folder.absolute()
    listener = showing(quiet=quiet)
    try:
        with reading(run_folder):
            left = plimsoll.begin_resume(
                run_folder, again=again, destroy=destroy or [], listener=listener
            )
    except OSError as error:
        stop_with(exit_codes.USAGE, str(error))
    if detach_it:
        options.leave_to_background(run_folder)
    with refusing():
        try:
            found = left.go_on(listener=listener)
        except plimsoll.ResumeError as error:
            stop_with(exit_codes.FAIL if error.is_damage else exit_codes.USAGE, str(error))
    options.show_result(found, as_json=as_json, verbose=verbose, told=listener.warnings)
