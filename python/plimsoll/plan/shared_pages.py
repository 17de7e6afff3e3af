"""Duplicates for storage that deduplicates: which leaves of records several databases of a plan have in common.

A page carries its own number and checksum, and every record its own number, so nothing within a database is ever a duplicate. The same
page of another database can be: where several databases are alike, a share of their leaves is made from a common seed and is the same
byte for byte. Of as many copies all but one are duplicates, so with N databases at most (N - 1) / N of the pages can be.

Pages that the load changes are no duplicates any more, because they carry the time of their change: what is left at the end is
measured (`content`).
"""

from __future__ import annotations

import math
from typing import Any

from plimsoll.inputs.schema import Collector

_ALIKE = ("page_bytes",)
_ALIKE_DATABASES = ("size_bytes", "record_bytes", "vacancy_percent", "compressible_percent")


def share_leaves(plan: dict[str, Any], instances: list[dict[str, Any]], collector: Collector) -> None:
    """Give the databases of a plan the leaves they have in common, where instances state `duplicate_percent`.

    Args:
        plan: as it was written.
        instances: completed; their databases get `sharing`.
        collector: told of what cannot be.
    """
    stated = [
        (index, given["duplicate_percent"], instance)
        for index, (given, instance) in enumerate(zip(plan["instance"] or [], instances, strict=False))
        if given["duplicate_percent"]
    ]
    if not stated:
        return
    databases = [database for _, _, instance in stated for database in instance["databases"]]
    first_index, percent, first = stated[0]
    where = ("instance", first_index, "duplicate_percent")
    for index, other_percent, instance in stated:
        here = ("instance", index, "duplicate_percent")
        if instance["backend"] == "raw_files":
            collector.add(here, "needs the engine, but the instance is raw files", "remove it")
        if other_percent != percent:
            collector.add(here, f"is {other_percent}, but {percent} in another instance", "write one share for all")
        different = _different(first, instance)
        if different:
            hint = "databases that have pages in common are alike in all of these"
            collector.add(here, f"stands in instances of different {' and '.join(different)}", hint)
    count = len(databases)
    if count < 2:
        hint = (
            "a page has its number in it, so only another database can hold the same one: state it where there are two"
        )
        collector.add(where, "needs two databases", hint)
        return
    leaves_percent = percent * count / (count - 1)
    if leaves_percent > 100:
        most = math.floor(100 * (count - 1) / count)
        collector.add(
            where, f"is above {most}, the most that {count} databases can have in common", f"write at most {most}"
        )
        return
    for database in databases:
        database["sharing"] = {
            "seed": int(plan["seed"]) * 1_000_003,
            "leaves_per_million": round(10_000 * leaves_percent),
        }


def _different(first: dict[str, Any], other: dict[str, Any]) -> list[str]:
    found = [key for key in _ALIKE if first[key] != other[key]]
    before, now = first["databases"][0], other["databases"][0]
    return found + [key for key in _ALIKE_DATABASES if before[key] != now[key]]
