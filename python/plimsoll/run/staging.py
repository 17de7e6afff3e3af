"""Stages the events of a plan while its run goes on, and takes them back on every way out.

Each event has a thread of its own, which waits for its moment, carries out one command after the other and notes when each began and
ended on the clock of the run. Whatever ends the run, also a failure or an interrupt, ends the waiting: what was begun is undone at once.
A process that is killed leaves a file that names what is to be undone; `plimsoll clean RUN_FOLDER` does that.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from plimsoll.documents.event import Event
from plimsoll.documents.staged import EventDone, EventsDone, EventsToUndo, StagedEvent, StepDone, ToUndo
from plimsoll.errors.system_errors import system_reason
from plimsoll.files import folder
from plimsoll.files.sanitize import plain
from plimsoll.settings import SCHEMA_VERSION
from plimsoll.units import NS_PER_S

#: So much of what a command prints is kept; the rest is read and dropped.
OUTPUT_BYTES_MAX = 64 * 1024
#: How long the rest of a command's output is waited for after it has ended; what it has left running may hold the pipe open.
OUTPUT_WAIT_S = 0.5
_CHUNK_BYTES = 8192
#: The longest that an end of the run waits for the undoing of all events, beyond their own time-outs.
_GRACE_S = 5.0


class Staging:
    """Carries out events; a context that ends with everything undone.

    Args:
        events: what to stage.
        run_folder: where it is noted.
        say: told what happens, a sentence each; called from other threads.
    """

    def __init__(self, events: Sequence[StagedEvent], run_folder: Path, say: Callable[[str], None]) -> None:
        self._run_folder, self._say = run_folder, say
        self._lock = threading.Lock()
        self._to_undo: list[ToUndo] = []
        self._actors = [_Actor(event, self) for event in events]
        #: What to add to the monotonic clock of this process to get that of the run.
        self.offset_ns = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors:
            actor.over.set()
        for actor in self._actors:
            if actor.is_alive():
                actor.join(3 * actor.event.timeout_s + _GRACE_S)
        if self._actors:
            done = EventsDone(schema_version=SCHEMA_VERSION, events=[actor.done() for actor in self._actors])
            done.write(self._run_folder / folder.STAGED)

    def hear(self, event: Event) -> None:
        """Told of each event of the run: phases begin and end."""
        if event.kind == "phase_started" and self._actors:
            late_ns = max(time.time_ns() - event.utc_ns, 0)
            began_ns = time.monotonic_ns() - late_ns
            self.offset_ns = event.time_ns - began_ns
            for actor in self._actors:
                if actor.event.phase == event.phase and not actor.ident:
                    actor.begin(began_ns)
        elif event.kind in ("phase_ended", "run_ended_early"):
            for actor in self._actors:
                if event.phase in (actor.event.phase, None):
                    actor.over.set()

    def now_ns(self) -> int:
        """The time on the clock of the run."""
        return time.monotonic_ns() + self.offset_ns

    def tell(self, sentence: str) -> None:
        """Say what happens."""
        self._say(sentence)

    def note_to_undo(self, event: StagedEvent) -> None:
        """Keep what is to be undone, before the event begins: this process may not live to do it."""
        self._write(lambda left: [*left, ToUndo(name=event.name, undo=event.undo, timeout_s=event.timeout_s)])

    def note_undone(self, event: StagedEvent) -> None:
        """Nothing is left to undo of this event."""
        self._write(lambda left: [item for item in left if item.name != event.name])

    def _write(self, change: Callable[[list[ToUndo]], list[ToUndo]]) -> None:
        path = self._run_folder / folder.TO_UNDO
        with self._lock:
            self._to_undo = change(self._to_undo)
            if self._to_undo:
                EventsToUndo(schema_version=SCHEMA_VERSION, events=self._to_undo).write(path)
            else:
                path.unlink(missing_ok=True)


class _Actor(threading.Thread):
    """Carries out one event."""

    def __init__(self, event: StagedEvent, staging: Staging) -> None:
        super().__init__(name=f"event {event.name}", daemon=True)
        self.event, self._staging = event, staging
        #: Its phase, or the run, has ended.
        self.over = threading.Event()
        self._phase_began_ns = 0
        self._steps: dict[str, StepDone] = {}
        self._left: list[LeftRunning] = []

    def begin(self, phase_began_ns: int) -> None:
        """Its phase has begun at this time of the monotonic clock."""
        self._phase_began_ns = phase_began_ns
        self.start()

    def run(self) -> None:
        event = self.event
        if self._waited_until(event.after_s):
            return
        if event.undo:
            try:
                self._staging.note_to_undo(event)
            except OSError as error:
                # What could not be undone after a kill is not begun.
                problem = f"{error.filename}: {system_reason(error)}; the event was not begun"
                self._steps["applied"] = self._told(problem)
                return
        self._apply()
        if event.prove and self._applied_well():
            self._steps["proved"] = self._carried_out("prove", event.prove)
        self._waited_until(event.undo_after_s)
        self._undo()

    def done(self) -> EventDone:
        """What has been done of the event so far."""
        steps = {name: self._steps.get(name) for name in ("applied", "proved", "undone")}
        return EventDone(name=self.event.name, phase=self.event.phase, **steps)

    def _waited_until(self, after_s: float | None) -> bool:
        """Wait for a moment of the phase, or for its end; whether the phase has ended."""
        if after_s is None:
            return self.over.wait()
        left_ns = self._phase_began_ns + int(after_s * NS_PER_S) - time.monotonic_ns()
        return self.over.wait(max(left_ns, 0) / NS_PER_S)

    def _apply(self) -> None:
        if self.event.manual is not None:
            self._staging.tell(f"event {self.event.name}, now: {self.event.manual}")
            self._steps["applied"] = self._told(None)
            return
        self._staging.tell(f"event {self.event.name} begins")
        self._steps["applied"] = self._carried_out("command", self.event.command)

    def _applied_well(self) -> bool:
        return self._steps["applied"].error is None

    def _undo(self) -> None:
        event = self.event
        if event.manual is not None:
            self._staging.tell(f"event {event.name}, now take it back: {event.manual}")
        if event.undo:
            self._steps["undone"] = self._carried_out("undo", event.undo)
            problem = self._steps["undone"].error
            if problem is None:
                self._staging.note_undone(event)
                self._staging.tell(f"event {event.name} is undone")
            else:
                command = " ".join(event.undo)
                self._staging.tell(f"event {event.name} is NOT undone: {problem}; carry this out yourself: {command}")
        elif event.manual is not None:
            self._steps["undone"] = self._told(None)
        for left in self._left:
            # What the commands have left running ends with the event.
            left.kill()

    def _told(self, error: str | None) -> StepDone:
        now_ns = self._staging.now_ns()
        return StepDone(begun_ns=now_ns, ended_ns=now_ns, exit_code=None, output="", error=error)

    def _carried_out(self, step: str, command: Sequence[str]) -> StepDone:
        begun_ns = self._staging.now_ns()
        code, output, error, left = carry_out(command, self.event.timeout_s, {"EVENT": self.event.name, "STEP": step})
        self._left.append(left)
        return StepDone(begun_ns=begun_ns, ended_ns=self._staging.now_ns(), exit_code=code, output=output, error=error)


def carry_out(
    command: Sequence[str], timeout_s: float, facts: dict[str, str]
) -> tuple[int | None, str, str | None, LeftRunning]:
    """Carry out a command in a process group of its own, without a shell, an input and an environment but PATH and `PLIMSOLL_...`.

    Args:
        command: a program and its arguments.
        timeout_s: after so long its whole process group is killed.
        facts: what it is told, as `PLIMSOLL_` and the name.

    Returns:
        Exit code, the first 64 KiB of what it printed, what is wrong (None if nothing is), and what it has left running.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    environment |= {f"PLIMSOLL_{name}": value for name, value in facts.items()}
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = system_reason(error) if isinstance(error, OSError) else str(error)
        return None, "", f"{command[0]} cannot be started: {why}", LeftRunning(0, frozenset())
    heard = _Heard(process.stdout)
    try:
        code: int | None = process.wait(timeout_s)
        problem = None if code == 0 else _ended_badly(command[0], process.returncode)
    except subprocess.TimeoutExpired:
        _kill_group(process.pid)
        process.wait()
        code, problem = None, f"{command[0]} took longer than {timeout_s:g} s and was killed"
    heard.join(OUTPUT_WAIT_S)
    return code, heard.text(), problem, LeftRunning(process.pid, _members(process.pid))


def _ended_badly(program: str, code: int) -> str:
    return f"{program} was ended by signal {-code}" if code < 0 else f"{program} ended with exit code {code}"


def _kill_group(group: int) -> None:
    # Nobody may be left there, or nobody who is ours.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


@dataclass(frozen=True)
class LeftRunning:
    """Processes that a command has left in its group: number and start of each, because numbers are given again."""

    group: int
    members: frozenset[tuple[int, int]]

    def kill(self) -> None:
        """Kill the group, if it is still that of this command."""
        if self.members & _members(self.group):
            _kill_group(self.group)


def _members(group: int) -> frozenset[tuple[int, int]]:
    """Number and start time of every process of a group; empty where the system does not tell."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        # After the name come state, parent and group; the start is the 20th.
        if int(fields[2]) == group and fields[0] != "Z":
            found.add((int(place.parent.name), int(fields[19])))
    return frozenset(found)


class _Heard(threading.Thread):
    """Reads what a command prints to its end, and keeps the beginning."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        super().__init__(name="output of an event", daemon=True)
        self._stream, self._kept = stream, bytearray()
        self.start()

    def run(self) -> None:
        while self._stream and (chunk := os.read(self._stream.fileno(), _CHUNK_BYTES)):
            self._kept += chunk[: max(OUTPUT_BYTES_MAX - len(self._kept), 0)]

    def text(self) -> str:
        """What was kept, without what would steer a terminal."""
        return plain(bytes(self._kept).decode(errors="replace"))


def events_left_behind(run_folder: Path) -> list[tuple[str, str]]:
    """Name and undoing command of each event that a killed run has left behind; none where there is no such note.

    Raises:
        FolderError: the note is damaged.
    """
    path = run_folder / folder.TO_UNDO
    if not path.is_file():
        return []
    return [(item.name, shlex.join(item.undo)) for item in EventsToUndo.read(path).events]


def undo_left_behind(run_folder: Path) -> list[tuple[str, str | None]]:
    """Undo what a killed run has left behind.

    Returns:
        Of each event its name and what is wrong; None where it was undone. What could not be undone stays noted.

    Raises:
        FolderError: the note is damaged.
    """
    path = run_folder / folder.TO_UNDO
    left = list(EventsToUndo.read(path).events)
    found: list[tuple[str, str | None]] = []
    for item in reversed(list(left)):
        _, _, problem, left_running = carry_out(item.undo, item.timeout_s, {"EVENT": item.name, "STEP": "undo"})
        left_running.kill()
        found.append((item.name, problem))
        if problem is None:
            left.remove(item)
            if left:
                EventsToUndo(schema_version=SCHEMA_VERSION, events=left).write(path)
            else:
                path.unlink()
    return found
