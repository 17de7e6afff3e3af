"""`plimsoll demo`: two minutes of the main job on the storage under a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes, settings
from plimsoll.cli import options
from plimsoll.cli.live import showing
from plimsoll.cli.terminal import reading_plan, refusing


def demo(
    directory: Annotated[Path, typer.Argument(help="A directory on the storage to be tested.")],
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the databases for the next run.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="How long to measure.")] = settings.DEMO[
        "duration_s"
    ],
    size_mib: Annotated[int, typer.Option(help="Size of each database.")] = settings.DEMO[
        "database_size_mib"
    ],
    backend: options.Backend = "engine",
    stated_limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limit", help="A further limit: 'log_write_latency_ms_p99<5'. May be repeated."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for this run; a new one below runs/ if left out.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress, only warnings and the result.")
    ] = False,
    verbose: options.Verbose = False,
) -> None:
    """Prepare two databases, measure the 2010 mix, stop cleanly, verify every page and print the
    result.

    Exits with 0 whenever a result was produced, so that an honest Fail does not look like a broken
    build.
    """
    instance = {
        "edition": settings.DEMO["edition"],
        "backend": backend,
        "database_size_mib": size_mib,
        "cache_mib_max": settings.DEMO["cache_mib_max"],
    }
    steps = ("prepare", "warm_up", "measure", "stop", "checksum")
    wanted = {
        "name": "demo",
        "target": [{"name": "target", "path": str(directory)}],
        "instance": [
            {"name": f"instance{number}", **instance}
            for number in range(1, settings.DEMO["instances"] + 1)
        ],
        "phase": [
            {"kind": kind} | ({"duration_s": seconds} if kind == "measure" else {})
            for kind in steps
        ],
        "stated_limits": stated_limits or [],
    }
    with reading_plan():
        plan = plimsoll.build_plan(wanted)
    listener = showing(quiet=quiet)
    # Two minutes to see how it works, wherever that is: nobody takes its result for a
    # qualification.
    found = options.checked(plan, None, listener, create=True, allow_system_disk=True)
    made_directory = not directory.exists()
    with refusing():
        result = plimsoll.qualify(plan, out, found=found, listener=listener)
    options.print_result(result, verbose=verbose, told=listener.warnings)
    if keep:
        print(f"databases:  {directory} (delete them with `plimsoll clean {directory}`)")
    else:
        plimsoll.delete_prepared(found)
        if made_directory and directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()
    code = result.exit_code
    raise typer.Exit(code if code == exit_codes.INTERRUPTED else exit_codes.PASS)
