"""Run folders whose files are not what a run wrote: cut off by a full disk, changed by hand, from a stranger, or of another version."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli.terminal import problems_of, stop_with

PACKAGE = Path(plimsoll.__file__).parent
#: What reads tables and writes pages, with errors of its own.
LIBRARIES = ("_duckdb", "duckdb", "jinja2")


@contextmanager
def reading(*run_folders: Path) -> Iterator[None]:
    """Leave with a sentence and exit code 2 where no sense can be made of what is in one of these run folders."""
    try:
        yield
    except (plimsoll.FolderError, plimsoll.RefusedError) as error:
        stop_with(exit_codes.USAGE, *problems_of(error))
    except Exception as error:
        if not may_be_the_folder(error):
            raise
        told = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        where = " or ".join(map(str, run_folders))
        stop_with(
            exit_codes.USAGE,
            f"{where} holds files no sense can be made of: {told} ({_place(error)}). They were damaged or changed after the run, or "
            "another version wrote them; where none of this can be, it is a fault of Plimsoll",
        )


def may_be_the_folder(error: Exception) -> bool:
    """Whether it is what wrong data lead to: a value or key that is not there, nesting without end, a table that cannot be read."""
    kinds = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
    return isinstance(error, kinds) or type(error).__module__.partition(".")[0] in LIBRARIES


def _place(error: Exception) -> str:
    """Where in this program it came to light."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if PACKAGE in Path(frame.filename).parents]
    last = frames[-1]
    return f"{Path(last.filename).relative_to(PACKAGE)}, line {last.lineno}"
