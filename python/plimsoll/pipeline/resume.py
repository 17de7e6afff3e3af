"""Going on with a run that a crash of its process or of the host has cut off.

Find the storage, recover, do what is left.

What was measured before the gap is kept and not judged; `plimsoll.run.resume` says how.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.databases import preflight
from plimsoll.documents.event import Event
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Gap
from plimsoll.files import folder
from plimsoll.files.damage import reading
from plimsoll.files.paths import StrPath
from plimsoll.live.listener import Listener
from plimsoll.pipeline import background, forecast, qualify
from plimsoll.plan.load import has_stages
from plimsoll.run import resume as gaps


@dataclass(frozen=True)
class Resumption:
    """A run that can go on.

    Attributes:
        run_folder: the folder of the run.
        plan: with the phases that are left.
        found: what preflight found.
        gap: when it was cut off, and for how long.
    """

    run_folder: Path
    plan: Plan
    found: preflight.Preflight
    gap: Gap

    def go_on(
        self, *, listener: Listener | None = None, stop: threading.Event | None = None
    ) -> qualify.Result:
        """Put what was measured before aside, do what is left, and judge the whole.

        Raises:
            ResumeError: another process has done so, or the databases could not be opened; the run
                can be resumed when that is put right.
            FolderError, EngineError: as in `qualify`.
        """

        def begin() -> list[Event]:
            if (self.run_folder / folder.OUTCOME).exists():
                raise gaps.ResumeError(
                    f"{self.run_folder} was resumed by another process meanwhile"
                )
            event = gaps.gap_event(gaps.put_aside(self.run_folder, self.gap))
            (listener or Listener()).warning(event.text)
            return [event]

        return qualify.qualify_into(
            self.plan,
            self.run_folder,
            found=self.found,
            listener=listener,
            stop=stop,
            begin=begin,
            require=self._require_begun,
        )

    def _require_begun(self, outcome: Outcome) -> None:
        """Leave a run as cut off that did not get as far as its load.

        A log that is missing or a full disk can be put right. What a disk itself has reported is
        judged.

        Raises:
            ResumeError: no phase came to its end.
        """
        error = outcome.error
        if outcome.ending != "failed" or error is None or error.family == "disk":
            return
        if not qualify.was_begun(outcome):
            (self.run_folder / folder.OUTCOME).unlink()
            is_damage = error.family == "corruption"
            failed = "the storage has failed, unless somebody changed its files; "
            raise gaps.ResumeError(
                f"{self.run_folder} could not go on: {error.text}; "
                f"{failed if is_damage else ''}put that right, and "
                f"`plimsoll resume {self.run_folder}` goes on",
                is_damage=is_damage,
            )


def resume(
    run_folder: StrPath,
    *,
    again: bool = False,
    destroy: Sequence[str] = (),
    listener: Listener | None = None,
    stop: threading.Event | None = None,
) -> qualify.Result:
    """Go on with a run that a crash has cut off, and judge it.

    Args:
        run_folder: the folder of the run.
        again: measure for the whole time once more, not only the rest of it.
        destroy: serials of the block devices that may be overwritten.
        listener: told how it goes.
        stop: set it from another thread to stop the run.

    Raises:
        ResumeError: it was not cut off, goes on, or its storage is not there.
        PreflightError, FolderError, EngineError: as in `qualify`.
    """
    run_folder = Path(run_folder)
    left = begin_resume(run_folder, again=again, destroy=destroy, listener=listener)
    return left.go_on(listener=listener, stop=stop)


def begin_resume(
    run_folder: StrPath,
    *,
    again: bool = False,
    destroy: Sequence[str] = (),
    listener: Listener | None = None,
) -> Resumption:
    """Find out what is left of a run; nothing is changed.

    Raises:
        ResumeError, PreflightError, FolderError: it cannot go on.
    """
    run_folder = Path(run_folder)
    hears = listener or Listener()
    with reading(run_folder):
        plan, gap = left_to_do(run_folder, again=again, listener=hears)
        same_disk = gaps.is_known_to_be_the_same(run_folder)
    found = forecast.check(plan, destroy=destroy, allow_system_disk=same_disk, listener=hears)
    return Resumption(run_folder, plan, found, gap)


def left_to_do(run_folder: Path, *, again: bool, listener: Listener) -> tuple[Plan, Gap]:
    """The plan of a run with the phases that are left, and what is known of the gap.

    Raises:
        ResumeError, FolderError: it cannot go on.
    """
    folder.require_single(run_folder, "resume")
    state = background.state_of(run_folder)["state"]
    if state in (background.RUNNING, background.STARTING):
        raise gaps.ResumeError(f"{run_folder} goes on; see `plimsoll watch {run_folder}`")
    gap = gaps.gap_of(run_folder)
    recorded = Plan.read(run_folder / folder.PLAN)
    plan, remarks = gaps.find_storage(recorded, folder.read_json(run_folder / folder.ENVIRONMENT))
    for remark in remarks:
        listener.note(remark)
    if not again and any(has_stages(workload) for workload in plan.run.workloads):
        listener.note("its load goes through stages, so all of them are measured once more")
        again = True
    if again:
        plan = gaps.whole_plan(run_folder, plan)
        # What was done before an earlier gap is done; only what was measured is measured again.
        earlier = gaps.completed_before(run_folder)
        gap = gap.replace(
            completed=[*earlier, *(name for name in gap.completed if name not in earlier)]
        )
    phases = gaps.remaining_phases(plan, gap, again=again)
    return gaps.as_left(plan, phases), gap.replace(
        measured_lost=gaps.measured_lost(plan, gap, phases)
    )
