"""`plimsoll calibrate --measure PATH`: a sweep over the storage at hand, and a preset that behaves like it.

Writes one file below the path, and deletes it. What was measured and what was fitted is printed with its error.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll import exit_codes
from plimsoll.cli.terminal import say, stop_with
from plimsoll.host.probe import StorageError, describe
from plimsoll.live.progress import duration_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.arrays.fit.calibration import Fit, SweepPoint

FILE_NAME = "plimsoll-calibration.dat"
#: For the forecast alone.
ASSUMED_MIB_PER_S = 150
BURST_DEPTH, BURST_TIMES = 32, 5
#: Runs with and without work for the processors, of a point's time each way in all.
DURABLE_TIMES = 10
#: How every preset of this command begins.
PRESET_BEGINS = "# The storage under "
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


def calibrate(
    measure: Annotated[
        Path, typer.Option("--measure", metavar="PATH", help="A directory on the storage to be measured.")
    ],
    out: Annotated[Path, typer.Option(help="The preset that is written.", metavar="FILE.toml")] = Path("measured.toml"),
    name: Annotated[str, typer.Option(help="What the preset is called.")] = "measured",
    size_mib: Annotated[int, typer.Option(help="Size of the file that is measured.", min=64)] = 4096,
    seconds: Annotated[float, typer.Option(help="How long each point is measured.", min=0.1)] = 3.0,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points: only to see how it works.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to what is written.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print points and errors as JSON.")] = False,
) -> None:
    """Measure the storage under a path and write a preset that behaves like it, with its error on points held out.

    Then predict a test and run it: `plimsoll test performance --modelled measured.toml --size-mib 1024`, and
    `plimsoll test performance PATH --size-mib 1024`.

    Example: plimsoll calibrate --measure /mnt/array --yes
    """
    from plimsoll.arrays.fit.calibration import fit, preset_text, sweep_plan

    if not _NAME.fullmatch(name):
        stop_with(exit_codes.USAGE, f'--name is "{name}"; use small letters, digits and -')
    _check_preset(out)
    plan = sweep_plan(quick)
    file = measure.expanduser().absolute() / FILE_NAME
    _forecast(file, size_mib, len(plan) + 3 + BURST_TIMES, seconds)
    if dry_run:
        return
    if not yes and not (sys.stdin.isatty() and typer.confirm("go on?", err=True)):
        stop_with(exit_codes.USAGE, "nothing was written; give --yes to agree")
    with _measured_file(file, size_mib):
        points = [_measured(wanted, file, size_mib, seconds) for wanted in plan]
        host = _host(file, size_mib, seconds)
        tenths = _burst(file, size_mib, seconds)
    say("fitting a model ...")
    fitted = fit(points, size_mib << 20, name, host)
    when = datetime.now(UTC).date().isoformat()
    out.write_text(preset_text(fitted, str(measure), when), encoding="utf-8")
    typer.echo(
        json.dumps(_as_json(fitted, tenths, out), indent=2) if as_json else "\n".join(_lines(fitted, tenths, out))
    )


def _check_preset(out: Path) -> None:
    """Leave before anything is measured when the preset could not be written, or would replace something else."""
    if not out.absolute().parent.is_dir():
        stop_with(exit_codes.USAGE, f"{out.absolute().parent} is no directory; name another file with --out")
    if not os.access(out if out.exists() else out.absolute().parent, os.W_OK):
        stop_with(exit_codes.USAGE, f"{out} cannot be written; name another file with --out")
    try:
        if out.exists() and not out.read_text(encoding="utf-8").startswith(PRESET_BEGINS):
            stop_with(
                exit_codes.USAGE, f"{out} is there already and no preset of this command; name another file with --out"
            )
    except (OSError, UnicodeDecodeError) as error:
        stop_with(exit_codes.USAGE, f"{out} cannot be read: {error}; name another file with --out")


def _forecast(file: Path, size_mib: int, point_count: int, seconds: float) -> None:
    """Say what will be written and how long it takes; leave when it cannot be."""
    try:
        storage = describe(file.parent)
    except StorageError as error:
        stop_with(exit_codes.USAGE, str(error))
    if not file.parent.is_dir():
        stop_with(exit_codes.USAGE, f"{file.parent} is no directory; name one on the storage to be measured")
    if file.exists():
        stop_with(exit_codes.USAGE, f"{file} is there already; delete it if no other calibration is running")
    if storage.free_bytes < size_mib << 20:
        stop_with(exit_codes.USAGE, f"{file.parent} has {storage.free_bytes >> 20} MiB free; take a smaller --size-mib")
    for warning in storage.warnings:
        say(f"warning: {warning}")
    total_s = size_mib / ASSUMED_MIB_PER_S + point_count * seconds
    say(
        f"{file}: {size_mib} MiB are written once, then parts of it over and over for about a third of the time; "
        f"{point_count} points, about {duration_in_words(total_s)} in all; the file is deleted afterwards"
    )


@contextmanager
def _measured_file(file: Path, size_mib: int) -> Iterator[None]:
    """The file, filled, for as long as it is measured."""
    try:
        say(f"writing {size_mib} MiB ...")
        _point(
            file, size_mib, 1.0, action="fill", block_kib=1024, depth=4, span_share=1.0, sequential=True, durable=False
        )
        yield
    except KeyboardInterrupt as interrupt:
        raise typer.Exit(exit_codes.INTERRUPTED) from interrupt
    finally:
        file.unlink(missing_ok=True)


def _point(file: Path, size_mib: int, seconds: float, **wanted: Any) -> dict[str, Any]:
    """Measure one point; leaves when the storage reports an error."""
    from plimsoll import _native

    block = int(wanted["block_kib"]) * 1024
    span = max(int((size_mib << 20) * wanted["span_share"]) // block * block, block)
    point = {
        "path": str(file), "action": wanted["action"], "block_bytes": block, "depth": wanted["depth"], "span_bytes": span,
        "sequential": wanted["sequential"], "durable": wanted["durable"], "seconds": seconds, "seed": 1,
        "working_threads": wanted.get("working_threads", 0),
    }  # fmt: skip
    try:
        found: dict[str, Any] = json.loads(_native.sweep(json.dumps(point)))
    except (_native.DiskError, _native.ConfigError) as error:
        stop_with(exit_codes.USAGE, str(error))
    return found


def _measured(wanted: dict[str, Any], file: Path, size_mib: int, seconds: float) -> SweepPoint:
    from plimsoll.arrays.fit.calibration import SweepPoint

    found = _point(file, size_mib, seconds, **wanted)
    point = SweepPoint(**wanted, per_second=max(found["per_second"], 1e-3), latency_ms=found["latency_ms_mean"])
    say(f"{point.name}: {point.per_second:,.0f} per second, {point.latency_ms:.3f} ms")
    return point


def _host(file: Path, size_mib: int, seconds: float) -> dict[str, Any]:
    """The host as a run with few sessions has it: its processors, and their time for an I/O that is waited for alone."""
    wanted = {"action": "read", "block_kib": 32, "depth": 1, "span_share": 1.0, "sequential": False, "durable": False}
    before = resource.getrusage(resource.RUSAGE_SELF)
    count = _point(file, size_mib, seconds, **wanted)["count"]
    after = resource.getrusage(resource.RUSAGE_SELF)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    processors = len(os.sched_getaffinity(0))
    wait_us = _durable_wait_us(file, size_mib, seconds, processors)
    io_us = 1e6 * used_s / max(count, 1)
    say(
        f"this machine: {processors} processors, {io_us:.1f} us of one for each I/O; "
        f"a durable write waits {wait_us:.0f} us longer while they are at work"
    )
    return {"host_processor_count": processors, "host_io_us": round(io_us, 2), "queue_durable_us": round(wait_us, 2)}


def _durable_wait_us(file: Path, size_mib: int, seconds: float, processors: int) -> float:
    """How much longer a durable write takes while the processors are at work: the kernel finishes it in workers that need one.

    Where the threads happen to run decides much, so this is the mean of many short runs in turns.
    """
    wanted = {"action": "write", "block_kib": 8, "depth": 1, "span_share": 0.05, "sequential": True, "durable": True}

    def latency_us(working: int) -> float:
        point = _point(file, size_mib, seconds / DURABLE_TIMES, working_threads=working, **wanted)
        return 1e3 * float(point["latency_ms_mean"])

    longer = [latency_us(processors) - latency_us(0) for _ in range(DURABLE_TIMES)]
    return max(sum(longer) / len(longer), 0.0)


def _burst(file: Path, size_mib: int, seconds: float) -> list[float]:
    """Writes that go on: their rate in each tenth of the time, which falls when a cache is full."""
    wanted = {
        "action": "write",
        "block_kib": 32,
        "depth": BURST_DEPTH,
        "span_share": 1.0,
        "sequential": False,
        "durable": True,
    }
    tenths: list[float] = _point(file, size_mib, BURST_TIMES * seconds, **wanted)["per_second_of_tenths"]
    return tenths


def _burst_sentence(tenths: list[float]) -> str:
    first, last = tenths[0], sum(tenths[-3:]) / 3
    fall = f"fell from {first:,.0f} to {last:,.0f} per second: a cache filled" if last < 0.7 * first else None
    return "writes that went on " + (
        fall or f"kept their rate ({first:,.0f}, then {last:,.0f} per second): no cache was seen to fill"
    )


def _lines(fitted: Fit, tenths: list[float], out: Path) -> list[str]:
    lines = [f"{'point':<56} {'measured':>10} {'modelled':>10} {'error':>9}"]
    for point, rate, error, held_out in fitted.errors:
        mark = "  held out" if held_out else ""
        lines.append(f"{point.name:<56} {point.per_second:>10,.0f} {rate:>10,.0f} {error:>+7.1f} %{mark}")
    return [
        *lines,
        "",
        f"mean error on the points fitted {fitted.mean_error(False):.1f} %, on those held out {fitted.mean_error(True):.1f} %",
        _burst_sentence(tenths),
        f"preset: {out}; plimsoll model {out}, or plimsoll test performance --modelled {out}",
    ]


def _as_json(fitted: Fit, tenths: list[float], out: Path) -> dict[str, Any]:
    points = [
        {
            "point": point.name, "measured_per_second": point.per_second, "latency_ms": point.latency_ms,
            "modelled_per_second": rate, "error_percent": error, "held_out": held_out,
        }
        for point, rate, error, held_out in fitted.errors
    ]  # fmt: skip
    return {
        "preset": str(out),
        "points": points,
        "error_percent_fitted": fitted.mean_error(False),
        "error_percent_held_out": fitted.mean_error(True),
        "write_burst_per_second_of_tenths": tenths,
    }
