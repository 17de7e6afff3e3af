"""`plimsoll report`: redo summary, verdict and report of a run from its folder, without the
disk.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.folder_errors import reading
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import refusing


def report(
    run_folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
    verbose: options.Verbose = False,
    percentiles: options.Percentiles = None,
) -> None:
    """Judge a run again and write its report again, from the files in its folder.

    Example: plimsoll report results/first
    """
    with refusing():
        percents = plimsoll.shares_of(percentiles) if percentiles else ()
    listener = showing(quiet=True)
    kind = plimsoll.kind_of_folder(run_folder)
    with reading(run_folder):
        if kind == "series":
            from plimsoll.cli.series import show_series

            series = plimsoll.judge_series(run_folder.absolute(), listener=listener)
            show_series(series, as_json=False)
            raise typer.Exit(series.exit_code)
        if kind == "hosts":
            from plimsoll.cli.combine import show

            hosts = plimsoll.judge_hosts(run_folder.absolute(), listener=listener)
            show(hosts, as_json=False)
            raise typer.Exit(exit_codes.BY_RESULT[hosts.result])
        found = plimsoll.judge(run_folder, listener=listener)
        found = replace(found, folder=run_folder.absolute())
        options.show_result(found, verbose=verbose, percents=percents)
