"""The options that all commands share which carry out a run, declared once, and what follows from them.

`perform` is the whole way from a completed plan to an exit code: look, ask, run, judge, report, print.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from plimsoll.cli.live import showing
from plimsoll.pipeline import background, forecast, qualify
from plimsoll.pipeline.qualify import Destroy

Out = Annotated[
    Path | None, typer.Option("--out", help="Folder for this run; a new one below runs/ if left out.", metavar="DIR")
]
Yes = Annotated[bool, typer.Option("--yes", help="Agree to long and large runs beforehand.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show files, space and time; write nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only warnings and the result.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the verdict (or the plan of a dry run) as JSON.")]
Detach = Annotated[bool, typer.Option("--detach", help="Go on in the background; see `status` and `watch`.")]
MaxIops = Annotated[float | None, typer.Option(help="Reads and writes per second at most, on shared storage.", min=1)]
MaxMibPerS = Annotated[float | None, typer.Option("--max-mib-per-s", help="MiB per second at most.", min=1)]
StopIf = Annotated[
    list[str] | None,
    typer.Option(help="Stop when this holds, such as 'db_read_latency_ms_p99>50 for 30s'.", metavar="CONDITION"),
]
Repeat = Annotated[
    int, typer.Option("--repeat", min=1, max=1000, help="Carry it out so many times; median, spread and worst result.")
]

Host = Annotated[
    str | None,
    typer.Option("--host", help="Which host of the plan this is; the one called like this machine if left out."),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        help="Offer OpenMetrics at /metrics while the run goes on; without a value at 127.0.0.1:17611.",
        metavar="[ADDRESS:PORT]",
    ),
]

__all__ = [
    "AsJson",
    "Choices",
    "Destroy",
    "Detach",
    "DryRun",
    "Host",
    "MaxIops",
    "MaxMibPerS",
    "Metrics",
    "Out",
    "Quiet",
    "Repeat",
    "StopIf",
    "Yes",
    "bound_the_harm",
]


@dataclass(frozen=True)
class Choices:
    """What the user chose beside the plan."""

    out: Path | None = None
    yes: bool = False
    dry_run: bool = False
    destroy: list[str] | None = None
    quiet: bool = False
    as_json: bool = False
    detach: bool = False
    max_iops: float | None = None
    max_mib_per_s: float | None = None
    stop_if: list[str] | None = None
    repeat: int = 1
    metrics: str | None = None


def bound_the_harm(
    plan: dict[str, Any], max_iops: float | None, max_mib_per_s: float | None, stop_if: list[str] | None
) -> None:
    """Lay ceilings and conditions of the command over those of the plan; leaves when a condition says nothing."""
    run = plan["run"]
    run["max_iops"] = max_iops or run["max_iops"]
    run["max_mib_per_s"] = max_mib_per_s or run["max_mib_per_s"]
    plan["stop_if"] = [*plan["stop_if"], *(stop_if or [])]
    qualify.read_conditions(plan)


def perform(plan: dict[str, Any], choices: Choices) -> None:
    """Carry out a completed plan as the user chose, and leave with the exit code that says how it ended."""
    bound_the_harm(plan, choices.max_iops, choices.max_mib_per_s, choices.stop_if)
    expected = qualify.forecast(plan, choices.destroy, dry_run=choices.dry_run and not choices.as_json)
    if choices.dry_run:
        typer.echo(json.dumps(plan, indent=2) if choices.as_json else "\n".join(forecast.as_lines(plan, expected)))
        return
    qualify.ask_before_much(plan, expected, agreed=choices.yes, times=choices.repeat)
    if choices.metrics is not None and choices.repeat > 1:
        qualify.stop_with(qualify.EXIT_USAGE, "--metrics tells of one run; leave out --metrics or --repeat")
    metrics = qualify.listen(choices.metrics)
    run_folder = qualify.make_folder(plan, choices.out)
    if choices.detach:
        background.leave_to_background(run_folder)
    if choices.repeat > 1:
        from plimsoll.cli.repeat import perform_repeatedly

        perform_repeatedly(plan, run_folder, choices.repeat, expected, quiet=choices.quiet, as_json=choices.as_json)
    qualify.measure(plan, run_folder, showing, quiet=choices.quiet, expected=expected, metrics=metrics)
    found = qualify.judge_and_report(run_folder)
    if choices.as_json:
        typer.echo(json.dumps({**found, "run_folder": str(run_folder)}, indent=2))
    else:
        qualify.print_result(run_folder, found)
    raise typer.Exit(qualify.exit_code(run_folder, found))
