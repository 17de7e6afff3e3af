"""The tables of a database of the format, whoever made it.

Listed, written as text, and its pages repaired.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plimsoll.databases.idle import is_held
from plimsoll.documents.engine_reports import EdbListing, EdbRepair
from plimsoll.errors import DiskError, EngineError, of_the_engine
from plimsoll.errors.system_errors import system_reason
from plimsoll.files.folder import FolderError
from plimsoll.files.paths import StrPath, sync_directory
from plimsoll.files.sanitize import parse_json, printable

_COPY_BYTES = 1 << 20
#: What the engine says of a database that is open, or was when its process died.
_NOT_CLEAN = "(-550)"


def list_tables(file: StrPath, *, dirty: bool = False, count: bool = False) -> EdbListing:
    """What is in a database: format, pages, and each table with its columns and indexes.

    Never writes.

    Args:
        file: the database.
        dirty: also read one that was not shut down cleanly; its pages may not fit together.
        count: also count the rows, which reads all of them.

    Raises:
        EngineError: it cannot be read, or is damaged.
    """
    file = Path(file)
    from plimsoll import _native

    with _reading(file):
        found: EdbListing = parse_json(_native.edb_tables(file, dirty, count))
    return found


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Errors of the native part, in words that fit a database that somebody works with.

    Raises:
        EngineError: as `of_the_engine` has it.
    """
    try:
        with of_the_engine():
            yield
    except EngineError as error:
        if _NOT_CLEAN not in str(error) or not is_held(file):
            raise
        raise type(error)(
            f"{printable(file)}: another process has it open; read it when that has ended, or with "
            f"--dirty as it is"
        ) from error


class TableExport:
    """A table as text, piece by piece, in the order of its primary key.

    Damage ends it with what was read before.
    """

    def __init__(self, file: Path, table: str, form: str = "csv", *, dirty: bool = False) -> None:
        """Args: the database; the table; `csv` with a heading or `json`, an object a line.

        Whether to read an unclean database.
        """
        from plimsoll import _native

        self._file = file
        self._text = _native.TableText(file, table, form, dirty)

    def pieces(self) -> Iterator[bytes]:
        """The text.

        Raises:
            EngineError: there is no such table, or it is damaged.
        """
        while (piece := self._next()) is not None:
            yield piece

    def _next(self) -> bytes | None:
        with _reading(self._file):
            return self._text.next_piece()

    def counts(self) -> tuple[int, int]:
        """Rows, and values that are encrypted, after the last piece."""
        return self._text.counts()


def repair_database(file: StrPath) -> EdbRepair:
    """Repair, in place, pages in which a bit has flipped, and a damaged header whose other copy is
    sound; says what was done.

    Raises:
        EngineError: it was not shut down cleanly, somebody has it open, or it cannot be read.
    """
    file = Path(file)
    from plimsoll import _native

    with of_the_engine():
        found: EdbRepair = json.loads(_native.edb_repair(file))
    return found


def part_of(target: Path) -> Path:
    """Where a copy lies until it is repaired: under the other name it would pass for that."""
    return target.with_name(f"{target.name}.part")


def repair_copy(file: StrPath, target: StrPath, *, always: bool = True) -> EdbRepair:
    """Repair a copy of a database, which gets its name when that is done.

    Until then it is called `.part`. One that a killed repair left is overwritten; whatever ends
    this one otherwise deletes it.

    Args:
        file: the database.
        target: the copy.
        always: also keep a copy in which nothing could be repaired.

    Raises:
        FolderError: there is no such file, the target exists, or it cannot be written.
        EngineError: it was not shut down cleanly, or it cannot be read.
    """
    file, target = Path(file), Path(target)
    part = part_of(target)
    if target.exists():
        raise FolderError(
            f"{printable(target)} exists; name another with --out, nothing is overwritten"
        )
    try:
        part.unlink(missing_ok=True)
        copy_database(file, part)
        try:
            with _of_original(file, part):
                report = repair_database(part)
            if always or is_changed(report):
                part.rename(target)
                sync_directory(target.parent)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise FolderError(
            f"{printable(target)}: {system_reason(error)}; name another place for the copy with "
            f"--out"
        ) from error
    return report


@contextmanager
def _of_original(file: Path, part: Path) -> Iterator[None]:
    """Errors about a copy that will be gone, as errors about the database that was copied.

    What the storage reports is about the copy itself.

    Raises:
        EngineError: the same, in these words.
    """
    try:
        yield
    except DiskError as error:
        raise type(error)(f"{error}; the copy was deleted") from error
    except EngineError as error:
        name = re.compile(rf"(?<!\S){re.escape(printable(part))}(?![^\s:;,])")
        raise type(error)(name.sub(lambda _: printable(file), str(error))) from error


def is_changed(report: EdbRepair) -> bool:
    """Whether a repair changed anything."""
    return bool(report["pages_mended"]) or report["header_copy_mended"] is not None


def copy_database(file: Path, target: Path) -> None:
    """Copy a database to a new file, durably; what was begun is deleted again when it fails.

    Raises:
        FolderError: there is no such file, the target exists, or it cannot be written.
    """
    try:
        if not file.is_file():
            raise FolderError(f"{printable(file)}: there is no such file; only files can be copied")
        was_there = target.exists()
        try:
            with file.open("rb") as source, target.open("xb") as copy:
                while piece := source.read(_COPY_BYTES):
                    copy.write(piece)
                copy.flush()
                os.fsync(copy.fileno())
        except FileExistsError:
            raise
        except BaseException:
            # A signal may come as soon as the file is made.
            if not was_there:
                target.unlink(missing_ok=True)
            raise
    except FileExistsError as error:
        raise FolderError(
            f"{printable(target)} exists; name another with --out, nothing is overwritten"
        ) from error
    except OSError as error:
        place = Path(error.filename or target)
        remedy = "" if place == file else "; name another place for the copy with --out"
        raise FolderError(f"{printable(place)}: {system_reason(error)}{remedy}") from error
