"""One event of a plan while its run goes on: waits for its time, is applied, proved and undone.

What is done is a command, a ready action, a step of a person, or nothing: a fault of a modelled
array takes place in the model, and only its times are noted here.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from plimsoll.documents.ready_actions import Step
from plimsoll.documents.staged_events import (
    KINDS_OF_RUN,
    EventPlan,
    StagedEvent,
    file_name_of,
)
from plimsoll.files import folder
from plimsoll.host import processes
from plimsoll.run.actions import ActionError, Prepared, Surroundings, disks_harmed, prepared
from plimsoll.run.event_command import Ended, carry_out, never, untold
from plimsoll.run.pending_undo import PendingUndo, pending_of
from plimsoll.run.steps import carry_out_steps

_LOOK_EVERY_S = 0.1
#: How long the storage may still answer what an event did, once that is undone: commands that were
#: under way come to their time limit, 30 s for disks of Linux.
AFTERMATH_S = 30.0
_HOLD_LOOK_EVERY_S = 0.002


class HoldableWrites(Protocol):
    """The writes of a run, as `plimsoll._native.Run` lets them be held."""

    def hold_writes(self, longest_s: float) -> None:
        """Hold them, at most so long."""
        ...

    def holds_writes(self) -> bool:
        """Whether all are held."""
        ...

    def release_writes(self) -> bool:
        """Let them go on; whether all were held up to now."""
        ...


class ActStage(Protocol):
    """What an event needs of the stage it is on."""

    @property
    def place(self) -> Path:
        """Where commands run: the run folder."""
        ...

    @property
    def hears_enter(self) -> bool:
        """Whether a person at a terminal can say that a step is done."""
        ...

    def now_s(self) -> float:
        """The time on the clock of the run, in seconds."""
        ...

    def say(self, level: str, kind: str, phase: str, text: str, at_s: float | None = None) -> None:
        """Note an event for the log."""
        ...

    def note_undo(self, pending: PendingUndo | None) -> None:
        """Before an event begins, its undo is on disk."""
        ...

    def note_command(self, event: EventPlan, process_id: int) -> None:
        """A command that degrades or undoes was started."""
        ...

    def forget_undo(self, event: EventPlan) -> None:
        """The event is undone."""
        ...

    def surroundings(self, event: EventPlan) -> Surroundings:
        """This machine and this run, as a ready action sees them."""
        ...

    @property
    def writes(self) -> HoldableWrites:
        """The writes of the run, which can be held."""
        ...


class Act:
    """One event, from waiting for its time to having been undone."""

    def __init__(self, plan: EventPlan, stage: ActStage) -> None:
        self.plan = plan
        self._stage = stage
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._began_s: float | None = None
        self._found: dict[str, object] = {}
        #: Disks that may fail by it, by their kernel names; all of the run where that is None.
        self.disks_harmed: frozenset[str] | None = None
        self._wrong: list[str] = []
        #: The process of a command that could not be killed.
        self._lives_on: int | None = None
        #: Since when a person is asked, by a clock of its own.
        self.asked_s = math.inf
        self._asked, self._confirmed, self._left = (threading.Event() for _ in range(3))

    def begin(self, at_s: float) -> None:
        """The phase of the event has begun."""
        if self._began_s is not None:
            return
        self._began_s = at_s
        if self.plan.kind not in KINDS_OF_RUN:
            # Who gives up undoing does not wait for it at the end of the program either.
            self._thread = threading.Thread(
                target=self._perform, name=f"event {self.plan.name}", daemon=True
            )
            self._thread.start()

    def end(self, at_s: float) -> None:
        """The phase of the event is over."""
        self.reach(at_s)
        if self._began_s is not None:
            self._over.set()

    def take_back(self) -> None:
        """Undo what is done next to the run; what the run does itself ends with the next phase."""
        if self._thread is not None:
            self._over.set()

    def reach(self, at_s: float) -> None:
        """The run has come so far.

        Of an event that it does itself it is known from its times what took place.
        """
        if self._began_s is None or self._over.is_set() or self.plan.kind not in KINDS_OF_RUN:
            return
        if (begun_s := self._began_s + self.plan.after_s) <= at_s and "begun_s" not in self._found:
            self._found |= {"begun_s": begun_s, "applied_s": begun_s, "proved": True}
            self._tells("applied", begun_s)
        undone_s = self._began_s + (self.plan.undo_after_s or math.inf)
        if undone_s <= at_s and "undone_s" not in self._found:
            self._found |= {"undo_begun_s": undone_s, "undone_s": undone_s}
            self._tells("undone", undone_s)

    def _tells(self, what: str, at_s: float) -> None:
        text = f"event {self.plan.name} {what}"
        self._stage.say("info", f"event_{what}", self.plan.phase, text, at_s)

    def is_over(self, within_s: float) -> bool:
        """Whether the event is undone, or nothing undoes it, waiting at most so many seconds."""
        if self._thread is None:
            return True
        self._thread.join(max(within_s, 0.0))
        return not self._thread.is_alive()

    def harms_at(self, now_s: float) -> bool:
        """Whether errors of the storage at a moment of the run's clock are the event's work."""
        if "begun_s" not in self._found or not self.plan.harms_storage:
            return False
        ended_s = self._found.get("undone_s" if self.plan.is_undone else "applied_s")
        return ended_s is None or now_s < float(str(ended_s)) + AFTERMATH_S

    def result(self) -> StagedEvent:
        """What became of it."""
        empty: Mapping[str, object] = dict.fromkeys(
            (
                "begun_s",
                "applied_s",
                "undo_begun_s",
                "undone_s",
                "proved",
                "exit_code",
                "output",
                "undo_exit_code",
                "undo_output",
            )
        )
        known = {
            "name": self.plan.name,
            "phase": self.plan.phase,
            "kind": self.plan.kind,
            "planned_s": self.plan.after_s,
            "error": "; ".join(self._wrong) or None,
            "judge": self.plan.judge.plain(),
        }
        return StagedEvent.from_plain({**empty, **self._found, **known})

    @property
    def waits_for_person(self) -> bool:
        """Whether somebody is asked to do something and has not said that it is done."""
        return self._asked.is_set() and not self._confirmed.is_set()

    def confirm(self) -> None:
        """Somebody says that it is done."""
        self._confirmed.set()

    def leave(self) -> None:
        """The run is over: nobody is waited for any longer."""
        self._left.set()

    def _perform(self) -> None:
        assert self._began_s is not None
        plan, stage = self.plan, self._stage
        if self._waits_until(self._began_s + plan.after_s):
            return
        try:
            steps = self._prepared()
            stage.note_undo(self._pending(steps))
        except ActionError as error:
            self._fails("event_failed", f"cannot be carried out here: {error}")
            return
        except OSError as error:
            self._fails(
                "event_failed", f"was not begun, because its undo cannot be noted: {error.strerror}"
            )
            return
        # Before it begins: what it takes away leads nowhere any more.
        self.disks_harmed = disks_harmed(plan.action, stage.surroundings(plan))
        self._found["begun_s"] = stage.now_s()
        took = self._applies(steps)
        if took:
            self._found["applied_s"] = stage.now_s()
            remark = f"; {steps.remark}" if steps is not None and steps.remark else ""
            stage.say("info", "event_applied", plan.phase, f"event {plan.name} applied{remark}")
        if plan.kind == "command" and self._found["exit_code"] is None:
            # Nothing ran, so there is nothing to undo.
            self._forgets()
            return
        at_s = None if plan.undo_after_s is None else self._began_s + plan.undo_after_s
        if took:
            self._prove(steps, at_s)
        if not plan.is_undone:
            return
        # What took only in part is undone at once.
        if took:
            self._waits_until(at_s)
        self._found["undo_begun_s"] = stage.now_s()
        if self._undoes(steps) and not self._may_change_more():
            self._found["undone_s"] = stage.now_s()
            stage.say("info", "event_undone", plan.phase, f"event {plan.name} undone")
            self._forgets()

    def _may_change_more(self) -> bool:
        """Whether a command that could not be killed goes on, so that its undo came too early."""
        found = None if self._lives_on is None else processes.process_of(self._lives_on)
        if found is None or found.parent != os.getpid():
            return False
        self._fails(
            "undo_failed",
            f"was undone while process {found.number} of its command still goes on, which may "
            f"change more; once that has ended, undo it with `plimsoll clean {self._stage.place} "
            f"--allow-commands`",
        )
        return True

    def _forgets(self) -> None:
        """Take the undo from the file; a file that says more than is true is a problem."""
        try:
            self._stage.forget_undo(self.plan)
        except OSError as error:
            self._fails(
                "event_failed",
                f"is undone, but {folder.UNDO_PENDING} cannot be written and may still name it: "
                f"{error.strerror}",
            )

    def _prepared(self) -> Prepared | None:
        """The steps of a ready action; None for what is none."""
        action = self.plan.action
        return None if action is None else prepared(action, self._stage.surroundings(self.plan))

    def _pending(self, steps: Prepared | None) -> PendingUndo | None:
        plan = self.plan
        if not plan.is_undone:
            return None
        return pending_of(
            plan.name,
            plan.undo,
            plan.timeout_s,
            () if steps is None else steps.undo,
            plan.manual_undo,
            ends_with_boot=steps is not None and steps.ends_with_boot,
        )

    def _applies(self, steps: Prepared | None) -> bool:
        if self.plan.manual is not None:
            return self._asks(self.plan.manual, "")
        if self.plan.hold_s_max is not None:
            return self._applies_with_writes_held(self.plan.hold_s_max)
        if steps is None:
            return self._noted(self._carry_out(self.plan.command, self._over.is_set), "")
        return self._noted(self._step_by_step(steps.apply, self._over.is_set), "")

    def _applies_with_writes_held(self, longest_s: float) -> bool:
        """Carry out the command while nothing is written: what it copies is of one moment."""
        writes, plan = self._stage.writes, self.plan
        asked = time.monotonic()
        writes.hold_writes(longest_s)
        try:
            while not writes.holds_writes():
                if time.monotonic() - asked > longest_s or self._over.is_set():
                    self._found["exit_code"] = None
                    self._fails(
                        "event_failed",
                        f"was not applied: what was being written did not end within "
                        f"{longest_s:g} s, so the writes could not be held; nothing was started",
                    )
                    return False
                time.sleep(_HOLD_LOOK_EVERY_S)
            begun = time.monotonic()
            self._stage.say("info", "writes_held", plan.phase, f"event {plan.name}: writes held")
            took = self._noted(self._carry_out(plan.command, self._over.is_set), "")
            held_s = time.monotonic() - begun
        finally:
            was_held = writes.release_writes()
        self._found["held_s"] = held_s
        text = f"event {plan.name}: writes go on after {held_s:.2f} s"
        self._stage.say("info", "writes_released", plan.phase, text)
        if took and not was_held:
            self._fails(
                "event_failed",
                f"is of no one moment: its command took {held_s:.1f} s, and writes are held at "
                f"most {longest_s:g} s and only while the run goes on; let it be faster, or raise "
                f"hold_s_max",
            )
        elif took and not plan.prove:
            self._found["proved"] = True
        return took and was_held

    def _prove(self, steps: Prepared | None, until_s: float | None) -> None:
        """Look whether it took, until it is undone at most: no proof keeps anything degraded."""

        def is_cut() -> bool:
            return self._over.is_set() or (until_s is not None and self._stage.now_s() >= until_s)

        proofs = [] if steps is None else [self._step_by_step(steps.prove, is_cut)]
        if self.plan.prove:
            proofs.append(self._carry_out(self.plan.prove, is_cut, untold))
        if not proofs:
            return
        wrong = [proof.error for proof in proofs if proof.error is not None]
        self._found["proved"] = not wrong
        if wrong:
            what = "was not proved before its end" if is_cut() else "did not take"
            self._fails("event_not_proved", f"{what}: {'; '.join(wrong)}")

    def _undoes(self, steps: Prepared | None) -> bool:
        if self.plan.manual_undo is not None:
            return self._asks(self.plan.manual_undo, "undo_")
        if steps is None:
            return self._noted(self._carry_out(self.plan.undo), "undo_")
        return self._noted(self._step_by_step(steps.undo, to_the_end=True), "undo_")

    def _asks(self, what: str, prefix: str) -> bool:
        """Ask somebody to do something, and wait until he says that it is done."""
        plan, stage = self.plan, self._stage
        file = Path(plan.confirm_file or stage.place / f"confirm-{file_name_of(plan.name)}")
        before = _touched_ns(file)
        self._confirmed.clear()
        self.asked_s = time.monotonic()
        self._asked.set()
        how = f"{'press Enter, or ' if stage.hears_enter else ''}touch {file}"
        text = f"event {plan.name}: {what}; then {how}, within {plan.timeout_s:g} s"
        stage.say("warning", "event_by_hand", plan.phase, text)
        done = self._is_confirmed(file, before, until_over=not prefix)
        self._asked.clear()
        if done:
            return True
        if not prefix:
            self._fails("event_failed", f'was not applied: no one confirmed "{what}"')
            return False
        hint = f"do it, then `plimsoll clean {stage.place} --yes`"
        self._fails("undo_failed", f'is not undone: no one confirmed "{what}"; {hint}')
        return False

    def _is_confirmed(self, file: Path, before: int | None, *, until_over: bool) -> bool:
        until = time.monotonic() + self.plan.timeout_s
        while time.monotonic() < until:
            if self._confirmed.wait(_LOOK_EVERY_S):
                return True
            if (touched := _touched_ns(file)) is not None and touched != before:
                return True
            if self._left.is_set() or (until_over and self._over.is_set()):
                return False
        return False

    def _waits_until(self, at_s: float | None) -> bool:
        """Wait for a time, or for the end of the phase alone; whether the phase ended before."""
        return self._over.wait(None if at_s is None else max(at_s - self._stage.now_s(), 0.0))

    def _variables(self) -> dict[str, str]:
        return {"PLIMSOLL_EVENT": self.plan.name, "PLIMSOLL_RUN_FOLDER": str(self._stage.place)}

    def _carry_out(
        self,
        argv: Sequence[str],
        is_cut: Callable[[], bool] = never,
        on_start: Callable[[int], None] | None = None,
    ) -> Ended:
        return carry_out(
            argv,
            self.plan.timeout_s,
            self._variables(),
            self._stage.place,
            is_cut,
            on_start or self._notes_command,
        )

    def _notes_command(self, process_id: int) -> None:
        self._stage.note_command(self.plan, process_id)

    def _step_by_step(
        self,
        steps: Sequence[Step],
        is_cut: Callable[[], bool] = never,
        *,
        to_the_end: bool = False,
    ) -> Ended:
        return carry_out_steps(
            steps,
            self.plan.timeout_s,
            self._variables(),
            self._stage.place,
            to_the_end=to_the_end,
            is_cut=is_cut,
            on_start=self._notes_command,
        )

    def _noted(self, ended: Ended, prefix: str) -> bool:
        self._found |= {f"{prefix}exit_code": ended.exit_code, f"{prefix}output": ended.output}
        self._lives_on = self._lives_on or ended.lives_on
        if ended.error is None:
            return True
        what = "is not undone" if prefix else "was not applied"
        hint = (
            f"; undo it by hand, or with `plimsoll clean {self._stage.place} --allow-commands`"
            if prefix
            else ""
        )
        self._fails(
            kind="undo_failed" if prefix else "event_failed", text=f"{what}: {ended.error}{hint}"
        )
        return False

    def _fails(self, kind: str, text: str) -> None:
        self._wrong.append(text)
        self._stage.say("error", kind, self.plan.phase, f"event {self.plan.name} {text}")


def _touched_ns(file: Path) -> int | None:
    """When a file was touched, by whatever clock; None where there is none."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None
