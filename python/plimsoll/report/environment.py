"""Tables that the published reports lack.

Latency in detail, the load generator itself, and the circumstances of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.documents.environment import DiskHealth, Environment, StorageFacts
from plimsoll.documents.figures import DatabaseFigures, InstanceFigures
from plimsoll.documents.summary import GeneratorThread, Summary
from plimsoll.pages.tables import Table, size_shown

#: A thread may carry hundreds.
INSTANCES_SHOWN_MAX = 8

_LATENCIES = (
    ("latency_ms_mean", "Mean"),
    ("latency_ms_mean_of_samples", "Mean of samples"),
    ("latency_ms_mean_over_time", "Mean over time"),
    ("latency_ms_p50", "p50"),
    ("latency_ms_p90", "p90"),
    ("latency_ms_p95", "p95"),
    ("latency_ms_p99", "p99"),
    ("latency_ms_p999", "p99.9"),
    ("latency_ms_max", "Max"),
)


def latency_detail(summary: Summary) -> Table:
    """Every latency of every place, from the weighted mean to the longest single transfer."""
    rows: list[list[Any]] = []
    judged: list[tuple[str, str, Sequence[DatabaseFigures | InstanceFigures]]] = [
        ("database_read", "Database reads", summary.databases),
        ("database_write", "Database writes", summary.databases),
        ("log_write", "Log writes", summary.instances),
    ]
    for metric, title, places in judged:
        named = [
            *((place.name, place.transfers(metric)) for place in places),
            ("All", summary.total.transfers(metric)),
        ]
        for name, figures in named:
            rows.append([f"{title}, {name}", *(figures.number(key) for key, _ in _LATENCIES)])
    seconds = summary.window.published_interval_s
    note = (
        f"Milliseconds. “Mean” is weighted by operations and is what is judged. “Mean of samples” "
        f"is what the published tool "
        f"printed: the plain mean of the means of intervals of {seconds} s, empty ones counted as "
        f"zero."
    )
    return Table("Latency in detail", ["What", *(title for _, title in _LATENCIES)], rows, note)


def responses(summary: Summary) -> Table:
    """Response times of transactions."""
    keys = (
        "per_s",
        "response_ms_mean",
        "response_ms_p50",
        "response_ms_p99",
        "response_ms_p999",
        "response_ms_max",
    )
    rows: list[list[Any]] = [
        [f"{item.workload}, {item.operation}", *(getattr(item, key) for key in keys)]
        for item in summary.operations
    ]
    rows.append(["All", *(getattr(summary.total.transactions, key) for key in keys)])
    headings = ["Transaction", "Per s", "Mean ms", "p50 ms", "p99 ms", "p99.9 ms", "Max ms"]
    note = "From the intended start to the end of the commit."
    return Table("Response times of transactions", headings, rows, note, has_total=True)


def instances(summary: Summary) -> Table:
    """Cache and queue of each instance."""
    rows = []
    for instance in summary.instances:
        cache, in_flight = instance.cache_used_bytes, instance.in_flight
        limited = bool(instance.cache_limit_bytes)
        rows.append(
            [
                instance.name,
                size_shown(cache.mean) if cache and limited else None,
                size_shown(instance.cache_limit_bytes) if limited else None,
                instance.page_fault_stalls_per_s,
                in_flight.mean if in_flight else None,
                in_flight.max if in_flight else None,
            ]
        )
    headings = [
        "Instance",
        "Cache used, mean",
        "Cache limit",
        "Page fault stalls/s",
        "I/O in flight, mean of samples",
        "I/O in flight, most",
    ]
    return Table("Cache and queue of each instance", headings, rows)


def generator(summary: Summary) -> Table:
    """How the load generator itself did."""
    found = summary.generator
    rows: list[list[Any]] = [
        ["Busy, mean of samples", _percent(found.executor_busy_mean)],
        ["Busy, busiest sample", _percent(found.executor_busy_max)],
        *([_thread_label(item), _percent(item.busy_mean)] for item in found.threads),
        ["Threads that would do", found.threads_enough],
        ["Time between two looks at completions, p99 (ms)", found.reap_gap_ms_p99],
        ["Arrivals behind their schedule, p99 (ms)", found.arrival_lag_ms_p99],
        ["Operations that met a deleted record", summary.total.missing_records],
        ["Operations that met a record in use", summary.total.write_conflicts],
    ]
    return Table("The load generator itself", [], [row for row in rows if row[1] is not None])


def _thread_label(thread: GeneratorThread) -> str:
    """A thread with what it carried."""
    shown = ", ".join(thread.instances[:INSTANCES_SHOWN_MAX])
    more = (
        f" and {len(thread.instances) - INSTANCES_SHOWN_MAX} more"
        if len(thread.instances) > INSTANCES_SHOWN_MAX
        else ""
    )
    place = "" if thread.processor is None else f" on processor {thread.processor}"
    return f"Thread {thread.thread}{place}, busy, mean of samples ({shown}{more})"


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.1f} %"


def phases(summary: Summary) -> Table:
    """What the run did, step by step."""
    rows = [[item.name, item.start_utc, item.seconds, item.complete] for item in summary.phases]
    return Table("Phases", ["Phase", "Started", "Seconds", "Complete"], rows)


def environment_tables(environment: Environment, notes: dict[str, str]) -> list[Table]:
    """The host, the storage under each target, and what the user added by hand."""
    tables = [_machine(environment)]
    devices: tuple[tuple[str, Sequence[Mapping[str, object]]], ...] = (
        ("Network adapters", environment.get("network") or []),
        ("Disks of the host", environment.get("disks") or []),
        ("NVMe drives", environment.get("nvme") or []),
        ("Storage adapters", environment.get("adapters") or []),
        ("iSCSI sessions", environment.get("iscsi") or []),
        ("Multipath devices", environment.get("multipath") or []),
    )
    for title, found in devices:
        if found:
            names = list(dict.fromkeys(name for item in found for name in item))
            headings = [
                name.removesuffix("_bytes").replace("_", " ").capitalize() for name in names
            ]
            rows = [[_device_value(name, item.get(name)) for name in names] for item in found]
            tables.append(Table(title, headings, rows))
    tables += _smart(environment.get("smart") or [])
    tables += [_target(target) for target in environment["targets"]]
    if notes:
        note = "Added by hand; Plimsoll did not look at any of it."
        tables.append(
            Table(
                "Stated by those who ran the test", [], [list(pair) for pair in notes.items()], note
            )
        )
    return tables


def _smart(found: Sequence[DiskHealth]) -> list[Table]:
    """What the drives under test said of their own health before the run, and why others said
    nothing.
    """
    rows = [
        [
            item["disk"],
            {True: "yes", False: "NO", None: "not told"}[item["healthy"]],
            item["life_used_percent"],
            ", ".join(
                f"{name.replace('_', ' ')} {count}" for name, count in item["counters"].items()
            )
            or None,
            item["reason"] or "read",
        ]
        for item in found
    ]
    headings = ["Disk", "Healthy by its own word", "Life used %", "Counters", "How it was read"]
    return [Table("Health of the disks under test (SMART)", headings, rows)] if rows else []


def drive_tables(summary: Summary) -> list[Table]:
    """What the run did to its drives."""
    rows: list[list[Any]] = [
        [
            drive.disk,
            drive.temperature_c_max,
            drive.warm_minutes,
            drive.critical_minutes,
            drive.throttled_count,
            None if drive.written_bytes is None else size_shown(drive.written_bytes),
            drive.life_used_percent_before,
            drive.life_used_percent_after,
            drive.spare_percent_after,
        ]
        for drive in summary.drive_health
    ]
    headings = [
        "Disk",
        "Warmest, degrees C",
        "Minutes above warning temperature",
        "Minutes above critical temperature",
        "Times throttled",
        "Written by this host",
        "Life used before %",
        "Life used after %",
        "Spare left %",
    ]
    return [Table("Drives over the run", headings, rows)] if rows else []


def _device_value(name: str, value: object) -> object:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return size_shown(value) if name == "size_bytes" and isinstance(value, int) else value


def _machine(environment: Environment) -> Table:
    machine, system = environment["machine"], environment["operating_system"]
    memory = machine["memory_kib"]
    rows: list[list[Any]] = [
        [
            "Product",
            " ".join(part for part in (machine.get("vendor"), machine["product"]) if part) or None,
        ],
        ["Virtual machine", machine["virtual"]],
        ["Firmware (BIOS)", machine.get("firmware")],
        ["Processor", machine["cpu_model"]],
        ["Processor packages", machine.get("cpu_packages")],
        ["CPUs usable", f"{machine['cpus_usable']} of {machine['cpus_present']}"],
        ["Frequency governor", machine.get("frequency_governor")],
        ["Memory", size_shown(memory * 1024) if memory else None],
        ["Operating system", system["distribution"]],
        ["Kernel", " ".join(part for part in (system["kernel"], system.get("build")) if part)],
        ["Load before the run", ", ".join(f"{load:.2f}" for load in system["load_average"])],
        ["Locked memory limit (KiB)", system["locked_memory_limit_kib"]],
        ["Python", environment["python"]],
        ["Release build", environment.get("release_build")],
        ["Looked at", environment["collected_utc"]],
    ]
    return Table("Host", [], rows)


def _target(target: StorageFacts) -> Table:
    rows: list[list[Any]] = []
    groups: tuple[tuple[str, Mapping[str, object]], ...] = (
        ("file system", target["file_system"] or {}),
        ("device", target["device"] or {}),
        ("direct io", target["direct_io"]),
    )
    for group, facts in groups:
        for key, value in facts.items():
            large = key in ("size_bytes", "free_bytes")
            label = f"{group}: {key.removesuffix('_bytes').replace('_', ' ')}".capitalize()
            text = ", ".join(map(str, value)) if isinstance(value, list) else value
            rows.append([label, size_shown(value) if large and isinstance(value, int) else text])
    rows += [
        [f"Share: {trial['name']}", "honoured" if trial["honoured"] else f"no: {trial['said']}"]
        for trial in target.get("share", [])
    ]
    kind = target.get("storage_class")
    if kind:
        rows[:0] = [["Class of storage", kind["title"]], ["What that means", kind["meaning"]]]
        rows += [
            [f"Layer: {layer['title']}", f"{layer['evidence']}; {layer['meaning']}"]
            for layer in kind["layers"]
            if layer["title"] != kind["title"]
        ]
    return Table(f"Storage under {target['path']}", [], rows)
