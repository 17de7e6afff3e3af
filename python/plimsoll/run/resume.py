"""Going on with a run that a crash of its process or its host has cut off.

What was measured before lies in `before-gap-N/` of the run folder and is not judged: its distributions died with the
process. The run goes on with what it had not completed, on databases that are recovered first; a measured phase that was
cut off gets the rest of its time, or all of it anew. It qualifies when a part of it without a gap is long enough, which
the usual rules decide. Errors that were seen before the gap count as if there had been none.

The storage must be the one the run began on: known by UUID or serial, wherever it is mounted now, and refused otherwise.
"""

from __future__ import annotations

import copy
import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plimsoll import settings
from plimsoll.databases import preflight
from plimsoll.files import folder
from plimsoll.host.identity import Identity, identity_from, identity_of, mount_points

SCHEMA_VERSION = 1
#: What belongs to the part before a gap. The plan stays too, as it was.
MOVED = (folder.EVENTS, folder.ENVIRONMENT, folder.PROGRESS, folder.TERMINAL, "samples.parts")
#: Phases that have to be done again whatever came after them: they open databases and make caches what they were.
ALWAYS = ("prepare", "warm_up", "search", "stop")
#: Events that tell of faults of the storage.
ERRORS = ("io_error", "hung_io", "bad_pages")
#: A remainder shorter than this says nothing.
REMAINDER_S_MIN = 1.0


class ResumeError(folder.FolderError):
    """Why a run cannot go on; the message says what to do."""


def gap_of(run_folder: Path) -> dict[str, Any]:
    """What is known of the moment a run was cut off.

    Raises:
        ResumeError: it was not cut off, or not even begun.
    """
    if (run_folder / folder.OUTCOME).exists():
        raise ResumeError(f"{run_folder} came to its end; see `plimsoll report {run_folder}`, or begin a new run")
    if not (run_folder / folder.PLAN).exists():
        raise ResumeError(f"{run_folder} holds no run; name the folder of one that was cut off")
    if not (run_folder / folder.ENVIRONMENT).exists():
        raise ResumeError(f"{run_folder} was cut off before it began; start it anew")
    events = folder.read_events(run_folder)
    if not events:
        raise ResumeError(f"{run_folder} was cut off before anything happened; start it anew")
    ended = {event["phase"] for event in events if event["kind"] == "phase_ended"}
    started = [event for event in events if event["kind"] == "phase_started" and event["phase"] not in ended]
    last_ns = max(_last_sign_ns(run_folder), *(event["utc_ns"] for event in events))
    phase = started[-1] if started else None
    return {
        "phase": phase["phase"] if phase else None,
        "completed": [event["phase"] for event in events if event["kind"] == "phase_ended"],
        "cut_off_utc": _utc(last_ns),
        "resumed_utc": _utc(time.time_ns()),
        "seconds": (time.time_ns() - last_ns) / 1e9,
        "phase_seconds_before": (last_ns - phase["utc_ns"]) / 1e9 if phase else 0.0,
        "errors_before": sum(event["kind"] in ERRORS for event in events),
    }


def measured_lost(plan: dict[str, Any], gap: dict[str, Any], left: list[dict[str, Any]]) -> bool:
    """Whether something was measured before the gap that nothing will be measured for again: its figures cannot be judged."""
    names = {phase["name"] for phase in left}
    return any(
        phase["action"]["kind"] in settings.MEASURED_KINDS
        and phase["name"] not in names
        and phase["name"] in (*gap["completed"], gap["phase"])
        for phase in plan["run"]["phases"]
    )


def _last_sign_ns(run_folder: Path) -> int:
    """The last time the run wrote of its progress."""
    signs = [run_folder / folder.PROGRESS, run_folder / folder.EVENTS]
    return max(path.stat().st_mtime_ns for path in signs if path.exists())


def _utc(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9, UTC).isoformat(timespec="seconds")


def find_storage(plan: dict[str, Any], environment: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The plan with its targets where their storage is now, and remarks.

    Raises:
        ResumeError: a storage is gone or another one.
    """
    remarks, plan = [], copy.deepcopy(plan)
    for target, facts in zip(plan["run"]["targets"], environment["targets"], strict=True):
        recorded = identity_from(facts.get("identity") or {})
        if not recorded.is_known():
            remarks.append(
                f"nothing tells the storage of {target['name']} from another; it is taken to be at its old place"
            )
            continue
        path = Path(target["path"])
        if identity_of(path).same_as(recorded):
            continue
        found = _mounted_elsewhere(recorded)
        if found is None or recorded.mount_point is None:
            raise ResumeError(_another_storage(target, recorded, identity_of(path)))
        moved = found / os.path.relpath(path, recorded.mount_point)
        _move_target(plan["run"], target, path, moved)
        remarks.append(f"the storage of {target['name']} is now at {moved}")
    return plan, remarks


def _mounted_elsewhere(wanted: Identity) -> Path | None:
    return next((path for path in mount_points() if identity_of(path).same_as(wanted)), None)


def _another_storage(target: dict[str, Any], recorded: Identity, found: Identity) -> str:
    def named(identity: Identity) -> str:
        known = [
            f"file system {identity.file_system_uuid}" if identity.file_system_uuid else "",
            f"device {identity.device_serial}" if identity.device_serial else "",
            identity.source or "",
        ]
        return ", ".join(item for item in known if item) or "nothing that is known"

    return (
        f"{target['path']} is not the storage the run began on: that was {named(recorded)}, there is {named(found)}; mount the "
        "right one, or begin a new run"
    )


def _move_target(run: dict[str, Any], target: dict[str, Any], old: Path, new: Path) -> None:
    """The same places below another directory, also in the markers of the databases."""
    target["path"] = str(new)
    for instance in run["instances"]:
        for key in ("directory", "log_directory"):
            if Path(instance[key]).is_relative_to(old):
                instance[key] = str(new / Path(instance[key]).relative_to(old))
        preflight.move_marker(instance)


def remaining_phases(plan: dict[str, Any], gap: dict[str, Any], *, again: bool) -> list[dict[str, Any]]:
    """The phases of the plan that are still to be carried out.

    Args:
        plan: the plan of the run.
        gap: as from `gap_of`.
        again: whether everything is measured for its whole time once more.
    """
    left = []
    for phase in plan["run"]["phases"]:
        action = phase["action"]
        wanted_again = action["kind"] in ALWAYS or (again and action["kind"] in settings.MEASURED_KINDS)
        if phase["name"] in gap["completed"] and not wanted_again:
            continue
        phase = copy.deepcopy(phase)
        if phase["name"] == gap["phase"] and action["kind"] == "measure" and not again:
            rest = action["duration_s"] - gap["phase_seconds_before"]
            if rest < REMAINDER_S_MIN:
                continue
            phase["action"]["duration_s"] = rest
        left.append(phase)
    if any(phase["action"]["kind"] == "recover" for phase in left):
        # What was generated before the crash has been replayed by it; recovery is tested with logs of its own.
        names = {phase["name"] for phase in left}
        generating = [item for item in plan["run"]["phases"] if item["action"]["kind"] == "generate_logs"]
        place = next(index for index, phase in enumerate(left) if phase["action"]["kind"] == "recover")
        left[place:place] = [copy.deepcopy(item) for item in generating if item["name"] not in names]
    loaded = any(phase["action"]["kind"] in (*settings.MEASURED_KINDS, "backup") for phase in left)
    return [phase for phase in left if loaded or phase["action"]["kind"] not in ("warm_up", "search")]


def as_left(plan: dict[str, Any], left: list[dict[str, Any]]) -> dict[str, Any]:
    """The plan of a run that goes on, with the phases that are left; what is in its databases is looked at again."""
    left_over: dict[str, Any] = copy.deepcopy(plan)
    left_over["run"]["phases"] = left
    for instance in left_over["run"]["instances"]:
        for database in instance["databases"]:
            database["existing_records"] = None
    return left_over


def put_aside(run_folder: Path, gap: dict[str, Any]) -> list[dict[str, Any]]:
    """Keep what was recorded before the gap, and note the gap; returns all gaps of the run."""
    gaps = read_gaps(run_folder)
    aside = run_folder / f"before-gap-{len(gaps) + 1}"
    aside.mkdir()
    shutil.copy2(run_folder / folder.PLAN, aside / folder.PLAN)
    for name in MOVED:
        if (run_folder / name).exists():
            (run_folder / name).rename(aside / name)
    gaps.append({**gap, "kept_in": aside.name})
    folder.write_json(run_folder / folder.GAPS, {"schema_version": SCHEMA_VERSION, "gaps": gaps})
    return gaps


def read_gaps(run_folder: Path) -> list[dict[str, Any]]:
    """The gaps of a run; none for most."""
    path = run_folder / folder.GAPS
    found: list[dict[str, Any]] = folder.read_json(path)["gaps"] if path.exists() else []
    return found


def gap_event(gap: dict[str, Any]) -> dict[str, Any]:
    """The first line of the events of a run that goes on."""
    during = (
        f"during {gap['phase']}, after {gap['phase_seconds_before']:.0f} s of it"
        if gap["phase"]
        else "between two phases"
    )
    return {
        "time_ns": 0,
        "utc_ns": time.time_ns(),
        "level": "warning",
        "kind": "gap",
        "phase": None,
        "text": f"the run was cut off at {gap['cut_off_utc']} {during}, and goes on {gap['seconds']:.0f} s later; what was "
        f"measured before lies in {gap['kept_in']} and is not judged",
    }
