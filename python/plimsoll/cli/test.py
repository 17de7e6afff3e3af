"""`plimsoll test`: the named tests, made from a few options instead of a plan file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from plimsoll import config
from plimsoll.cli import course, options
from plimsoll.plan import plan_of_options

test = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Run a named test: performance.",
)


@test.callback()
def callback() -> None:
    """Run a named test."""


def performance_options(
    path: Path, name: str, databases: int, size_mib: int, minutes: float, backend: str, edition: str
) -> dict[str, Any]:
    """The plan of a performance test: one instance for each database, as the published tool laid them out."""
    instance = {"edition": edition, "backend": backend, "database_size_mib": size_mib}
    return {
        "name": name,
        "target": [{"name": "target", "path": str(path)}],
        "instance": [{"name": f"instance{number}", **instance} for number in range(1, databases + 1)],
        "phase": [
            {"kind": "prepare"},
            {"kind": "warm_up"},
            {"kind": "measure", "duration_s": minutes * 60},
            {"kind": "stop"},
            {"kind": "checksum"},
        ],
    }


@test.command("performance", context_settings={"help_option_names": ["-h", "--help"]})
def performance(
    path: Annotated[Path, typer.Argument(help="A directory on the storage to be tested.")],
    databases: Annotated[int, typer.Option(help="Databases, each an instance with its own log and cache.")] = 2,
    size_mib: Annotated[int, typer.Option(help="Size of each database.")] = 1024,
    minutes: Annotated[float, typer.Option(help="How long to measure; a qualification takes 120.")] = 120.0,
    edition: Annotated[str, typer.Option(help="Whose habits: 2003, 2007, 2010 or 2013.")] = "2010",
    backend: Annotated[str, typer.Option(help="engine or raw_files.")] = str(config.INSTANCE_DEFAULTS["backend"]),
    sessions: Annotated[int | None, typer.Option(help="Sessions for each database.")] = None,
    sluggish: Annotated[float | None, typer.Option(help="Think time as a multiple of service time.")] = None,
    cache_mib: Annotated[int | None, typer.Option(help="Most cache of each instance.")] = None,
    log_path: Annotated[Path | None, typer.Option(help="A directory for the logs, if they lie elsewhere.")] = None,
    limits: Annotated[str, typer.Option(help="strict or lenient.")] = "strict",
    required_iops: Annotated[float | None, typer.Option(help="Database IOPS that must be reached.")] = None,
    stated_limits: Annotated[
        list[str] | None,
        typer.Option("--limit", help="A further limit: 'log_write_latency_ms_p99<5'. May be repeated."),
    ] = None,
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto",
    seed: Annotated[int, typer.Option(help="Decides keys and content.")] = 1,
    out: options.Out = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    destroy: options.Destroy = None,
    max_iops: options.MaxIops = None,
    max_mib_per_s: options.MaxMibPerS = None,
    stop_if: options.StopIf = None,
    detach: options.Detach = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Put the storage under a directory to the test and judge it by the published limits.

    The databases stay for the next test; `plimsoll clean` deletes them.

    Example: plimsoll test performance /mnt/array --databases 4 --size-mib 65536 --minutes 120 --yes
    """
    wanted = performance_options(path, "performance", databases, size_mib, minutes, backend, edition)
    wanted |= {"limits": limits, "io_method": io_method, "seed": seed}
    if stated_limits:
        wanted["stated_limits"] = stated_limits
    if required_iops is not None:
        wanted["required_iops"] = required_iops
    if log_path is not None:
        wanted["target"][0]["log_path"] = str(log_path)
    if cache_mib is not None:
        for instance in wanted["instance"]:
            instance["cache_mib_max"] = cache_mib
    workload: dict[str, Any] = {"name": "mix"}
    if sessions is not None:
        workload["load"] = {"sessions": sessions}
    if sluggish is not None:
        workload["sluggish"] = sluggish
    wanted["workload"] = [workload]
    plan = course.read_or_refuse(plan_of_options, wanted)
    options.perform(
        plan,
        options.Choices(out, yes, dry_run, destroy, quiet, as_json, detach, max_iops, max_mib_per_s, stop_if),
    )
