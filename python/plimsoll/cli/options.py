"""The options that all commands share which carry out a run, declared once, and what follows from
them.

`perform` is the whole way from a completed plan to an exit code: check, ask, run, judge, report,
print.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import refusing, say, stop_with

#: Consent to overwrite a whole block device; an option of every command that writes.
Destroy = Annotated[
    list[str] | None,
    typer.Option(
        "--destroy",
        metavar="SERIAL",
        help="Agree that everything on the block device with this serial is lost. Once for each "
        "device.",
    ),
]

Create = Annotated[
    bool, typer.Option("--create", help="Make the directory of the target if it does not exist.")
]
AllowSystemDisk = Annotated[
    bool,
    typer.Option(
        "--allow-system-disk", help="Let the target lie on the root file system, the system disk."
    ),
]

AllowCommands = Annotated[
    bool, typer.Option("--allow-commands", help="Carry out the commands of the plan's events.")
]

Backend = Annotated[
    Literal["engine", "raw_files"],
    typer.Option(help="The database engine, or files without one."),
]

Limits = Annotated[
    Literal["strict", "lenient"],
    typer.Option(help="Limits of a performance test, or those of a stress test."),
]

Out = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Folder for this run; a new one below runs/ if left out.", metavar="DIR"
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Agree to long and large runs beforehand.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show files, space and time; write nothing.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only warnings and the result.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Print every check, stall and figure of the load.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the verdict (or the plan of a dry run) as JSON.")
]
JsonLines = Annotated[
    bool,
    typer.Option(
        "--json-lines",
        help="Write every sample and event to the output as a line of JSON, the verdict last.",
    ),
]
Percentiles = Annotated[
    str | None,
    typer.Option(
        help="Percentiles to print of every latency, up to 99.999: 50,99.9,99.99.",
        metavar="LIST",
    ),
]
Detach = Annotated[
    bool, typer.Option("--detach", help="Go on in the background; see `status` and `watch`.")
]
MaxIops = Annotated[
    float | None,
    typer.Option(help="Reads and writes per second at most, on shared storage.", min=1),
]
MaxMibPerS = Annotated[
    float | None, typer.Option("--max-mib-per-s", help="MiB per second at most.", min=1)
]
Threads = Annotated[
    str | None,
    typer.Option(
        help="Threads of the load generator, not the load (sessions): a number, or auto, one for "
        "each instance, at most the processors less one."
    ),
]
StopIf = Annotated[
    list[str] | None,
    typer.Option(
        help="Stop when this holds, such as 'db_read_latency_ms_p99>50 for 30s'.",
        metavar="CONDITION",
    ),
]
Repeat = Annotated[
    int,
    typer.Option(
        "--repeat",
        min=1,
        max=1000,
        help="Carry it out so many times: median, spread and worst result. If left out, the "
        "`repeat` of a plan counts.",
    ),
]

Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        help="Which host of the plan this is; the one called like this machine if left out.",
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        help="Offer OpenMetrics at /metrics while the run goes on; without a value at "
        "127.0.0.1:17611.",
        metavar="[ADDRESS:PORT]",
    ),
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
    create: bool = False
    allow_system_disk: bool = False
    verbose: bool = False
    threads: str | None = None
    allow_commands: bool = False
    json_lines: bool = False
    percentiles: str | None = None


def checked(
    plan: plimsoll.Plan,
    destroy: list[str] | None,
    listener: plimsoll.Listener,
    *,
    create: bool,
    allow_system_disk: bool,
    allow_commands: bool = False,
    shows_forecast: bool = False,
    times: int | None = None,
    out: Path | None = None,
) -> plimsoll.Preflight:
    """What preflight finds, or leave.

    A dry run tells what the run would take even where space is missing.
    """
    try:
        return plimsoll.check(
            plan,
            destroy=destroy or [],
            create=create,
            allow_system_disk=allow_system_disk,
            allow_commands=allow_commands,
            out=out,
            listener=listener,
        )
    except plimsoll.PreflightError as error:
        if shows_forecast and error.forecast is not None:
            print("\n".join(plimsoll.forecast(plan, error.forecast).lines(times)), flush=True)
        stop_with(exit_codes.USAGE, *error.problems)


def show_forecast(
    plan: plimsoll.Plan, found: plimsoll.Preflight, *, as_json: bool, times: int | None = None
) -> None:
    """What a dry run prints: the plan as it would be carried out, or files, space and time."""
    if as_json:
        typer.echo(json.dumps(plan.replace(run=found.run).plain(), indent=2))
    else:
        typer.echo("\n".join(plimsoll.forecast(plan, found).lines(times)))


def ask_before_much(
    plan: plimsoll.Plan,
    found: plimsoll.Preflight,
    *,
    agreed: bool,
    times: int = 1,
    time_agreed: bool = False,
) -> None:
    """A run that takes long or much space needs a yes, and so does one that is repeated until it
    takes long.

    Whoever stated the time has agreed to it, and to nothing else.
    """
    reasons = plimsoll.forecast(plan, found).reasons_to_ask(times, time_agreed=time_agreed)
    if agreed or not reasons:
        return
    where = ", ".join(dict.fromkeys(target.path for target in found.run.targets))
    sentence = f"this run writes to {where}, and {' and '.join(reasons)}"
    if not sys.stdin.isatty():
        stop_with(
            exit_codes.USAGE, f"{sentence}; look at it with --dry-run, and give --yes to agree"
        )
    if not typer.confirm(f"{sentence}; go on?", err=True):
        raise typer.Exit(exit_codes.INTERRUPTED)


def leave_to_background(run_folder: Path) -> None:
    """The terminal gets its prompt back; the process that returns from here goes on without it."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = plimsoll.leave_to_background(run_folder)
    if process is None:
        return
    print(f"running in the background as process {process}; run folder: {run_folder}")
    print(f"  plimsoll status {run_folder}")
    print(f"  plimsoll watch {run_folder}")
    print(f"  kill {process}          stops it cleanly and keeps what was measured")
    sys.stdout.flush()
    os._exit(0)


def offer_metrics(address: str | None) -> plimsoll.MetricsServer | None:
    """Take the address that `--metrics` names, before anything is written.

    Leave when it cannot be had.
    """
    if address is None:
        return None
    with refusing():
        server = plimsoll.MetricsServer(address)
    open_to = "" if server.is_private else ", open to everybody who reaches this address"
    say(f"metrics: http://{server.place}/metrics while the run goes on{open_to}")
    return server


def perform(plan: plimsoll.Plan, choices: Choices) -> None:
    """Carry out a completed plan as the user chose, and leave with the exit code that says how it
    ended.
    """
    if choices.json_lines and choices.as_json:
        stop_with(exit_codes.USAGE, "--json prints the verdict alone; leave it or --json-lines out")
    if choices.percentiles is not None and choices.repeat > 1:
        stop_with(exit_codes.USAGE, "--percentiles are of one run; leave out one of both")
    listener = showing(quiet=choices.quiet, json_lines=choices.json_lines)
    with refusing():
        percents = plimsoll.shares_of(choices.percentiles) if choices.percentiles else ()
        plan = plimsoll.bounded(
            plan,
            max_iops=choices.max_iops,
            max_mib_per_s=choices.max_mib_per_s,
            stop_if=choices.stop_if or [],
            threads=choices.threads,
        )
    times = choices.repeat
    if times == 1 and plan.repeat is not None:
        times = plan.repeat.runs
    found = checked(
        plan,
        choices.destroy,
        listener,
        create=choices.create,
        allow_system_disk=choices.allow_system_disk,
        # A dry run shows the commands and starts none.
        allow_commands=choices.allow_commands or choices.dry_run,
        shows_forecast=choices.dry_run and not choices.as_json,
        times=times,
        out=choices.out,
    )
    if choices.dry_run:
        show_forecast(plan, found, as_json=choices.as_json, times=times)
        return
    by_hand = [event for event in plan.events if event.manual and not event.confirm_file]
    if choices.detach and by_hand:
        text = f'--detach leaves no one who could confirm event "{by_hand[0].name}"'
        stop_with(exit_codes.USAGE, f"{text}; write its confirm_file, or leave out --detach")
    # What is done before a run is done before a single one as well.
    is_series = times > 1 or plan.repeat is not None
    ask_before_much(plan, found, agreed=choices.yes, times=times)
    if choices.metrics is not None and is_series:
        stop_with(exit_codes.USAGE, "--metrics tells of one run; leave out --metrics or --repeat")
    metrics = offer_metrics(choices.metrics)
    with refusing():
        run_folder = plimsoll.make_run_folder(plan, choices.out)
        if choices.detach:
            leave_to_background(run_folder)
        if is_series:
            from plimsoll.cli.series import show_series

            series = plimsoll.repeat_into(plan, times, run_folder, found=found, listener=listener)
            show_series(series, as_json=choices.as_json)
            raise typer.Exit(series.exit_code)
        result = plimsoll.qualify_into(
            plan, run_folder, found=found, listener=listener, metrics=metrics
        )
    if choices.json_lines:
        content = {"kind": "verdict", **result.verdict.plain(), "run_folder": str(result.folder)}
        typer.echo(json.dumps(content))
        raise typer.Exit(result.exit_code)
    show_result(
        result,
        as_json=choices.as_json,
        verbose=choices.verbose,
        told=listener.warnings,
        percents=percents,
    )


def show_result(
    found: plimsoll.Result,
    *,
    as_json: bool = False,
    verbose: bool = False,
    told: Collection[str] = (),
    percents: Sequence[float] = (),
) -> NoReturn:
    """The verdict on the output; leaves with the exit code that says how the run ended.

    Args:
        found: what became of the run.
        as_json: the verdict as JSON and nothing else.
        verbose: print everything.
        told: warnings that the terminal showed before.
        percents: percentiles of every latency, printed before the verdict.
    """
    if as_json:
        typer.echo(json.dumps({**found.verdict.plain(), "run_folder": str(found.folder)}, indent=2))
    else:
        if percents:
            print("\n" + "\n".join(plimsoll.percentile_lines(found.folder, percents)))
        print_result(found, verbose=verbose, told=told)
    raise typer.Exit(found.exit_code)


def print_result(
    found: plimsoll.Result, *, verbose: bool = False, told: Collection[str] = ()
) -> None:
    """The verdict first and last, what did not pass, and where the rest is.

    With `verbose` one reason for every check.

    Args:
        found: what became of the run.
        verbose: print everything.
        told: warnings that the terminal showed before.
    """
    width = shutil.get_terminal_size((100, 24)).columns
    print("\n" + "\n".join(found.lines() if verbose else found.brief(told, width)))
    print(f"\nrun folder: {found.folder}")
    if found.report:
        print(f"report:     {found.report}")
    if not verbose:
        print(f"all checks: plimsoll report {found.folder} --verbose")
        print(found.headline)
