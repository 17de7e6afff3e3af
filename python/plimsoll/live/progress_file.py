"""`progress.json` in the folder of a run that goes on.

All that `plimsoll status` and `plimsoll watch` know of it.
"""

from __future__ import annotations

import time
from pathlib import Path

from plimsoll.files import folder
from plimsoll.live.progress import Figures

EVERY_S = 2.0


class ProgressFile:
    """Writes the figures of a run every few seconds."""

    def __init__(self, figures: Figures, run_folder: Path) -> None:
        self._figures = figures
        self._path = run_folder / folder.PROGRESS
        self._written = time.monotonic()
        self._mark = folder.progress_mark()

    def write(self, *, at_once: bool = False) -> None:
        """Write when it is time, or at once."""
        if at_once or time.monotonic() - self._written >= EVERY_S:
            self._written = time.monotonic()
            folder.write_json(self._path, {**self._figures.snapshot(), **self._mark})

    def remove(self) -> None:
        """Take the file away: the run has other files now."""
        self._path.unlink(missing_ok=True)
