"""`--repeat N`: one plan carried out several times in sequence, into one folder; what was done is kept whatever happens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from plimsoll.cli.live import showing
from plimsoll.databases import preflight
from plimsoll.files import folder
from plimsoll.pipeline import qualify, repeat

#: The worst ending of a run decides how the series ends.
_WORST_CODE_FIRST = (
    qualify.EXIT_INTERRUPTED,
    qualify.EXIT_USAGE,
    qualify.EXIT_FAIL,
    qualify.EXIT_INCONCLUSIVE,
    qualify.EXIT_PASS,
)


def perform_repeatedly(
    plan: dict[str, Any], parent: Path, count: int, expected: preflight.Forecast, *, quiet: bool, as_json: bool
) -> None:
    """Carry out a plan so many times and leave with the worst exit code; a run that was interrupted ends the series."""
    content = repeat.begin(parent, plan["name"], count)
    codes: list[int] = []
    try:
        for number in range(1, count + 1):
            expected = preflight.inspect(plan["run"], plan.get("source")) if number > 1 else expected
            qualify.say(f"run {number} of {count}")
            codes.append(_once(plan, parent, content, expected, quiet=quiet))
            qualify.say(f"run {number} of {count}: {content['runs'][-1]['headline']}")
            if codes[-1] in (qualify.EXIT_INTERRUPTED, qualify.EXIT_USAGE):
                break
    except KeyboardInterrupt:
        # Between two runs nobody else listens; within one, the run ends cleanly and says so itself.
        codes.append(qualify.EXIT_INTERRUPTED)
    repeat.finish(parent, content)
    write_page(parent, content)
    show(parent, content, as_json=as_json)
    raise typer.Exit(next(code for code in _WORST_CODE_FIRST if code in codes))


def _once(
    plan: dict[str, Any], parent: Path, content: dict[str, Any], expected: preflight.Forecast, *, quiet: bool
) -> int:
    """One run of the series; answers its exit code."""
    each = json.loads(json.dumps(plan))
    if plan["run"].get("modelled"):
        # A simulation repeats itself to the byte with the same seed; another seed is another run.
        each["run"]["seed"] += len(content["runs"])
    run_folder = repeat.begin_run(parent, content)
    ending = qualify.measure(each, run_folder, showing, quiet=quiet, expected=expected)["ending"]
    repeat.note_ending(parent, content, ending)
    found = qualify.judge_and_report(run_folder)
    repeat.note(parent, content, found)
    return qualify.exit_code(run_folder, found)


def report_again(parent: Path) -> None:
    """Judge every run of a series again, and the series; leave with the exit code of its result."""
    content = repeat.read(parent)
    for run in content["runs"]:
        if (parent / run["folder"] / folder.OUTCOME).exists():
            verdict = qualify.judge_and_report(parent / run["folder"])
            ending = folder.read_json(parent / run["folder"] / folder.OUTCOME)["ending"]
            run |= {"ending": ending, "result": verdict["result"]}
            run |= {"headline": verdict["headline"], "reasons": verdict["reasons"]}
    repeat.gather(parent, content)
    write_page(parent, content)
    show(parent, content, as_json=False)
    raise typer.Exit(qualify.EXIT_BY_RESULT.get(content["result"] or "", qualify.EXIT_INCONCLUSIVE))


def write_page(parent: Path, content: dict[str, Any]) -> None:
    """The page of the series, where its libraries are installed."""
    try:
        folder.write_text(parent / folder.REPORT, repeat.render(parent, content))
    except ModuleNotFoundError as error:
        qualify.say(f"warning: no report.html was written, because {error.name} is not installed")


def show(parent: Path, content: dict[str, Any], *, as_json: bool) -> None:
    """The series on the output."""
    if as_json:
        typer.echo(json.dumps({**content, "run_folder": str(parent)}, indent=2))
    else:
        typer.echo("\n" + "\n".join(repeat.lines_of(content)))
        typer.echo(f"\nrun folders: {parent}/run-1 and so on")
        if (parent / folder.REPORT).exists():
            typer.echo(f"report:      {parent / folder.REPORT}")
