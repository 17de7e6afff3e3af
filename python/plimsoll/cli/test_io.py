"""`plimsoll test io`: the curve of I/O per second against latency in one command, as users of fio
think of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.live import JsonLinesListener, showing
from plimsoll.cli.named_tests import phase, stated, storage_options
from plimsoll.cli.terminal import reading_plan, refusing, stop_with

PATTERNS = ("random", "sequential")


def io_test(
    path: Annotated[
        Path, typer.Argument(help="A directory on the storage to be tested, or a block device.")
    ],
    block: Annotated[str, typer.Option(help="Sizes of a transfer: 4k,32k.")] = "4k",
    read: Annotated[
        int, typer.Option(min=0, max=100, help="How many of a hundred transfers read.")
    ] = 70,
    depth: Annotated[
        str, typer.Option(help="Transfers under way: 1..64 doubles each time, 1,4,16 names them.")
    ] = "1..64",
    pattern: Annotated[str, typer.Option(help="random or sequential.")] = "random",
    size_mib: Annotated[
        int, typer.Option(help="Size of the file, or what is used of a device.")
    ] = 1024,
    seconds: Annotated[float, typer.Option(min=1, help="How long each point is measured.")] = 30.0,
    ramp_s: Annotated[
        float, typer.Option(min=0, help="Seconds of load before each point is measured.")
    ] = 3.0,
    percentiles: Annotated[str, typer.Option(help="Of latency, up to 99.999.")] = "50,99,99.9",
    stated_limits: Annotated[
        list[str] | None,
        typer.Option("--limit", help="A limit: 'file_read_response_ms_p95<20'. May be repeated."),
    ] = None,
    log_path: Annotated[
        Path | None, typer.Option(help="For a block device: where what is known of it is kept.")
    ] = None,
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto",
    seed: Annotated[int, typer.Option(help="Decides places and content.")] = 1,
    out: options.Out = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    destroy: options.Destroy = None,
    create: options.Create = False,
    allow_system_disk: options.AllowSystemDisk = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    json_lines: options.JsonLines = False,
) -> None:
    """Measure I/O per second against latency.

    Every block size at every depth, with a chart, a table and a folder for each point.

    There is no verdict but of limits that you state, and of I/O that failed. The file stays for the
    next test; `plimsoll clean` deletes it.

    Example: plimsoll test io /mnt/array --block 4k,32k --read 70 --depth 1..64 --pattern random
    --yes
    """
    if pattern not in PATTERNS:
        stop_with(exit_codes.USAGE, f"--pattern {pattern!r} is neither random nor sequential")
    if json_lines and as_json:
        stop_with(exit_codes.USAGE, "--json prints the curve alone; leave it or --json-lines out")
    with refusing():
        asked = plimsoll.asked_of(block, depth, percentiles)
    ramp = [phase("soak", name="ramp up", duration_s=ramp_s, workloads=["files"])] if ramp_s else []
    tables = {
        "test": "files",
        "target": [storage_options(path, None, None, log_path, "a directory or device")],
        "instance": [{"name": "files", "backend": "files", "file_mib": size_mib}],
        "phase": [phase("prepare"), *ramp, phase("measure", duration_s=seconds), phase("stop")],
        "io_method": io_method,
        "seed": seed,
        **stated(stated_limits=stated_limits or None),
    }
    with reading_plan():
        plans = plimsoll.curve_plans(
            tables, asked, read_percent=read, is_random=pattern == "random"
        )
    lines = JsonLinesListener() if json_lines else None
    listener = lines or showing(quiet=quiet or as_json)

    def check(plan: plimsoll.Plan) -> plimsoll.Preflight:
        return options.checked(
            plan, destroy, listener, create=create, allow_system_disk=allow_system_disk
        )

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

    title = f"{pattern}, {read} % reads on {path}"
    with refusing():
        parent = plimsoll.make_run_folder(first.replace(name="io"), out)
        curve = plimsoll.measure_curve(plans, asked.percentiles, parent, title, carry_out)
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
