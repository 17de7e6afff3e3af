"""The named tests of databases: performance and its scenarios, stress, maximum, backup, recovery
and checksum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from plimsoll import settings
from plimsoll.pipeline.named_tests.declared import (
    CacheMib,
    Databases,
    Edition,
    IoMethod,
    Limit,
    LogPath,
    Modelled,
    RestoreFrom,
    Seed,
)
from plimsoll.pipeline.named_tests.options import NamedTestOption as Option
from plimsoll.pipeline.named_tests.options import refuse
from plimsoll.pipeline.named_tests.tables import (
    Tables,
    instance_rows,
    loaded,
    phase,
    stated,
    storage,
    storage_problems,
)

Sessions = Annotated[int | None, Option("Sessions for each database.")]
Minutes = Annotated[float, Option("How long to measure; a qualification takes 120.", minimum=0.02)]
Limits = Annotated[
    Literal["strict", "lenient"], Option("Limits of a performance test, or those of a stress test.")
]
RequiredIops = Annotated[float | None, Option("Database IOPS that must be reached.")]
Margin = Annotated[
    float,
    Option(
        "How much of the required IOPS may be lacking; stands in the headline.",
        minimum=0,
        maximum=50,
    ),
]


@dataclass(frozen=True)
class Layout:
    """The databases of a test: one instance for each, as the published tool laid them out."""

    path: Annotated[Path, Option("A directory on the storage to be tested.")]
    databases: Databases = 2
    size_mib: Annotated[int | None, Option("Size of each database.")] = 1024
    edition: Edition = "2010"
    cache_mib: CacheMib = None
    log_path: LogPath = None
    source: Annotated[
        str,
        Option(
            "any: what is there, or new; new: always new; existing: only what is there, as it is."
        ),
    ] = "any"
    restore_from: RestoreFrom = None
    limit: Limit = None
    io_method: IoMethod = "auto"
    seed: Seed = 1

    def plan(self, test: str, phases: list[Tables], **further: object) -> Tables:
        """The tables of a plan with these databases and phases.

        Raises:
            FolderError: databases that should be there are not.
        """
        habits = {"edition": self.edition, **stated(cache_mib_max=self.cache_mib)}
        if self.source == "existing":
            from plimsoll.databases.existing import existing_instances, existing_target

            target: Tables = {**existing_target(self.path)}
            instances = [habits | there for there in existing_instances(self.path)]
        else:
            target = storage(self.path, None, None, self.log_path)
            instances = instance_rows(self.databases, **habits, database_size_mib=self.size_mib)
        source = (
            {"source": self.source}
            if self.restore_from is None
            else stated(restore_from=self.restore_from)
        )
        return {
            "name": test,
            "test": test,
            "target": [target],
            "instance": instances,
            "workload": [{"name": "mix"}],
            "phase": phases,
            "io_method": self.io_method,
            "seed": self.seed,
            **source,
            **stated(stated_limits=self.limit or None),
            **further,
        }


def performance(
    path: Annotated[Path | None, Option("A directory on the storage to be tested.")] = None,
    modelled: Modelled = None,
    change: Annotated[
        list[str] | None,
        Option(
            "A figure of the modelled array: level='RAID 10', sets=[8]. May be repeated.",
            placeholder="KEY=VALUE",
        ),
    ] = None,
    databases: Databases = 2,
    size_mib: Annotated[
        int | None,
        Option("Size of each database; 1024, or six tenths of a modelled array, if left out."),
    ] = None,
    minutes: Minutes = 120.0,
    edition: Edition = "2010",
    backend: Annotated[
        Literal["engine", "raw_files"], Option("The database engine, or files without one.")
    ] = "engine",
    sessions: Sessions = None,
    sluggish: Annotated[float | None, Option("Think time as a multiple of service time.")] = None,
    cache_mib: CacheMib = None,
    log_path: LogPath = None,
    restore_from: RestoreFrom = None,
    limits: Limits = "strict",
    required_iops: RequiredIops = None,
    margin_percent: Margin = 0.0,
    limit: Limit = None,
    io_method: IoMethod = "auto",
    seed: Seed = 1,
) -> Tables:
    """Put the storage under a directory to the test and judge it by the published limits.

    The databases stay for the next test; `plimsoll clean` deletes them. With --modelled no storage
    is touched and every figure is MODELLED: the same engine and load run on a simulated array, in
    virtual time.

    Example: plimsoll test performance /mnt/array --databases 4 --size-mib 65536 --minutes 120 --yes

    Example: plimsoll test performance --modelled emc-vnxe3300 --sessions 3
    """
    problems = storage_problems(path, modelled, change, "a directory on the storage")
    if modelled and restore_from is not None:
        problems.append("nothing is restored to an array; leave out --restore-from")
    refuse(problems)
    target = storage(path, modelled, change, log_path)
    if size_mib is None:
        size_mib = _filling_size_mib(target, databases) if modelled else 1024
    workload = stated(load=None if sessions is None else {"sessions": sessions}, sluggish=sluggish)
    return {
        "name": "performance",
        "target": [target],
        "instance": instance_rows(
            databases,
            edition=edition,
            backend=backend,
            database_size_mib=size_mib,
            cache_mib_max=cache_mib,
        ),
        "workload": [{"name": "mix", **workload}],
        # What lies on a modelled array is as it was written.
        "phase": [
            step for step in loaded(minutes * 60) if not modelled or step["kind"] != "checksum"
        ],
        "limits": limits,
        "io_method": io_method,
        "seed": seed,
        **stated(
            stated_limits=limit or None,
            required_iops=required_iops,
            margin_percent=margin_percent or None,
            restore_from=restore_from,
        ),
    }


def _filling_size_mib(target: Tables, databases: int) -> int:
    from plimsoll.arrays.plan_target import filling_size_mib

    return filling_size_mib(target, databases)


def backup(
    layout: Layout,
    read_kib: Annotated[int, Option("Length of reads.")] = settings.BACKUP_READ_KIB,
    reads_in_flight: Annotated[
        int, Option("Reads of each database at once.")
    ] = settings.BACKUP_READS_IN_FLIGHT,
    under_load: Annotated[bool, Option("While transactions go on.")] = False,
    to: Annotated[
        Path | None,
        Option(
            "Keep the backup in this folder, absent or empty, and restore it there.",
            placeholder="DIR",
        ),
    ] = None,
) -> Tables:
    """Read every database front to back, all at once: MiB/s of each and of the server.

    Nothing is kept, or copies with their log in DIR.

    Every page is verified. The published test read 256 KiB with two reads in flight; more show what
    the storage can do. A backup that is kept is restored before the run ends; what is found sound
    is a saved set, which --restore-from of a later test takes.

    Example: plimsoll test backup /mnt/array --databases 4 --size-mib 65536 --to /mnt/backups/one
    """
    reading = phase("backup", read_kib=read_kib, reads_in_flight=reads_in_flight, to=to)
    warm = [phase("warm_up")] if under_load else []
    if under_load:
        reading["workloads"] = ["mix"]
    restoring = [] if to is None else [phase("restore")]
    return layout.plan("backup", [phase("prepare"), *warm, reading, phase("stop"), *restoring])


def recovery(
    layout: Layout,
    logs: Annotated[
        int, Option("Logs of 1 MiB that every instance writes.", minimum=1)
    ] = settings.RECOVERY_LOGS,
    sessions: Sessions = None,
    limits: Limits = "strict",
    checksum: Annotated[bool, Option("Read and verify every page afterwards.")] = True,
) -> Tables:
    """Write logs under load with the checkpoint held behind, drop everything as by a crash, and
    replay: seconds for each log.

    Example: plimsoll test recovery /mnt/array --databases 2 --size-mib 65536 --yes
    """
    phases = [phase("prepare"), phase("generate_logs", logs=logs), phase("recover"), phase("stop")]
    if checksum:
        phases.append(phase("checksum"))
    return layout.plan("recovery", phases, limits=limits, **_load(sessions, None, 0.0))


def checksum(
    layout: Layout,
    read_kib: Annotated[int, Option("Length of reads.")] = settings.CHECKSUM_READ_KIB,
    reads_in_flight: Annotated[
        int, Option("Reads of each database at once.")
    ] = settings.CHECKSUM_READS_IN_FLIGHT,
) -> Tables:
    """Read and verify every page of the databases that are there.

    Never writes to them; sizes and seeds need not be said.

    Example: plimsoll test checksum /mnt/array
    """
    reading = phase("checksum", read_kib=read_kib, reads_in_flight=reads_in_flight)
    return replace(layout, source="existing", restore_from=None).plan("checksum", [reading])


def stress(
    layout: Layout,
    hours: Annotated[
        float, Option("How long to measure; a qualification takes 24.", minimum=0.001)
    ] = 24.0,
    limits: Limits = "lenient",
    sessions: Sessions = None,
    required_iops: Annotated[float | None, Option("Database IOPS that must be reached.")] = None,
    margin_percent: Margin = 0.0,
) -> Tables:
    """Load the storage for hours or days.

    One error in any layer that can be read fails it, the engine's, the kernel's or a device's.

    Example: plimsoll test stress /mnt/array --databases 4 --size-mib 65536 --hours 24 --yes
    --detach
    """
    return layout.plan(
        "stress",
        loaded(hours * 3600),
        limits=limits,
        **_load(sessions, required_iops, margin_percent),
    )


def maximum(
    layout: Layout,
    minutes: Annotated[
        float, Option("How long to measure at what was found.", minimum=0.02)
    ] = 120.0,
    search_minutes: Annotated[
        float, Option("How long to look for it at most.", minimum=0.02)
    ] = 60.0,
    limits: Limits = "strict",
    sessions: Sessions = None,
    required_iops: Annotated[float | None, Option("Rate to compare the maximum with.")] = None,
    margin_percent: Margin = 0.0,
    by: Annotated[
        Literal["rate", "sessions"],
        Option(
            "Raise the rate of arrivals, or the sessions that each wait for the storage, as "
            "Jetstress raises its threads."
        ),
    ] = "rate",
) -> Tables:
    """Look for the highest load that keeps the limits, then measure at it.

    How many IOPS the storage makes at most.

    Example: plimsoll test max /mnt/array --databases 2 --size-mib 65536 --yes
    """
    search = {"rate": "max", "sessions": "max_sessions"}[by]
    return layout.plan(
        "maximum",
        loaded(minutes * 60, search_minutes * 60),
        limits=limits,
        **_load(None, required_iops, margin_percent),
        workload=[{"name": "mix", "load": {"search": search, **stated(sessions=sessions)}}],
    )


def mailbox(
    layout: Layout,
    users: Annotated[int, Option("Mailboxes.")],
    quota_mb: Annotated[float, Option("Size of each in MiB.")],
    iops_per_user: Annotated[float | None, Option("Database I/O of one of them.")] = None,
    profile: Annotated[
        str | None, Option("What one of them does in a day: light, average, heavy.")
    ] = None,
    headroom_percent: Annotated[float, Option("Room above that, which must be reached too.")] = 0.0,
    margin_percent: Margin = 0.0,
    minutes: Minutes = 120.0,
    limits: Limits = "strict",
) -> Tables:
    """The performance test for so many mailboxes.

    Databases hold them, and their I/O must be carried within the limits.

    Example: plimsoll test mailbox /mnt/array --users 1000 --quota-mb 2048 --profile heavy
    --headroom-percent 20 --yes
    """
    scenario = {
        "users": users,
        "quota_mb": quota_mb,
        "headroom_percent": headroom_percent,
        **stated(iops_per_user=iops_per_user, profile=profile),
    }
    return _scenario(
        layout,
        "mailbox",
        loaded(minutes * 60),
        limits,
        mailbox_profile=scenario,
        **_load(None, None, margin_percent),
    )


def throughput(
    layout: Layout,
    capacity_percent: Annotated[
        float, Option("Share of the volume that is used, growth included.")
    ] = 80.0,
    throughput_percent: Annotated[
        float,
        Option("Share of the highest rate that is loaded; below 100 it is searched for."),
    ] = 100.0,
    sessions: Sessions = None,
    minutes: Minutes = 120.0,
    search_minutes: Annotated[
        float, Option("How long to look for the highest rate at most.", minimum=0.02)
    ] = 60.0,
    limits: Limits = "strict",
) -> Tables:
    """The performance test of a disk subsystem.

    Databases fill a share of the volume, the load is a share of what it carries.

    Example: plimsoll test throughput /mnt/array --capacity-percent 80 --sessions 3 --yes
    """
    scenario = {
        "capacity_percent": capacity_percent,
        "throughput_percent": throughput_percent,
        **stated(sessions=sessions),
    }
    phases = loaded(minutes * 60, search_minutes * 60 if throughput_percent < 100 else None)
    return _scenario(layout, "throughput", phases, limits, disk_throughput=scenario)


def _scenario(
    layout: Layout, name: str, phases: list[Tables], limits: str, **scenario: object
) -> Tables:
    """The plan of a scenario: sizes follow from it unless databases are there or restored."""
    layout = replace(layout, size_mib=None)
    return layout.plan("performance", phases, limits=limits, name=name, **scenario)


def _load(sessions: int | None, required_iops: float | None, margin_percent: float) -> Tables:
    """What is said of the load; the rest is the edition's."""
    load = None if sessions is None else [{"name": "mix", "load": {"sessions": sessions}}]
    return stated(required_iops=required_iops, margin_percent=margin_percent or None, workload=load)
