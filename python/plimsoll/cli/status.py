"""`plimsoll status` and `plimsoll watch`: how a run goes that another terminal started."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.folder_errors import reading
from plimsoll.cli.sections import terminal_width
from plimsoll.cli.terminal import say, stop_with

LOOK_EVERY_S = 1.0
FIGURES_EVERY_S = 5.0
#: A report is written within this time after its verdict.
REPORT_WITHIN_S = 10.0
#: Below the text of an event, next to its time.
TEXT_INDENT = " " * 14

RunFolder = Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")]


def status(
    run_folder: RunFolder,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Say whether a run goes on, how far it is and how it does.

    Exits with 0 while it runs and when it has ended, 3 when it was killed before it could write a
    result.
    """
    with reading(run_folder):
        found = _state(run_folder)
        typer.echo(
            json.dumps({"schema_version": 1, **found}, indent=2)
            if as_json
            else _in_words(run_folder, found)
        )
    raise typer.Exit(exit_codes.INCONCLUSIVE if found["state"] == "killed" else exit_codes.PASS)


def watch(run_folder: RunFolder, verbose: options.Verbose = False) -> None:
    """Show the events and figures of a run until it ends, then its result.

    Leaves with the run's own exit code.

    Ctrl-C ends the watching, not the run.
    """
    with reading(run_folder):
        plimsoll.require_single(run_folder, "watch")
        _watch(run_folder, verbose=verbose)


def _watch(run_folder: Path, *, verbose: bool) -> NoReturn:
    seen, said = 0, 0.0
    while True:
        found = _state(run_folder)
        events = plimsoll.read_events(run_folder)
        # What was staged is written down after what the run did meanwhile.
        for event in sorted(events[seen:], key=lambda event: event.time_ns):
            say("\n".join(_wrapped(plimsoll.event_line(event), sys.stderr)))
        seen = len(events)
        if found["state"] == "ended" and _report_is_due(run_folder):
            time.sleep(LOOK_EVERY_S)
            continue
        if found["state"] == "ended":
            options.show_result(
                replace(plimsoll.read_result(run_folder), folder=run_folder.absolute()),
                verbose=verbose,
            )
        if found["state"] == "prepared":
            typer.echo(found["headline"])
            raise typer.Exit(exit_codes.PASS)
        if found["state"] == "killed":
            stop_with(exit_codes.INCONCLUSIVE, _in_words(run_folder, found))
        if found["state"] == "running" and time.monotonic() - said >= FIGURES_EVERY_S:
            say("\n".join(_wrapped(plimsoll.figures_line(found), sys.stderr)))
            said = time.monotonic()
        sys.stderr.flush()
        time.sleep(LOOK_EVERY_S)


def _wrapped(line: str, stream: TextIO) -> list[str]:
    """A line; on a terminal in pieces of its width below its time, elsewhere whole."""
    if not stream.isatty():
        return [line]
    return textwrap.wrap(line, terminal_width(80), subsequent_indent=TEXT_INDENT)


def _report_is_due(run_folder: Path) -> bool:
    """Whether the verdict was written a moment ago and the report is still to come."""
    written_s_ago = time.time() - run_folder.stat().st_mtime
    return written_s_ago < REPORT_WITHIN_S and plimsoll.read_result(run_folder).report is None


def _state(run_folder: Path) -> plimsoll.Content:
    try:
        return plimsoll.state_of(run_folder)
    except (plimsoll.FolderError, OSError) as error:
        stop_with(exit_codes.USAGE, str(error))


def _in_words(run_folder: Path, found: plimsoll.Content) -> str:
    match found["state"]:
        case "ended":
            return f"ended: {found['headline']}; see `plimsoll report {run_folder}`"
        case "prepared":
            return str(found["headline"])
        case "running":
            figures = _wrapped(plimsoll.figures_line(found), sys.stdout)
            return "\n".join([f"running as process {found['process_id']}", *figures])
        case "starting":
            return str(found.get("doing", "starting"))
    return plimsoll.no_result_in_words(run_folder)
