"""`plimsoll export`: the table of counters of a run as CSV, for spreadsheets and the tools that read performance logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll.cli.folder_errors import reading


def export(
    run_folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
    csv_file: Annotated[
        Path | None,
        typer.Option("--csv", help="Where to write; counters.csv in the folder if left out.", metavar="FILE"),
    ] = None,
) -> None:
    """Write the counters of a run as CSV: one line for each interval, one column for each counter of each place.

    Example: plimsoll export runs/tonight --csv tonight.csv
    """
    with reading(run_folder):
        found = plimsoll.export_counters(run_folder, csv_file)
    typer.echo(f"{found.path}: {found.intervals} intervals of {found.counters} counters")
