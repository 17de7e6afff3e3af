"""Database files checked page by page, without changing them.

Those that are named, and those below directories.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.documents.engine_reports import VerifyReport
from plimsoll.errors import of_the_engine
from plimsoll.errors.system_errors import system_reason
from plimsoll.files import folder
from plimsoll.files.paths import StrPath, paths_of
from plimsoll.files.sanitize import parse_json, printable

#: Databases, logs, checkpoints, flush maps.
SUFFIXES = {".edb", ".log", ".chk", ".jfm", ".jrs"}


@dataclass(frozen=True)
class Verified:
    """What a check found.

    Attributes:
        report: `files`, each with its verdict, counts and findings; None when there was none to
            check.
        unseen: what could not be looked at.
    """

    report: VerifyReport | None
    unseen: list[str]


def verify_files(paths: StrPath | Sequence[StrPath], *, deep: bool = False) -> Verified:
    """Check every page and both headers of database files, and whole logs, checkpoints and flush
    maps. Never writes.

    Args:
        paths: files of the format, or directories.
        deep: also check trees, space, indexes and catalog.
    """
    from plimsoll import _native

    unseen: list[str] = []
    files = [
        file
        for path in paths_of(paths)
        for file in (_files_in(path, unseen) if path.is_dir() else [path])
    ]
    if not files:
        return Verified(None, unseen)
    with of_the_engine():
        return Verified(
            parse_json(_native.verify([str(path) for path in files], "deep" if deep else "pages")),
            unseen,
        )


def _files_in(directory: Path, unseen: list[str]) -> list[Path]:
    """The files of the format in a directory and below it, in the order of their names.

    Logs of a run folder are other logs.

    What cannot be entered is noted in `unseen`, because nobody knows what is in it.
    """

    def note(error: OSError) -> None:
        unseen.append(f"{printable(Path(error.filename or directory))}: {system_reason(error)}")

    found = []
    for place, _, names in os.walk(directory, onerror=note):
        for name in names:
            path = Path(place, name)
            try:
                wanted = (
                    path.suffix in SUFFIXES
                    and name not in (folder.EVENTS, folder.TERMINAL)
                    and _is_file(path)
                )
            except OSError as error:
                note(error)
                continue
            if wanted:
                found.append(path)
    return sorted(found)


def _is_file(path: Path) -> bool:
    """Whether a path is a file.

    A link that leads nowhere is none, and what may not be looked at is an error.
    """
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False
