"""`plimsoll clean`: delete databases that Plimsoll made, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.terminal import refusing, say, stop_with
from plimsoll.files.sanitize import printable

KEPT_SHOWN = 5


def clean(
    paths: Annotated[
        list[Path], typer.Argument(help="Directories given to earlier tests, or instances in them.")
    ],
    destroy: options.Destroy = None,
    allow_commands: Annotated[
        bool,
        typer.Option(
            "--allow-commands", help="Start the commands that undo what a killed run degraded."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete the databases that carry Plimsoll's marker; everything else stays.

    In the folder of a run that was killed while something was degraded, undo that.
    """
    homes = [home for path in paths for home in (path, *sorted(path.glob("run-*")))]
    if _undone(homes, allowed=allow_commands, by_hand=yes):
        if any(plimsoll.find_databases(path) for path in paths):
            # Who said that something is put back has not said that databases may go.
            say("no databases were deleted; say the same once more to delete them")
        return
    found = [marker for path in paths for marker in plimsoll.find_databases(path)]
    if not found and all(_is_run(path) for path in paths):
        for path in paths:
            typer.echo(f"{path}: nothing is left to undo, and there are no databases in it")
        return
    if not found:
        empty = ", ".join(
            f"{path} holds no databases of Plimsoll" if path.exists() else f"{path} does not exist"
            for path in paths
        )
        stop_with(exit_codes.USAGE, f"{empty}; name the directory of the test, nothing was deleted")
    with refusing():
        for marker in found:
            marker.require_no_link()
        for marker in found:
            for line in marker.deleted_in_words():
                say(f"  {line}")
    if not yes and not _agreed(len(found)):
        raise typer.Exit(exit_codes.INTERRUPTED)
    freed = 0
    for number, marker in enumerate(found):
        places = dict.fromkeys((marker.logs() or marker.directory, marker.directory))
        try:
            freed += plimsoll.delete_databases(marker.directory, destroy)
        except (plimsoll.FolderError, OSError) as error:
            text = (
                f"{error.filename}: {error.strerror.lower()}"
                if isinstance(error, OSError) and error.strerror
                else str(error)
            )
            stop_with(exit_codes.USAGE, text + (f" ({number} deleted before)" if number else ""))
        for place in places:
            if kept := _names_in(place):
                say(f"  {place} keeps {kept}, which is no part of the databases")
    typer.echo(
        f"{len(found)} instance{'s' if len(found) > 1 else ''} deleted, {freed >> 20} MiB freed"
    )


def _undone(homes: list[Path], *, allowed: bool, by_hand: bool) -> bool:
    """Undo what killed runs left degraded; whether there was anything."""
    run_folders, wants_consent = list[Path](), False
    left, refused = list[str](), list[str]()
    for home in homes:
        try:
            pending = plimsoll.pending_undos(home)
        except plimsoll.FolderError as error:
            refused.append(str(error))
            continue
        run_folders += [home] * bool(pending)
        for item in pending:
            say(f"  {plimsoll.pending_undo_in_words(item)}")
            wants_consent |= item.wants_consent
    if wants_consent and not allowed:
        stop_with(
            exit_codes.USAGE,
            *refused,
            "nothing was undone; look at the commands, then give --allow-commands",
        )
    for run_folder in run_folders:
        try:
            failed = plimsoll.undo_pending(run_folder, done_by_hand=by_hand)
        except plimsoll.FolderError as error:
            refused.append(str(error))
            continue
        if not failed:
            typer.echo(f"{run_folder}: everything is undone")
        left += failed
    if left or refused:
        stop_with(exit_codes.FAIL if left else exit_codes.USAGE, *left, *refused)
    return bool(run_folders)


def _is_run(path: Path) -> bool:
    try:
        plimsoll.require_single(path, "clean")
    except plimsoll.FolderError:
        return False
    return True


def _names_in(place: Path) -> str:
    """The first names in a directory; nothing where it is gone, or empty."""
    there = sorted(place.iterdir())[:KEPT_SHOWN] if place.is_dir() else ()
    return ", ".join(
        printable(Path(path.name)) + (", a symbolic link" if path.is_symlink() else "")
        for path in there
    )


def _agreed(count: int) -> bool:
    """Ask; where nobody can answer, say what to write."""
    what = f"these {count} directories" if count > 1 else "this directory"
    try:
        return bool(typer.confirm(f"delete {what}?", err=True))
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        stop_with(
            exit_codes.USAGE,
            "nothing was deleted, because there was no answer; give --yes to agree",
        )
