"""`plimsoll calibrate --measure PATH`.

A sweep over the storage at hand, and a preset that behaves like it.

Writes one file below the path, and deletes it. What was measured and what was fitted is printed
with its error.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import refusing, say, stop_with, warn

#: How every preset of this command begins.
PRESET_BEGINS = "# The storage under "
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


def calibrate(
    measure: Annotated[
        Path,
        typer.Option(
            "--measure", metavar="PATH", help="A directory on the storage to be measured."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="The preset that is written.", metavar="FILE.toml")
    ] = Path("measured.toml"),
    name: Annotated[str, typer.Option(help="What the preset is called.")] = "measured",
    size_mib: Annotated[
        int, typer.Option(help="Size of the file that is measured.", min=64)
    ] = 4096,
    seconds: Annotated[float, typer.Option(help="How long each point is measured.", min=0.1)] = 3.0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer points: only to see how it works.")
    ] = False,
    allow_system_disk: options.AllowSystemDisk = False,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to what is written.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print points and errors as JSON.")
    ] = False,
) -> None:
    """Measure the storage under a path and write a preset that behaves like it, with its error on
    points held out.

    Then predict a test and run it: `plimsoll test performance --modelled measured.toml --size-mib
    1024`, and `plimsoll test performance PATH --size-mib 1024`.

    Example: plimsoll calibrate --measure /mnt/array --yes
    """
    if not _NAME.fullmatch(name):
        stop_with(exit_codes.USAGE, f'--name is "{name}"; use small letters, digits and -')
    _check_preset(out)
    with refusing():
        wanted = plimsoll.plan_calibration(
            measure,
            size_mib=size_mib,
            seconds=seconds,
            quick=quick,
            allow_system_disk=allow_system_disk,
        )
    for warning in wanted.warnings:
        warn(warning)
    say(
        f"{wanted.file}: {size_mib} MiB are written once, then parts of it over and over for about "
        f"a third of the time; "
        f"{wanted.point_count} points, about {plimsoll.duration_in_words(wanted.total_s)} in all; "
        f"the file is deleted afterwards"
    )
    if dry_run:
        return
    if not yes and not (sys.stdin.isatty() and typer.confirm("go on?", err=True)):
        stop_with(exit_codes.USAGE, "nothing was written; give --yes to agree")
    try:
        with refusing():
            fitted, tenths = plimsoll.calibrate(
                wanted, measure, name, out, listener=showing(quiet=True)
            )
    except KeyboardInterrupt as interrupt:
        raise typer.Exit(exit_codes.INTERRUPTED) from interrupt
    typer.echo(
        json.dumps(_as_json(fitted, tenths, out), indent=2)
        if as_json
        else "\n".join(_lines(fitted, tenths, out))
    )


def _check_preset(out: Path) -> None:
    """Leave before anything is measured when the preset could not be written, or would replace
    something else.
    """
    if not out.absolute().parent.is_dir():
        stop_with(
            exit_codes.USAGE,
            f"{out.absolute().parent} is no directory; name another file with --out",
        )
    if not os.access(out if out.exists() else out.absolute().parent, os.W_OK):
        stop_with(exit_codes.USAGE, f"{out} cannot be written; name another file with --out")
    try:
        if out.exists() and not out.read_text(encoding="utf-8").startswith(PRESET_BEGINS):
            stop_with(
                exit_codes.USAGE,
                f"{out} is there already and no preset of this command; name another file with "
                f"--out",
            )
    except (OSError, UnicodeDecodeError) as error:
        stop_with(exit_codes.USAGE, f"{out} cannot be read: {error}; name another file with --out")


def _burst_sentence(tenths: list[float]) -> str:
    first, last = tenths[0], sum(tenths[-3:]) / 3
    fall = (
        f"fell from {first:,.0f} to {last:,.0f} per second: a cache filled"
        if last < 0.7 * first
        else None
    )
    return "writes that went on " + (
        fall
        or f"kept their rate ({first:,.0f}, then {last:,.0f} per second): no cache was seen to fill"
    )


def _lines(fitted: plimsoll.Fit, tenths: list[float], out: Path) -> list[str]:
    lines = [f"{'point':<56} {'measured':>10} {'modelled':>10} {'error':>9}"]
    for point, rate, error, held_out in fitted.errors:
        mark = "  held out" if held_out else ""
        lines.append(
            f"{point.name:<56} {point.per_second:>10,.0f} {rate:>10,.0f} {error:>+7.1f} %{mark}"
        )
    return [
        *lines,
        "",
        f"mean error on the points fitted {fitted.mean_error(False):.1f} %, on those held out "
        f"{fitted.mean_error(True):.1f} %",
        _burst_sentence(tenths),
        f"preset: {out}; plimsoll model {out}, or plimsoll test performance --modelled {out}",
    ]


def _as_json(fitted: plimsoll.Fit, tenths: list[float], out: Path) -> dict[str, object]:
    points = [
        {
            "point": point.name,
            "measured_per_second": point.per_second,
            "latency_ms": point.latency_ms,
            "modelled_per_second": rate,
            "error_percent": error,
            "held_out": held_out,
        }
        for point, rate, error, held_out in fitted.errors
    ]
    return {
        "preset": str(out),
        "points": points,
        "error_percent_fitted": fitted.mean_error(False),
        "error_percent_held_out": fitted.mean_error(True),
        "write_burst_per_second_of_tenths": tenths,
    }
