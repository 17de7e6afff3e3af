"""What goes to the error stream: progress, warnings and mistakes.

The output is kept for the result.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import typer

from plimsoll import (
    CorruptionError,
    EngineError,
    InputError,
    PlimsollError,
    RefusedError,
    exit_codes,
)
from plimsoll.files.sanitize import plain


def say(text: str) -> None:
    """A line of progress."""
    print(plain(text), file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """A line that a reader of the result must know."""
    say(f"warning: {text}")


def stop_with(code: int, *lines: str) -> NoReturn:
    """Print why on the error stream and leave."""
    for line in lines:
        say(f"error: {line}")
    raise typer.Exit(code)


def problems_of(error: PlimsollError) -> Sequence[str]:
    """What an error says, a line for each reason."""
    return error.problems if isinstance(error, RefusedError) else [str(error)]


@contextmanager
def refusing(*kinds: type[PlimsollError]) -> Iterator[None]:
    """Leave as for wrong usage, with what is wrong, where something cannot be done.

    Any error of ours, or those named.

    What the native part raises beside wrong requests and failed disks is a fault of Plimsoll, and
    no matter of usage.
    """
    try:
        yield
    except PlimsollError as error:
        if type(error) in (CorruptionError, EngineError) or (
            kinds and not isinstance(error, kinds)
        ):
            raise
        stop_with(exit_codes.USAGE, *problems_of(error))


@contextmanager
def reading_plan() -> Iterator[None]:
    """Leave with every mistake of a plan, or of options that make none."""
    try:
        yield
    except InputError as error:
        if error.file_name == "options" and not any(item.where for item in error.mistakes):
            told = (item.render("options") for item in error.mistakes)
            stop_with(exit_codes.USAGE, *(line.removeprefix("options: ") for line in told))
        count = len(error.mistakes)
        stop_with(
            exit_codes.USAGE, f"{count} mistake{'s' if count > 1 else ''} in the plan\n{error}"
        )
