"""`plimsoll status` and `plimsoll watch`: how a run goes that another terminal started."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from plimsoll.cli.folder_errors import reading
from plimsoll.files import folder
from plimsoll.live.plain_display import event_line, plain_line
from plimsoll.pipeline import background, qualify

LOOK_EVERY_S = 1.0
FIGURES_EVERY_S = 5.0

RunFolder = Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")]


def status(
    run_folder: RunFolder, as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False
) -> None:
    """Say whether a run goes on, how far it is and how it does.

    Exits with 0 while it runs and when it has ended, 3 when it was killed before it could write a result.
    """
    with reading(run_folder):
        found = _state(run_folder)
        typer.echo(json.dumps({"schema_version": 1, **found}, indent=2) if as_json else _in_words(run_folder, found))
    raise typer.Exit(qualify.EXIT_INCONCLUSIVE if found["state"] == background.KILLED else qualify.EXIT_PASS)


def watch(run_folder: RunFolder) -> None:
    """Show the events and figures of a run until it ends, then its result; leaves with the run's own exit code.

    Ctrl-C ends the watching, not the run.
    """
    with reading(run_folder):
        folder.require_single(run_folder, "watch")
        _watch(run_folder)


def _watch(run_folder: Path) -> NoReturn:
    seen, said = 0, 0.0
    while True:
        found = _state(run_folder)
        events = folder.read_events(run_folder)
        for event in events[seen:]:
            qualify.say(event_line(event))
        seen = len(events)
        if found["state"] == background.ENDED:
            verdict = folder.read_json(run_folder / folder.VERDICT)
            qualify.print_result(run_folder.absolute(), verdict)
            raise typer.Exit(qualify.exit_code(run_folder, verdict))
        if found["state"] == background.KILLED:
            qualify.stop_with(qualify.EXIT_INCONCLUSIVE, _in_words(run_folder, found))
        if found["state"] == background.RUNNING and time.monotonic() - said >= FIGURES_EVERY_S:
            qualify.say(plain_line(found))
            said = time.monotonic()
        sys.stderr.flush()
        time.sleep(LOOK_EVERY_S)


def _state(run_folder: Path) -> dict[str, Any]:
    try:
        return background.state_of(run_folder)
    except (folder.FolderError, OSError) as error:
        qualify.stop_with(qualify.EXIT_USAGE, str(error))


def _in_words(run_folder: Path, found: dict[str, Any]) -> str:
    match found["state"]:
        case background.ENDED:
            return f"ended: {found['headline']}; see `plimsoll report {run_folder}`"
        case background.RUNNING:
            return f"running as process {found['process_id']}\n{plain_line(found)}"
        case background.STARTING:
            return "starting"
    log = run_folder / folder.TERMINAL
    why = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:] if log.exists() else []
    return "ended without a result" + (
        f": {why[0]}"
        if why
        else f"; go on with `plimsoll resume {run_folder}`, or its databases are recovered by the next run"
    )
