"""The section "Files": what was asked for, what each user got, depth, and latency by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plimsoll.documents.plan import FilesAsked, Plan
from plimsoll.documents.run_spec import FilesInstance, FilesWorkload
from plimsoll.documents.summary import FilesFigures, Summary
from plimsoll.pages.kit import Chart
from plimsoll.pages.tables import Table, mib
from plimsoll.pages.vega import (
    colour,
    finished,
    layer,
    nominal,
    quantitative,
)
from plimsoll.plan.load import described
from plimsoll.workloads.files.patterns import AccessLine, in_words, patterns

DATA_PATTERNS = (
    "one byte repeated",
    "random, the same at every write of a place",
    "random, new at every write",
)
BELOW_BLOCK = {
    "refuse": "none: such a run does not begin",
    "round": "made longer, to whole blocks",
    "read_modify_write": "blocks are read, changed and written",
}


def files_tables(plan: Plan, summary: Summary) -> list[Table]:
    """The tables of every workload on files; none where there is none."""
    loads = {item.name: item for item in plan.run.workloads if isinstance(item, FilesWorkload)}
    found = [_storage(plan)] if loads else []
    for figures in summary.files:
        load, asked = loads[figures.workload], plan.judgement.files[figures.workload]
        found += [_asked(load, asked), _achieved(figures), _sizes(figures)]
    return found


def _storage(plan: Plan) -> Table:
    rows: list[list[Any]] = []
    for item in plan.run.instances:
        if isinstance(item, FilesInstance):
            size = sum(file.size_bytes for file in item.databases)
            verified = "yes" if item.verify else "no"
            rows.append(
                [
                    item.name,
                    len(item.databases),
                    mib(size),
                    DATA_PATTERNS[item.data_pattern],
                    verified,
                ]
            )
    return Table("Files", ["Instance", "Files", "Size in all", "Content", "Verified"], rows)


def _asked(load: FilesWorkload, asked: FilesAsked) -> Table:
    source = patterns()[asked.pattern].source if asked.pattern else ""
    lines = [AccessLine(**line.plain()) for line in load.access]
    rows: list[list[Any]] = [
        [
            "Access specification",
            f"{asked.pattern} ({source})" if asked.pattern else "as the plan states it",
        ],
        *([f"Line {number}", words] for number, words in enumerate(in_words(lines), 1)),
        ["Load", described(load.load)],
        ["Workers", load.workers],
        ["Most transfers under way", asked.outstanding],
        ["Transfers that are no whole logical blocks", BELOW_BLOCK[load.below_block]],
    ]
    return Table(f"What was asked for: {load.name}", [], rows)


def _achieved(figures: FilesFigures) -> Table:
    rows: list[list[Any]] = [
        ["I/O per second", figures.iops],
        ["Asked for", figures.target_iops],
        ["Transactions per second", figures.transactions_per_s],
        ["MiB per second", figures.mib_per_s],
        ["Share of requests that read, %", figures.read_percent],
        ["Mean length of a transfer at the disk, bytes", figures.bytes_mean],
        ["Transfers under way, mean", figures.outstanding_mean],
        ["Transfers under way, asked for at most", figures.outstanding_asked],
        ["Transactions that waited for a slot", figures.waited_for_slot_count],
        ["Transfers that were no whole logical blocks", figures.below_block_count],
    ]
    if figures.users:
        rows += [["Users", figures.users], ["I/O per second of one user", figures.iops_per_user]]
    note = (
        "Transfers are counted as the specification asked for them; the figures of the disk count "
        "what was done."
    )
    return Table(f"What was done: {figures.workload}", [], rows, note)


def _sizes(figures: FilesFigures) -> Table:
    rows: list[list[Any]] = [
        [
            f"up to {item.size}",
            item.count,
            100 * item.share,
            item.ms_mean,
            item.ms_p50,
            item.ms_p95,
            item.ms_p99,
            item.ms_max,
        ]
        for item in figures.sizes
    ]
    headings = [
        "Size",
        "Transfers",
        "Share %",
        "Mean ms",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "Longest ms",
    ]
    return Table(f"Latency by size: {figures.workload}", headings, rows)


def files_charts(figures: Sequence[FilesFigures]) -> list[Chart]:
    """Latency over the size of transfers, for each workload."""
    return [_chart(item, number) for number, item in enumerate(figures, 1) if item.sizes]


def _chart(figures: FilesFigures, number: int) -> Chart:
    order = [size.size for size in figures.sizes]
    data = [
        {"x": size.size, "v": value, "w": name}
        for size in figures.sizes
        for name, value in (("mean", size.ms_mean), ("p95", size.ms_p95), ("p99", size.ms_p99))
        if value is not None
    ]
    title = f"Latency by size of transfer, {figures.workload}"
    words = [f"{item.size}: mean {item.ms_mean:.3g} ms" for item in figures.sizes]
    chart = layer(
        {"type": "line", "point": True},
        data,
        x=nominal("x", title="size of the transfer, at most", sort=order),
        y=quantitative("v", title="ms"),
        color=colour(["mean", "p95", "p99"]),
        tooltip=[
            nominal("x", title="size"),
            nominal("w", title="what"),
            quantitative("v", format=".3~g", title="ms"),
        ],
    )
    description = ". ".join([title, *words])
    return Chart(
        f"files-{number}",
        title,
        description,
        finished(chart, title, words[:1], description),
        _sizes(figures),
    )
