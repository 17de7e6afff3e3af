"""`plimsoll resume`: go on with a run that a crash has cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from plimsoll.cli import options
from plimsoll.cli.folder_errors import reading
from plimsoll.cli.live import showing
from plimsoll.files import folder
from plimsoll.pipeline import background, qualify
from plimsoll.run import resume as resuming


def resume(
    run_folder: Annotated[Path, typer.Argument(help="The folder of the run that was cut off.", metavar="DIR")],
    again: Annotated[
        bool, typer.Option("--again", help="Measure for the whole time once more, not only the rest of it.")
    ] = False,
    destroy: options.Destroy = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    detach_it: options.Detach = False,
) -> None:
    """Go on with a run after a crash of its process or of the host: find the storage, recover, do what was left to do.

    The storage is known by the UUID of its file system or the serial of its device; another one is refused. What was
    measured before the gap is kept and not judged.

    Example: plimsoll resume runs/nightly-20260101T000000Z
    """
    run_folder = run_folder.absolute()
    try:
        with reading(run_folder):
            plan, gap = _left_to_do(run_folder, again=again)
    except (resuming.ResumeError, OSError) as error:
        qualify.stop_with(qualify.EXIT_USAGE, str(error))
    expected = qualify.forecast(plan, destroy)
    gap = resuming.put_aside(run_folder, gap)[-1]
    event = resuming.gap_event(gap)
    qualify.say(f"warning: {event['text']}")
    if detach_it:
        background.leave_to_background(run_folder)
    qualify.measure(plan, run_folder, showing, quiet=quiet, expected=expected, first_events=[event])
    found = qualify.judge_and_report(run_folder)
    if as_json:
        typer.echo(json.dumps({**found, "run_folder": str(run_folder)}, indent=2))
    else:
        qualify.print_result(run_folder, found)
    raise typer.Exit(qualify.exit_code(run_folder, found))


def _left_to_do(run_folder: Path, *, again: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plan of a run with the phases that are left, and what is known of the gap.

    Raises:
        ResumeError, FolderError, OSError: it cannot go on.
    """
    folder.require_single(run_folder, "resume")
    state = background.state_of(run_folder)["state"]
    if state in (background.RUNNING, background.STARTING):
        raise resuming.ResumeError(f"{run_folder} goes on; see `plimsoll watch {run_folder}`")
    gap = resuming.gap_of(run_folder)
    plan = folder.read_json(run_folder / folder.PLAN)
    for remark in resuming.find_storage(plan, folder.read_json(run_folder / folder.ENVIRONMENT)):
        qualify.say(f"note: {remark}")
    left = resuming.remaining_phases(plan, gap, again=again)
    gap["measured_lost"] = resuming.measured_lost(plan, gap, left)
    plan["run"]["phases"] = left
    for instance in plan["run"]["instances"]:
        for database in instance["databases"]:
            database["existing_records"] = None
    return plan, gap
