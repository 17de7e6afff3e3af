"""Databases that are there already, as a plan names them.

Nobody has to remember how large they were made or from which seed.

Everything comes from the markers in their directories. What a marker does not hold, such as caches
and maintenance, is for the run to choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from plimsoll.databases import ownership
from plimsoll.databases.ownership import MARKER, Marker
from plimsoll.documents.document import Document, DocumentError
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import DatabaseSpec
from plimsoll.files.folder import FolderError
from plimsoll.host.block_devices import is_device

MIB = 1024 * 1024


class InstanceThere(Document):
    """What a plan needs to know of an instance that is there."""

    name: str
    backend: Literal["engine", "raw_files"]
    page_bytes: int
    log_directory: str
    log_framing: str
    databases: Sequence[DatabaseSpec]


def instances_there(path: Path) -> list[tuple[Path, InstanceThere]]:
    """Each instance of ours below a directory, or the one in it, with what its marker says.

    Raises:
        FolderError: there is none, or it leads elsewhere.
    """
    path = path.expanduser().absolute()
    found = [(marker.directory, _instance_of(marker)) for marker in ownership.find_databases(path)]
    if not found:
        raise FolderError(
            f"{path} holds no databases of Plimsoll; name the directory that was given to the test "
            f"that made them"
        )
    return found


def _instance_of(marker: Marker) -> InstanceThere:
    """What a marker says of its instance, which has to lie there, or to name it in turn.

    Raises:
        FolderError: it leads elsewhere, lacks what every marker has, or names what is only partly
            there.
    """
    place = marker.directory / MARKER
    marker.require_whole()
    try:
        instance = InstanceThere.from_plain(marker.identity.plain(), str(place))
    except DocumentError as error:
        raise FolderError(f"{error}; run the plan that made these databases") from error
    if not instance.databases:
        raise FolderError(f"{place} names no databases; run the plan that made them")
    for name in marker.file_names:
        if Path(name).name != name and not is_device(Path(name)):
            raise FolderError(
                f"{place} names a database outside of its directory: {name}; it is left alone"
            )
    if marker.logs() is None:
        raise FolderError(
            f"{place} says that the logs are in {instance.log_directory}, where nothing says so; "
            f"run the plan that "
            "made these databases, or mount their logs there"
        )
    return instance


def existing_target(path: Path) -> dict[str, str]:
    """The target of a plan with the instances below a directory."""
    directory, first = instances_there(path)[0]
    target = {"name": "target", "path": str(directory.parent)}
    logs = Path(first.log_directory)
    return target if logs == directory else {**target, "log_path": str(logs.parent)}


def existing_instances(path: Path) -> list[dict[str, object]]:
    """The instances of a plan as they are there."""
    found = []
    for _, there in instances_there(path):
        first = there.databases[0]
        options: dict[str, object] = {
            "name": there.name,
            "backend": there.backend,
            "databases": len(there.databases),
            "database_size_mib": first.size_bytes // MIB,
            "page_kib": there.page_bytes // 1024,
            "log_framing": there.log_framing,
            "record_bytes": first.record_bytes,
            "vacancy_percent": first.vacancy_percent,
            "compressible_percent": first.compressible_percent,
        }
        found.append({key: value for key, value in options.items() if value is not None})
    return found


def adopt_databases(plan: Plan, path: Path) -> Plan:
    """A completed plan whose instances are exactly those that are there, seeds and files included.

    Raises:
        FolderError: there are none.
    """
    there = {instance.name: (directory, instance) for directory, instance in instances_there(path)}
    instances = []
    for wanted in plan.run.instances:
        directory, known = there[wanted.name]
        databases = [
            database.replace(**there_too.given())
            for database, there_too in zip(wanted.databases, known.databases, strict=True)
        ]
        instances.append(
            wanted.replace(
                directory=str(directory), log_directory=known.log_directory, databases=databases
            )
        )
    return plan.replace(run=plan.run.replace(instances=instances))
