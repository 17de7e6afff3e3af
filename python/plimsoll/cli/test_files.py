"""`plimsoll test files`: files or a block device under an access specification, as Iometer loads
them, or home folders whose users go through scenarios.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes, settings
from plimsoll.cli.named_tests import Options, phase, stated, storage_options
from plimsoll.cli.terminal import stop_with

HOME_FOLDERS = "home-folders"

Storage = Annotated[
    Path | None, typer.Argument(help="A directory on the storage to be tested, or a block device.")
]
Modelled = Annotated[
    str | None,
    typer.Option(help="Simulate this array instead: a preset or FILE.toml.", metavar="ARRAY"),
]
Change = Annotated[
    list[str] | None, typer.Option(help="A figure of the modelled array.", metavar="KEY=VALUE")
]


def files_test(
    path: Storage = None,
    pattern: Annotated[
        str | None, typer.Option(help="The access specification; file-server if left out.")
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="home-folders instead: users who copy, edit, browse, search and delete.",
        ),
    ] = None,
    icf: Annotated[
        Path | None,
        typer.Option(
            help="Take the specification of this configuration of Iometer instead.", metavar="FILE"
        ),
    ] = None,
    specification: Annotated[
        str | None, typer.Option(help="Which one, where the file has several.")
    ] = None,
    files: Annotated[int | None, typer.Option(help="How many files; 1 if left out.")] = None,
    size_mib: Annotated[
        int | None,
        typer.Option(help="Size of each, or what is used of a device; 1024 if left out."),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Workers.")] = None,
    depth: Annotated[
        int | None, typer.Option(help="Transfers each worker keeps under way on every file.")
    ] = None,
    iops: Annotated[
        float | None,
        typer.Option(help="Let so many I/O per second arrive, whatever the storage does."),
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(help="Users, each with --iops-per-user, or in a home of its own."),
    ] = None,
    scenarios_per_h: Annotated[
        float | None, typer.Option(help="What a user of home folders does in an hour; 60.")
    ] = None,
    max_users: Annotated[
        int | None,
        typer.Option(help="Look for the most users of home folders, in so many homes."),
    ] = None,
    iops_per_user: Annotated[float | None, typer.Option(help="I/O per second of one user.")] = None,
    spacing: Annotated[
        str | None, typer.Option(help="How they arrive: regular or poisson.")
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.02, help="How long to measure; a qualification takes 30.")
    ] = 30.0,
    ramp_s: Annotated[float, typer.Option(min=0, help="Seconds of load before measuring.")] = 0.0,
    below_block: Annotated[
        str | None,
        typer.Option(help="Transfers below the logical block: refuse, round or read_modify_write."),
    ] = None,
    data_pattern: Annotated[
        int | None, typer.Option(help="What is written: 0 repeated, 1 or 2 random bytes.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare what is read with what was written.")
    ] = False,
    modelled: Modelled = None,
    change: Change = None,
    log_path: Annotated[
        Path | None, typer.Option(help="For a block device: where what is known of it is kept.")
    ] = None,
    stated_limits: Annotated[
        list[str] | None,
        typer.Option("--limit", help="A limit: 'file_read_response_ms_p95<20'. May be repeated."),
    ] = None,
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto",
    seed: Annotated[int, typer.Option(help="Decides places and content.")] = 1,
) -> Options:
    """Put files or a block device under an access specification.

    With a depth as Iometer does, or at a rate; or let users work in home folders.

    With --iops, or --users and --iops-per-user, transfers arrive by a schedule: a stall is felt by
    all that arrive during it. The files stay for the next test; `plimsoll clean` deletes them.

    Example: plimsoll test files /mnt/share --pattern file-server --users 200 --iops-per-user 0.7
    --minutes 30 --yes

    Example: plimsoll test files --modelled emc-vnxe3300 --depth 8

    Example: plimsoll test files /mnt/share --scenario home-folders --users 200 --minutes 30 --yes
    """
    if icf is None and specification is not None:
        stop_with(exit_codes.USAGE, "--specification names one of a file; give it with --icf")
    target = storage_options(path, modelled, change, log_path, "a directory or device")
    common = {
        "test": "files",
        "target": [target],
        "io_method": io_method,
        "seed": seed,
        **stated(stated_limits=stated_limits or None),
    }
    of_access = stated(
        pattern=pattern,
        icf=icf,
        files=files,
        size_mib=size_mib,
        workers=workers,
        depth=depth,
        iops=iops,
        iops_per_user=iops_per_user,
        below_block=below_block,
        data_pattern=data_pattern,
        verify=verify or None,
    )
    of_homes = stated(scenarios_per_h=scenarios_per_h, max_users=max_users)
    if scenario is not None:
        _only_home_folders(scenario, of_access)
        load = _load_of_homes(users, max_users, spacing)
        return {**common, **_home_folders(load, scenarios_per_h, max_users, minutes, ramp_s)}
    if of_homes:
        stop_with(
            exit_codes.USAGE,
            f"{_option(next(iter(of_homes)))} means something only with --scenario home-folders",
        )
    load = stated(target_iops=iops, users=users, iops_per_user=iops_per_user, spacing=spacing)
    asked = {} if icf is None else plimsoll.access_of_icf(icf, specification)
    workload = stated(
        pattern=pattern,
        workers=workers,
        outstanding=depth,
        below_block=below_block,
        load=load or None,
    )
    instance = stated(
        files=files, file_mib=size_mib, data_pattern=data_pattern, verify=verify or None
    )
    return {
        "name": "files",
        **common,
        "instance": [{"name": "files", "backend": "files", **instance}],
        "workload": [{"name": "files", **asked, **workload}],
        "phase": _phases(minutes, ramp_s, verify=verify),
    }


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _only_home_folders(scenario: str, of_access: Options) -> None:
    """Refuse other scenarios, and options of access specifications, all at once."""
    if scenario != HOME_FOLDERS:
        stop_with(
            exit_codes.USAGE,
            f'--scenario is "{scenario}", which is not known; write {HOME_FOLDERS}',
        )
    if of_access:
        named = ", ".join(_option(key) for key in of_access)
        stop_with(exit_codes.USAGE, f"{named}: means nothing with --scenario {HOME_FOLDERS}")


def _load_of_homes(users: int | None, max_users: int | None, spacing: str | None) -> Options:
    if (users is None) == (max_users is None):
        stop_with(
            exit_codes.USAGE,
            f"--scenario {HOME_FOLDERS} needs users: give --users, or --max-users to look for them",
        )
    way = {"search": "max"} if users is None else {"users": users}
    return {**way, **stated(spacing=spacing)}


def _home_folders(
    load: Options,
    scenarios_per_h: float | None,
    max_users: int | None,
    minutes: float,
    ramp_s: float,
) -> Options:
    """What is particular to a plan of home folders."""
    ramp = [phase("soak", name="ramp up", duration_s=ramp_s, workloads=["users"])] if ramp_s else []
    searching = (
        [phase("search", duration_s=max(minutes * 60, settings.SEARCH["duration_s"]))]
        if "search" in load
        else []
    )
    measuring = phase("measure", duration_s=minutes * 60)
    return {
        "name": HOME_FOLDERS,
        "instance": [{"name": "homes", "backend": "home_folders", **stated(homes=max_users)}],
        "workload": [{"name": "users", "load": load, **stated(scenarios_per_h=scenarios_per_h)}],
        "phase": [phase("prepare"), *ramp, *searching, measuring, phase("audit"), phase("stop")],
    }


def _phases(minutes: float, ramp_s: float, *, verify: bool) -> list[Options]:
    ramp = [phase("soak", name="ramp up", duration_s=ramp_s, workloads=["files"])] if ramp_s else []
    checking = [phase("checksum")] if verify else []
    return [
        phase("prepare"),
        *ramp,
        phase("measure", duration_s=minutes * 60),
        phase("stop"),
        *checking,
    ]
