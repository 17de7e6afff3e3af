"""`plimsoll export`: the table of counters of a run as CSV, for spreadsheets and the tools that read performance logs."""

from __future__ import annotations

import csv
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from plimsoll import exit_codes
from plimsoll.cli.folder_errors import reading
from plimsoll.cli.terminal import stop_with
from plimsoll.files import folder
from plimsoll.results import counters

#: What `--csv` writes when no file is named.
COUNTERS_CSV = "counters.csv"


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
        folder.require_single(run_folder, "export")
        if not (run_folder / folder.COUNTERS).exists():
            counters.write_counters(run_folder)
        headings, rows = counters.wide_table(run_folder)
    target = csv_file or run_folder / COUNTERS_CSV
    try:
        # What the user names may be a link or a pipe of his own.
        with nullcontext(csv_file) if csv_file else folder.replacing(target) as path:
            _write(path, headings, rows)
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{target}: {(error.strerror or str(error)).lower()}; name another file")
    typer.echo(f"{target}: {len(rows)} intervals of {len(headings) - 2} counters")


def _write(path: Path, headings: list[str], rows: list[list[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(headings)
        writer.writerows(rows)
