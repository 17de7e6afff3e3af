"""`plimsoll run`: carry out a plan file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.terminal import reading_plan, stop_with


def run(
    plan_file: Annotated[Path, typer.Argument(help='A TOML file with kind = "plan".')],
    out: options.Out = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    destroy: options.Destroy = None,
    create: options.Create = False,
    allow_system_disk: options.AllowSystemDisk = False,
    allow_commands: options.AllowCommands = False,
    max_iops: options.MaxIops = None,
    max_mib_per_s: options.MaxMibPerS = None,
    threads: options.Threads = None,
    stop_if: options.StopIf = None,
    repeat: options.Repeat = 1,
    metrics: options.Metrics = None,
    host: options.Host = None,
    start_at: Annotated[
        str | None,
        typer.Option(
            help="Begin to measure at this moment in UTC, 18:30 or 2026-01-31T18:30:00Z, as other "
            "hosts do.",
            metavar="UTC",
        ),
    ] = None,
    detach: options.Detach = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    json_lines: options.JsonLines = False,
    percentiles: options.Percentiles = None,
    verbose: options.Verbose = False,
) -> None:
    """Carry out a plan, judge what was measured and write the report.

    Example: plimsoll run nightly.toml --out results/tonight
    """
    with reading_plan():
        plan = plimsoll.read_plan(plan_file, host)
    if start_at is not None:
        if repeat > 1 or plan.repeat is not None:
            stop_with(
                exit_codes.USAGE, "--start-at is one moment; leave out --start-at or --repeat"
            )
        try:
            plan = plimsoll.wait_until(plan, plimsoll.parse_moment(start_at, datetime.now(UTC)))
        except plimsoll.MomentError as error:
            stop_with(exit_codes.USAGE, f"--start-at: {error}")
    options.perform(
        plan,
        options.Choices(
            out,
            yes,
            dry_run,
            destroy,
            quiet,
            as_json,
            detach,
            max_iops,
            max_mib_per_s,
            stop_if,
            repeat,
            metrics,
            create,
            allow_system_disk,
            verbose,
            threads,
            allow_commands,
            json_lines,
            percentiles,
        ),
    )
