"""`plimsoll test store`: an online store under orders, with the loop of DVD Store 2."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import options
from plimsoll.cli.named_tests import phase
from plimsoll.cli.terminal import reading_plan, stop_with

#: What a plan is made of.
Options = dict[str, object]
Storage = Annotated[Path | None, typer.Argument(help="A directory on the storage to be tested.")]


def store_test(
    path: Storage = None,
    scale: Annotated[str, typer.Option(help="Nominal size: S, M, L, or such as 500MB or 2GB.")] = "S",
    sessions: Annotated[int | None, typer.Option(help="Sessions that order one after the other.")] = None,
    users: Annotated[int | None, typer.Option(help="Users instead: ten of them are one session.")] = None,
    orders_per_s: Annotated[float | None, typer.Option(help="Let so many customers arrive per second instead.")] = None,
    think_s: Annotated[float, typer.Option(min=0, help="Mean think time between two orders of a session.")] = 0.0,
    minutes: Annotated[float, typer.Option(min=0.02, help="How long to measure; a qualification takes 30.")] = 30.0,
    ramp_s: Annotated[float, typer.Option(min=0, help="Seconds of load before measuring.")] = 0.0,
    cache_mib: Annotated[int | None, typer.Option(help="Most cache of the engine.")] = None,
    edition: Annotated[str, typer.Option(help="Whose page size, cache and log the engine has.")] = "2010",
    modelled: Annotated[
        str | None, typer.Option(help="Simulate this array instead: a preset or FILE.toml.", metavar="ARRAY")
    ] = None,
    change: Annotated[
        list[str] | None, typer.Option(help="A figure of the modelled array.", metavar="KEY=VALUE")
    ] = None,
    log_path: Annotated[Path | None, typer.Option(help="A directory for the log, if it lies elsewhere.")] = None,
    checksum: Annotated[bool, typer.Option(help="Read and verify every page afterwards.")] = True,
    stated_limits: Annotated[
        list[str] | None, typer.Option("--limit", help="A limit: 'order_response_ms_p95<500'. May be repeated.")
    ] = None,
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto",
    seed: Annotated[int, typer.Option(help="Decides rows and orders.")] = 1,
    out: options.Out = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    create: options.Create = False,
    allow_system_disk: options.AllowSystemDisk = False,
    max_iops: options.MaxIops = None,
    max_mib_per_s: options.MaxMibPerS = None,
    stop_if: options.StopIf = None,
    repeat: options.Repeat = 1,
    metrics: options.Metrics = None,
    detach: options.Detach = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Let customers log in, search and order in a store on this engine; count orders per minute and audit every unit sold.

    The loop is that of DVD Store 2: 20 threads that think 1.5 s make 800 orders per minute at most. The store stays for the next test.

    Example: plimsoll test store /mnt/array --scale 1GB --users 200 --think-s 1.5 --minutes 30 --yes
    """
    if (path is None) == (modelled is None):
        stop_with(exit_codes.USAGE, "name either a directory, or an array with --modelled")
    load = _stated({"sessions": sessions, "users": users, "transactions_per_s": orders_per_s})
    workload: Options = {"name": "orders", "think_s": think_s, **({"load": load} if load else {})}
    instance = {"backend": "store", "store_size": scale, "edition": edition, "cache_mib_max": cache_mib}
    wanted: Options = {
        "name": "store",
        "test": "store",
        "target": [_target(path, modelled, change, log_path)],
        "instance": [{"name": "store", **_stated(instance)}],
        "workload": [workload],
        "phase": _phases(minutes, ramp_s, checksum=checksum and modelled is None),
        "io_method": io_method,
        "seed": seed,
        "stop_if": stop_if or [],
        **({"stated_limits": stated_limits} if stated_limits else {}),
    }
    with reading_plan():
        plan = plimsoll.build_plan(wanted)
    choices = options.Choices(
        out=out,
        yes=yes,
        dry_run=dry_run,
        quiet=quiet,
        as_json=as_json,
        detach=detach,
        max_iops=max_iops,
        max_mib_per_s=max_mib_per_s,
        repeat=repeat,
        metrics=metrics,
        create=create,
        allow_system_disk=allow_system_disk,
    )
    options.perform(plan, choices)


def _stated(values: Mapping[str, object]) -> Options:
    return {key: value for key, value in values.items() if value is not None}


def _target(path: Path | None, modelled: str | None, change: list[str] | None, log_path: Path | None) -> Options:
    from plimsoll.cli.test import storage_options

    target = {"name": "target", **storage_options(path, modelled, change or [])}
    return target | ({} if log_path is None else {"log_path": str(log_path)})


def _phases(minutes: float, ramp_s: float, *, checksum: bool) -> list[Options]:
    ramp = [phase("soak", name="ramp up", duration_s=ramp_s, workloads=["orders"])] if ramp_s else []
    checking = [phase("checksum")] if checksum else []
    measuring = phase("measure", duration_s=minutes * 60)
    return [phase("prepare"), *ramp, measuring, phase("audit"), phase("stop"), *checking]
