"""`plimsoll explain`: what a check, a doubt or a field of the summary means, and what to do when a
check fails.
"""

from __future__ import annotations

from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.terminal import stop_with


def explain(
    name: Annotated[
        str | None, typer.Argument(help="A check, a doubt or a field of the summary.")
    ] = None,
) -> None:
    """Say what a check measures, its limits with their source, and what a failure means.

    Without a name it lists everything that has one.

    Example: plimsoll explain log_write_latency_mean
    """
    if name is None:
        typer.echo("\n".join(f"  {known}" for known in plimsoll.explained_names()))
        typer.echo(
            "\n`plimsoll explain NAME` tells more of one; fields of summary.json have names, too"
        )
        return
    try:
        typer.echo(plimsoll.explain(name))
    except plimsoll.UnknownNameError as error:
        stop_with(exit_codes.USAGE, str(error))
