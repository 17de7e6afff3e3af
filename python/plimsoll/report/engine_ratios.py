"""The engine's self-check: ratios of this run beside those of the published runs, and the band each
should keep.

They say whether the load was like the published one, so that latencies may be compared. Nothing is
judged by them: a disk much faster than the published one, a cache that holds more, or other
sessions move them, and the table says under which conditions they were published.
"""

from __future__ import annotations

from typing import Any

from plimsoll import settings
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.pages.tables import Table, shown

#: Files grow in steps; with fewer of them growth cannot be told from the accident of where a run
#: begins and ends.
GROWTH_STEPS_MIN = 20


def self_check_table(plan: Plan, summary: Summary) -> Table | None:
    """The table; nothing where no engine of the published edition ran, or nothing was measured."""
    published = settings.published_ratios()
    editions = plan.judgement.editions or []
    engines = [item for item in plan.run.record_instances if item.backend == "engine"]
    if len(plan.run.record_instances) < len(plan.run.instances):
        # The totals hold what stores, files and mail did too, of which the published ratios say
        # nothing.
        return None
    if (
        not engines
        or not summary.total.database_write.count
        or published["edition"] not in editions
    ):
        return None
    found = ratios(plan, summary)
    rows: list[list[Any]] = [
        [
            ratio["title"],
            found[ratio["name"]],
            _place(found[ratio["name"]], ratio["least"], ratio["most"]),
            f"{ratio['least']:g} to {ratio['most']:g}",
            *(f"{value:g}" for value in ratio["published"]),
            *["–"] * (len(published["runs"]) - len(ratio["published"])),
            f"{ratio['simulated']:g}",
        ]
        for ratio in published["ratio"]
    ]
    headings = ["Ratio", "This run", "In the band", "Band", *published["runs"], "Engine, simulated"]
    note = (
        f"Published runs: {published['source']}. They hold for {published['condition']}; "
        f"here: {_conditions(plan, summary)}. The engine was simulated under the published "
        f"conditions. Nothing is judged by them."
    )
    return Table("Engine self-check", headings, rows, note)


def ratios(plan: Plan, summary: Summary) -> dict[str, float | None]:
    """The ratios of a run, None where it cannot tell."""
    total, instances = summary.total, plan.run.record_instances
    read, write, log = total.database_read, total.database_write, total.log_write
    page_bytes = instances[0].page_bytes
    log_bytes, iops = log.bytes_per_s, read.per_s + write.per_s
    batches = total.transactions_per_s / settings.BATCH_TRANSACTIONS
    copies = {instance.copies_count for instance in instances}
    further = copies.pop() - 1 if len(copies) == 1 else 0
    return {
        "reads_per_write": _ratio(read.per_s, write.per_s),
        "pages_per_read": _ratio(read.bytes_mean, page_bytes),
        "pages_per_write": _ratio(write.bytes_mean, page_bytes),
        "database_io_per_log_write": _ratio(iops, log.per_s),
        "log_write_bytes": log.bytes_mean,
        "log_bytes_per_database_io": _ratio(log_bytes, iops),
        "reads_per_batch": _ratio(read.per_s, batches),
        "growth_per_log_byte": _ratio(_growth_per_s(plan, summary), log_bytes),
        "replicated_per_log_byte": _ratio(total.log_replication.bytes_per_s, log_bytes * further)
        if further
        else None,
    }


def _growth_per_s(plan: Plan, summary: Summary) -> float | None:
    """How fast the databases grew while they were measured; None after too few steps to tell."""
    step_bytes = {
        item.name: item.extension_pages * item.page_bytes for item in plan.run.record_instances
    }
    grown = [
        (database.grown_bytes_measured, step_bytes[database.instance])
        for database in summary.databases
    ]
    known = [size for size, step in grown if size is not None and size >= GROWTH_STEPS_MIN * step]
    return sum(known) / summary.window.seconds if len(known) == len(grown) else None


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _place(value: float | None, least: float, most: float) -> str:
    if value is None:
        return "cannot be told"
    return "✓ yes" if least <= value <= most else "below" if value < least else "above"


def _conditions(plan: Plan, summary: Summary) -> str:
    """What moves the ratios, of this run."""
    instances, total = plan.run.record_instances, summary.total
    cache = sum(instance.cache_bytes_max for instance in instances)
    words = [f"reads of {shown(total.database_read.latency_ms_mean)} ms"]
    if total.final_bytes and cache:
        words.append(f"a cache of {shown(100 * cache / total.final_bytes)} % of the databases")
    return " and ".join(words)
