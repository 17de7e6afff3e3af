"""Run folders whose files are not what a run wrote.

Cut off by a full disk, changed by hand, from a stranger, or of another version.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plimsoll.files.folder import FolderError
from plimsoll.files.paths import StrPath

PACKAGE = Path(__file__).parents[1]
#: What reads tables and writes pages, with errors of its own.
LIBRARIES = ("_duckdb", "duckdb", "jinja2")


@contextmanager
def reading(*run_folders: StrPath) -> Iterator[None]:
    """Say in a sentence where no sense can be made of what is in one of these run folders.

    Raises:
        FolderError: that sentence.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, FolderError) or not may_be_the_folder(error):
            raise
        raise _no_sense(error, run_folders) from error


def may_be_the_folder(error: Exception) -> bool:
    """Whether it is what wrong data lead to.

    A value or key that is not there, nesting without end, a table that cannot be read.
    """
    kinds = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
    return isinstance(error, kinds) or type(error).__module__.partition(".")[0] in LIBRARIES


def _no_sense(error: Exception, run_folders: tuple[StrPath, ...]) -> FolderError:
    told = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    where = " or ".join(map(str, run_folders))
    return FolderError(
        f"{where} holds files no sense can be made of: {told} ({_place(error)}). They were damaged "
        f"or changed after the run, or "
        "another version wrote them; where none of this can be, it is a fault of Plimsoll"
    )


def _place(error: Exception) -> str:
    """Where in this program it came to light."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if PACKAGE in Path(frame.filename).parents
    ]
    last = frames[-1]
    return f"{Path(last.filename).relative_to(PACKAGE)}, line {last.lineno}"
