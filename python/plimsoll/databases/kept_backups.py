"""Backups that a run keeps: whether their folder is fit for them, and what they are afterwards.

A backup that was restored and found sound is a saved set, which `restore_from` of a plan names.
Until then its folder has no manifest, and nobody takes what lies there for one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from plimsoll.databases import saved_sets
from plimsoll.databases.ownership import identity_of
from plimsoll.documents.outcome import Outcome, PhaseOutcome
from plimsoll.documents.phase_actions import Backup, Restore
from plimsoll.documents.run_spec import InstanceSpec, RunSpec
from plimsoll.errors.system_errors import system_reason
from plimsoll.files.folder import FolderError
from plimsoll.host.probe import nearest_existing


def folder_of(run: RunSpec) -> Path | None:
    """Where a run keeps the backup that it takes; nothing where it keeps none."""
    kept = (phase.action.to for phase in run.phases if isinstance(phase.action, Backup))
    return next((Path(place) for place in kept if place is not None), None)


def obstacles(run: RunSpec) -> list[str]:
    """What stands in the way of the backup that a run keeps, one sentence each."""
    directory = folder_of(run)
    if directory is None:
        return [
            f"{place} is not there, so the backup in it cannot be restored; begin the run again"
            for phase in run.phases
            if isinstance(phase.action, Restore)
            and phase.action.from_ is not None
            and not (place := Path(phase.action.from_)).is_dir()
        ]
    found = []
    if directory.is_symlink():
        found.append(f"{directory} is a symbolic link; name the folder it leads to")
    elif directory.exists() and not directory.is_dir():
        found.append(f"{directory} is a file; name a folder for the backup")
    elif directory.is_dir() and any(directory.iterdir()):
        found.append(
            f"{directory} is not empty; name another folder for the backup, or delete it if it is "
            f"of an unfinished one: nothing is overwritten"
        )
    for instance in run.our_instances:
        for owned in (instance.directory, instance.log_directory):
            if directory.resolve().is_relative_to(Path(owned).resolve()):
                found.append(
                    f"{directory} lies in {owned}, which a run may delete; keep the backup "
                    f"elsewhere"
                )
    existing = nearest_existing(directory)
    if existing.is_dir() and not os.access(existing, os.W_OK | os.X_OK):
        found.append(f"{existing} may not be written by this user; name another folder")
    return list(dict.fromkeys(found))


def make_folders(run: RunSpec) -> None:
    """Make the folders that the copies are written to."""
    directory = folder_of(run)
    if directory is None:
        return
    for instance in run.our_instances:
        for place in saved_sets.PLACES:
            (directory / instance.name / place).mkdir(parents=True, exist_ok=True)


def end(run: RunSpec, outcome: Outcome) -> Path | None:
    """Make a saved set of the backup that a run has kept and restored, if all of it is sound.

    Returns:
        Where the set is; nothing where there is none.

    Raises:
        FolderError: there is one already, or it cannot be written.
    """
    actions = {phase.name: phase.action for phase in run.phases}
    for phase in outcome.phases:
        action = actions.get(phase.name)
        if (
            isinstance(action, Restore)
            and action.from_ is not None
            and _is_sound(phase, run.our_instances)
        ):
            records = {
                run.instances[found.instance].name: [item.records_ever for item in found.databases]
                for found in phase.restores
            }
            identities = {item.name: identity_of(item) for item in run.our_instances}
            try:
                saved_sets.declare(Path(action.from_), identities, records)
            except OSError as error:
                raise FolderError(
                    f"the backup was restored and is sound, but {error.filename} cannot be "
                    f"written: {system_reason(error)}; its files can be copied back by hand"
                ) from error
            return Path(action.from_)
    return None


def _is_sound(phase: PhaseOutcome, instances: Sequence[InstanceSpec]) -> bool:
    every_one = len(phase.restores) == len(instances)
    return phase.complete and every_one and not any(item.findings() for item in phase.restores)
