"""Whether somebody works with databases: has them open, or is about to."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path

from plimsoll.databases.ownership import Marker
from plimsoll.files.folder import FolderError

#: How long a database may be held by a process that has just been killed: its last requests have to
#: come back first.
LOCK_PATIENCE_S = 1.0


def must_be_idle(marker: Marker) -> None:
    """Refuse databases that somebody has open, as the engine locks them.

    Raises:
        FolderError: somebody has.
    """
    for path in (marker.directory / name for name in marker.file_names):
        if is_held(path):
            raise FolderError(
                f"{path} is in use; stop the run that works with it first, nothing was changed"
            )


def is_held(path: Path) -> bool:
    """Whether somebody has a file locked, and keeps it.

    The kernel takes a while to let go of the files of a killed process.
    """
    patience_ends = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= patience_ends:
                return True
            time.sleep(0.005)
        except OSError:
            return False
        else:
            return False
