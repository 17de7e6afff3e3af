"""`plimsoll run`: carry out a plan file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli import options
from plimsoll.pipeline import qualify
from plimsoll.plan.complete import read_plan
from plimsoll.plan.start_time import MomentError, parse_moment, wait_until


def run(
    plan_file: Annotated[Path, typer.Argument(help='A TOML file with kind = "plan".')],
    out: options.Out = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    destroy: options.Destroy = None,
    max_iops: options.MaxIops = None,
    max_mib_per_s: options.MaxMibPerS = None,
    stop_if: options.StopIf = None,
    repeat: options.Repeat = 1,
    metrics: options.Metrics = None,
    host: options.Host = None,
    start_at: Annotated[
        str | None,
        typer.Option(
            help="Begin to measure at this moment in UTC, 18:30 or 2026-01-31T18:30:00Z, as other hosts do.",
            metavar="UTC",
        ),
    ] = None,
    detach: options.Detach = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Carry out a plan, judge what was measured and write the report.

    Example: plimsoll run nightly.toml --out results/tonight
    """
    plan = qualify.read_or_refuse(read_plan, plan_file, host)
    if start_at is not None:
        if repeat > 1:
            qualify.stop_with(qualify.EXIT_USAGE, "--start-at is one moment; leave out --start-at or --repeat")
        try:
            wait_until(plan, parse_moment(start_at, datetime.now(UTC)))
        except MomentError as error:
            qualify.stop_with(qualify.EXIT_USAGE, f"--start-at: {error}")
    options.perform(
        plan,
        options.Choices(
            out, yes, dry_run, destroy, quiet, as_json, detach, max_iops, max_mib_per_s, stop_if, repeat, metrics
        ),
    )
