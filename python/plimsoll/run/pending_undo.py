"""What a run has degraded and has not undone yet: `undo-pending.json` in its folder.

The file is written before an event begins and shrinks as each is undone, so that it outlives a
killed process. `plimsoll clean` carries it out; what a person has to undo it names. What the kernel
was told ends with the start of the machine: after a restart it is forgotten and not carried out,
because the devices and processes that it speaks of are others. Another machine that sees the folder
undoes and forgets nothing: what the file says is of the machine it was written on.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

from plimsoll.documents.document import ABSENT, Document
from plimsoll.documents.ready_actions import Step
from plimsoll.errors.system_errors import system_reason
from plimsoll.files import claims, folder
from plimsoll.files.paths import StrPath
from plimsoll.host import machine, processes
from plimsoll.host.boot import boot_id
from plimsoll.run.event_command import carry_out, shown
from plimsoll.run.steps import carry_out_steps, step_in_words


class StartedCommand(Document):
    """A command that degrades or undoes, as it was started.

    Attributes:
        process: its number, which is that of its process group.
        began_ticks: when it began, in clock ticks since the machine was started; 0 where it had
            ended at once.
    """

    process: int
    began_ticks: int


class PendingUndo(Document):
    """An event that was begun and not undone, and the command that undoes it.

    Attributes:
        name: of the event.
        undo: program and arguments; empty where something else undoes it.
        timeout_s: how long each command and step may take.
        steps: what undoes a ready action.
        manual: what a person does to undo it.
        boot_id: the start of the machine in which the event began; null where it is not known.
        machine_id: of the machine on which it began; null where it has none.
        host_name: of that machine.
        ends_with_boot: whether a restart of the machine undoes it.
        commands: what was started for it so far.
    """

    name: str
    undo: Sequence[str]
    timeout_s: float
    steps: Sequence[Step] = ()
    manual: str | None = None
    boot_id: str | None = None
    machine_id: str | None = None
    host_name: str | None = None
    ends_with_boot: bool = False
    commands: Sequence[StartedCommand] = ()

    @property
    def going_on(self) -> int | None:
        """The number of a process of its commands that still lives, whoever started them.

        A server that a command left has a process group of its own, and is none of them.
        """
        if not self.commands or self.is_of_another_boot:
            return None
        began = {command.process: command.began_ticks for command in self.commands}
        for found in processes.all_processes():
            if found.group not in began:
                continue
            if began.get(found.number) == found.began_ticks:
                return found.number
            # The number may have gone to another group since.
            if processes.is_given(found.number, "PLIMSOLL_EVENT", self.name) is not False:
                return found.number
        return None

    @property
    def is_of_another_boot(self) -> bool:
        """Whether another kernel runs than the one that ran when the event began."""
        return self.boot_id is not None and boot_id() not in (None, self.boot_id)

    @property
    def elsewhere(self) -> str | None:
        """The machine on which the event began, in words; None where nothing says that it is
        another.
        """
        if self.boot_id is not None and self.boot_id == boot_id():
            return None
        names = [self.host_name or "", f"the machine id {self.machine_id}" * bool(self.machine_id)]
        there = f"another machine, {' with '.join(name for name in names if name)}"
        here = machine.machine_id()
        if here is not None and self.machine_id is not None:
            return None if here == self.machine_id else there
        if self.host_name is None or machine.host_name() in (None, self.host_name):
            return None
        nameless = "that one" if self.machine_id is None else "this one"
        return f"{there}, as far as host names tell: {nameless} has no {machine.MACHINE_ID}"

    @property
    def has_ended(self) -> bool:
        """Whether a restart of this machine has undone it."""
        return self.ends_with_boot and self.is_of_another_boot and self.elsewhere is None

    @property
    def wants_consent(self) -> bool:
        """Whether a command would be started here to undo it."""
        return self.manual is None and not self.has_ended and self.elsewhere is None


class PendingUndoFile(Document):
    """`undo-pending.json`."""

    schema_version: Literal[1] = 1
    pending: Sequence[PendingUndo]


class PendingUndos:
    """The file of one run, kept by the threads of its events."""

    def __init__(self, run_folder: Path, pending: Sequence[PendingUndo] = ()) -> None:
        """`pending` is what the file already holds."""
        self._path = run_folder / folder.UNDO_PENDING
        self._lock = threading.Lock()
        self._pending = {item.name: item for item in pending}

    @property
    def pending(self) -> list[PendingUndo]:
        """What is not undone; asked by handlers of signals, which wait for no lock."""
        return list(self._pending.values())

    def add(self, item: PendingUndo) -> None:
        """Note an undo before its event begins.

        Raises:
            OSError: it cannot be written; the event must not begin, and is not noted.
        """
        with self._lock:
            self._pending[item.name] = item
            try:
                self._write()
            except OSError:
                del self._pending[item.name]
                raise

    def note_command(self, name: str, process_id: int) -> None:
        """Note a command that was started for an event, should it outlive us.

        Where that cannot be written the command goes on: the undo itself is noted.
        """
        started = processes.process_of(process_id)
        command = StartedCommand(
            process=process_id, began_ticks=0 if started is None else started.began_ticks
        )
        with self._lock:
            if (item := self._pending.get(name)) is None:
                return
            self._pending[name] = item.replace(commands=[*item.commands, command])
            with suppress(OSError):
                self._write()

    def remove(self, name: str) -> None:
        """The event is undone, or never took place."""
        with self._lock:
            if self._pending.pop(name, None) is not None:
                self._write()

    def _write(self) -> None:
        if self._pending:
            PendingUndoFile(schema_version=1, pending=list(self._pending.values())).write_durably(
                self._path
            )
        else:
            self._path.unlink(missing_ok=True)


def pending_undos(run_folder: StrPath) -> tuple[PendingUndo, ...]:
    """What a run that was killed left degraded; empty where there is no such file.

    Raises:
        FolderError: the file is damaged.
    """
    path = Path(run_folder) / folder.UNDO_PENDING
    try:
        return tuple(PendingUndoFile.read(path).pending)
    except folder.FolderError as error:
        match error.__cause__:
            case FileNotFoundError() | NotADirectoryError():
                return ()
            case PermissionError():
                advice = "do the same as a user who may read it"
            case _:
                advice = (
                    f"it says what a run left degraded: look at what it holds, see that all of it "
                    f"is put back by hand, then delete {path}"
                )
        raise folder.FolderError(f"{error}; {advice}") from error


def undo_pending(run_folder: StrPath, *, done_by_hand: bool = False) -> list[str]:
    """Undo what a run that was killed left degraded; what was undone leaves the file.

    What a restart of the machine has undone is only forgotten.

    Args:
        run_folder: of the run that was killed.
        done_by_hand: somebody says that he has undone what only a person can undo.

    Returns:
        A sentence for each event that is not undone.

    Raises:
        FolderError: the run still goes on, another process undoes the same, the file is damaged, or
            something began on another machine.
    """
    run_folder = Path(run_folder)
    # Two at once would undo everything twice.
    alone = claims.claim(run_folder / folder.UNDO_PENDING)
    if alone is None:
        raise folder.FolderError(
            f"another `plimsoll clean` is undoing what {run_folder} left degraded; wait until it "
            f"has ended"
        )
    with alone:
        if folder.goes_on(run_folder):
            raise folder.FolderError(
                f"{run_folder} belongs to a run that goes on; stop that run, which undoes its "
                f"events"
            )
        with folder.kept([run_folder]):
            return _undo_all(run_folder, done_by_hand=done_by_hand)


def _undo_all(run_folder: Path, *, done_by_hand: bool) -> list[str]:
    found = pending_undos(run_folder)
    for item in found:
        if (there := item.elsewhere) is not None:
            raise folder.FolderError(
                f'{run_folder}: event "{item.name}" was staged on {there}; nothing was undone: '
                f"run `{clean_command(run_folder, found)}` there, or, where that machine is no "
                f"more, put all back by hand and delete {run_folder / folder.UNDO_PENDING}"
            )
    left = PendingUndos(run_folder, found)
    failed, unwritten = list[str](), list[str]()
    for item in reversed(found):
        problem = _undone(item, run_folder, left, done_by_hand=done_by_hand)
        if problem is not None:
            failed.append(f'event "{item.name}" is not undone: {problem}')
            continue
        try:
            left.remove(item.name)
        except OSError as error:
            path = run_folder / folder.UNDO_PENDING
            unwritten.append(
                f'event "{item.name}" is undone, but {path} cannot be written and still names it: '
                f"{system_reason(error)}"
            )
    # Its last event takes the file away, whatever could not be written before.
    is_gone = not (run_folder / folder.UNDO_PENDING).exists()
    return failed if is_gone else [*unwritten, *failed]


def _undone(
    item: PendingUndo, run_folder: Path, left: PendingUndos, *, done_by_hand: bool
) -> str | None:
    """Undo one event; answers what went wrong."""
    if item.has_ended:
        return None
    if (number := item.going_on) is not None:
        return (
            f"process {number} of a command that was started for it still goes on and may change "
            f"more; wait until it has ended, or kill it, then say the same again"
        )
    if item.manual is not None:
        return None if done_by_hand else f"{item.manual}; then say so with --yes"
    hint = f"once all is put back by hand, delete {run_folder / folder.UNDO_PENDING}"
    if not item.steps and not item.undo:
        return f"{folder.UNDO_PENDING} does not say how; {hint}"
    own = {"PLIMSOLL_EVENT": item.name, "PLIMSOLL_RUN_FOLDER": str(run_folder.absolute())}
    notes = partial(left.note_command, item.name)
    if item.steps:
        ended = carry_out_steps(
            item.steps, item.timeout_s, own, run_folder, to_the_end=True, on_start=notes
        )
    else:
        ended = carry_out(item.undo, item.timeout_s, own, run_folder, on_start=notes)
    if ended.error is None:
        return None
    told = f"; it wrote: {ended.output.strip()[:500]}" if ended.output.strip() else ""
    return f"{ended.error}{told}; {hint}"


def pending_of(
    name: str,
    undo: Sequence[str],
    timeout_s: float,
    steps: Sequence[Step],
    manual: str | None,
    *,
    ends_with_boot: bool = False,
) -> PendingUndo:
    """What is noted before an event begins; keys that say nothing are left out."""
    now, here, name_here = boot_id(), machine.machine_id(), machine.host_name()
    return PendingUndo(
        name=name,
        undo=undo,
        timeout_s=timeout_s,
        steps=steps or ABSENT,
        manual=ABSENT if manual is None else manual,
        boot_id=ABSENT if now is None else now,
        machine_id=ABSENT if here is None else here,
        host_name=ABSENT if name_here is None else name_here,
        ends_with_boot=ends_with_boot or ABSENT,
    )


def pending_undo_in_words(item: PendingUndo) -> str:
    """The event and what undoes it, as they are listed before anything is done."""
    event = f'event "{item.name}"'
    if item.has_ended:
        return f"{event} was undone when this machine was restarted"
    since = "; this machine was restarted since" if item.is_of_another_boot else ""
    if (there := item.elsewhere) is not None:
        since = f"; it was staged on {there}"
    if item.manual is not None:
        return f"{event} is undone by hand: {item.manual}{since}"
    if item.steps:
        return f"{event}: {'; '.join(step_in_words(step) for step in item.steps)}{since}"
    return f"{event} would be undone with `{shown(item.undo)}`{since}"


def clean_command(run_folder: Path, pending: Sequence[PendingUndo]) -> str:
    """What undoes them, to be typed: consent to commands, and a word that a person is done."""
    by_hand = [item.manual is not None for item in pending]
    consent = " --allow-commands" * (not all(by_hand))
    return f"plimsoll clean {shown([str(run_folder)])}{consent}{' --yes' * any(by_hand)}"
