"""`plimsoll test`: the named tests, made from a few options instead of a plan file."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import plimsoll
from plimsoll import exit_codes, settings
from plimsoll.cli import options
from plimsoll.cli.named_tests import HELP_NAMES, Layout, named_test, phase
from plimsoll.cli.terminal import reading_plan, stop_with
from plimsoll.cli.test_files import files_test
from plimsoll.cli.test_store import store_test

test = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Run a named test: performance, mailbox, throughput, stress, max, backup, recovery, checksum, files, store.",
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


Margin = Annotated[
    float,
    typer.Option(
        "--margin-percent", min=0, max=50, help="How much of the required IOPS may be lacking; stands in the headline."
    ),
]


def storage_options(path: Path | None, modelled: str | None, change: list[str]) -> dict[str, Any]:
    """The target of a plan: a directory, or a modelled array with what is changed of it. Leaves when it is neither."""
    if (path is None) == (modelled is None):
        stop_with(exit_codes.USAGE, "name either a directory on the storage, or an array with --modelled")
    if modelled is None:
        if change:
            stop_with(exit_codes.USAGE, "--change is for arrays named with --modelled")
        return {"path": str(path)}
    try:
        changes = tomllib.loads("\n".join(change))
    except tomllib.TOMLDecodeError as error:
        hint = "write it as in a file of arrays, such as --change \"level='RAID 10'\" --change 'sets=[8]'"
        stop_with(exit_codes.USAGE, f"--change cannot be read: {error}\n    hint: {hint}")
    return {"modelled": modelled} | ({"changes": changes} if changes else {})


@test.command("performance", context_settings={"help_option_names": ["-h", "--help"]})
def performance(
    path: Annotated[Path | None, typer.Argument(help="A directory on the storage to be tested.")] = None,
    modelled: Annotated[
        str | None,
        typer.Option(help="Simulate this array instead: a preset or FILE.toml.", metavar="ARRAY"),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            help="A figure of the modelled array: level='RAID 10', sets=[8]. May be repeated.", metavar="KEY=VALUE"
        ),
    ] = None,
    databases: Annotated[int, typer.Option(help="Databases, each an instance with its own log and cache.")] = 2,
    size_mib: Annotated[
        int | None, typer.Option(help="Size of each database; 1024, or six tenths of a modelled array, if left out.")
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.02, help="How long to measure; a qualification takes 120.")] = 120.0,
    edition: Annotated[str, typer.Option(help="Whose habits: 2003, 2007, 2010 or 2013.")] = "2010",
    backend: Annotated[str, typer.Option(help="engine or raw_files.")] = str(settings.INSTANCE_DEFAULTS["backend"]),
    sessions: Annotated[int | None, typer.Option(help="Sessions for each database.")] = None,
    sluggish: Annotated[float | None, typer.Option(help="Think time as a multiple of service time.")] = None,
    cache_mib: Annotated[int | None, typer.Option(help="Most cache of each instance.")] = None,
    log_path: Annotated[Path | None, typer.Option(help="A directory for the logs, if they lie elsewhere.")] = None,
    limits: Annotated[str, typer.Option(help="strict or lenient.")] = "strict",
    required_iops: Annotated[float | None, typer.Option(help="Database IOPS that must be reached.")] = None,
    margin_percent: Margin = 0.0,
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
    """Put the storage under a directory to the test and judge it by the published limits.

    The databases stay for the next test; `plimsoll clean` deletes them. With --modelled no storage is touched and every
    figure is MODELLED: the same engine and load run on a simulated array, in virtual time.

    Example: plimsoll test performance /mnt/array --databases 4 --size-mib 65536 --minutes 120 --yes

    Example: plimsoll test performance --modelled emc-vnxe3300 --sessions 3
    """
    target = storage_options(path, modelled, change or [])
    if size_mib is None:
        size_mib = plimsoll.filling_size_mib(target, databases) if modelled else 1024
    wanted = performance_options(path or Path(), "performance", databases, size_mib, minutes, backend, edition)
    wanted["target"] = [{"name": "target", **target}]
    if modelled:
        wanted["phase"] = [phase for phase in wanted["phase"] if phase["kind"] != "checksum"]
    wanted |= {"limits": limits, "io_method": io_method, "seed": seed, "stop_if": stop_if or []}
    if stated_limits:
        wanted["stated_limits"] = stated_limits
    if required_iops is not None:
        wanted["required_iops"] = required_iops
    wanted |= {"margin_percent": margin_percent} if margin_percent else {}
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
    with reading_plan():
        plan = plimsoll.build_plan(wanted)
    options.perform(
        plan,
        options.Choices(
            out,
            yes,
            dry_run,
            destroy,
            quiet,
            as_json,
            detach,
            max_iops,
            max_mib_per_s,
            None,
            repeat,
            metrics,
            create,
            allow_system_disk,
        ),
    )


Sessions = Annotated[int | None, typer.Option(help="Sessions for each database.")]
Minutes = Annotated[float, typer.Option(min=0.02, help="How long to measure; a qualification takes 120.")]
Limits = Annotated[str, typer.Option(help="strict or lenient.")]


@named_test(test, "backup")
def backup(
    layout: Layout,
    read_kib: Annotated[int, typer.Option(help="Length of reads.")] = settings.BACKUP_READ_KIB,
    reads_in_flight: Annotated[
        int, typer.Option(help="Reads of each database at once.")
    ] = settings.BACKUP_READS_IN_FLIGHT,
    under_load: Annotated[bool, typer.Option("--under-load", help="While transactions go on.")] = False,
) -> dict[str, Any]:
    """Read every database front to back, all at once, and keep nothing: MiB/s of each and of the server.

    Every page is verified. The published test read 256 KiB with two reads in flight; more show what the storage can do.

    Example: plimsoll test backup /mnt/array --databases 4 --size-mib 65536 --yes
    """
    reading = phase("backup", read_kib=read_kib, reads_in_flight=reads_in_flight)
    warm = [phase("warm_up")] if under_load else []
    if under_load:
        reading["workloads"] = ["mix"]
    return layout.plan("backup", [phase("prepare"), *warm, reading, phase("stop")])


@named_test(test, "recovery")
def recovery(
    layout: Layout,
    logs: Annotated[
        int, typer.Option(min=1, help="Logs of 1 MiB that every instance writes.")
    ] = settings.RECOVERY_LOGS,
    sessions: Sessions = None,
    limits: Annotated[str, typer.Option(help="strict or lenient, for the load that writes the logs.")] = "strict",
    checksum: Annotated[bool, typer.Option(help="Read and verify every page afterwards.")] = True,
) -> dict[str, Any]:
    """Write logs under load with the checkpoint held behind, drop everything as by a crash, and replay: seconds for each log.

    Example: plimsoll test recovery /mnt/array --databases 2 --size-mib 65536 --yes
    """
    phases = [phase("prepare"), phase("generate_logs", logs=logs), phase("recover"), phase("stop")]
    if checksum:
        phases.append(phase("checksum"))
    wanted = layout.plan("recovery", phases, limits=limits)
    if sessions is not None:
        wanted["workload"][0]["load"] = {"sessions": sessions}
    return wanted


@named_test(test, "checksum")
def checksum(
    layout: Layout,
    read_kib: Annotated[int, typer.Option(help="Length of reads.")] = settings.CHECKSUM_READ_KIB,
    reads_in_flight: Annotated[
        int, typer.Option(help="Reads of each database at once.")
    ] = settings.CHECKSUM_READS_IN_FLIGHT,
) -> dict[str, Any]:
    """Read and verify every page of the databases that are there. Never writes to them; sizes and seeds need not be said.

    Example: plimsoll test checksum /mnt/array
    """
    reading = phase("checksum", read_kib=read_kib, reads_in_flight=reads_in_flight)
    return replace(layout, source="existing", restore_from=None).plan("checksum", [reading])


@named_test(test, "stress")
def stress(
    layout: Layout,
    hours: Annotated[float, typer.Option(min=0.001, help="How long to measure; a qualification takes 24.")] = 24.0,
    limits: Annotated[str, typer.Option(help="strict or lenient.")] = "lenient",
    sessions: Sessions = None,
    required_iops: Annotated[float | None, typer.Option(help="Database IOPS that must be reached.")] = None,
    margin_percent: Margin = 0.0,
) -> dict[str, Any]:
    """Load the storage for hours or days: one error in any layer that can be read fails it, the engine's, the kernel's or a device's.

    Example: plimsoll test stress /mnt/array --databases 4 --size-mib 65536 --hours 24 --yes --detach
    """
    return layout.plan("stress", _loaded(hours * 3600), limits=limits, **_load(sessions, required_iops, margin_percent))


@named_test(test, "max")
def maximum(
    layout: Layout,
    minutes: Annotated[float, typer.Option(min=0.02, help="How long to measure at the rate found.")] = 120.0,
    search_minutes: Annotated[float, typer.Option(min=0.02, help="How long to look for it at most.")] = 60.0,
    limits: Annotated[str, typer.Option(help="strict or lenient.")] = "strict",
    sessions: Sessions = None,
    required_iops: Annotated[float | None, typer.Option(help="Rate to compare the maximum with.")] = None,
    margin_percent: Margin = 0.0,
) -> dict[str, Any]:
    """Look for the highest rate that keeps the limits, then measure at it: how many IOPS the storage makes at most.

    Example: plimsoll test max /mnt/array --databases 2 --size-mib 65536 --yes
    """
    wanted = layout.plan(
        "maximum",
        _loaded(minutes * 60, search_minutes * 60),
        limits=limits,
        **_load(None, required_iops, margin_percent),
    )
    wanted["workload"][0]["load"] = {"search": "max"} | ({} if sessions is None else {"sessions": sessions})
    return wanted


@named_test(test, "mailbox")
def mailbox(
    layout: Layout,
    users: Annotated[int, typer.Option(help="Mailboxes.")],
    quota_mb: Annotated[float, typer.Option(help="Size of each in MiB.")],
    iops_per_user: Annotated[float | None, typer.Option(help="Database I/O of one of them.")] = None,
    profile: Annotated[str | None, typer.Option(help="What one of them does in a day: light, average, heavy.")] = None,
    headroom_percent: Annotated[float, typer.Option(help="Room above that, which must be reached too.")] = 0.0,
    margin_percent: Margin = 0.0,
    minutes: Minutes = 120.0,
    limits: Limits = "strict",
) -> dict[str, Any]:
    """The performance test for so many mailboxes: databases hold them, and their I/O must be carried within the limits.

    Example: plimsoll test mailbox /mnt/array --users 1000 --quota-mb 2048 --profile heavy --headroom-percent 20 --yes
    """
    scenario: dict[str, object] = {"users": users, "quota_mb": quota_mb, "headroom_percent": headroom_percent}
    stated = {"iops_per_user": iops_per_user, "profile": profile}
    scenario |= {key: value for key, value in stated.items() if value is not None}
    return _scenario(
        layout, "mailbox", _loaded(minutes * 60), limits, mailbox_profile=scenario, **_load(None, None, margin_percent)
    )


@named_test(test, "throughput")
def throughput(
    layout: Layout,
    capacity_percent: Annotated[float, typer.Option(help="Share of the volume that is used, growth included.")] = 80.0,
    throughput_percent: Annotated[
        float, typer.Option(help="Share of the highest rate that is loaded; below 100 it is searched for.")
    ] = 100.0,
    sessions: Sessions = None,
    minutes: Minutes = 120.0,
    search_minutes: Annotated[
        float, typer.Option(min=0.02, help="How long to look for the highest rate at most.")
    ] = 60.0,
    limits: Limits = "strict",
) -> dict[str, Any]:
    """The performance test of a disk subsystem: databases fill a share of the volume, the load is a share of what it carries.

    Example: plimsoll test throughput /mnt/array --capacity-percent 80 --sessions 3 --yes
    """
    scenario: dict[str, object] = {"capacity_percent": capacity_percent, "throughput_percent": throughput_percent}
    if sessions is not None:
        scenario["sessions"] = sessions
    phases = _loaded(minutes * 60, search_minutes * 60 if throughput_percent < 100 else None)
    return _scenario(layout, "throughput", phases, limits, disk_throughput=scenario)


def _scenario(layout: Layout, name: str, phases: list[dict[str, Any]], limits: str, **scenario: Any) -> dict[str, Any]:
    """The plan of a scenario: sizes follow from it unless databases are there or restored."""
    wanted = layout.plan("performance", phases, limits=limits, name=name, **scenario)
    if layout.source != "existing":
        for instance in wanted["instance"]:
            del instance["database_size_mib"]
    return wanted


def _loaded(seconds: float, search_s: float | None = None) -> list[dict[str, Any]]:
    """The phases of a test under load."""
    searching = [] if search_s is None else [phase("search", duration_s=search_s)]
    measuring = phase("measure", duration_s=seconds)
    return [phase("prepare"), phase("warm_up"), *searching, measuring, phase("stop"), phase("checksum")]


def _load(sessions: int | None, required_iops: float | None, margin_percent: float) -> dict[str, Any]:
    """What is said of the load; the rest is the edition's."""
    found: dict[str, Any] = {} if required_iops is None else {"required_iops": required_iops}
    if margin_percent:
        found["margin_percent"] = margin_percent
    if sessions is not None:
        found["workload"] = [{"name": "mix", "load": {"sessions": sessions}}]
    return found


test.command("files", context_settings=HELP_NAMES)(files_test)
test.command("store", context_settings=HELP_NAMES)(store_test)
