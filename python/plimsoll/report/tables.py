"""The tables of the report: the sections of the published test reports in their order, plus what they lack.

A table is a title, headings and rows of values; `shown` turns a value into text in one way everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plimsoll.loads import described


@dataclass(frozen=True)
class Table:
    """One table, or two columns of names and values when `headings` is empty."""

    title: str
    headings: list[str]
    rows: list[list[Any]]
    note: str = ""


def shown(value: Any) -> str:
    """A value as text: three significant digits below a thousand, grouped thousands above, a dash for nothing.

    >>> shown(0.01234), shown(12345.6), shown(None), shown(True)
    ('0.0123', '12,346', '–', 'yes')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def _mib(size: int | float | None) -> str:
    return "–" if size is None else f"{size / 1048576:,.0f} MiB"


def section_list(
    plan: dict[str, Any], summary: dict[str, Any], environment: dict[str, Any], run_folder: Path
) -> list[Table]:
    """The tables between verdict and charts."""
    return [
        _test_summary(plan, summary, environment, run_folder),
        _sizing(summary),
        _parameters(plan),
        _configuration(plan),
        _transactional(summary),
        _of_purpose(summary["databases"], "maintenance", "Background database maintenance I/O"),
        _of_purpose(summary["instances"], "log_replication", "Log replication I/O"),
        _total(summary),
        _operations(summary),
        _instances(summary),
        _checksums(summary),
        _generator(summary),
        _phases(summary),
        _machine(environment),
        *_targets(environment),
    ]


def _test_summary(
    plan: dict[str, Any], summary: dict[str, Any], environment: dict[str, Any], run_folder: Path
) -> Table:
    window = summary["window"]
    rows = [
        ["Test", f"{plan['judgement']['test']}, {plan['judgement']['limits']} limits"],
        ["Description", plan["description"]],
        ["Machine", environment["machine"]["host_name"]],
        ["Collection started", window["start_utc"]],
        ["Collection ended", window["end_utc"]],
        ["Measured", f"{window['seconds']:.1f} s in {window['samples_count']} samples"],
        ["How the run ended", summary["ending"]],
        ["Plimsoll", environment["plimsoll"]],
        [
            "Operating system",
            f"{environment['operating_system']['distribution']}, {environment['operating_system']['kernel']}",
        ],
        ["I/O", summary["io"]["method"]],
        ["Run folder", run_folder.name],
    ]
    return Table("Test summary", [], rows)


def _sizing(summary: dict[str, Any]) -> Table:
    rows: list[list[Any]] = [
        [database["name"], database["iops"], _mib(database["initial_bytes"]), _mib(database["final_bytes"])]
        for database in summary["databases"]
    ]
    total = summary["total"]
    rows.append(["All", total["database_iops"], "", ""])
    return Table(
        "Database sizing and throughput",
        ["Database", "Achieved transactional I/O per second", "Initial size", "Final size"],
        rows,
        f"{total['transactions_per_s']:.0f} transactions per second",
    )


def _parameters(plan: dict[str, Any]) -> Table:
    headings = ["Workload", "Load", "Insert %", "Delete %", "Replace %", "Read %", "Lazy commits %", "Sluggish"]
    rows = []
    for workload in plan["run"]["workloads"]:
        mix, load = workload["mix"], workload["load"]
        shares = [mix[f"{kind}_percent"] for kind in ("insert", "delete", "replace", "read", "lazy_commit")]
        rows.append([workload["name"], described(load), *shares, workload["sluggish"]])
    return Table("System parameters", headings, rows)


def _configuration(plan: dict[str, Any]) -> Table:
    headings = [
        "Instance",
        "Backend",
        "Page",
        "Cache",
        "Maintenance",
        "Copies",
        "Log framing",
        "Log directory",
        "Databases",
    ]
    rows = []
    for instance in plan["run"]["instances"]:
        cache = f"{instance['cache_bytes_min'] >> 20} to {instance['cache_bytes_max'] >> 20} MiB"
        rows.append(
            [
                instance["name"],
                instance["backend"].replace("_", " "),
                f"{instance['page_bytes'] // 1024} KiB",
                cache if instance["cache_bytes_max"] else "none",
                _pace(instance["maintenance"]),
                instance["copies_count"],
                instance["log_framing"].replace("_", " ") if instance["cache_bytes_max"] else "none",
                instance["log_directory"],
                ", ".join(str(Path(instance["directory"]) / item["file_name"]) for item in instance["databases"]),
            ]
        )
    return Table("Database configuration", headings, rows)


def _pace(maintenance: dict[str, Any] | None) -> str:
    return f"{maintenance['read_bytes'] // 1024} KiB, then {maintenance['throttle_ms']} ms" if maintenance else "off"


def _figures(metric: dict[str, Any]) -> list[Any]:
    return [metric["latency_ms_mean"], metric["latency_ms_p99"], metric["per_s"], metric["bytes_mean"]]


def _transactional(summary: dict[str, Any]) -> Table:
    headings = ["Database"]
    for what in ("reads", "writes", "log writes"):
        headings += [f"{what}: mean ms", "p99 ms", "per s", "mean bytes"]
    instances = {instance["name"]: instance for instance in summary["instances"]}
    rows = [
        [
            database["name"],
            *_figures(database["database_read"]),
            *_figures(database["database_write"]),
            *_figures(instances[database["instance"]]["log_write"]),
        ]
        for database in summary["databases"]
    ]
    note = "Log figures are those of the instance, whose log all its databases share."
    return Table("Transactional I/O", headings, rows, note)


def _of_purpose(places: list[dict[str, Any]], metric: str, title: str) -> Table:
    rows = [[place["name"], place[metric]["per_s"], place[metric]["bytes_mean"]] for place in places]
    return Table(title, ["Where", "Reads per s", "Mean bytes"], rows)


def _total(summary: dict[str, Any]) -> Table:
    rows = []
    for database in summary["databases"]:
        read, scan, write = (database[name] for name in ("database_read", "maintenance", "database_write"))
        count = read["count"] + scan["count"]
        size = sum((part["bytes_mean"] or 0) * part["count"] for part in (read, scan))
        rows.append(
            [database["name"], read["per_s"] + scan["per_s"], size / count if count else None, *_figures(write)[2:]]
        )
    return Table("Total I/O", ["Database", "Reads per s", "Mean bytes", "Writes per s", "Mean bytes"], rows)


def _operations(summary: dict[str, Any]) -> Table:
    rows = [
        [item["workload"], item["operation"], item["per_s"]]
        + [item[f"response_ms_{name}"] for name in ("mean", "p50", "p99", "p999", "max")]
        for item in summary["operations"]
    ]
    headings = ["Workload", "Operation", "Per s", "Mean ms", "p50 ms", "p99 ms", "p99.9 ms", "Max ms"]
    return Table("Response times of transactions", headings, rows, "From the intended start to the end of the commit.")


def _instances(summary: dict[str, Any]) -> Table:
    rows = []
    for instance in summary["instances"]:
        cache, in_flight = instance["cache_used_bytes"], instance["in_flight"]
        rows.append(
            [
                instance["name"],
                instance["page_fault_stalls_per_s"],
                _mib(cache["mean"]) if cache and instance["cache_limit_bytes"] else None,
                _mib(instance["cache_limit_bytes"]) if instance["cache_limit_bytes"] else None,
                in_flight["mean"] if in_flight else None,
            ]
        )
    headings = [
        "Instance",
        "Page fault stalls per s",
        "Cache used, mean",
        "Cache limit",
        "I/O in flight, mean of samples",
    ]
    return Table("Instances", headings, rows)


def _checksums(summary: dict[str, Any]) -> Table:
    keys = ("name", "pages_seen", "bad", "correctable", "wrong_page_number", "uninitialized", "seconds", "mib_per_s")
    rows = [[checksum[key] for key in keys] for checksum in summary["checksums"]]
    if len(rows) > 1:
        sums = [sum(row[index] for row in rows) for index in range(1, 6)]
        seconds = max(row[6] for row in rows)
        rows.append(["All", *sums, seconds, sum(row[6] * row[7] for row in rows) / seconds if seconds else None])
    headings = [
        "Database",
        "Pages seen",
        "Bad",
        "Correctable",
        "Wrong page number",
        "Never written",
        "Seconds",
        "MiB/s",
    ]
    return Table("Checksum statistics", headings, rows)


def _generator(summary: dict[str, Any]) -> Table:
    generator = summary["generator"]
    rows = [
        ["Busy, mean of samples", generator["executor_busy_mean"]],
        ["Busy, busiest sample", generator["executor_busy_max"]],
        ["Time between two looks at completions, p99 in ms", generator["reap_gap_ms_p99"]],
        ["Operations that met a deleted record", summary["total"]["missing_records"]],
        ["Operations that met a record in use", summary["total"]["write_conflicts"]],
    ]
    return Table("The load generator itself", [], rows)


def _phases(summary: dict[str, Any]) -> Table:
    rows = [[item["name"], item["start_utc"], item["seconds"], item["complete"]] for item in summary["phases"]]
    return Table("Phases", ["Phase", "Started", "Seconds", "Complete"], rows)


def _machine(environment: dict[str, Any]) -> Table:
    machine, system = environment["machine"], environment["operating_system"]
    memory = machine["memory_kib"]
    rows = [
        ["Processor", machine["cpu_model"]],
        ["CPUs usable", machine["cpus_usable"]],
        ["Memory", _mib(memory * 1024) if memory else None],
        ["Product", machine["product"]],
        ["Virtual machine", machine["virtual"]],
        ["Kernel", system["kernel"]],
        ["Load before the run", ", ".join(f"{load:.2f}" for load in system["load_average"])],
        ["Locked memory limit, KiB", system["locked_memory_limit_kib"]],
        ["Python", environment["python"]],
        ["Release build", environment["release_build"]],
    ]
    return Table("Host", [], rows)


def _targets(environment: dict[str, Any]) -> list[Table]:
    tables = []
    for target in environment["targets"]:
        rows: list[list[Any]] = []
        for group in ("file_system", "device", "direct_io"):
            for key, value in (target[group] or {}).items():
                label = f"{group.replace('_', ' ')}: {key.removesuffix('_bytes').replace('_', ' ')}".capitalize()
                large = key in ("size_bytes", "free_bytes")
                text = ", ".join(map(str, value)) if isinstance(value, list) else value
                rows.append([label, _mib(value) if large else text])
        tables.append(Table(f"Storage under {target['path']}", [], rows))
    return tables
