"""`plimsoll test`: the named tests, made from a few options instead of a plan file."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import plimsoll
from plimsoll import exit_codes, settings
from plimsoll.cli import options
from plimsoll.cli.named_tests import (
    HELP_NAMES,
    RUN_HEADINGS,
    Layout,
    Options,
    RestoreFrom,
    named_test,
    phase,
    planned_test,
    stated,
    storage_options,
)
from plimsoll.cli.panels import in_panels
from plimsoll.cli.terminal import stop_with
from plimsoll.cli.test_files import files_test
from plimsoll.cli.test_io import io_test
from plimsoll.cli.test_mail import mail_test
from plimsoll.cli.test_store import store_test

test = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Run a named test: performance, mailbox, throughput, stress, max, backup, recovery, "
    "checksum, files, io, mail, store.",
)


@test.callback()
def callback() -> None:
    """Run a named test."""


Margin = Annotated[
    float,
    typer.Option(
        "--margin-percent",
        min=0,
        max=50,
        help="How much of the required IOPS may be lacking; stands in the headline.",
    ),
]


class SearchedBy(StrEnum):
    """What a search raises until a limit is met."""

    RATE = "rate"
    SESSIONS = "sessions"


def instance_rows(
    databases: int, size_mib: int, backend: str, edition: str, cache_mib: int | None
) -> list[Options]:
    """One instance for each database, as the published tool laid them out."""
    row = {
        "edition": edition,
        "backend": backend,
        "database_size_mib": size_mib,
        **stated(cache_mib_max=cache_mib),
    }
    return [{"name": f"instance{number}", **row} for number in range(1, databases + 1)]


@planned_test(test, "performance")
def performance(
    path: Annotated[
        Path | None, typer.Argument(help="A directory on the storage to be tested.")
    ] = None,
    modelled: Annotated[
        str | None,
        typer.Option(help="Simulate this array instead: a preset or FILE.toml.", metavar="ARRAY"),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            help="A figure of the modelled array: level='RAID 10', sets=[8]. May be repeated.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    databases: Annotated[
        int, typer.Option(help="Databases, each an instance with its own log and cache.")
    ] = 2,
    size_mib: Annotated[
        int | None,
        typer.Option(
            help="Size of each database; 1024, or six tenths of a modelled array, if left out."
        ),
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.02, help="How long to measure; a qualification takes 120.")
    ] = 120.0,
    edition: Annotated[
        str,
        typer.Option(
            help="Exchange generation whose defaults are used: 2003, 2007, 2010, 2013, or as "
            "derived from it 2016 and 2019."
        ),
    ] = "2010",
    backend: options.Backend = "engine",
    sessions: Annotated[int | None, typer.Option(help="Sessions for each database.")] = None,
    sluggish: Annotated[
        float | None, typer.Option(help="Think time as a multiple of service time.")
    ] = None,
    cache_mib: Annotated[int | None, typer.Option(help="Most cache of each instance.")] = None,
    log_path: Annotated[
        Path | None, typer.Option(help="A directory for the logs, if they lie elsewhere.")
    ] = None,
    restore_from: RestoreFrom = None,
    limits: options.Limits = "strict",
    required_iops: Annotated[
        float | None, typer.Option(help="Database IOPS that must be reached.")
    ] = None,
    margin_percent: Margin = 0.0,
    stated_limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limit", help="A further limit: 'log_write_latency_ms_p99<5'. May be repeated."
        ),
    ] = None,
    io_method: Annotated[str, typer.Option(help="auto, io_uring, libaio or threads.")] = "auto",
    seed: Annotated[int, typer.Option(help="Decides keys and content.")] = 1,
) -> Options:
    """Put the storage under a directory to the test and judge it by the published limits.

    The databases stay for the next test; `plimsoll clean` deletes them. With --modelled no storage
    is touched and every figure is MODELLED: the same engine and load run on a simulated array, in
    virtual time.

    Example: plimsoll test performance /mnt/array --databases 4 --size-mib 65536 --minutes 120 --yes

    Example: plimsoll test performance --modelled emc-vnxe3300 --sessions 3
    """
    target = storage_options(path, modelled, change, log_path, "a directory on the storage")
    if modelled and restore_from is not None:
        stop_with(exit_codes.USAGE, "nothing is restored to an array; leave out --restore-from")
    if size_mib is None:
        size_mib = plimsoll.filling_size_mib(target, databases) if modelled else 1024
    workload = stated(load=None if sessions is None else {"sessions": sessions}, sluggish=sluggish)
    return {
        "name": "performance",
        "target": [target],
        "instance": instance_rows(databases, size_mib, backend, edition, cache_mib),
        "workload": [{"name": "mix", **workload}],
        # What lies on a modelled array is as it was written.
        "phase": [
            step for step in loaded(minutes * 60) if not modelled or step["kind"] != "checksum"
        ],
        "limits": limits,
        "io_method": io_method,
        "seed": seed,
        **stated(
            stated_limits=stated_limits or None,
            required_iops=required_iops,
            margin_percent=margin_percent or None,
            restore_from=None if restore_from is None else str(restore_from),
        ),
    }


Sessions = Annotated[int | None, typer.Option(help="Sessions for each database.")]
Minutes = Annotated[
    float, typer.Option(min=0.02, help="How long to measure; a qualification takes 120.")
]


@named_test(test, "backup")
def backup(
    layout: Layout,
    read_kib: Annotated[int, typer.Option(help="Length of reads.")] = settings.BACKUP_READ_KIB,
    reads_in_flight: Annotated[
        int, typer.Option(help="Reads of each database at once.")
    ] = settings.BACKUP_READS_IN_FLIGHT,
    under_load: Annotated[
        bool, typer.Option("--under-load", help="While transactions go on.")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(
            help="Keep the backup in this folder, absent or empty, and restore it there.",
            metavar="DIR",
        ),
    ] = None,
) -> Options:
    """Read every database front to back, all at once: MiB/s of each and of the server.

    Nothing is kept, or copies with their log in DIR.

    Every page is verified. The published test read 256 KiB with two reads in flight; more show what
    the storage can do. A backup that is kept is restored before the run ends; what is found sound
    is a saved set, which --restore-from of a later test takes.

    Example: plimsoll test backup /mnt/array --databases 4 --size-mib 65536 --to /mnt/backups/one
    """
    reading = phase("backup", read_kib=read_kib, reads_in_flight=reads_in_flight)
    if to is not None:
        reading["to"] = str(to)
    warm = [phase("warm_up")] if under_load else []
    if under_load:
        reading["workloads"] = ["mix"]
    restoring = [] if to is None else [phase("restore")]
    return layout.plan("backup", [phase("prepare"), *warm, reading, phase("stop"), *restoring])


@named_test(test, "recovery")
def recovery(
    layout: Layout,
    logs: Annotated[
        int, typer.Option(min=1, help="Logs of 1 MiB that every instance writes.")
    ] = settings.RECOVERY_LOGS,
    sessions: Sessions = None,
    limits: options.Limits = "strict",
    checksum: Annotated[bool, typer.Option(help="Read and verify every page afterwards.")] = True,
) -> Options:
    """Write logs under load with the checkpoint held behind, drop everything as by a crash, and
    replay: seconds for each log.

    Example: plimsoll test recovery /mnt/array --databases 2 --size-mib 65536 --yes
    """
    phases = [phase("prepare"), phase("generate_logs", logs=logs), phase("recover"), phase("stop")]
    if checksum:
        phases.append(phase("checksum"))
    return layout.plan("recovery", phases, limits=limits, **_load(sessions, None, 0.0))


@named_test(test, "checksum")
def checksum(
    layout: Layout,
    read_kib: Annotated[int, typer.Option(help="Length of reads.")] = settings.CHECKSUM_READ_KIB,
    reads_in_flight: Annotated[
        int, typer.Option(help="Reads of each database at once.")
    ] = settings.CHECKSUM_READS_IN_FLIGHT,
) -> Options:
    """Read and verify every page of the databases that are there.

    Never writes to them; sizes and seeds need not be said.

    Example: plimsoll test checksum /mnt/array
    """
    reading = phase("checksum", read_kib=read_kib, reads_in_flight=reads_in_flight)
    return replace(layout, source="existing", restore_from=None).plan("checksum", [reading])


@named_test(test, "stress")
def stress(
    layout: Layout,
    hours: Annotated[
        float, typer.Option(min=0.001, help="How long to measure; a qualification takes 24.")
    ] = 24.0,
    limits: options.Limits = "lenient",
    sessions: Sessions = None,
    required_iops: Annotated[
        float | None, typer.Option(help="Database IOPS that must be reached.")
    ] = None,
    margin_percent: Margin = 0.0,
) -> Options:
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


@named_test(test, "max")
def maximum(
    layout: Layout,
    minutes: Annotated[
        float, typer.Option(min=0.02, help="How long to measure at what was found.")
    ] = 120.0,
    search_minutes: Annotated[
        float, typer.Option(min=0.02, help="How long to look for it at most.")
    ] = 60.0,
    limits: options.Limits = "strict",
    sessions: Sessions = None,
    required_iops: Annotated[
        float | None, typer.Option(help="Rate to compare the maximum with.")
    ] = None,
    margin_percent: Margin = 0.0,
    by: Annotated[
        SearchedBy,
        typer.Option(
            help="Raise the rate of arrivals, or the sessions that each wait for the storage, as "
            "Jetstress raises its threads."
        ),
    ] = SearchedBy.RATE,
) -> Options:
    """Look for the highest load that keeps the limits, then measure at it.

    How many IOPS the storage makes at most.

    Example: plimsoll test max /mnt/array --databases 2 --size-mib 65536 --yes
    """
    search = {SearchedBy.RATE: "max", SearchedBy.SESSIONS: "max_sessions"}[by]
    return layout.plan(
        "maximum",
        loaded(minutes * 60, search_minutes * 60),
        limits=limits,
        **_load(None, required_iops, margin_percent),
        workload=[{"name": "mix", "load": {"search": search, **stated(sessions=sessions)}}],
    )


@named_test(test, "mailbox")
def mailbox(
    layout: Layout,
    users: Annotated[int, typer.Option(help="Mailboxes.")],
    quota_mb: Annotated[float, typer.Option(help="Size of each in MiB.")],
    iops_per_user: Annotated[
        float | None, typer.Option(help="Database I/O of one of them.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="What one of them does in a day: light, average, heavy.")
    ] = None,
    headroom_percent: Annotated[
        float, typer.Option(help="Room above that, which must be reached too.")
    ] = 0.0,
    margin_percent: Margin = 0.0,
    minutes: Minutes = 120.0,
    limits: options.Limits = "strict",
) -> Options:
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


@named_test(test, "throughput")
def throughput(
    layout: Layout,
    capacity_percent: Annotated[
        float, typer.Option(help="Share of the volume that is used, growth included.")
    ] = 80.0,
    throughput_percent: Annotated[
        float,
        typer.Option(
            help="Share of the highest rate that is loaded; below 100 it is searched for."
        ),
    ] = 100.0,
    sessions: Sessions = None,
    minutes: Minutes = 120.0,
    search_minutes: Annotated[
        float, typer.Option(min=0.02, help="How long to look for the highest rate at most.")
    ] = 60.0,
    limits: options.Limits = "strict",
) -> Options:
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
    layout: Layout, name: str, phases: list[Options], limits: str, **scenario: object
) -> Options:
    """The plan of a scenario: sizes follow from it unless databases are there or restored."""
    return layout.plan_without_sizes("performance", phases, limits=limits, name=name, **scenario)


def loaded(seconds: float, search_s: float | None = None) -> list[Options]:
    """The phases of a test under load."""
    searching = [] if search_s is None else [phase("search", duration_s=search_s)]
    measuring = phase("measure", duration_s=seconds)
    return [
        phase("prepare"),
        phase("warm_up"),
        *searching,
        measuring,
        phase("stop"),
        phase("checksum"),
    ]


def _load(sessions: int | None, required_iops: float | None, margin_percent: float) -> Options:
    """What is said of the load; the rest is the edition's."""
    load = None if sessions is None else [{"name": "mix", "load": {"sessions": sessions}}]
    return stated(required_iops=required_iops, margin_percent=margin_percent or None, workload=load)


planned_test(test, "files")(files_test)
planned_test(test, "store")(store_test)
planned_test(test, "mail")(mail_test)
test.command("io", cls=in_panels(RUN_HEADINGS), context_settings=HELP_NAMES)(io_test)
