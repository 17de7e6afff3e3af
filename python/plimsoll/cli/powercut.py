"""`plimsoll powercut` and `plimsoll witness`: durable work on the machine that loses its power, and who remembers on another.

What the difference means is said by `plimsoll audit`, when the power is back.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from plimsoll import exit_codes
from plimsoll.cli.terminal import say, stop_with
from plimsoll.powercut import workspace
from plimsoll.powercut.client import Link, Progress, carry_on, leave
from plimsoll.powercut.witness import DEFAULT_ADDRESS, Listener, WitnessError, WitnessLog

PAGE_KIB = (4, 8, 16, 32)
IO_METHODS = ("auto", "io_uring", "libaio", "threads")
_IF_CUT = "If its power was cut: bring it back, mount it, and `plimsoll audit --cut-under-load`"


def powercut(
    directory: Annotated[
        Path, typer.Argument(metavar="PATH", help="A directory on the storage that will lose its power.")
    ],
    witness: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where `plimsoll witness` listens.")],
    size_mib: Annotated[int, typer.Option(help="About what the database may hold.", min=1)] = 256,
    page_kib: Annotated[int, typer.Option(help="Page size of the database: 4, 8, 16 or 32.")] = 32,
    sessions: Annotated[int, typer.Option(help="How many commit at once.", min=1, max=256)] = 16,
    seconds: Annotated[
        float | None, typer.Option(help="End by itself after this time, without any cut.", min=0.1)
    ] = None,
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print how the work ended as JSON.")] = False,
) -> None:
    """Commit durably and tell a witness of every commit, until the power is cut.

    Cut the power while it runs: of the machine, the array, the enclosure. When it is back, `plimsoll audit PATH --witness-log FILE`
    says what was lost, torn or reordered. Works in PATH/powercut, which must not be there or be empty.

    Example: plimsoll powercut /mnt/array --witness other-host:17613
    """
    mistakes = [
        *(["--page-kib must be 4, 8, 16 or 32"] if page_kib not in PAGE_KIB else []),
        *([f"--io-method must be one of {', '.join(IO_METHODS)}"] if io_method not in IO_METHODS else []),
        *(["--seconds must be a number"] if seconds is not None and not math.isfinite(seconds) else []),
    ]
    if mistakes:
        stop_with(exit_codes.USAGE, *mistakes)
    wanted = workspace.Wanted(directory, size_mib << 20, page_kib << 10, sessions, io_method, seconds)
    try:
        for warning in workspace.inspect(wanted):
            say(f"warning: {warning}")
        work = workspace.work_of(wanted)
        with workspace.made(Path(work["directory"])):
            description = workspace.describe_run(wanted, work)
            link = Link(witness, description)
            _work(link, wanted, description, as_json)
    except (workspace.PlaceError, WitnessError) as error:
        stop_with(exit_codes.USAGE, str(error))
    except OSError as error:
        stop_with(exit_codes.USAGE, f"{error.filename or directory}: {(error.strerror or str(error)).lower()}")


def _work(link: Link, wanted: workspace.Wanted, description: dict[str, Any], as_json: bool) -> NoReturn:
    """Take the directory and work in it until the power goes, the time is over or somebody stops it."""
    from plimsoll import _native

    place, work = workspace.take(wanted, description), description["work"]
    if link.is_here:
        say(
            "warning: the witness is on this machine; its log must lie on storage that keeps its power, or it proves nothing"
        )
    try:
        native = _native.Powercut(json.dumps(work))
    except _native.ConfigError as error:
        stop_with(exit_codes.USAGE, str(error))
    try:
        say(
            f"run {workspace.run_name(work)}: about {wanted.size_bytes >> 20} MiB in {place}; cut the power whenever you like, or stop with Ctrl-C"
        )
        carry_on(native, link, _show, lambda text: say(f"warning: {text}"))
    except WitnessError as error:
        _end(native, place, link)
        stop_with(exit_codes.INCONCLUSIVE, f"{error}; the work was stopped")
    except KeyboardInterrupt:
        _print(_end(native, place, link), place, as_json)
        raise typer.Exit(exit_codes.INTERRUPTED) from None
    _print(_end(native, place, link), place, as_json)
    raise typer.Exit(exit_codes.PASS)


def _end(native: Any, place: Path, link: Link) -> dict[str, Any]:
    """Let the work close its files, and note that it did; leaves when the storage has failed."""
    from plimsoll import _native

    if not leave(native):
        stop_with(exit_codes.FAIL, f"the storage does not answer; what was under way is left as it is. {_IF_CUT}")
    try:
        outcome: dict[str, Any] = json.loads(native.outcome())
    except (_native.DiskError, _native.CorruptionError) as error:
        stop_with(exit_codes.FAIL, f"the storage failed: {error}. {_IF_CUT}")
    except _native.PlimsollError as error:
        stop_with(exit_codes.FAIL if "disk" in str(error) else exit_codes.INCONCLUSIVE, str(error))
    link.end()
    try:
        workspace.close(place)
    except OSError as error:
        stop_with(exit_codes.FAIL, f"the storage failed: {error}. {_IF_CUT}")
    return outcome


def _show(progress: Progress) -> None:
    if sys.stderr.isatty():
        text = f"{progress.commits:,} commits and {progress.marks:,} marks durable, {progress.confirmed:,} known to the witness"
        print(f"\r{text}", end="", file=sys.stderr, flush=True)


def _print(outcome: dict[str, Any], place: Path, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(outcome | {"path": str(place)}, indent=2))
        return
    for remark in outcome["remarks"]:
        say(f"note: {remark}")
    typer.echo(
        f"stopped without a cut after {outcome['commits']:,} commits and {outcome['marks']:,} marks ({outcome['method']}); "
        f"`plimsoll clean {place}` deletes the files"
    )


def witness(
    log: Annotated[Path, typer.Option("--log", metavar="FILE", help="The log; appended to, never overwritten.")],
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen; only this machine reaches the loopback.")
    ] = DEFAULT_ADDRESS,
    once: Annotated[bool, typer.Option("--once", help="End with the first machine that was heard.")] = False,
) -> None:
    """Listen for a machine under test and keep on stable storage what it says is durable.

    Run it on a machine that keeps its power, before `plimsoll powercut` on the other. It listens on the loopback unless told
    otherwise; whoever reaches the address can add to the log, and do nothing else.

    Example: plimsoll witness --log witness.log --listen 0.0.0.0:17613
    """
    try:
        opened = WitnessLog(log)
        listener = Listener(listen, opened, say)
    except WitnessError as error:
        stop_with(exit_codes.USAGE, str(error))
    open_to = "" if listener.is_private else ", open to everybody who reaches this address"
    try:
        say(f"witness: listening at {listener.place}{open_to}; writing {log}")
        while True:
            ending = listener.hear_one()
            say(f"{ending['peer']}: {ending['lines']:,} acknowledgements, then {ending['why']}")
            if once:
                break
    except KeyboardInterrupt:
        raise typer.Exit(exit_codes.INTERRUPTED) from None
    except WitnessError as error:
        stop_with(exit_codes.USAGE, str(error))
    finally:
        listener.close()
        opened.close()
