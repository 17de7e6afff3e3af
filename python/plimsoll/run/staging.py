"""Stages the events of a plan while its run goes on, and undoes them on every way out.

Each event has a thread, which begins with the phase of the event. Times are on the clock of the run: an event of the run
carries its time on that clock and in UTC, and from there on the clock of this process is followed.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from plimsoll.documents.event import Event
from plimsoll.documents.staged_events import EventPlan, StagedEvent, StagedEventsFile
from plimsoll.files import folder
from plimsoll.run.event_command import carry_out, shown
from plimsoll.run.pending_undo import PendingUndo, PendingUndos
from plimsoll.units import NS_PER_S


class Stage:
    """The events of one run. Leaving it ends and undoes all, and writes `staged-events.json`."""

    def __init__(self, events: Sequence[EventPlan], run_folder: Path) -> None:
        self._folder = run_folder
        self._undos = PendingUndos(run_folder)
        self._news: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._acts = [_Act(event, self) for event in events]
        self._last_s = 0.0
        self._offset_s = 0.0

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for act in self._acts:
            act.end(self._last_s)
        for act in self._acts:
            act.join()
        if self._acts:
            found = [act.result() for act in self._acts]
            StagedEventsFile(schema_version=1, events=found).write(self._folder / folder.STAGED_EVENTS)

    def hear(self, event: Event) -> None:
        """Told of each event of the run: phases begin the events of theirs and end those of others."""
        at_s = event.time_ns / NS_PER_S
        self._last_s = max(self._last_s, at_s)
        if event.kind != "phase_started":
            return
        late_s = max((time.time_ns() - event.utc_ns) / NS_PER_S, 0.0)
        self._offset_s = time.monotonic() - late_s - at_s
        for act in self._acts:
            if act.plan.phase == event.phase:
                act.begin(at_s)
            else:
                act.end(at_s)

    def news(self) -> Iterator[Event]:
        """What there is to be said, for the log of the run."""
        while not self._news.empty():
            yield self._news.get()

    def now_s(self) -> float:
        """The time on the clock of the run, in seconds."""
        return time.monotonic() - self._offset_s

    def say(self, level: str, kind: str, phase: str, text: str, at_s: float | None = None) -> None:
        """Note an event for the log."""
        time_ns = int((self.now_s() if at_s is None else at_s) * NS_PER_S)
        self._news.put(Event(time_ns=time_ns, utc_ns=time.time_ns(), level=level, kind=kind, phase=phase, text=text))

    def note_undo(self, event: EventPlan) -> None:
        """Before an event begins, its undo is on disk."""
        if event.undo:
            self._undos.add(PendingUndo(name=event.name, undo=event.undo, timeout_s=event.timeout_s))

    def forget_undo(self, event: EventPlan) -> None:
        """The event is undone."""
        self._undos.remove(event.name)

    @property
    def place(self) -> Path:
        """Where commands run: the run folder."""
        return self._folder


class _Act:
    """One event, from waiting for its time to having been undone."""

    def __init__(self, plan: EventPlan, stage: Stage) -> None:
        self.plan = plan
        self._stage = stage
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._began_s: float | None = None
        self._found: dict[str, object] = {}
        self._wrong: list[str] = []

    def begin(self, at_s: float) -> None:
        """The phase of the event has begun."""
        if self._began_s is not None:
            return
        self._began_s = at_s
        if self.plan.kind != "modelled":
            self._thread = threading.Thread(target=self._perform, name=f"event {self.plan.name}")
            self._thread.start()

    def end(self, at_s: float) -> None:
        """The phase of the event is over; of a modelled one it is known from its times what took place."""
        if self._began_s is None or self._over.is_set():
            return
        self._over.set()
        if self.plan.kind == "modelled":
            self._modelled(at_s)

    def join(self) -> None:
        """Wait until the event is undone."""
        if self._thread is not None:
            self._thread.join()

    def result(self) -> StagedEvent:
        """What became of it."""
        empty: Mapping[str, object] = dict.fromkeys(
            (
                "begun_s", "applied_s", "undo_begun_s", "undone_s", "proved", "exit_code", "output", "undo_exit_code",
                "undo_output",
            )
        )  # fmt: skip
        known = {
            "name": self.plan.name,
            "phase": self.plan.phase,
            "kind": self.plan.kind,
            "planned_s": self.plan.after_s,
            "error": "; ".join(self._wrong) or None,
            "judge": self.plan.judge.plain(),
        }
        return StagedEvent.from_plain({**empty, **self._found, **known})

    def _modelled(self, at_s: float) -> None:
        assert self._began_s is not None
        begun_s = self._began_s + self.plan.after_s
        if begun_s <= at_s:
            self._found |= {"begun_s": begun_s, "applied_s": begun_s, "proved": True}
            self._stage.say("info", "event_applied", self.plan.phase, f"event {self.plan.name} applied", begun_s)
        if self.plan.undo_after_s is not None and self._began_s + self.plan.undo_after_s <= at_s:
            undone_s = self._began_s + self.plan.undo_after_s
            self._found |= {"undo_begun_s": undone_s, "undone_s": undone_s}
            self._stage.say("info", "event_undone", self.plan.phase, f"event {self.plan.name} undone", undone_s)

    def _perform(self) -> None:
        assert self._began_s is not None
        plan, stage = self.plan, self._stage
        if self._waits_until(self._began_s + plan.after_s):
            return
        try:
            stage.note_undo(plan)
        except OSError as error:
            self._fails("event_failed", f"was not begun, because its undo cannot be noted: {error.strerror}")
            return
        self._found["begun_s"] = stage.now_s()
        took = self._command(plan.command, "", "event_failed")
        if took:
            self._found["applied_s"] = stage.now_s()
            stage.say("info", "event_applied", plan.phase, f"event {plan.name} applied")
        if self._found["exit_code"] is None:
            # Nothing ran, so there is nothing to undo.
            stage.forget_undo(plan)
            return
        if took and plan.prove:
            proof = carry_out(plan.prove, plan.timeout_s, self._variables(), stage.place)
            self._found["proved"] = proof.error is None
            if proof.error is not None:
                self._fails("event_not_proved", f"did not take: {proof.error}")
        if not plan.undo:
            return
        self._waits_until(None if plan.undo_after_s is None else self._began_s + plan.undo_after_s)
        self._found["undo_begun_s"] = stage.now_s()
        if self._command(plan.undo, "undo_", "undo_failed"):
            self._found["undone_s"] = stage.now_s()
            stage.say("info", "event_undone", plan.phase, f"event {plan.name} undone")
            stage.forget_undo(plan)

    def _waits_until(self, at_s: float | None) -> bool:
        """Wait for a time, or for the end of the phase alone; whether the phase ended before."""
        return self._over.wait(None if at_s is None else max(at_s - self._stage.now_s(), 0.0))

    def _variables(self) -> dict[str, str]:
        return {"PLIMSOLL_EVENT": self.plan.name, "PLIMSOLL_RUN_FOLDER": str(self._stage.place)}

    def _command(self, argv: Sequence[str], prefix: str, kind: str) -> bool:
        ended = carry_out(argv, self.plan.timeout_s, self._variables(), self._stage.place)
        self._found |= {f"{prefix}exit_code": ended.exit_code, f"{prefix}output": ended.output}
        if ended.error is None:
            return True
        what = "is not undone" if prefix else "was not applied"
        hint = f"; undo it by hand, or with `plimsoll clean {self._stage.place} --allow-commands`" if prefix else ""
        self._fails(kind, f"{what}: {ended.error}{hint}")
        return False

    def _fails(self, kind: str, text: str) -> None:
        self._wrong.append(text)
        self._stage.say("error", kind, self.plan.phase, f"event {self.plan.name} {text}")


def commands_in_words(events: Sequence[EventPlan]) -> list[str]:
    """Every command that a run may start, for a dry run and for consent."""
    lines = []
    for event in events:
        when = f'event "{event.name}", {event.after_s:g} s into {event.phase}'
        if event.kind == "modelled":
            lines.append(f"  {when}: {event.do}, modelled")
            continue
        for label, argv in (("runs", event.command), ("proves with", event.prove), ("undoes with", event.undo)):
            if argv:
                lines.append(f"  {when}: {label} `{shown(argv)}`, at most {event.timeout_s:g} s")
    return lines
