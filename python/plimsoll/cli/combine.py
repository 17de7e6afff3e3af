"""`plimsoll combine`: the runs of several hosts against one storage as one result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.folder_errors import reading
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import stop_with
from plimsoll.errors.system_errors import system_reason

Hosts = Annotated[
    list[str],
    typer.Argument(
        help="A run folder of each host; NAME=DIR calls the host so.", metavar="[NAME=]DIR..."
    ),
]


def combine(
    hosts: Hosts,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The new folder; one below runs/ if left out.", metavar="DIR"),
    ] = None,
    overlap_percent: Annotated[
        float,
        typer.Option(
            min=1,
            max=100,
            help="How much of the longest measured time must be common to all hosts.",
        ),
    ] = plimsoll.OVERLAP_PERCENT,
    different_plans: Annotated[
        bool,
        typer.Option(
            "--different-plans",
            help="Add up runs of different pages, editions, tests or limits too.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Add up the runs of several hosts against one storage.

    Rates as sums, percentiles from merged distributions, worst result.

    Each host carries out its own run; copy the run folders to one place first. Exits with 0, 1 or 3
    as the worst host did, 2 when the runs cannot be added up.

    Example: plimsoll combine runs/alpha runs/beta --out runs/both
    """
    named = [plimsoll.parse_host_argument(text) for text in hosts]
    try:
        with reading(*(path for _, path in named)):
            found = plimsoll.combine_hosts(
                named,
                out,
                overlap_percent=overlap_percent,
                different_plans=different_plans,
                listener=showing(quiet=True),
            )
            show(found, as_json=as_json)
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{error.filename}: {system_reason(error)}")
    raise typer.Exit(exit_codes.BY_RESULT[found.result])


def show(found: plimsoll.Combined, *, as_json: bool) -> None:
    """The result on the output."""
    if as_json:
        typer.echo(json.dumps({**found.verdict, "run_folder": str(found.folder)}, indent=2))
        return
    typer.echo("\n" + "\n".join(found.lines()))
    typer.echo(f"\nrun folder: {found.folder}")
    if found.report:
        typer.echo(f"report:     {found.report}")
