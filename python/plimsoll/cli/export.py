"""`plimsoll export`: the counters of a run as CSV, for spreadsheets and tools that read performance
logs; or its table as Iometer or the driver of DVD Store writes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.folder_errors import reading
from plimsoll.cli.terminal import refusing, stop_with


def export(
    run_folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
    csv_file: Annotated[
        Path | None,
        typer.Option(
            "--csv", help="Where to write; a file in the folder if left out.", metavar="FILE"
        ),
    ] = None,
    iometer: Annotated[
        str | None,
        typer.Option(
            help="The results of files in the columns of this version of Iometer: 2006 or 1.1.0."
        ),
    ] = None,
    dvdstore: Annotated[
        bool,
        typer.Option(
            "--dvdstore",
            help="The results of stores as the driver of DVD Store writes and prints them.",
        ),
    ] = False,
) -> None:
    """Write the counters of a run as CSV.

    One line for each interval, one column for each counter of each place.

    Example: plimsoll export runs/tonight --csv tonight.csv

    Example: plimsoll export runs/files --iometer 1.1.0

    Example: plimsoll export runs/shop --dvdstore
    """
    if iometer is not None and dvdstore:
        stop_with(exit_codes.USAGE, "--iometer and --dvdstore are two tables; ask for one of them")
    if dvdstore:
        with reading(run_folder):
            written = plimsoll.export_dvdstore(run_folder, csv_file)
        typer.echo("\n".join(written.lines))
        return
    if iometer is not None:
        with reading(run_folder), refusing(plimsoll.InvalidValueError):
            typer.echo(plimsoll.export_iometer(run_folder, iometer, csv_file))
        return
    with reading(run_folder):
        found = plimsoll.export_counters(run_folder, csv_file)
    typer.echo(f"{found.path}: {found.intervals} intervals of {found.counters} counters")
