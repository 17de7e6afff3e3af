"""`plimsoll clean`: delete databases that Plimsoll made, and nothing else; undo the events that a killed run has left behind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.terminal import say, stop_with
from plimsoll.files.sanitize import printable

KEPT_SHOWN = 5


def clean(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Directories given to earlier tests, or instances in them; run folders with events to undo."
        ),
    ],
    destroy: options.Destroy = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete the databases that carry Plimsoll's marker; everything else stays.

    Of the folder of a run that was killed, carry out what undoes its events; the folder stays.
    """
    if left := [path for path in paths if plimsoll.events_left_behind(path)]:
        _undo_events(left, agreed=yes)
        paths = [path for path in paths if path not in left]
        if not paths:
            return
    found = [marker for path in paths for marker in plimsoll.find_databases(path)]
    if not found:
        stop_with(exit_codes.USAGE, "no databases of Plimsoll there; nothing was deleted")
    for marker in found:
        logs = marker.logs()
        say(
            f"  {marker.directory}"
            + (f" and its logs in {logs}" if logs not in (None, marker.directory) else "")
            + (f" and the database on {', '.join(marker.devices)}" if marker.devices else "")
        )
    if not yes and not _agreed(len(found)):
        raise typer.Exit(exit_codes.INTERRUPTED)
    freed = 0
    for number, directory in enumerate(marker.directory for marker in found):
        try:
            freed += plimsoll.delete_databases(directory, destroy)
        except (plimsoll.FolderError, OSError) as error:
            text = (
                f"{error.filename}: {error.strerror.lower()}"
                if isinstance(error, OSError) and error.strerror
                else str(error)
            )
            stop_with(exit_codes.USAGE, text + (f" ({number} deleted before)" if number else ""))
        if directory.is_dir():
            kept = ", ".join(sorted(printable(Path(path.name)) for path in directory.iterdir())[:KEPT_SHOWN])
            say(f"  {directory} keeps {kept}, which is no part of the databases")
    typer.echo(f"{len(found)} instance{'s' if len(found) > 1 else ''} deleted, {freed >> 20} MiB freed")


def _undo_events(run_folders: list[Path], *, agreed: bool) -> None:
    """Show what undoes the events of killed runs, ask, and carry it out."""
    for run_folder in run_folders:
        for name, command in plimsoll.events_left_behind(run_folder):
            say(f"  event {name} of {run_folder} is undone by: {command}")
    if not agreed and not _agrees("carry this out?"):
        raise typer.Exit(exit_codes.INTERRUPTED)
    failed = []
    for run_folder in run_folders:
        for name, problem in plimsoll.undo_left_behind(run_folder):
            typer.echo(f"event {name}: {problem or 'undone'}")
            failed += [name] if problem else []
    if failed:
        stop_with(exit_codes.USAGE, f"not undone: {', '.join(failed)}; put it right yourself, or try again")


def _agreed(count: int) -> bool:
    """Ask; where nobody can answer, say what to write."""
    what = f"these {count} directories" if count > 1 else "this directory"
    return _agrees(f"delete {what}?")


def _agrees(question: str) -> bool:
    try:
        return bool(typer.confirm(question, err=True))
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        stop_with(exit_codes.USAGE, "nothing was done, because nobody answered; give --yes to agree")
