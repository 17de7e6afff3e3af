"""The fields of a summary by the names that limits use, each with every place it occurs at.

`plimsoll.plan.limits` lists the names without a summary, so that a mistake in a plan is found before a run; a test holds the
two lists together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plimsoll.plan.limits import (
    BACKUP_FIGURES,
    DATABASE_METRICS,
    INSTANCE_METRICS,
    LEVEL_FIGURES,
    MACHINE_LEVELS,
    RECOVERY_FIGURES,
    TOTAL_METRICS,
    TOTAL_SIZES,
)

Value = float | int | None


def values_of(summary: dict[str, Any], field: str) -> list[tuple[str, Value]]:
    """Every place at which a field occurs, with its value; None where nothing was measured."""
    return [(scope, value) for name, scope, value in every_field(summary) if name == field]


def every_field(summary: dict[str, Any]) -> Iterator[tuple[str, str, Value]]:
    """Name, place and value of every field that can be limited."""
    for database in summary["databases"]:
        yield from _figures(database, DATABASE_METRICS, database["name"])
        for name in ("iops", "initial_bytes", "final_bytes"):
            yield name, database["name"], database[name]
    for instance in summary["instances"]:
        yield from _instance_fields(instance)
    for operation in summary["operations"]:
        scope = f"{operation['workload']}, {operation['operation']}"
        for name, value in operation.items():
            if name not in ("workload", "operation"):
                yield f"{operation['operation']}_{name}", scope, value
    for name, figures in (("backup", BACKUP_FIGURES), ("recovery", RECOVERY_FIGURES)):
        yield from _others(summary, name, figures)
    for name, value in _run_fields(summary):
        yield name, "run", value


def _others(summary: dict[str, Any], name: str, figures: tuple[str, ...]) -> Iterator[tuple[str, str, Value]]:
    """Backups or recoveries; a run without them has the fields, but nothing measured in them."""
    names = {(item["instance"], item["database"]): item["name"] for item in summary["databases"]}
    for item in summary.get("backups" if name == "backup" else "recoveries") or [None]:
        for figure in figures:
            if item is None:
                yield f"{name}_{figure}", "run", None
            else:
                scope = names.get((item["instance"], item.get("database", 0)), item["instance"])
                yield f"{name}_{figure}", scope, item[figure]


def _figures(place: dict[str, Any], metrics: tuple[str, ...], scope: str) -> Iterator[tuple[str, str, Value]]:
    for metric in metrics:
        for figure, value in place[metric].items():
            yield f"{metric}_{figure}", scope, value


def _levels(levels: dict[str, float] | None, name: str) -> Iterator[tuple[str, Value]]:
    for figure in LEVEL_FIGURES:
        yield f"{name}_{figure}", levels[figure] if levels else None


def _instance_fields(instance: dict[str, Any]) -> Iterator[tuple[str, str, Value]]:
    scope = instance["name"]
    yield from _figures(instance, INSTANCE_METRICS, scope)
    for name in ("page_fault_stalls_count", "page_fault_stalls_per_s", "cache_limit_bytes"):
        yield name, scope, instance[name]
    for name in ("cache_used_bytes", "in_flight"):
        for field, value in _levels(instance[name], name):
            yield field, scope, value


def _run_fields(summary: dict[str, Any]) -> Iterator[tuple[str, Value]]:
    total = summary["total"]
    for name, value in total.items():
        if name not in TOTAL_METRICS and name != "transactions":
            yield f"total_{name}" if name in TOTAL_SIZES else name, value
    for name, value in total["transactions"].items():
        # The rate has a name of its own.
        if name != "per_s":
            yield f"transactions_{name}", value
    for metric in TOTAL_METRICS:
        for figure, value in total[metric].items():
            yield f"total_{metric}_{figure}", value
    yield from summary["generator"].items()
    for name in MACHINE_LEVELS:
        yield from _levels(summary["machine"].get(name), name)
