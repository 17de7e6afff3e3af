"""`plimsoll report`: redo summary, verdict and report of a run from its folder, without the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli.folder_errors import reading
from plimsoll.files import folder
from plimsoll.pipeline import qualify


def report(run_folder: Annotated[Path, typer.Argument(help="The folder of a run.")]) -> None:
    """Judge a run again and write its report again, from the files in its folder."""
    with reading(run_folder):
        if (run_folder / folder.REPEATS).exists():
            from plimsoll.cli.repeat import report_again

            report_again(run_folder.absolute())
        if (run_folder / folder.HOSTS).exists():
            from plimsoll.cli import combine

            combine.report_again(run_folder.absolute())
        found = qualify.judge_and_report(run_folder)
        qualify.print_result(run_folder.absolute(), found)
        raise typer.Exit(qualify.exit_code(run_folder, found))
