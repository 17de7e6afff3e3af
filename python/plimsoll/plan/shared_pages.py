"""Duplicates for storage that deduplicates.

Which leaves of records several databases of a plan have in common.

A page carries its own number and checksum, and every record its own number, so nothing within a
database is ever a duplicate. The same page of another database can be: where several databases are
alike, a share of their leaves is made from a common seed and is the same byte for byte. Of as many
copies all but one are duplicates, so with N databases at most (N - 1) / N of the pages can be.

Pages that the load changes are no duplicates any more, because they carry the time of their change:
what is left at the end is measured (`content`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from plimsoll.documents.run_spec import InstanceSpec, RecordsInstance, SharingSpec
from plimsoll.inputs.schema import Collector, Given

Kept = TypeVar("Kept", bound=InstanceSpec)
_ALIKE_DATABASES = ("size_bytes", "record_bytes", "vacancy_percent", "compressible_percent")


def share_leaves(plan: Given, instances: Sequence[Kept], collector: Collector) -> Sequence[Kept]:
    """The instances of a plan with the leaves their databases have in common, where they state
    `duplicate_percent`.

    Args:
        plan: as it was written.
        instances: completed; the databases of the answer have `sharing`.
        collector: told of what cannot be.
    """
    stated = [
        (index, given["duplicate_percent"], instance)
        for index, (given, instance) in enumerate(
            zip(plan["instance"] or [], instances, strict=False)
        )
        if given["duplicate_percent"]
    ]
    if not stated:
        return instances
    first_index, percent, first = stated[0]
    where = ("instance", first_index, "duplicate_percent")
    for index, other_percent, instance in stated:
        here = ("instance", index, "duplicate_percent")
        if instance.backend == "raw_files":
            collector.add(here, "needs the engine, but the instance is raw files", "remove it")
        if other_percent != percent:
            collector.add(
                here,
                f"is {other_percent}, but {percent} in another instance",
                "write one share for all",
            )
        different = _different(first, instance)
        if different:
            hint = "databases that have pages in common are alike in all of these"
            collector.add(here, f"stands in instances of different {' and '.join(different)}", hint)
    count = sum(len(instance.databases) for _, _, instance in stated)
    if count < 2:
        hint = (
            "a page has its number in it, so only another database can hold the same one: state it "
            "where there are two"
        )
        collector.add(where, "needs two databases", hint)
        return instances
    leaves_percent = percent * count / (count - 1)
    if leaves_percent > 100:
        most = math.floor(100 * (count - 1) / count)
        collector.add(
            where,
            f"is above {most}, the most that {count} databases can have in common",
            f"write at most {most}",
        )
        return instances
    sharing = SharingSpec(
        seed=int(plan["seed"]) * 1_000_003, leaves_per_million=round(10_000 * leaves_percent)
    )
    names = {instance.name for _, _, instance in stated}
    return [
        instance.replace(
            databases=[database.replace(sharing=sharing) for database in instance.databases]
        )
        if isinstance(instance, RecordsInstance) and instance.name in names
        else instance
        for instance in instances
    ]


def _different(first: InstanceSpec, other: InstanceSpec) -> list[str]:
    """What keeps the databases of two instances from holding the same pages."""
    if not isinstance(first, RecordsInstance) or not isinstance(other, RecordsInstance):
        return []  # What is stated of files is a mistake that is told elsewhere.
    different = [] if first.page_bytes == other.page_bytes else ["page_bytes"]
    before, now = first.databases[0], other.databases[0]
    return different + [
        key for key in _ALIKE_DATABASES if getattr(before, key) != getattr(now, key)
    ]
