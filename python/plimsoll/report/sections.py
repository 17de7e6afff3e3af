"""The sections of the published test reports, in their order and with their columns.

Source of the order and the columns: the reports of Jetstress 2010, appendices B to F of the EMC
VNXe3300 report. Two things differ, and the notes under the tables say so: means are weighted by
operations, and purposes are counted apart, so the latencies of transactional and of all reads need
not be the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from plimsoll.documents.environment import Environment
from plimsoll.documents.figures import DatabaseFigures, Level, StallLevel, Transfers
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import MaintenanceSpec, SessionsLoad
from plimsoll.documents.summary import PhaseFigures, Summary
from plimsoll.pages.tables import Table, duration_shown, mib, same_shown, shown
from plimsoll.plan.load import described
from plimsoll.results.summary import sum_of_known
from plimsoll.settings import ENGINE_FORMAT

IO_COLUMNS = [
    "DB reads average latency (ms)",
    "DB writes average latency (ms)",
    "DB reads/s",
    "DB writes/s",
    "DB reads average bytes",
    "DB writes average bytes",
    "Log reads average latency (ms)",
    "Log writes average latency (ms)",
    "Log reads/s",
    "Log writes/s",
    "Log reads average bytes",
    "Log writes average bytes",
]
#: Latencies and rates as exact as the published ones, sizes shorter: the first column is the place.
IO_DECIMALS = (0, 3, 3, 3, 3, 1, 1, 3, 3, 3, 3, 1, 1)


def published_sections(
    plan: Plan, summary: Summary, environment: Environment, name: str
) -> list[Table]:
    """The sections of a performance or stress report, but for the test log, which is no table of
    figures.

    A test that measures no load has only those that say what was tested.
    """
    if not summary.window.seconds:
        return [
            _test_summary(plan, summary, environment, name),
            _database_sizes(summary),
            _configuration(plan),
        ]
    return [
        _test_summary(plan, summary, environment, name),
        _sizing(plan, summary, environment),
        _database_sizes(summary),
        _parameters(plan),
        _configuration(plan),
        io_table(summary, "Transactional I/O", "database_read", "log_read", _TRANSACTIONAL_NOTE),
        _maintenance(summary),
        _replication(summary),
        io_table(
            summary,
            "Total I/O",
            "database_read_with_maintenance",
            "log_read_with_replication",
            _TOTAL_NOTE,
        ),
        host_table(summary.machine, summary.page_fault_stalls, "Host system performance"),
    ]


_TRANSACTIONAL_NOTE = (
    "Means are weighted by operations; the published tool's plain means of samples stand under "
    "“Latency in detail”. "
    "Log figures are those of the instance, whose log all its databases share."
)
_TOTAL_NOTE = (
    "Reads of databases are those of transactions and of maintenance together, reads of logs "
    "include those for "
    "replication. The published tool could not tell their latencies apart; here they are weighted "
    "by operations."
)


def _test_summary(plan: Plan, summary: Summary, environment: Environment, name: str) -> Table:
    window, phases = summary.window, summary.phases
    last = phases[-1] if phases else None
    system = environment["operating_system"]
    rows: list[list[Any]] = [
        ["Test", f"{plan.judgement.test}, {plan.judgement.limits} limits"],
        ["Machine", environment["machine"]["host_name"]],
        ["Description", plan.description],
        ["Test started", phases[0].start_utc if phases else None],
        [
            "Last phase started",
            f"{last.start_utc} ({last.name}, {duration_shown(last.seconds)})" if last else None,
        ],
        ["Collection started", window.start_utc],
        ["Collection ended", window.end_utc],
        ["Measured", f"{duration_shown(window.seconds)} in {window.samples_count:,} samples"],
        ["Test ended", phase_end(last)],
        ["How the run ended", summary.ending],
        [
            "Plimsoll",
            environment["plimsoll"]
            + ("" if environment.get("release_build", True) else " (debug build)"),
        ],
        ["Engine", same_shown([_engine(item.backend) for item in plan.run.instances])],
        ["Operating system", f"{system['distribution']}, kernel {system['kernel']}"],
        ["I/O method", "; ".join([summary.io.method or "not known", *summary.io.choices])],
        ["Run folder", name],
    ]
    return Table("Test summary", [], rows)


def phase_end(phase: PhaseFigures | None) -> str | None:
    """When a phase ended, in UTC."""
    if phase is None or phase.start_utc is None:
        return None
    end = datetime.fromisoformat(phase.start_utc) + timedelta(seconds=phase.seconds)
    return end.isoformat(timespec="milliseconds")


def _engine(backend: str) -> str:
    """What holds the databases, with the version of the format it writes (docs/file-format.md)."""
    name = backend.replace("_", " ")
    return f"{name}, format {ENGINE_FORMAT}" if backend == "engine" else name


def _sizing(plan: Plan, summary: Summary, environment: Environment) -> Table:
    total, databases = summary.total, summary.databases
    initial = [database.initial_bytes for database in databases]
    final = [database.final_bytes for database in databases]
    space = sum(
        (target["file_system"] or {}).get("size_bytes") or 0 for target in environment["targets"]
    )
    filled = sum_of_known(final)
    used = 100 * filled / space if space and filled is not None else None
    required = plan.judgement.required_iops
    rows: list[list[Any]] = [
        ["Achieved transactional I/O per second", f"{total.database_iops:,.3f}"],
        ["Required I/O per second", required if required is not None else "none was stated"],
        ["Capacity percentage", "–" if used is None else f"{shown(used)} % of the file systems"],
        ["Throughput percentage", _throughput(plan)],
        ["Initial database size (bytes)", sum_of_known(initial)],
        ["Final database size (bytes)", sum_of_known(final)],
        ["Database files (count)", len(databases)],
    ]
    return Table("Database sizing and throughput", [], rows)


def _throughput(plan: Plan) -> str:
    """What the load was held to; sessions run as fast as their think time allows."""
    held = [item.load for item in plan.run.workloads if not isinstance(item.load, SessionsLoad)]
    return "; ".join(described(load) for load in held) or "100 %: sessions were not held back"


def _database_sizes(summary: Summary) -> Table:
    rows: list[list[Any]] = [
        [
            database.name,
            database.iops,
            mib(database.initial_bytes),
            mib(database.final_bytes),
            mib(_grown(database)),
        ]
        for database in summary.databases
    ]
    grown = [_grown(database) for database in summary.databases]
    sums = [
        "–" if (size := sum_of_known(sizes)) is None else mib(size)
        for sizes in (
            [database.initial_bytes for database in summary.databases],
            [database.final_bytes for database in summary.databases],
            grown,
        )
    ]
    rows.append(["All", summary.total.database_iops, *sums])
    headings = [
        "Database",
        "Achieved transactional I/O per second",
        "Initial size",
        "Final size",
        "Grown by",
    ]
    return Table("Each database", headings, rows, decimals=(3,), has_total=True)


def _grown(database: DatabaseFigures) -> int | None:
    if database.initial_bytes is None or database.final_bytes is None:
        return None
    return database.final_bytes - database.initial_bytes


def _parameters(plan: Plan) -> Table:
    instances, workloads = plan.run.record_instances, plan.run.record_workloads
    caches = [item for item in instances if item.cache_bytes_max]
    rows = [
        [
            "Load (sessions are the published threads)",
            "; ".join(f"{item.name}: {described(item.load)}" for item in plan.run.workloads)
            or "none",
        ],
        ["Minimum database cache", same_shown([mib(item.cache_bytes_min) for item in caches])],
        ["Maximum database cache", same_shown([mib(item.cache_bytes_max) for item in caches])],
    ]
    for kind in ("insert", "delete", "replace", "read"):
        shares = [f"{getattr(workload.mix, f'{kind}_percent')} %" for workload in workloads]
        rows.append([f"{kind.capitalize()} operations", same_shown(shares)])
    rows += [
        [
            "Lazy commits",
            same_shown([f"{workload.mix.lazy_commit_percent} %" for workload in workloads]),
        ],
        [
            "Think time of a session, as a multiple of its service time",
            same_shown([item.sluggish for item in workloads]),
        ],
        [
            "Background database maintenance",
            same_shown([_pace(item.maintenance) for item in instances]),
        ],
        ["Copies of each database", same_shown([item.copies_count for item in instances])],
    ]
    return Table("System parameters", [], rows)


def _pace(maintenance: MaintenanceSpec | None) -> str:
    if not maintenance:
        return "off"
    return f"on: {maintenance.read_bytes // 1024} KiB, then {maintenance.throttle_ms} ms"


def _configuration(plan: Plan) -> Table:
    headings = ["Instance", "Log path", "Databases", "Page", "Log framing"]
    rows = []
    for instance in plan.run.record_instances:
        paths = [str(Path(instance.directory) / item.file_name) for item in instance.databases]
        framing = instance.log_framing.replace("_", " ") if instance.cache_bytes_max else "none"
        page = f"{instance.page_bytes // 1024} KiB"
        rows.append([instance.name, instance.log_directory, ", ".join(paths), page, framing])
    return Table("Database configuration", headings, rows)


def io_table(summary: Summary, title: str, database_read: str, log_read: str, note: str) -> Table:
    """The twelve columns, for every database and for all together."""
    logs = {instance.name: instance for instance in summary.instances}
    rows: list[list[Any]] = [
        [
            database.name,
            *_twelve(
                database.transfers(database_read),
                database.database_write,
                logs[database.instance].transfers(log_read),
                logs[database.instance].log_write,
            ),
        ]
        for database in summary.databases
    ]
    total = summary.total
    rows.append(
        [
            "All",
            *_twelve(
                total.transfers(database_read),
                total.database_write,
                total.transfers(log_read),
                total.log_write,
            ),
        ]
    )
    return Table(title, ["Database", *IO_COLUMNS], rows, note, decimals=IO_DECIMALS, has_total=True)


def _twelve(*metrics: Transfers) -> list[Any]:
    """Latency, rate and bytes of database reads and writes, then of log reads and writes, as the
    columns have them.
    """
    found: list[Any] = []
    for pair in (metrics[:2], metrics[2:]):
        for figure in ("latency_ms_mean", "per_s", "bytes_mean"):
            found += [metric.number(figure) for metric in pair]
    return found


def _maintenance(summary: Summary) -> Table:
    rows = [
        [place.name, place.maintenance.per_s, place.maintenance.bytes_mean]
        for place in summary.databases
    ]
    headings = [
        "Database",
        "Database maintenance reads/s",
        "Database maintenance reads average bytes",
    ]
    return Table("Background database maintenance I/O", headings, rows, decimals=(3, 3, 1))


def _replication(summary: Summary) -> Table:
    rows = [
        [place.name, place.log_replication.per_s, place.log_replication.bytes_mean]
        for place in summary.instances
    ]
    headings = ["Instance", "Log replication reads/s", "Log replication reads average bytes"]
    return Table("Log replication I/O", headings, rows, decimals=(3, 3, 1))


#: Counters of the published host table with a counterpart on Linux, then what only Linux has: title
#: and factor.
HOST_COUNTERS = {
    "cpu_busy": ("% Processor Time", 100.0),
    "memory_available": ("Available MBytes", 1 / 1048576),
    "cpu_stolen": ("% of processor time taken by the hypervisor", 100.0),
    "cpu_throttled": ("% of time a quota withheld the processor", 100.0),
    "pressure_cpu_some": ("% of time some task waited for a processor", 100.0),
    "pressure_memory_some": ("% of time some task waited for memory", 100.0),
    "pressure_io_some": ("% of time some task waited for I/O", 100.0),
}


def host_table(machine: Mapping[str, Level], stalls: Level | None, title: str) -> Table:
    """What the host's counters read: average, minimum and maximum over the samples."""
    rows: list[list[Any]] = [
        [
            name,
            *(
                value and value * factor
                for value in (machine[metric].mean, machine[metric].min, machine[metric].max)
            ),
        ]
        for metric, (name, factor) in HOST_COUNTERS.items()
        if metric in machine
    ]
    note = (
        "Page table entries, repurposed transition pages and kernel pools of the published table "
        "belong to Windows; what comes "
        "nearest on Linux stands under “Counters”."
    )
    if not rows:
        note = "This run recorded no counters of the processor and the memory."
    if stalls is not None:
        rows.append(["Database Page Fault Stalls/s", stalls.mean, stalls.min, stalls.max])
        if isinstance(stalls, StallLevel) and stalls.samples_above_zero_count is not None:
            note += (
                f" {stalls.samples_above_zero_count} of {stalls.samples_count} samples of stalls "
                f"were higher than 0."
            )
    return Table(title, ["Counter", "Average", "Minimum", "Maximum"], rows, note, decimals=(3,))
