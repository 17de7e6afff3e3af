"""Leaving with a sentence where no sense can be made of what is in a run folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import plimsoll
from plimsoll.cli.terminal import refusing


@contextmanager
def reading(*run_folders: Path) -> Iterator[None]:
    """Leave with exit code 2 where a run folder, or what is made of several, cannot be used."""
    with refusing(plimsoll.FolderError, plimsoll.RefusedError), plimsoll.reading(*run_folders):
        yield
