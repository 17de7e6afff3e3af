"""`plimsoll demo`: two minutes of the main job on the storage under a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll import settings
from plimsoll.cli.live import showing
from plimsoll.cli.test import performance_options
from plimsoll.databases import preflight
from plimsoll.pipeline import qualify
from plimsoll.plan.complete import plan_of_options


def demo(
    directory: Annotated[Path, typer.Argument(help="A directory on the storage to be tested.")],
    keep: Annotated[bool, typer.Option("--keep", help="Leave the databases for the next run.")] = False,
    seconds: Annotated[float, typer.Option(help="How long to measure.")] = settings.DEMO["duration_s"],
    size_mib: Annotated[int, typer.Option(help="Size of each database.")] = settings.DEMO["database_size_mib"],
    backend: Annotated[str, typer.Option(help="engine or raw_files.")] = str(settings.INSTANCE_DEFAULTS["backend"]),
    stated_limits: Annotated[
        list[str] | None,
        typer.Option("--limit", help="A further limit: 'log_write_latency_ms_p99<5'. May be repeated."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for this run; a new one below runs/ if left out.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only warnings and the result.")] = False,
) -> None:
    """Prepare two databases, measure the 2010 mix, stop cleanly, verify every page and print the result.

    Exits with 0 whenever a result was produced, so that an honest Fail does not look like a broken build.
    """
    count = settings.DEMO["instances"]
    options = performance_options(
        directory, "demo", count, size_mib, seconds / 60, backend, edition=settings.DEMO["edition"]
    )
    for instance in options["instance"]:
        instance["cache_mib_max"] = settings.DEMO["cache_mib_max"]
    if stated_limits:
        options["stated_limits"] = stated_limits
    plan = qualify.read_or_refuse(plan_of_options, options)
    expected = qualify.forecast(plan)
    made_directory = not directory.exists()
    run_folder, found = qualify.carry_out(plan, out, showing, quiet=quiet, expected=expected)
    qualify.print_result(run_folder, found)
    if keep:
        print(f"databases:  {directory} (delete them with `plimsoll clean {directory}`)")
    else:
        for instance in plan["run"]["instances"]:
            if instance["name"] not in expected.reused:
                preflight.remove(Path(instance["directory"]))
        if made_directory and not any(directory.iterdir()):
            directory.rmdir()
    code = qualify.exit_code(run_folder, found)
    raise typer.Exit(code if code == qualify.EXIT_INTERRUPTED else qualify.EXIT_PASS)
