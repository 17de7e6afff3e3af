"""Refusing bad input: every mistake on the error stream, exit code 2, nothing on the output."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from plimsoll import InputError

EXIT_BAD_INPUT = 2


def refuse(errors: Sequence[InputError]) -> NoReturn:
    """Print all mistakes of all inputs and leave with the code for bad input."""
    count = sum(len(error.mistakes) for error in errors)
    print(f"error: {count} mistake{'s' if count != 1 else ''} in the input", file=sys.stderr)
    for error in errors:
        for mistake in error.mistakes:
            print(mistake.render(error.file_name), file=sys.stderr)
    raise typer.Exit(EXIT_BAD_INPUT)
