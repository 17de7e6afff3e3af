"""Databases that are there already, as a plan names them: nobody has to remember how large they were made or from which seed.

Everything comes from the markers in their directories. What a marker does not hold, such as caches and maintenance, is for
the run to choose.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from plimsoll.databases import ownership
from plimsoll.databases.ownership import MARKER, Marker
from plimsoll.files.folder import FolderError
from plimsoll.host.block_devices import is_device

MIB = 1024 * 1024
#: What a plan needs to know of an instance, and of each of its databases.
KINDS: dict[str, type] = {"name": str, "backend": str, "page_bytes": int, "log_directory": str, "log_framing": str}
DATABASE_KINDS: dict[str, type] = {"size_bytes": int, "record_bytes": int, "compressible_percent": int, "seed": int}


def instances_there(path: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Each instance of ours below a directory, or the one in it, with what its marker says.

    Raises:
        FolderError: there is none, or it leads elsewhere.
    """
    path = path.expanduser().absolute()
    found = [(marker.directory, _instance_of(marker)) for marker in ownership.find_databases(path)]
    if not found:
        raise FolderError(
            f"{path} holds no databases of Plimsoll; name the directory that was given to the test that made them"
        )
    return found


def _instance_of(marker: Marker) -> dict[str, Any]:
    """What a marker says of its instance, which has to lie there, or to name it in turn.

    Raises:
        FolderError: it leads elsewhere, or lacks what every marker has.
    """
    instance, place = marker.instance, marker.directory / MARKER
    unusual = [key for key, kind in KINDS.items() if not isinstance(instance.get(key), kind)]
    for database in instance["databases"]:
        unusual += [key for key, kind in DATABASE_KINDS.items() if not isinstance(database.get(key), kind)]
    if unusual or not instance["databases"]:
        said = f"nothing that can be used of {', '.join(unusual) or 'databases'}"
        raise FolderError(f"{place} says {said}; run the plan that made these databases")
    for name in marker.file_names:
        if Path(name).name != name and not is_device(Path(name)):
            raise FolderError(f"{place} names a database outside of its directory: {name}; it is left alone")
    if marker.logs() is None:
        raise FolderError(
            f"{place} says that the logs are in {instance['log_directory']}, where nothing says so; run the plan that "
            "made these databases, or mount their logs there"
        )
    return instance


def existing_target(path: Path) -> dict[str, Any]:
    """The target of a plan with the instances below a directory."""
    directory, first = instances_there(path)[0]
    target = {"name": "target", "path": str(directory.parent)}
    logs = Path(first["log_directory"])
    return target if logs == directory else {**target, "log_path": str(logs.parent)}


def existing_instances(path: Path) -> list[dict[str, Any]]:
    """The instances of a plan as they are there."""
    found = []
    for _, marker in instances_there(path):
        first = marker["databases"][0]
        options = {
            "name": marker["name"],
            "backend": marker["backend"],
            "databases": len(marker["databases"]),
            "database_size_mib": first["size_bytes"] // MIB,
            "page_kib": marker["page_bytes"] // 1024,
            "log_framing": marker["log_framing"],
            "record_bytes": first["record_bytes"],
            "vacancy_percent": first.get("vacancy_percent"),
            "compressible_percent": first["compressible_percent"],
        }
        found.append({key: value for key, value in options.items() if value is not None})
    return found


def adopt_databases(plan: dict[str, Any], path: Path) -> dict[str, Any]:
    """A completed plan whose instances are exactly those that are there, seeds and files included.

    Raises:
        FolderError: there are none.
    """
    plan = copy.deepcopy(plan)
    there = {marker["name"]: (directory, marker) for directory, marker in instances_there(path)}
    for instance in plan["run"]["instances"]:
        directory, marker = there[instance["name"]]
        instance["directory"], instance["log_directory"] = str(directory), marker["log_directory"]
        for database, known in zip(instance["databases"], marker["databases"], strict=True):
            database.update({key: value for key, value in known.items() if key in database})
    return plan
