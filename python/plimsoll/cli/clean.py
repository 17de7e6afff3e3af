"""`plimsoll clean`: delete databases that Plimsoll made, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll import premises
from plimsoll.cli import course


def clean(
    paths: Annotated[list[Path], typer.Argument(help="Directories given to earlier tests, or instances in them.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete the databases that carry Plimsoll's marker; everything else stays."""
    found = [directory for path in paths for directory in premises.instances_below(path)]
    if not found:
        course.stop_with(course.EXIT_USAGE, "no databases of Plimsoll there; nothing was deleted")
    for directory in found:
        course.say(f"  {directory}")
    if not yes and not typer.confirm(f"delete these {len(found)} directories?", err=True):
        raise typer.Exit(course.EXIT_INTERRUPTED)
    freed = sum(premises.remove(directory) for directory in found)
    typer.echo(f"{len(found)} instances deleted, {freed >> 20} MiB freed")
