"""The array that a plan names in the place of a path.

Found, changed as the plan wants, and held against what cannot be.

Every mistake goes to the plan's own collector, so that those of the array stand beside those of the
rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.arrays.plan_storage import DATABASE_MIB_MAX, filling_mib, lacking_gb, stored_bytes
from plimsoll.arrays.presets import CHANGES, described_array
from plimsoll.documents.array_sheet import ArraySheet
from plimsoll.documents.run_spec import InstanceSpec
from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.inputs.schema import Collector, Given
from plimsoll.inputs.toml_lines import KeyPath, LocatedFile


def target_array(
    plan: Given, instances: Sequence[InstanceSpec], collector: Collector
) -> ArraySheet | None:
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
    target = targets[0]
    named = ("target", 0, "modelled")
    array, can_be = collected_array(
        target["modelled"], target["changes"] or {}, named, ("target", 0, "changes"), collector
    )
    lacking = lacking_gb(array, stored_bytes(instances)) if array and can_be else None
    if lacking:
        needed, held = lacking
        message = (
            f"needs {needed:,.0f} GB with room for growth and logs, but the array holds "
            f"{held:,.0f} GB"
        )
        collector.add(
            ("instance",), message, "make the databases smaller, or use larger or more drives"
        )
    return array


def collected_array(
    text: str, changes: Given, named: KeyPath, changed: KeyPath, collector: Collector
) -> tuple[ArraySheet | None, bool]:
    """The array that a file names, changed as it wants, and whether there can be such an array.

    Args:
        text: the array as a person names it.
        changes: figures that replace its own.
        named: where the file names it.
        changed: where the file changes it.
        collector: takes the mistakes, those of a file of arrays among them.
    """
    try:
        array, found = described_array(text, changes)
    except InputError as error:
        for mistake in error.mistakes:
            collector.add(named, _told_elsewhere(error.file_name, mistake), mistake.hint)
        return None, False
    for path, message, hint in found:
        collector.add((*changed, *path), message, hint)
    return array, not found


def _told_elsewhere(file_name: str, mistake: Mistake) -> str:
    """A mistake of a file of arrays, told in the file that names it."""
    if file_name == "options" and not mistake.line:
        return mistake.message
    if not mistake.where:
        return (
            f"{file_name}:{mistake.line} {mistake.message}"
            if mistake.line
            else f"{file_name} {mistake.message}"
        )
    place = f"{file_name}:{mistake.line} " if mistake.line else ""
    return f"{place}`{mistake.where}` {mistake.message}"


def _check_targets(targets: list[Given], collector: Collector) -> None:
    for index, target in enumerate(targets):
        if target["path"] is None and not target.get("is_server") and target["modelled"] is None:
            collector.add(
                ("target", index, "path"),
                "is missing",
                "name the directory that is put to the test",
            )
        if target["modelled"] is None and target["changes"] is not None:
            collector.add(
                ("target", index, "changes"),
                "changes no modelled array",
                "name one with modelled = ...",
            )
        if target["modelled"] and target["path"]:
            collector.add(
                ("target", index, "path"),
                "is not used: the storage is modelled",
                "leave one of the two out",
            )
        if target["modelled"] and len(targets) > 1:
            collector.add(
                ("target", index, "modelled"),
                "cannot be combined with other targets",
                "a modelled array stands alone",
            )


def _check_instances(instances: list[Given], collector: Collector) -> None:
    for index, instance in enumerate(instances):
        if instance["backend"] == "raw_files":
            collector.add(
                ("instance", index, "backend"),
                "is raw_files, which no modelled array holds",
                'write "engine"',
            )
        if (instance["database_size_mib"] or 0) > DATABASE_MIB_MAX:
            message = f"is above {DATABASE_MIB_MAX}, the most on a modelled array"
            collector.add(("instance", index, "database_size_mib"), message, "take more databases")


def filling_size_mib(target: Given, databases: int) -> int:
    """The size of databases that fill the modelled array of a target as far as a design does.

    1024 if there is no such array.
    """
    collector = Collector(LocatedFile("options", {}, {}))
    changes = collector.table(target.get("changes", {}), CHANGES, ())
    try:
        array, impossible = described_array(target["modelled"], changes)
    except InputError:
        return 1024  # the plan's reader says what is wrong
    no_such = impossible or collector.mistakes or databases < 1
    return 1024 if no_such else filling_mib(array, databases)
