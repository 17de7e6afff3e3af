"""Run folders whose files are not what a run wrote: cut off by a full disk, changed by hand, from a stranger, or of another version."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import plimsoll
from plimsoll import folder
from plimsoll.cli import course

PACKAGE = Path(plimsoll.__file__).parent


@contextmanager
def reading(run_folder: Path) -> Iterator[None]:
    """Leave with a sentence and exit code 2 where no sense can be made of what is in a run folder."""
    try:
        yield
    except folder.FolderError as error:
        course.stop_with(course.EXIT_USAGE, str(error))
    except Exception as error:
        if not _may_be_the_folder(error):
            raise
        told = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        course.stop_with(
            course.EXIT_USAGE,
            f"{run_folder} holds files no sense can be made of: {told} ({_place(error)}). They were damaged or changed after the run, or "
            "another version wrote them; where none of this can be, it is a fault of Plimsoll",
        )


def _may_be_the_folder(error: Exception) -> bool:
    """Whether it is what wrong data lead to: a value or key that is not there, or a table that cannot be read."""
    kinds = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
    return isinstance(error, kinds) or any(kind.__module__.endswith("duckdb") for kind in type(error).__mro__)


def _place(error: Exception) -> str:
    """Where in this program it came to light."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if PACKAGE in Path(frame.filename).parents]
    last = frames[-1]
    return f"{Path(last.filename).relative_to(PACKAGE)}, line {last.lineno}"
