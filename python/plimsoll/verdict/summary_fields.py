"""The fields of a summary by the names that limits use, each with every place it occurs at.

`plimsoll.plan.limits` lists the names without a summary, so that a mistake in a plan is found
before a run; a test holds the two lists together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plimsoll.documents.backup_figures import ReportedBackup, ReportedRecovery
from plimsoll.documents.figures import Level, ReportedDatabaseFigures, ReportedInstanceFigures
from plimsoll.documents.summary import AnySummary
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


def values_of(summary: AnySummary, field: str) -> list[tuple[str, Value]]:
    """Every place at which a field occurs, with its value; None where nothing was measured."""
    return [(scope, value) for name, scope, value in every_field(summary) if name == field]


def every_field(summary: AnySummary) -> Iterator[tuple[str, str, Value]]:
    """Name, place and value of every field that can be limited."""
    for database in summary.databases:
        yield from _figures(database, DATABASE_METRICS, database.name)
        yield "iops", database.name, database.iops
        yield "initial_bytes", database.name, database.initial_bytes
        yield "final_bytes", database.name, database.final_bytes
    for instance in summary.instances:
        yield from _instance_fields(instance)
    for operation in summary.operations:
        scope = f"{operation.workload}, {operation.operation}"
        for name, value in operation.given().items():
            if name not in ("workload", "operation"):
                yield f"{operation.operation}_{name}", scope, value
    names = {(item.instance, item.database): item.name for item in summary.databases}
    backups = [
        (names.get((item.instance, item.database), item.instance), item) for item in summary.backups
    ]
    yield from _others("backup", BACKUP_FIGURES, backups)
    yield from _others(
        "recovery", RECOVERY_FIGURES, [(item.instance, item) for item in summary.recoveries]
    )
    for name, value in _run_fields(summary):
        yield name, "run", value


def _others(
    name: str,
    figures: tuple[str, ...],
    found: Sequence[tuple[str, ReportedBackup | ReportedRecovery]],
) -> Iterator[tuple[str, str, Value]]:
    """Backups or recoveries; a run without them has the fields, but nothing measured in them."""
    for figure in figures:
        if not found:
            yield f"{name}_{figure}", "run", None
        for scope, item in found:
            yield f"{name}_{figure}", scope, getattr(item, figure)


def _figures(
    place: ReportedDatabaseFigures | ReportedInstanceFigures, metrics: tuple[str, ...], scope: str
) -> Iterator[tuple[str, str, Value]]:
    for metric in metrics:
        for figure, value in place.transfers(metric).given().items():
            yield f"{metric}_{figure}", scope, value


def _levels(levels: Level | None, name: str) -> Iterator[tuple[str, Value]]:
    for figure in LEVEL_FIGURES:
        yield f"{name}_{figure}", getattr(levels, figure) if levels else None


def _instance_fields(instance: ReportedInstanceFigures) -> Iterator[tuple[str, str, Value]]:
    scope = instance.name
    yield from _figures(instance, INSTANCE_METRICS, scope)
    yield "page_fault_stalls_count", scope, instance.page_fault_stalls_count
    yield "page_fault_stalls_per_s", scope, instance.page_fault_stalls_per_s
    yield "cache_limit_bytes", scope, instance.cache_limit_bytes
    for name, levels in (
        ("cache_used_bytes", instance.cache_used_bytes),
        ("in_flight", instance.in_flight),
    ):
        for field, value in _levels(levels, name):
            yield field, scope, value


def _run_fields(summary: AnySummary) -> Iterator[tuple[str, Value]]:
    total = summary.total
    for name, value in total.given().items():
        if name not in (*TOTAL_METRICS, "transactions", "pages_corrected"):
            yield f"total_{name}" if name in TOTAL_SIZES else name, value
    # Runs of earlier versions did not count them: the field is there, and nothing was measured in
    # it.
    yield "pages_corrected", total.pages_corrected
    for name, value in total.transactions.given().items():
        # The rate has a name of its own.
        if name != "per_s":
            yield f"transactions_{name}", value
    for metric in TOTAL_METRICS:
        for figure, value in total.transfers(metric).given().items():
            yield f"total_{metric}_{figure}", value
    yield from summary.generator.given().items()
    for name in MACHINE_LEVELS:
        yield from _levels(summary.machine.get(name), name)
