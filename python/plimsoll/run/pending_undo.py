"""What a run has degraded and has not undone yet: `undo-pending.json` in its folder.

The file is written before a command of an event begins and shrinks as each is undone, so that it outlives a killed process.
`plimsoll clean` carries it out.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from plimsoll.documents.document import Document
from plimsoll.files import folder
from plimsoll.run.event_command import carry_out, shown


class PendingUndo(Document):
    """An event that was begun and not undone, and the command that undoes it."""

    name: str
    undo: Sequence[str]
    timeout_s: float


class PendingUndoFile(Document):
    """`undo-pending.json`."""

    schema_version: Literal[1] = 1
    pending: Sequence[PendingUndo]


class PendingUndos:
    """The file of one run, kept by the threads of its events."""

    def __init__(self, run_folder: Path) -> None:
        self._path = run_folder / folder.UNDO_PENDING
        self._lock = threading.Lock()
        self._pending: dict[str, PendingUndo] = {}

    def add(self, item: PendingUndo) -> None:
        """Note an undo before its event begins."""
        with self._lock:
            self._pending[item.name] = item
            self._write()

    def remove(self, name: str) -> None:
        """The event is undone, or never took place."""
        with self._lock:
            if self._pending.pop(name, None) is not None:
                self._write()

    def _write(self) -> None:
        if self._pending:
            PendingUndoFile(schema_version=1, pending=list(self._pending.values())).write(self._path)
        else:
            self._path.unlink(missing_ok=True)


def pending_undos(run_folder: Path) -> tuple[PendingUndo, ...]:
    """What a run that was killed left degraded; empty where there is no such file.

    Raises:
        FolderError: the file is damaged.
    """
    path = run_folder / folder.UNDO_PENDING
    return tuple(PendingUndoFile.read(path).pending) if path.is_file() else ()


def undo_pending(run_folder: Path) -> list[str]:
    """Undo what a run that was killed left degraded; what was undone leaves the file.

    Returns:
        A sentence for each command that failed, with its output.

    Raises:
        FolderError: the run still goes on, or the file is damaged.
    """
    if folder.goes_on(run_folder):
        raise folder.FolderError(f"{run_folder} belongs to a run that goes on; stop that run, which undoes its events")
    left = PendingUndos(run_folder)
    found = pending_undos(run_folder)
    for item in found:
        left.add(item)
    failed = []
    for item in reversed(found):
        ended = carry_out(item.undo, item.timeout_s, {"PLIMSOLL_EVENT": item.name}, run_folder)
        if ended.error is None:
            left.remove(item.name)
        else:
            failed.append(f'event "{item.name}" is not undone: {ended.error}; it wrote: {ended.output.strip()[:500]}')
    return failed


def pending_undo_in_words(item: PendingUndo) -> str:
    """The event and its command, as they are listed before anything is done."""
    return f'event "{item.name}" would be undone with `{shown(item.undo)}`'
