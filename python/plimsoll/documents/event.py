"""An event of a run, as a line of `events.log` holds it and as listeners are told."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from plimsoll.documents.document import Document, DocumentError
from plimsoll.files import folder
from plimsoll.files.paths import StrPath


class Event(Document):
    """Something that happened: when, how much it matters, a word that programs look for, and a
    sentence for people.
    """

    time_ns: int
    utc_ns: int
    level: str
    kind: str
    phase: str | None
    text: str


def read_events(run_folder: StrPath) -> list[Event]:
    """The events of a run, oldest first.

    An unfinished last line, and what is no event, are left out.

    Raises:
        FolderError: there are too many to be kept in memory.
    """
    run_folder = Path(run_folder)
    found = []
    for line in folder.read_events(run_folder):
        with suppress(DocumentError):
            found.append(Event.from_plain(line))
    return found
