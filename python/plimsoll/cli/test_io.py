"""`plimsoll test io`: the curve of I/O per second against latency in one command, as users of fio
think of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.live import JsonLinesListener, showing
from plimsoll.cli.terminal import reading_plan, refusing, stop_with


def measure_curve(
    asked: Mapping[str, object],
    *,
    out: Path | None,
    yes: bool,
    dry_run: bool,
    destroy: list[str] | None,
    create: bool,
    allow_system_disk: bool,
    quiet: bool,
    as_json: bool,
    json_lines: bool,
) -> None:
    """Measure a curve of these options, and leave with the code that says how it ended."""
    if json_lines and as_json:
        stop_with(exit_codes.USAGE, "--json prints the curve alone; leave it or --json-lines out")
    with reading_plan():
        planned = plimsoll.plan_curve(**asked)
    lines = JsonLinesListener() if json_lines else None
    listener = lines or showing(quiet=quiet or as_json)

    def check(plan: plimsoll.Plan) -> plimsoll.Preflight:
        return options.checked(
            plan, destroy, listener, create=create, allow_system_disk=allow_system_disk
        )

    plans = planned.plans
    first = plans[0][2]
    found = check(first)
    if dry_run:
        options.show_forecast(first, found, as_json=as_json)
        typer.echo(f"\n{len(plans)} such points", err=as_json)
        return
    options.ask_before_much(first, found, agreed=yes, times=len(plans))

    def carry_out(plan: plimsoll.Plan, home: Path) -> plimsoll.Result:
        if lines:
            size, depth = next(point[:2] for point in plans if point[2] is plan)
            about = {"block_bytes": size, "depth": depth, "run_folder": str(home)}
            lines.write([json.dumps({"kind": "point", **about})])
        return plimsoll.qualify(plan, home, found=check(plan), listener=listener)

    with refusing():
        parent = plimsoll.make_run_folder(first.replace(name="io"), out)
        curve = plimsoll.measure_curve(planned, parent, carry_out)
        page = plimsoll.write_curve_page(curve, parent)
    if lines:
        lines.write([json.dumps({"kind": "curve", **curve.plain(), "folder": str(parent)})])
    elif as_json:
        typer.echo(json.dumps({**curve.plain(), "folder": str(parent)}, indent=2))
    else:
        typer.echo("\n" + "\n".join(curve.lines()))
        typer.echo(f"\nfolder: {parent}\nchart:  {page}")
    if len(curve.points) < len(plans):
        raise typer.Exit(exit_codes.INTERRUPTED)
    raise typer.Exit(curve.exit_code)
