"""Going on with a run that a crash of its process or its host has cut off.

What was measured before lies in `before-gap-N/` of the run folder and is not judged: its
distributions died with the process. The run goes on with what it had not completed, on databases
that are recovered first; a measured phase that was cut off gets the rest of its time, or all of it
anew. It qualifies when a part of it without a gap is long enough, which the usual rules decide.
Errors that were seen before the gap count as if there had been none.

The storage must be the one the run began on: known by UUID or serial, wherever it is mounted now,
and refused otherwise.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from plimsoll import settings
from plimsoll.databases import handover
from plimsoll.documents.environment import Environment, KernelLogMark, read_environment
from plimsoll.documents.event import Event, read_events
from plimsoll.documents.phase_actions import Measure, PhaseSpec
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import RunSpec, TargetSpec
from plimsoll.documents.summary import Gap, Gaps
from plimsoll.files import folder
from plimsoll.host.identity import Identity, identity_from, identity_of, mount_points
from plimsoll.live.progress_file import EVERY_S

SCHEMA_VERSION: Literal[1] = 1
#: What belongs to the part before a gap. The plan stays too, as it was.
MOVED = (folder.EVENTS, folder.ENVIRONMENT, folder.PROGRESS, folder.TERMINAL, "samples.parts")
#: Phases that have to be done again whatever came after them: they open databases and make caches
#: what they were.
ALWAYS = ("prepare", "warm_up", "search", "stop")
#: Events that tell of faults of the storage.
ERRORS = ("io_error", "hung_io", "bad_pages")
#: A remainder shorter than this says nothing.
REMAINDER_S_MIN = 1.0
#: A process that lives writes figures of itself at least once in so many of their intervals.
BEATS_MAX = 3


class ResumeError(folder.FolderError):
    """Why a run cannot go on; the message says what to do.

    Attributes:
        is_damage: whether something in its databases is missing or damaged.
    """

    def __init__(self, message: str, *, is_damage: bool = False) -> None:
        self.is_damage = is_damage
        super().__init__(message)


def gap_of(run_folder: Path) -> Gap:
    """What is known of the moment a run was cut off.

    Raises:
        ResumeError: it was not cut off, or not even begun.
    """
    prepared = folder.prepared_in_words(run_folder)
    if prepared is not None:
        raise ResumeError(f"{prepared}, so there is nothing to resume")
    if (run_folder / folder.OUTCOME).exists():
        raise ResumeError(
            f"{run_folder} came to its end; see `plimsoll report {run_folder}`, or begin a new run"
        )
    if not (run_folder / folder.PLAN).exists():
        raise ResumeError(f"{run_folder} has no {folder.PLAN}, so nobody knows how it goes on")
    refusal = folder.why_not_resumed(run_folder)
    if refusal is not None:
        raise ResumeError(f"{run_folder} was cut off{refusal}")
    events = read_events(run_folder)
    plan = Plan.read(run_folder / folder.PLAN)
    last_ns, last_utc_ns = _last_sign(run_folder, plan.run.sample_interval_ms * 10**6)
    completed, phase, ended_early_ns = _phases_of(events)
    before_s = (min(last_ns, ended_early_ns or last_ns) - phase.time_ns) / 1e9 if phase else 0.0
    longest_s = next(
        (
            item.action.duration_s
            for item in plan.run.phases
            if phase and item.name == phase.phase and isinstance(item.action, Measure)
        ),
        before_s,
    )
    return Gap(
        phase=phase.phase if phase else None,
        completed=completed,
        cut_off_utc=_utc(last_utc_ns),
        resumed_utc=_utc(time.time_ns()),
        seconds=(time.time_ns() - last_utc_ns) / 1e9,
        phase_seconds_before=min(before_s, longest_s),
        errors_before=sum(event.kind in ERRORS for event in events),
    )


def _phases_of(events: Sequence[Event]) -> tuple[list[str], Event | None, int | None]:
    """The phases that a run completed, and the beginning of the one that was cut off.

    One that was stopped is said to end, too: the run tells afterwards that this was before its
    time, which is answered last. What is closed then is no phase of the plan.
    """
    completed: list[str] = []
    begun: Event | None = None
    for event in events:
        if event.kind == "run_ended_early":
            cut = begun is not None and completed[-1:] == [begun.phase]
            return (completed[:-1] if cut else completed), begun, event.time_ns
        if event.kind == "phase_started":
            begun = event
        elif event.kind == "phase_ended" and event.phase:
            completed.append(event.phase)
    return completed, (begun if begun and begun.phase not in completed else None), None


def measured_lost(plan: Plan, gap: Gap, left: Sequence[PhaseSpec]) -> bool:
    """Whether something was measured before the gap that nothing will be measured for again.

    Its figures cannot be judged.
    """
    names = {phase.name for phase in left}
    return any(
        phase.action.kind in settings.MEASURED_KINDS
        and phase.name not in names
        and phase.name in (*gap.completed, gap.phase)
        for phase in plan.run.phases
    )


def _last_sign(run_folder: Path, sample_interval_ns: int) -> tuple[int, int]:
    """The last that a run wrote of itself, on its clock and in UTC.

    What its files hold counts. The time of a file may be that of a copy: it is believed only where
    it is no later than the next few figures would have come.
    """
    last = max(read_events(run_folder), key=lambda event: event.time_ns)
    path = run_folder / folder.PROGRESS
    told_s = folder.read_json(path).get("elapsed_s", 0.0) if path.exists() else 0.0
    last_ns = max(last.time_ns, int(told_s * 1e9))
    last_utc_ns = last.utc_ns + last_ns - last.time_ns
    signs = [item for item in (path, run_folder / folder.EVENTS) if item.exists()]
    later_ns = max(item.stat().st_mtime_ns for item in signs) - last_utc_ns
    if 0 < later_ns <= BEATS_MAX * max(sample_interval_ns, int(EVERY_S * 1e9)):
        return last_ns + later_ns, last_utc_ns + later_ns
    return last_ns, last_utc_ns


def _utc(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9, UTC).isoformat(timespec="seconds")


def find_storage(plan: Plan, environment: Environment) -> tuple[Plan, list[str]]:
    """The plan with its targets where their storage is now, and remarks.

    Raises:
        ResumeError: a storage is gone or another one.
    """
    remarks, run = [], plan.run
    for target, facts in zip(run.targets, environment["targets"], strict=True):
        recorded = identity_from(facts.get("identity") or {})
        if not recorded.is_known():
            remarks.append(
                f"nothing tells the storage of {target.name} from another; it is taken to be at "
                f"its old place"
            )
            continue
        path = Path(target.path)
        if identity_of(path).same_as(recorded):
            continue
        found = _mounted_elsewhere(recorded)
        if found is None or recorded.mount_point is None:
            raise ResumeError(_another_storage(target, recorded, identity_of(path)))
        moved = found / os.path.relpath(path, recorded.mount_point)
        run = _moved(run, target, moved)
        remarks.append(f"the storage of {target.name} is now at {moved}")
    return plan.replace(run=run), remarks


def is_known_to_be_the_same(run_folder: Path) -> bool:
    """Whether the storage that `find_storage` found is certainly the one the run began on, system
    disk or not.

    What has no identity could have been unmounted since, unless it was the root file system itself.
    """
    return all(
        identity_from(facts.get("identity") or {}).is_known()
        or (facts.get("file_system") or {}).get("mount_point") == "/"
        for facts in read_environment(run_folder / folder.ENVIRONMENT)["targets"]
    )


def _mounted_elsewhere(wanted: Identity) -> Path | None:
    return next((path for path in mount_points() if identity_of(path).same_as(wanted)), None)


def _another_storage(target: TargetSpec, recorded: Identity, found: Identity) -> str:
    def named(identity: Identity) -> str:
        known = [
            f"file system {identity.file_system_uuid}" if identity.file_system_uuid else "",
            f"device {identity.device_serial}" if identity.device_serial else "",
            identity.source or "",
        ]
        return ", ".join(item for item in known if item) or "nothing that is known"

    return (
        f"{target.path} is not the storage the run began on: that was {named(recorded)}, there is "
        f"{named(found)}; mount the "
        "right one, or begin a new run"
    )


def _moved(run: RunSpec, target: TargetSpec, new: Path) -> RunSpec:
    """The same places below another directory, also in the markers of the databases."""
    old = Path(target.path)

    def place(directory: str) -> str:
        path = Path(directory)
        return str(new / path.relative_to(old)) if path.is_relative_to(old) else directory

    instances = [
        instance.replace(
            directory=place(instance.directory), log_directory=place(instance.log_directory)
        )
        for instance in run.instances
    ]
    for instance in instances:
        handover.move_marker(instance)
    targets = [item.replace(path=str(new)) if item == target else item for item in run.targets]
    return run.replace(targets=targets, instances=instances)


def whole_plan(run_folder: Path, plan: Plan) -> Plan:
    """The plan with all phases that it began with: one that goes on holds only what was left of it.

    Args:
        run_folder: the folder of the run; what was put aside before its first gap has the plan as
            it was.
        plan: the plan of the run that goes on.
    """
    first = run_folder / "before-gap-1" / folder.PLAN
    if not first.exists():
        return plan
    return plan.replace(run=plan.run.replace(phases=Plan.read(first).run.phases))


def remaining_phases(plan: Plan, gap: Gap, *, again: bool) -> list[PhaseSpec]:
    """The phases of the plan that are still to be carried out.

    Args:
        plan: the plan of the run.
        gap: as from `gap_of`.
        again: whether everything is measured for its whole time once more.
    """
    left = []
    for phase in plan.run.phases:
        action = phase.action
        wanted_again = action.kind in ALWAYS or (again and action.kind in settings.MEASURED_KINDS)
        if phase.name in gap.completed and not wanted_again:
            continue
        if phase.name == gap.phase and isinstance(action, Measure) and not again:
            rest = action.duration_s - gap.phase_seconds_before
            if rest < REMAINDER_S_MIN:
                continue
            phase = phase.replace(action=action.replace(duration_s=rest))
        left.append(phase)
    kinds = [phase.action.kind for phase in left]
    if "recover" in kinds:
        # What was generated before the crash has been replayed by it; recovery is tested with logs
        # of its own.
        names = {phase.name for phase in left}
        place = kinds.index("recover")
        left[place:place] = [
            phase
            for phase in plan.run.phases
            if phase.action.kind == "generate_logs" and phase.name not in names
        ]
    loaded = any(phase.action.kind in (*settings.MEASURED_KINDS, "backup") for phase in left)
    return [phase for phase in left if loaded or phase.action.kind not in ("warm_up", "search")]


def as_left(plan: Plan, left: Sequence[PhaseSpec]) -> Plan:
    """The plan of a run that goes on, with the phases that are left.

    What is in its databases is looked at again.
    """
    instances = [
        instance.replace(
            databases=[database.replace(existing_records=None) for database in instance.databases]
        )
        for instance in plan.run.instances
    ]
    return plan.replace(run=plan.run.replace(phases=left, instances=instances))


def put_aside(run_folder: Path, gap: Gap) -> Gap:
    """Keep what was recorded before the gap, and note the gap; answers it with where that lies."""
    path = run_folder / folder.GAPS
    gaps = Gaps.read(path).gaps if path.exists() else ()
    aside = run_folder / f"before-gap-{len(gaps) + 1}"
    aside.mkdir()
    shutil.copy2(run_folder / folder.PLAN, aside / folder.PLAN)
    for name in MOVED:
        if (run_folder / name).exists():
            (run_folder / name).rename(aside / name)
    kept = gap.replace(kept_in=aside.name)
    Gaps(schema_version=SCHEMA_VERSION, gaps=[*gaps, kept]).write(path)
    return kept


def began_with(run_folder: Path) -> tuple[list[dict[str, int]], KernelLogMark | None]:
    """The error counters at the beginning of a run and after each of its gaps but the last, and
    where in the kernel log it began.

    What a disk said of itself before a gap has not gone with the process that would have asked.
    """
    path = run_folder / folder.GAPS
    kept = [gap.kept_in for gap in Gaps.read(path).gaps] if path.exists() else []
    found = [
        read_environment(run_folder / name / folder.ENVIRONMENT)
        for name in kept
        if name and (run_folder / name / folder.ENVIRONMENT).exists()
    ]
    marks = [item["kernel_log_mark"] for item in found if "kernel_log_mark" in item]
    return [item.get("error_counters", {}) for item in found], marks[0] if marks else None


def completed_before(run_folder: Path) -> list[str]:
    """The phases that were completed before earlier gaps."""
    path = run_folder / folder.GAPS
    known = Gaps.read(path).gaps if path.exists() else ()
    return list(dict.fromkeys(name for gap in known for name in gap.completed))


def gap_event(gap: Gap) -> Event:
    """The first line of the events of a run that goes on."""
    during = (
        f"during {gap.phase}, after {gap.phase_seconds_before:.0f} s of it"
        if gap.phase
        else "between two phases"
    )
    text = (
        f"the run was cut off at {gap.cut_off_utc} {during}, and goes on {gap.seconds:.0f} s "
        f"later; what was measured before "
        f"lies in {gap.kept_in} and is not judged"
    )
    return Event(
        time_ns=0, utc_ns=time.time_ns(), level="warning", kind="gap", phase=None, text=text
    )
