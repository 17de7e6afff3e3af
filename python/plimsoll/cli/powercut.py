"""`plimsoll powercut` and `plimsoll witness`.

Durable work on the machine that loses its power, and who remembers on another.

What the difference means is said by `plimsoll audit`, when the power is back.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import refusing, say, stop_with
from plimsoll.errors.system_errors import system_reason

PAGE_KIB = (4, 8, 16, 32)
IO_METHODS = ("auto", "io_uring", "libaio", "threads")


def powercut(
    directory: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A directory on the storage that will lose its power."),
    ],
    witness: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where `plimsoll witness` listens.")
    ],
    size_mib: Annotated[int, typer.Option(help="About what the database may hold.", min=1)] = 256,
    page_kib: Annotated[int, typer.Option(help="Page size of the database: 4, 8, 16 or 32.")] = 32,
    sessions: Annotated[int, typer.Option(help="How many commit at once.", min=1, max=256)] = 16,
    seconds: Annotated[
        float | None, typer.Option(help="End by itself after this time, without any cut.", min=0.1)
    ] = None,
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto",
    allow_system_disk: options.AllowSystemDisk = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print how the work ended as JSON.")
    ] = False,
) -> None:
    """Commit durably and tell a witness of every commit, until the power is cut.

    Cut the power while it runs: of the machine, the array, the enclosure. When it is back,
    `plimsoll audit PATH --witness-log FILE` says what was lost, torn or reordered. Works in
    PATH/powercut, which must not be there or be empty.

    Example: plimsoll powercut /mnt/array --witness other-host:17613
    """
    mistakes = [
        *(["--page-kib must be 4, 8, 16 or 32"] if page_kib not in PAGE_KIB else []),
        *(
            [f"--io-method must be one of {', '.join(IO_METHODS)}"]
            if io_method not in IO_METHODS
            else []
        ),
        *(
            ["--seconds must be a number"]
            if seconds is not None and not math.isfinite(seconds)
            else []
        ),
    ]
    if mistakes:
        stop_with(exit_codes.USAGE, *mistakes)
    wanted = plimsoll.PowercutWanted(
        directory, size_mib << 20, page_kib << 10, sessions, io_method, seconds, allow_system_disk
    )
    try:
        ended = plimsoll.work_until_cut(wanted, witness, listener=showing(quiet=True), show=_show)
    except plimsoll.StorageFailedError as error:
        stop_with(exit_codes.FAIL, str(error))
    except (plimsoll.WitnessLostError, plimsoll.EngineError) as error:
        is_usage = isinstance(error, plimsoll.ConfigError)
        stop_with(exit_codes.USAGE if is_usage else exit_codes.INCONCLUSIVE, str(error))
    except plimsoll.PowercutError as error:
        stop_with(exit_codes.USAGE, str(error))
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{error.filename or directory}: {system_reason(error)}")
    _print(ended, as_json)
    raise typer.Exit(exit_codes.INTERRUPTED if ended.interrupted else exit_codes.PASS)


def _show(progress: plimsoll.PowercutProgress) -> None:
    if sys.stderr.isatty():
        text = (
            f"{progress.commits:,} commits and {progress.marks:,} marks durable, "
            f"{progress.confirmed:,} known to the witness"
        )
        print(f"\r{text}", end="", file=sys.stderr, flush=True)


def _print(ended: plimsoll.WorkEnded, as_json: bool) -> None:
    outcome, place = ended.outcome, ended.place
    if as_json:
        typer.echo(json.dumps(outcome | {"path": str(place)}, indent=2))
        return
    for remark in outcome["remarks"]:
        say(f"note: {remark}")
    typer.echo(
        f"stopped without a cut after {outcome['commits']:,} commits and {outcome['marks']:,} "
        f"marks ({outcome['method']}); "
        f"`plimsoll clean {place}` deletes the files"
    )


def witness(
    log: Annotated[
        Path, typer.Option("--log", metavar="FILE", help="The log; appended to, never overwritten.")
    ],
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="Where to listen; only this machine reaches the loopback."
        ),
    ] = plimsoll.WITNESS_ADDRESS,
    once: Annotated[
        bool, typer.Option("--once", help="End with the first machine that was heard.")
    ] = False,
) -> None:
    """Listen for a machine under test and keep on stable storage what it says is durable.

    Run it on a machine that keeps its power, before `plimsoll powercut` on the other. It listens on
    the loopback unless told otherwise; any client that reaches the address can add to the log, and
    do nothing else.

    Example: plimsoll witness --log witness.log --listen 0.0.0.0:17613
    """
    try:
        with refusing(plimsoll.WitnessError):
            plimsoll.remember(log, listen, once=once, listener=showing(quiet=True))
    except KeyboardInterrupt:
        raise typer.Exit(exit_codes.INTERRUPTED) from None
