"""`plimsoll demo`: two minutes of the main job on the storage under a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll import config, premises
from plimsoll.cli import course
from plimsoll.cli.test import performance_options
from plimsoll.plan import plan_of_options


def demo(
    directory: Annotated[Path, typer.Argument(help="A directory on the storage to be tested.")],
    keep: Annotated[bool, typer.Option("--keep", help="Leave the databases for the next run.")] = False,
    seconds: Annotated[float, typer.Option(help="How long to measure.")] = config.DEMO["duration_s"],
    size_mib: Annotated[int, typer.Option(help="Size of each database.")] = config.DEMO["database_size_mib"],
    backend: Annotated[str, typer.Option(help="engine or raw_files.")] = str(config.INSTANCE_DEFAULTS["backend"]),
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
    count = config.DEMO["instances"]
    options = performance_options(
        directory, "demo", count, size_mib, seconds / 60, backend, edition=config.DEMO["edition"]
    )
    for instance in options["instance"]:
        instance["cache_mib_max"] = config.DEMO["cache_mib_max"]
    if stated_limits:
        options["stated_limits"] = stated_limits
    plan = course.read_or_refuse(plan_of_options, options)
    expected = course.forecast(plan)
    made_directory = not directory.exists()
    run_folder, found = course.carry_out(plan, out, quiet=quiet, expected=expected)
    course.print_result(run_folder, found)
    if keep:
        print(f"databases:  {directory} (delete them with `plimsoll clean {directory}`)")
    else:
        for instance in plan["run"]["instances"]:
            if instance["name"] not in expected.reused:
                premises.remove(Path(instance["directory"]))
        if made_directory and not any(directory.iterdir()):
            directory.rmdir()
    code = course.exit_code(run_folder, found)
    raise typer.Exit(code if code == course.EXIT_INTERRUPTED else course.EXIT_PASS)
