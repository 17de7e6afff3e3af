"""Paths as the public API takes them: a notebook has text where a program has `Path`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

StrPath: TypeAlias = str | os.PathLike[str]


def paths_of(given: StrPath | Sequence[StrPath]) -> list[Path]:
    """Several paths, or the one that was given in the place of a list."""
    if isinstance(given, str | os.PathLike):
        return [Path(given)]
    return [Path(each) for each in given]


def whole_path(given: StrPath) -> str:
    """A path as it is written down: whole, and with the home of a user in the place of `~`."""
    return str(Path(given).expanduser().absolute())


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
