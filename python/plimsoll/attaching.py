"""Databases that are there already, as a plan names them: nobody has to remember how large they were made or from which seed.

Everything comes from the markers in their directories. What a marker does not hold, such as caches and maintenance, is for
the run to choose.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plimsoll.folder import FolderError, read_json
from plimsoll.premises import MARKER, instances_below

MIB = 1024 * 1024


def instances_there(path: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Each instance of ours below a directory, or the one in it, with what its marker says.

    Raises:
        FolderError: there is none.
    """
    path = path.expanduser().absolute()
    found = [(directory, read_json(directory / MARKER)["instance"]) for directory in instances_below(path)]
    if not found:
        raise FolderError(
            f"{path} holds no databases of Plimsoll; name the directory that was given to the test that made them"
        )
    return found


def target_options(path: Path) -> dict[str, Any]:
    """The target of a plan with the instances below a directory."""
    directory, first = instances_there(path)[0]
    target = {"name": "target", "path": str(directory.parent)}
    logs = Path(first["log_directory"])
    return target if logs == directory else {**target, "log_path": str(logs.parent)}


def instance_options(path: Path) -> list[dict[str, Any]]:
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


def adopt(plan: dict[str, Any], path: Path) -> None:
    """Make the instances of a completed plan exactly those that are there, seeds and files included."""
    there = {marker["name"]: (directory, marker) for directory, marker in instances_there(path)}
    for instance in plan["run"]["instances"]:
        directory, marker = there[instance["name"]]
        instance["directory"], instance["log_directory"] = str(directory), marker["log_directory"]
        for database, known in zip(instance["databases"], marker["databases"], strict=True):
            database.update(known)
