"""Databases go over to a run, and come back from it, by what their markers say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from plimsoll.databases import kept_backups, ownership
from plimsoll.databases.ownership import CLOSED, IN_USE, Marker, identity_of
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.run_spec import InstanceSpec, RunSpec
from plimsoll.errors.system_errors import system_reason


def take(run: RunSpec) -> None:
    """Make the directories of a run and mark them as in use."""
    if run.modelled:
        return
    for instance in run.our_instances if opens(run) else ():
        make_directories(instance)
        mark(instance, IN_USE, None)
    kept_backups.make_folders(run)


def make_directories(instance: InstanceSpec) -> None:
    """Make the directories of an instance and of its log."""
    for directory in {instance.directory, instance.log_directory}:
        Path(directory).mkdir(parents=True, exist_ok=True)
    if instance.log_directory != instance.directory:
        ownership.write_for_logs(Path(instance.log_directory), Path(instance.directory))


def give_back(run: RunSpec, outcome: Outcome) -> list[str]:
    """Note in the markers what the run left behind, so that a later one can go on with it.

    Returns:
        Where the storage cannot be written any more, in sentences. What was measured counts.
    """
    told: list[str] = []
    if run.modelled:
        return told
    stops = [phase for phase in outcome.phases if phase.kind == "stop"]
    closed = bool(stops) and all(phase.complete for phase in stops)
    found = stops[-1].databases if stops else ()
    for index, instance in enumerate(run.instances):
        records = (
            [database.records_ever for database in found[index]] if index < len(found) else None
        )
        if closed and records is not None and instance.is_ours:
            try:
                mark(instance, CLOSED, records)
            except OSError as error:
                told.append(
                    f"{instance.directory} cannot say that its databases are closed: "
                    f"{system_reason(error)}; once it can be written, the next run takes them for "
                    f"those of a run that was killed"
                )
    return told


def move_marker(instance: InstanceSpec) -> None:
    """Note in a marker of ours that its instance has moved with its storage.

    All else must agree as ever.
    """
    marker = ownership.read(Path(instance.directory))
    if marker is not None:
        replace(marker, identity=marker.identity.with_logs_in(instance.log_directory)).write()
        make_directories(instance)


def mark(instance: InstanceSpec, state: str, records: Sequence[int] | None) -> None:
    """Write the marker of an instance of ours."""
    Marker(Path(instance.directory), state, records, identity_of(instance)).write()


def opens(run: RunSpec) -> bool:
    """Whether a run opens databases; one that only reads their files leaves their markers alone."""
    return any(phase.action.kind == "prepare" for phase in run.phases)
