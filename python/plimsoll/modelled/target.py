"""The array that a plan names in the place of a path: found, changed as the plan wants, and held against what cannot be.

Every mistake goes to the plan's own collector, so that those of the array stand beside those of the rest.
"""

from __future__ import annotations

from typing import Any

from plimsoll.modelled.presets import described_array
from plimsoll.modelled.storage import DATABASE_MIB_MAX, lacking_gb
from plimsoll.sizing.fields import Collector
from plimsoll.sizing.mistakes import InputError


def target_array(plan: dict[str, Any], instances: list[dict[str, Any]], collector: Collector) -> dict[str, Any] | None:
    """The array a plan names in the place of a path, with what it cannot be.

    Args:
        plan: the checked plan.
        instances: its completed instances, whose databases the array has to hold.
        collector: takes the mistakes.

    Returns:
        The array; None where the storage is real, or where there is no array of that name.
    """
    targets = plan["target"] or []
    _check_targets(targets, collector)
    if not targets or not targets[0]["modelled"]:
        return None
    _check_instances(plan["instance"] or [], collector)
    try:
        array, found = described_array(targets[0]["modelled"], targets[0]["changes"] or {})
    except InputError as error:
        for mistake in error.mistakes:
            collector.add(
                ("target", 0, "modelled"), named_in(error, mistake.line, mistake.where, mistake.message), mistake.hint
            )
        return None
    for key, message, hint in found:
        collector.add(("target", 0, "changes", key), message, hint)
    lacking = None if found else lacking_gb(array, instances)
    if lacking:
        needed, held = lacking
        message = f"needs {needed:,.0f} GB with room for growth and logs, but the array holds {held:,.0f} GB"
        collector.add(("instance",), message, "make the databases smaller, or use larger or more drives")
    return array


def named_in(error: InputError, line: int, where: str, message: str) -> str:
    """A mistake of a file of arrays, told in the file that names it."""
    place = f"{error.file_name}:{line} " if line else "" if where else f"{error.file_name} "
    return f"{place}`{where}` {message}" if where else f"{place}{message}"


def _check_targets(targets: list[dict[str, Any]], collector: Collector) -> None:
    for index, target in enumerate(targets):
        if target["path"] is None and target["modelled"] is None:
            collector.add(("target", index, "path"), "is missing", "name the directory that is put to the test")
        if target["modelled"] is None and target["changes"] is not None:
            collector.add(("target", index, "changes"), "changes no modelled array", "name one with modelled = ...")
        if target["modelled"] and target["path"]:
            collector.add(("target", index, "path"), "is not used: the storage is modelled", "leave one of the two out")
        if target["modelled"] and len(targets) > 1:
            collector.add(("target", index, "modelled"), "stands beside other targets", "a modelled array stands alone")


def _check_instances(instances: list[dict[str, Any]], collector: Collector) -> None:
    for index, instance in enumerate(instances):
        if instance["backend"] == "raw_files":
            collector.add(
                ("instance", index, "backend"), "is raw_files, which no modelled array holds", 'write "engine"'
            )
        if (instance["database_size_mib"] or 0) > DATABASE_MIB_MAX:
            message = f"is above {DATABASE_MIB_MAX}, the most on a modelled array"
            collector.add(("instance", index, "database_size_mib"), message, "take more databases")
