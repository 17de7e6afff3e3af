"""`plimsoll test files`: files or a block device under an access specification, as Iometer loads them."""

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
Storage = Annotated[Path | None, typer.Argument(help="A directory on the storage to be tested, or a block device.")]
Modelled = Annotated[
    str | None, typer.Option(help="Simulate this array instead: a preset or FILE.toml.", metavar="ARRAY")
]
Change = Annotated[list[str] | None, typer.Option(help="A figure of the modelled array.", metavar="KEY=VALUE")]


def files_test(
    path: Storage = None,
    pattern: Annotated[str | None, typer.Option(help="The access specification; file-server if left out.")] = None,
    icf: Annotated[
        Path | None,
        typer.Option(help="Take the specification of this configuration of Iometer instead.", metavar="FILE"),
    ] = None,
    specification: Annotated[str | None, typer.Option(help="Which one, where the file has several.")] = None,
    files: Annotated[int, typer.Option(help="How many files.")] = 1,
    size_mib: Annotated[int, typer.Option(help="Size of each, or what is used of a device.")] = 1024,
    workers: Annotated[int | None, typer.Option(help="Workers.")] = None,
    depth: Annotated[int | None, typer.Option(help="Transfers each worker keeps under way on every file.")] = None,
    iops: Annotated[
        float | None, typer.Option(help="Let so many I/O per second arrive, whatever the storage does.")
    ] = None,
    users: Annotated[int | None, typer.Option(help="Users, each of whom makes --iops-per-user.")] = None,
    iops_per_user: Annotated[float | None, typer.Option(help="I/O per second of one user.")] = None,
    spacing: Annotated[str | None, typer.Option(help="How they arrive: regular or poisson.")] = None,
    minutes: Annotated[float, typer.Option(min=0.02, help="How long to measure; a qualification takes 30.")] = 30.0,
    ramp_s: Annotated[float, typer.Option(min=0, help="Seconds of load before measuring.")] = 0.0,
    below_block: Annotated[
        str | None, typer.Option(help="Transfers below the logical block: refuse, round or read_modify_write.")
    ] = None,
    data_pattern: Annotated[int | None, typer.Option(help="What is written: 0 repeated, 1 or 2 random bytes.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare what is read with what was written.")] = False,
    modelled: Modelled = None,
    change: Change = None,
    log_path: Annotated[
        Path | None, typer.Option(help="For a block device: where what is known of it is kept.")
    ] = None,
    stated_limits: Annotated[
        list[str] | None, typer.Option("--limit", help="A limit: 'file_read_response_ms_p95<20'. May be repeated.")
    ] = None,
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto",
    seed: Annotated[int, typer.Option(help="Decides places and content.")] = 1,
    out: options.Out = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    destroy: options.Destroy = None,
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
    """Put files or a block device under an access specification: with a depth as Iometer does, or at a rate.

    With --iops, or --users and --iops-per-user, transfers arrive by a schedule: a stall is felt by all that arrive during it. The files
    stay for the next test; `plimsoll clean` deletes them.

    Example: plimsoll test files /mnt/share --pattern file-server --users 200 --iops-per-user 0.7 --minutes 30 --yes

    Example: plimsoll test files --modelled emc-vnxe3300 --depth 8
    """
    if (path is None) == (modelled is None):
        stop_with(exit_codes.USAGE, "name either a directory or device, or an array with --modelled")
    load = {"target_iops": iops, "users": users, "iops_per_user": iops_per_user, "spacing": spacing}
    if icf is None and specification is not None:
        stop_with(exit_codes.USAGE, "--specification names one of a file; give it with --icf")
    asked: Options = {}
    if icf is not None:
        with reading_plan():
            asked = plimsoll.access_of_icf(icf, specification)
    workload = {"pattern": pattern, "workers": workers, "outstanding": depth, "below_block": below_block}
    instance = {"files": files, "file_mib": size_mib, "data_pattern": data_pattern, "verify": verify or None}
    wanted: Options = {
        "name": "files",
        "test": "files",
        "target": [_target(path, modelled, change, log_path)],
        "instance": [{"name": "files", "backend": "files", **_stated(instance)}],
        "workload": [
            {"name": "files", **asked, **_stated(workload), **({"load": _stated(load)} if _stated(load) else {})}
        ],
        "phase": _phases(minutes, ramp_s, verify=verify),
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
        destroy=destroy,
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


def _phases(minutes: float, ramp_s: float, *, verify: bool) -> list[Options]:
    ramp = [phase("soak", name="ramp up", duration_s=ramp_s, workloads=["files"])] if ramp_s else []
    checking = [phase("checksum")] if verify else []
    return [phase("prepare"), *ramp, phase("measure", duration_s=minutes * 60), phase("stop"), *checking]
