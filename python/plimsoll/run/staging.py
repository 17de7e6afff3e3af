"""Stages the events of a plan while its run goes on, and undoes them on every way out.

Each event has a thread, which begins with the phase of the event. Times are on the clock of the
run: an event of the run carries its time on that clock and in UTC, and from there on the clock of
this process is followed.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from plimsoll.documents.event import Event
from plimsoll.documents.plan import Plan
from plimsoll.documents.staged_events import EventPlan, StagedEventsFile
from plimsoll.files import folder
from plimsoll.plan.actions import in_words
from plimsoll.run.actions import ActionError, Surroundings, prepared
from plimsoll.run.event_command import shown, why_not_started
from plimsoll.run.pending_undo import PendingUndo, PendingUndos, clean_command
from plimsoll.run.staged_act import Act, HoldableWrites
from plimsoll.run.steps import step_in_words
from plimsoll.units import NS_PER_S
from plimsoll.workloads.mail.fields import is_storage

#: An event is heard of twice as late as a run is asked for news, at most. A difference beyond it
#: is a step of the clock of UTC.
_LATE_S_MAX = 1.0
#: How long an event that is undone is waited for before its news are told.
_WAIT_S = 0.1


class Stage:
    """The events of one run. Leaving it ends and undoes all, and writes `staged-events.json`."""

    def __init__(
        self,
        events: Sequence[EventPlan],
        run_folder: Path,
        targets: Mapping[str, str] | None = None,
        writes: HoldableWrites | None = None,
        *,
        hears_enter: bool = False,
    ) -> None:
        self._writes = writes
        self.hears_enter = hears_enter
        self._folder = run_folder
        self._targets = targets or {}
        self._undos = PendingUndos(run_folder)
        self._news: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._acts = [Act(event, self) for event in events]
        self._phase: str | None = None
        self._last_s = 0.0
        self._offset_s = 0.0
        self._zero_utc_ns = 0
        self.is_hurried = False
        self._is_given_up = False

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *raised: object) -> None:
        self.end()
        while self.is_undoing():
            pass
        if self._acts:
            found = [act.result() for act in self._acts]
            StagedEventsFile(schema_version=1, events=found).write(
                self._folder / folder.STAGED_EVENTS
            )

    def end(self) -> None:
        """Undo all, whether or not the run goes on; no person is waited for any longer."""
        for act in self._acts:
            act.end(self._last_s)
            act.leave()

    def is_undoing(self) -> bool:
        """Wait a moment for what is not undone yet; whether anything is left to wait for."""
        until = time.monotonic() + _WAIT_S
        lives = [act for act in self._acts if not act.is_over(until - time.monotonic())]
        return bool(lives) and not self._is_given_up

    def hurry(self, asked_by: str) -> bool:
        """Answer a second signal, as a handler of signals may; whether anything is degraded.

        Args:
            asked_by: what a third one is called, as in "Ctrl-C".
        """
        pending = self._undos.pending
        if not pending:
            return False
        self.is_hurried = True
        undone = ", ".join(item.name for item in pending if item.manual is None)
        by_hand = ", ".join(item.name for item in pending if item.manual is not None)
        verb = "are" if ", " in by_hand else "is"
        said = [f"undoing {undone}"] * bool(undone)
        said += [f"{by_hand} {verb} put back by hand and not waited for any longer"] * bool(by_hand)
        said += [f"a third {asked_by} gives up and leaves {folder.UNDO_PENDING}"]
        text = f"{'; '.join(said)}; `{clean_command(self._folder, pending)}` finishes it"
        self.say("warning", "undoing_goes_on", self._phase, text)
        return True

    def give_up(self) -> None:
        """Wait for nothing that is undone; its file stays."""
        self._is_given_up = True

    def hear(self, event: Event) -> None:
        """Told of each event of the run.

        Phases begin the events of theirs and end those of others. Where one ends, the run waits for
        the I/O that is under way, and events that hold it up are undone before.
        """
        at_s = event.time_ns / NS_PER_S
        self.reach(at_s)
        if event.kind in ("phase_ended", "run_ended_early"):
            for act in self._acts:
                if event.kind == "run_ended_early" or act.plan.undo_in in (None, event.phase):
                    act.take_back()
        if event.kind != "phase_started":
            return
        self._zero_utc_ns = event.utc_ns - event.time_ns
        late_s = min(max((time.time_ns() - event.utc_ns) / NS_PER_S, 0.0), _LATE_S_MAX)
        self._offset_s = time.monotonic() - late_s - at_s
        for act in self._acts:
            if act.plan.phase == event.phase:
                act.begin(at_s)
            elif act.plan.undo_in in (None, self._phase):
                act.end(at_s)
        self._phase = event.phase

    def harmed(self, disks: Sequence[str]) -> frozenset[str]:
        """Those of the run's disks that events harm, or have until a moment ago: they answer late.

        Args:
            disks: all of them, by the names the kernel gives them.
        """
        now_s = self.now_s()
        each = [act.disks_harmed for act in self._acts if act.harms_at(now_s)]
        everything = frozenset(disks)
        return frozenset[str]().union(*(everything if own is None else own for own in each))

    def reach(self, at_s: float) -> None:
        """Told how far the run has come, in seconds on its clock."""
        self._last_s = max(self._last_s, at_s)
        for act in self._acts:
            act.reach(at_s)

    def news(self) -> Iterator[Event]:
        """What there is to be said, for the log of the run."""
        while not self._news.empty():
            yield self._news.get()

    def now_s(self) -> float:
        """The time on the clock of the run, in seconds."""
        return time.monotonic() - self._offset_s

    def say(
        self, level: str, kind: str, phase: str | None, text: str, at_s: float | None = None
    ) -> None:
        """Note an event for the log, of now or of a moment on the clock of the run."""
        time_ns = int((self.now_s() if at_s is None else at_s) * NS_PER_S)
        utc_ns = time.time_ns() if at_s is None else self._zero_utc_ns + time_ns
        self._news.put(
            Event(
                time_ns=time_ns,
                utc_ns=utc_ns,
                level=level,
                kind=kind,
                phase=phase,
                text=text,
            )
        )

    def note_undo(self, pending: PendingUndo | None) -> None:
        """Before an event begins, its undo is on disk."""
        if pending is not None:
            self._undos.add(pending)

    def note_command(self, event: EventPlan, process_id: int) -> None:
        """A command of the event was started, which may outlive this process."""
        self._undos.note_command(event.name, process_id)

    def forget_undo(self, event: EventPlan) -> None:
        """The event is undone."""
        self._undos.remove(event.name)

    @property
    def place(self) -> Path:
        """Where commands run: the run folder."""
        return self._folder

    def surroundings(self, event: EventPlan) -> Surroundings:
        """This machine and this run, as a ready action sees them."""
        return Surroundings(event=event.name, run_folder=self._folder, targets=self._targets)

    @property
    def writes(self) -> HoldableWrites:
        """The writes of the run, which can be held."""
        assert self._writes is not None, "an event that holds writes is staged on a run"
        return self._writes

    @property
    def waits_for_person(self) -> bool:
        """Whether somebody is asked to do something."""
        return any(act.waits_for_person for act in self._acts)

    def confirm(self) -> None:
        """Somebody says that he has done what he was asked first."""
        waiting = [act for act in self._acts if act.waits_for_person]
        if waiting:
            min(waiting, key=lambda act: act.asked_s).confirm()


def targets_of(plan: Plan) -> dict[str, str]:
    """The paths of the targets that lie on this machine, by name."""
    return {target.name: target.path for target in plan.run.targets if is_storage(target.path)}


def commands_in_words(
    events: Sequence[EventPlan], targets: Mapping[str, str] | None = None
) -> list[str]:
    """Every command that a run may start, for a dry run and for consent.

    Args:
        events: those of a plan.
        targets: the paths of its targets by name, for the steps of ready actions.
    """
    lines = []
    for event in events:
        when = f'event "{event.name}", {event.after_s:g} s into {event.phase}'
        back = _undone_when(event)
        if event.node is not None:
            lines.append(f"  {when}: node {event.node} dies, {event.to} takes over")
            lines += [f"    {line}" for line in event.fit]
        elif event.kind == "modelled":
            until = "" if event.undo_after_s is None else f", undone {back}"
            lines.append(f"  {when}: {event.do}, modelled{until}")
            continue
        most = f"at most {event.timeout_s:g} s"
        undone = f'event "{event.name}", {back}'
        if event.manual is not None:
            lines.append(f"  {when}: by hand: {event.manual}, {most}")
        if event.manual_undo is not None:
            lines.append(f"  {undone}: undone by hand: {event.manual_undo}, {most}")
        if event.action is not None:
            lines.append(f"  {when}: {in_words(event.action)}, undone {back}")
            lines += [f"    {line}" for line in _steps_in_words(event, targets or {})]
        held = f", with all writes held, at most {event.hold_s_max:g} s" if event.hold_s_max else ""
        for moment, label, argv in (
            (when, f"runs{held}", event.command),
            (when, "proves with", event.prove),
            (undone, "undoes with", event.undo),
        ):
            if argv:
                lines.append(f"  {moment}: {label} `{shown(argv)}`, {most}")
    return lines


def _undone_when(event: EventPlan) -> str:
    if event.undo_after_s is None:
        return f"at the end of {event.undo_in or event.phase}"
    return f"{event.undo_after_s:g} s into {event.phase}"


def _steps_in_words(event: EventPlan, targets: Mapping[str, str]) -> list[str]:
    """What a ready action would do if it began now."""
    assert event.action is not None
    here = Surroundings(event=event.name, run_folder=Path("RUN_FOLDER"), targets=targets)
    try:
        steps = prepared(event.action, here)
    except ActionError as error:
        return [f"cannot be carried out here: {error}"]
    return [step_in_words(step) for step in steps.apply] + [
        f"undo: {step_in_words(step)}" for step in steps.undo
    ]


#: The programs of an event, that which undoes it first.
_PROGRAMS: Sequence[tuple[str, Callable[[EventPlan], Sequence[str]]]] = (
    ("is undone with", lambda event: event.undo),
    ("is undone with", lambda event: (event.action and event.action.start) or ()),
    ("runs", lambda event: event.command),
    ("is proved with", lambda event: event.prove),
)


def obstacles(events: Sequence[EventPlan], targets: Mapping[str, str]) -> list[str]:
    """Why events cannot be carried out on this machine, a sentence for each.

    What could not be undone comes first.
    """
    found = [
        f'event "{event.name}" {verb} `{shown(argv)}`, but {why}'
        for verb, argv_of in _PROGRAMS
        for event in events
        if (argv := argv_of(event)) and (why := why_not_started(argv)) is not None
    ]
    for event in events:
        if event.action is None:
            continue
        here = Surroundings(event=event.name, run_folder=Path("RUN_FOLDER"), targets=targets)
        try:
            prepared(event.action, here)
        except ActionError as error:
            found.append(f'event "{event.name}", {event.action.what}: {error}')
    return found
