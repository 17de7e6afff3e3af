"""The named test of files: files or a block device under an access specification, as Iometer loads
them, or home folders whose users go through scenarios.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from plimsoll import settings
from plimsoll.pipeline.named_tests.declared import (
    Change,
    DeviceLogPath,
    FileLimit,
    IoMethod,
    Minutes,
    Modelled,
    PlaceSeed,
    RampS,
)
from plimsoll.pipeline.named_tests.options import NamedTestOption as Option
from plimsoll.pipeline.named_tests.options import refuse
from plimsoll.pipeline.named_tests.tables import (
    Tables,
    stated,
    storage,
    storage_problems,
    worked,
)

HOME_FOLDERS = "home-folders"


def files(
    path: Annotated[
        Path | None, Option("A directory on the storage to be tested, or a block device.")
    ] = None,
    pattern: Annotated[
        str | None, Option("The access specification; file-server if left out.")
    ] = None,
    scenario: Annotated[
        str | None,
        Option(
            "home-folders instead: users who copy, edit, browse, search and delete.",
        ),
    ] = None,
    icf: Annotated[
        Path | None,
        Option(
            "Take the specification of this configuration of Iometer instead.", placeholder="FILE"
        ),
    ] = None,
    specification: Annotated[str | None, Option("Which one, where the file has several.")] = None,
    files: Annotated[int | None, Option("How many files; 1 if left out.")] = None,
    size_mib: Annotated[
        int | None,
        Option("Size of each, or what is used of a device; 1024 if left out."),
    ] = None,
    workers: Annotated[int | None, Option("Workers.")] = None,
    depth: Annotated[
        int | None, Option("Transfers each worker keeps under way on every file.")
    ] = None,
    iops: Annotated[
        float | None,
        Option("Let so many I/O per second arrive, whatever the storage does."),
    ] = None,
    users: Annotated[
        int | None,
        Option("Users, each with --iops-per-user, or in a home of its own."),
    ] = None,
    scenarios_per_h: Annotated[
        float | None, Option("What a user of home folders does in an hour; 60.")
    ] = None,
    max_users: Annotated[
        int | None,
        Option("Look for the most users of home folders, in so many homes."),
    ] = None,
    iops_per_user: Annotated[float | None, Option("I/O per second of one user.")] = None,
    spacing: Annotated[str | None, Option("How they arrive: regular or poisson.")] = None,
    minutes: Minutes = 30.0,
    ramp_s: RampS = 0.0,
    below_block: Annotated[
        str | None,
        Option("Transfers below the logical block: refuse, round or read_modify_write."),
    ] = None,
    data_pattern: Annotated[
        int | None, Option("What is written: 0 repeated, 1 or 2 random bytes.")
    ] = None,
    verify: Annotated[bool, Option("Compare what is read with what was written.")] = False,
    modelled: Modelled = None,
    change: Change = None,
    log_path: DeviceLogPath = None,
    limit: FileLimit = None,
    io_method: IoMethod = "auto",
    seed: PlaceSeed = 1,
) -> Tables:
    """Put files or a block device under an access specification.

    With a depth as Iometer does, or at a rate; or let users work in home folders.

    With --iops, or --users and --iops-per-user, transfers arrive by a schedule: a stall is felt by
    all that arrive during it. The files stay for the next test; `plimsoll clean` deletes them.

    Example: plimsoll test files /mnt/share --pattern file-server --users 200 --iops-per-user 0.7
    --minutes 30 --yes

    Example: plimsoll test files --modelled emc-vnxe3300 --depth 8

    Example: plimsoll test files /mnt/share --scenario home-folders --users 200 --minutes 30 --yes
    """
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
    problems = storage_problems(path, modelled, change, "a directory or device")
    if icf is None and specification is not None:
        problems.append("--specification names one of a file; give it with --icf")
    if scenario is None:
        problems += [
            f"{_option(key)} means something only with --scenario {HOME_FOLDERS}"
            for key in stated(scenarios_per_h=scenarios_per_h, max_users=max_users)
        ]
    elif scenario != HOME_FOLDERS:
        problems.append(f'--scenario is "{scenario}", which is not known; write {HOME_FOLDERS}')
    else:
        if of_access:
            named = ", ".join(map(_option, of_access))
            problems.append(f"{named}: means nothing with --scenario {HOME_FOLDERS}")
        if (users is None) == (max_users is None):
            problems.append(
                f"--scenario {HOME_FOLDERS} needs users: give --users, or --max-users to look for "
                "them"
            )
    refuse(problems)
    common = {
        "test": "files",
        "target": [storage(path, modelled, change, log_path)],
        "io_method": io_method,
        "seed": seed,
        **stated(stated_limits=limit or None),
    }
    if scenario is not None:
        load = stated(search="max" if users is None else None, users=users, spacing=spacing)
        return {**common, **_home_folders(load, scenarios_per_h, max_users, minutes, ramp_s)}
    load = stated(target_iops=iops, users=users, iops_per_user=iops_per_user, spacing=spacing)
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
        "workload": [{"name": "files", **_access_of_icf(icf, specification), **workload}],
        "phase": worked(minutes * 60, "files", ramp_s, checksum=verify),
    }


def _access_of_icf(icf: Path | None, specification: str | None) -> Tables:
    if icf is None:
        return {}
    from plimsoll.imports.iometer.to_plan import access_of_icf

    return access_of_icf(icf, specification)


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _home_folders(
    load: Tables,
    scenarios_per_h: float | None,
    max_users: int | None,
    minutes: float,
    ramp_s: float,
) -> Tables:
    """What is particular to a plan of home folders."""
    seconds = minutes * 60
    search_s = max(seconds, settings.SEARCH["duration_s"]) if "search" in load else None
    return {
        "name": HOME_FOLDERS,
        "instance": [{"name": "homes", "backend": "home_folders", **stated(homes=max_users)}],
        "workload": [{"name": "users", "load": load, **stated(scenarios_per_h=scenarios_per_h)}],
        "phase": worked(seconds, "users", ramp_s, search_s=search_s, audit=True),
    }
