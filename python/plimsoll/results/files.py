"""Figures of workloads on files: rates per user, depth asked and kept, latency by size.

Transfers are counted as the workload asked for them (`file_io_...`); what lengthening and changing
in place made of them stands in the figures of the disk. Where several loads work on the same files,
the disk cannot tell them apart: their bytes are those that each has asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import AccessLineSpec, FilesWorkload, RunSpec
from plimsoll.documents.summary import FilesFigures, SizeClass
from plimsoll.files.parquet import Query, Row
from plimsoll.results.distributions import Counted, buckets_of, counted_of, quantiles_ms
from plimsoll.units import NS_PER_S

#: Metrics of transfers by size, and how they are called; `crates/plimsoll-run/src/files` counts
#: them.
SIZES = {
    "file_io_512": "512 bytes",
    "file_io_1k": "1 KiB",
    "file_io_2k": "2 KiB",
    "file_io_4k": "4 KiB",
    "file_io_8k": "8 KiB",
    "file_io_16k": "16 KiB",
    "file_io_32k": "32 KiB",
    "file_io_64k": "64 KiB",
    "file_io_128k": "128 KiB",
    "file_io_256k": "256 KiB",
    "file_io_1m": "1 MiB",
    "file_io_larger": "larger",
}
#: The longest transfer of each but the last.
SIZE_ENDS = (512, *(kib << 10 for kib in (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024)))
PERCENTILES = ("p50", "p95", "p99")


def shares_files(load: FilesWorkload, run: RunSpec) -> bool:
    """Whether other loads work on the files of a load."""
    return any(
        other.name != load.name and set(other.instances) & set(load.instances)
        for other in run.workloads
    )


def files_figures(
    plan: Plan, ask: Query, seconds: Mapping[str, float], phases: Sequence[str]
) -> list[FilesFigures]:
    """The figures of every workload on files.

    Args:
        plan: the completed plan.
        ask: asks the tables `measured` (samples of the measured phases) and `bucket`
            (distributions).
        seconds: how long each load was measured, by its name.
        phases: the measured phases.
    """
    loads = [item for item in plan.run.workloads if isinstance(item, FilesWorkload)]
    return [
        _figures(load, plan, ask, seconds[load.name], phases)
        for load in loads
        if seconds[load.name]
    ]


def _figures(
    load: FilesWorkload, plan: Plan, ask: Query, seconds: float, phases: Sequence[str]
) -> FilesFigures:
    asked = plan.judgement.files[load.name]
    counted = counted_of(ask, load.name)
    sizes = [
        _size(name, counted[name], load.name, ask, phases) for name in SIZES if name in counted
    ]
    total = sum(size.count for size in sizes)
    transfers = (
        _transfers_asked(load.access, counted)
        if shares_files(load, plan.run)
        else _transfers(load, ask)
    )
    operations = [counted[name] for name in ("file_read", "file_write") if name in counted]
    done = sum(row.count for row in operations)
    under_way_ns = sum(counted[name].total_ns for name in SIZES if name in counted)
    iops = total / seconds
    return FilesFigures(
        workload=load.name,
        iops=iops,
        transactions_per_s=done / seconds,
        mib_per_s=transfers["bytes"] / seconds / 2**20,
        read_percent=100 * counted["file_read"].count / done
        if done and "file_read" in counted
        else None,
        bytes_mean=transfers["bytes"] / transfers["count"] if transfers["count"] else None,
        outstanding_asked=asked.outstanding,
        outstanding_mean=under_way_ns / NS_PER_S / seconds,
        waited_for_slot_count=counted["pool_wait"].count if "pool_wait" in counted else 0,
        below_block_count=counted["file_below_block"].count if "file_below_block" in counted else 0,
        target_iops=asked.target_iops,
        users=asked.users,
        iops_per_user=iops / asked.users if asked.users else None,
        sizes=[size.replace(share=size.count / total) for size in sizes],
    )


def _transfers(load: FilesWorkload, ask: Query) -> Row:
    """What the disk carried for the instances of a workload."""
    rows = ask(
        "SELECT coalesce(sum(bytes), 0)::BIGINT AS bytes, coalesce(sum(count), 0)::BIGINT AS count "
        "FROM measured"
        " WHERE metric IN ('database_read', 'database_write') AND list_contains($instances, "
        "instance)",
        {"instances": list(load.instances)},
    )
    return rows[0]


def _transfers_asked(access: Sequence[AccessLineSpec], counted: Mapping[str, Counted]) -> Row:
    """What a workload asked for, by its counts and the mean length of its sizes in each class."""
    bytes_, weights = dict.fromkeys(SIZES, 0), dict.fromkeys(SIZES, 0)
    for line in access:
        for size in filter(None, (line.size_bytes, line.reply_bytes)):
            name = list(SIZES)[bisect_left(SIZE_ENDS, size)]
            bytes_[name] += line.share_percent * line.burst * size
            weights[name] += line.share_percent * line.burst
    counts = {name: counted[name].count for name in SIZES if name in counted}
    return {
        "bytes": sum(count * bytes_[name] / weights[name] for name, count in counts.items()),
        "count": sum(counts.values()),
    }


def _size(metric: str, row: Counted, workload: str, ask: Query, phases: Sequence[str]) -> SizeClass:
    return SizeClass(
        size=SIZES[metric],
        count=row.count,
        share=0.0,
        ms_mean=row.ms_mean,
        **quantiles_ms(buckets_of(ask, workload, metric, phases), "ms", PERCENTILES),
        ms_max=row.ms_max,
    )


def in_words(figures: Sequence[FilesFigures]) -> list[str]:
    """Lines for the printed result."""
    lines = []
    for item in figures:
        per_user = (
            f", {item.iops_per_user:.3f} for each of {item.users} users"
            if item.users and item.iops_per_user
            else ""
        )
        lines.append(
            f"{item.workload}: {item.iops:,.1f} I/O per second{per_user}, {item.mib_per_s:,.1f} "
            f"MiB/s; "
            f"{item.outstanding_mean:.2f} under way of {item.outstanding_asked} asked for"
        )
        if item.waited_for_slot_count:
            lines.append(
                f"{item.workload}: {item.waited_for_slot_count:,} transactions waited for a slot, "
                f"because {item.outstanding_asked} "
                "were under way; ask for more with `outstanding`"
            )
        if item.below_block_count:
            lines.append(
                f"{item.workload}: {item.below_block_count:,} transfers were no whole logical "
                f"blocks"
            )
    return lines
