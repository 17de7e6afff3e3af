"""The directories a run works in: are they fit for it, and whose are they?

Each instance has a directory of its own with an owner marker. A directory without marker that is not empty belongs to
somebody else and is refused. Databases are reused when marker and plan agree and the last run closed them; they are
deleted only by `plimsoll clean` (and by the demo, which made them).
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.folder import FolderError, read_json, write_json
from plimsoll.storage import describe, nearest_existing

MARKER = "plimsoll-instance.json"
MARKER_KIND = "plimsoll_instance"
SCHEMA_VERSION = 1
#: Room for growth while measuring: the published test reserved a quarter of each database. A fast disk can outgrow it.
GROWTH_SHARE = 0.25
#: Log generations, flush map and checkpoint.
LOG_RESERVE_BYTES = 256 * 1024 * 1024


class PremisesError(Exception):
    """Everything that speaks against working in these directories; `problems` holds one sentence each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


@dataclass
class Forecast:
    """What a run will write before anything is written.

    Attributes:
        bytes_to_prepare: databases that do not exist yet.
        bytes_needed: the same with room for growth and logs, by mount point.
        reused: instances whose databases exist already.
        warnings: what a reader of the result must know.
    """

    bytes_to_prepare: int = 0
    bytes_needed: dict[str, int] = field(default_factory=dict)
    reused: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def inspect(run: dict[str, Any]) -> Forecast:
    """Check the directories of a run and note in it which databases exist already. Writes nothing to disk.

    Args:
        run: the `run` part of a plan; `existing_records` is filled in where a database can be reused.

    Raises:
        PremisesError: with everything that stands in the way.
    """
    problems: list[str] = []
    forecast = Forecast()
    for instance in run["instances"]:
        try:
            reused = _reusable_records(instance)
        except FolderError as error:
            problems.append(str(error))
            continue
        directory = Path(instance["directory"])
        problems += _unfit(directory)
        if Path(instance["log_directory"]) != directory:
            problems += _unfit(Path(instance["log_directory"]))
        if reused is None:
            size = sum(database["size_bytes"] for database in instance["databases"])
            forecast.bytes_to_prepare += size
            needed = int(size * (1 + GROWTH_SHARE)) + LOG_RESERVE_BYTES
            mount = describe(directory).mount_point
            forecast.bytes_needed[mount] = forecast.bytes_needed.get(mount, 0) + needed
        else:
            forecast.reused.append(instance["name"])
            for database, records in zip(instance["databases"], reused, strict=True):
                database["existing_records"] = records
    for target in run["targets"]:
        storage = describe(Path(target["path"]))
        forecast.warnings += storage.warnings
        needed = forecast.bytes_needed.get(storage.mount_point, 0)
        if needed > storage.free_bytes:
            problems.append(
                f"{storage.mount_point} has {storage.free_bytes >> 20} MiB free, but the run needs about {needed >> 20} MiB; "
                "free space or take smaller databases"
            )
    forecast.warnings = list(dict.fromkeys(forecast.warnings))
    if problems:
        raise PremisesError(list(dict.fromkeys(problems)))
    return forecast


def take(run: dict[str, Any]) -> None:
    """Make the directories of a run and mark them as in use."""
    for instance in run["instances"]:
        for directory in {instance["directory"], instance["log_directory"]}:
            Path(directory).mkdir(parents=True, exist_ok=True)
        _write_marker(instance, "in_use", None)


def give_back(run: dict[str, Any], outcome: dict[str, Any]) -> None:
    """Note in the markers what the run left behind, so that a later one can go on with it."""
    stops = [phase for phase in outcome["phases"] if phase["kind"] == "stop"]
    closed = bool(stops) and all(phase["complete"] for phase in stops)
    found: list[list[dict[str, Any]]] = stops[-1]["databases"] if stops else []
    for index, instance in enumerate(run["instances"]):
        records = [database["records_ever"] for database in found[index]] if index < len(found) else None
        if closed and records is not None:
            _write_marker(instance, "closed", records)


def instances_below(path: Path) -> list[Path]:
    """The directories directly in `path`, or `path` itself, that carry our marker."""
    candidates = [path, *sorted(child for child in path.iterdir() if child.is_dir())] if path.is_dir() else []
    return [directory for directory in candidates if _is_ours(directory)]


def remove(directory: Path) -> int:
    """Delete an instance directory of ours with everything in it; returns the bytes freed.

    Raises:
        FolderError: it carries no marker of ours.
    """
    if not _is_ours(directory):
        raise FolderError(f"{directory} carries no marker of Plimsoll; it is not deleted")
    marker = read_json(directory / MARKER)
    places = {directory, Path(marker["instance"]["log_directory"])}
    size = 0
    for place in places:
        if place.is_dir() and (place == directory or place.name == directory.name):
            size += sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
            shutil.rmtree(place)
    return size


def _is_ours(directory: Path) -> bool:
    marker = directory / MARKER
    if not marker.is_file():
        return False
    try:
        content = read_json(marker)
    except FolderError:
        return False
    return isinstance(content, dict) and content.get("kind") == MARKER_KIND


def _unfit(directory: Path) -> list[str]:
    existing = nearest_existing(directory)
    if not existing.is_dir():
        return [f"{existing} is a file; name a directory on the storage to be tested"]
    if describe(existing).read_only:
        return [f"{existing} is on a file system mounted read-only; remount it or name another path"]
    if not os.access(existing, os.W_OK | os.X_OK):
        return [f"{existing} may not be written by this user; change its owner or name another path"]
    return []


def _reusable_records(instance: dict[str, Any]) -> list[int] | None:
    """Records of the databases that exist and fit, None when there are none.

    Raises:
        FolderError: there is something else.
    """
    directory = Path(instance["directory"])
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return None
    if not _is_ours(directory):
        raise FolderError(
            f"{directory} is not empty and was not made by Plimsoll; name another path, nothing is overwritten"
        )
    marker = read_json(directory / MARKER)
    different = sorted(key for key, value in _identity(instance).items() if marker["instance"].get(key) != value)
    if different:
        raise FolderError(
            f"the databases in {directory} differ from the plan in {', '.join(different)}; "
            f"change the plan, or delete them with `plimsoll clean {directory}`"
        )
    if marker["state"] != "closed" or marker["records"] is None:
        raise FolderError(
            f"the databases in {directory} were not closed by their last run; "
            f"delete them with `plimsoll clean {directory}`"
        )
    records: list[int] = marker["records"]
    return records


def _identity(instance: dict[str, Any]) -> dict[str, Any]:
    """What must agree before a database is used again."""
    databases = [
        {key: value for key, value in database.items() if key != "existing_records"}
        for database in instance["databases"]
    ]
    same = ("name", "backend", "page_bytes", "log_directory", "log_framing")
    return {"databases": databases, **{key: instance[key] for key in same}}


def _write_marker(instance: dict[str, Any], state: str, records: list[int] | None) -> None:
    marker = {
        "kind": MARKER_KIND,
        "schema_version": SCHEMA_VERSION,
        "state": state,
        "records": records,
        "instance": _identity(instance),
    }
    write_json(Path(instance["directory"]) / MARKER, marker)
