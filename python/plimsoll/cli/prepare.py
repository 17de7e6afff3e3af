"""`plimsoll prepare`: make the databases of a plan without putting any load on them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli import course
from plimsoll.plan import read_plan


def prepare(
    plan_file: Annotated[Path, typer.Argument(help='A TOML file with kind = "plan".')],
    out: Annotated[Path | None, typer.Option(help="Folder for the record; a new one below runs/ if left out.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to long runs beforehand.")] = False,
    destroy: course.Destroy = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Make and close the databases of a plan, so that a later run starts at once."""
    plan = course.read_or_refuse(read_plan, plan_file)
    kept = [phase for phase in plan["run"]["phases"] if phase["action"]["kind"] in ("prepare", "stop")]
    plan["run"]["phases"] = kept
    plan["name"] += " prepare"
    expected = course.forecast(plan, destroy)
    course.ask_before_much(plan, expected, agreed=yes)
    from plimsoll import folder, premises
    from plimsoll.run import run_plan

    try:
        run_folder = folder.new_folder(plan["name"], out)
    except folder.FolderError as error:
        course.stop_with(course.EXIT_USAGE, str(error))
    progress = course.Progress(_metric_names(), quiet=quiet)
    premises.take(plan["run"])
    outcome = run_plan(plan, run_folder, progress.event, progress.sample)
    premises.give_back(plan["run"], outcome)
    if outcome["error"]:
        code = course.EXIT_FAIL
        if outcome["ending"] == "interrupted":
            code = course.EXIT_INTERRUPTED
        elif outcome["error"]["family"] == "config":
            code = course.EXIT_USAGE
        course.stop_with(code, outcome["error"]["text"])
    typer.echo(f"prepared; record in {run_folder}")


def _metric_names() -> list[str]:
    from plimsoll import _native

    return [name for name, _, _, _ in _native.metrics()]
