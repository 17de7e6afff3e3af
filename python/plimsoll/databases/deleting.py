"""What of a directory is ours, and how it goes: databases, their logs, home folders.

Only names that a run gives are deleted, so that what somebody else has put beside them stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from plimsoll.databases import idle, ownership
from plimsoll.databases.ownership import MARKER, PARTIAL
from plimsoll.files.folder import FolderError
from plimsoll.files.paths import StrPath
from plimsoll.host import block_devices

#: What an instance consists of beside its databases: flush maps, logs, checkpoint, marks of
#: `plimsoll powercut`, files not yet whole.
OUR_FILES = re.compile(
    r"(database|device)\d{3}\.(edb|dat|jfm)|E\d\d[\w.]*\.(log|chk|jrs|aside|holds)|raw\.log|marks\.dat|\.[0-9a-f]{16}\.part"
)
_HOME, _FOLDER = re.compile(r"u[0-9]{6,7}"), re.compile(r"d[0-9]{6,19}")
_FILE = re.compile(r"f[0-9]{8,19}\.dat")


def delete_databases(directory: StrPath, destroy_serials: Sequence[str] | None = None) -> int:
    """Delete an instance of ours.

    Its files, its marker last, and its directories where nothing else is in them; returns the bytes
    freed. No symbolic link is followed.

    Raises:
        FolderError: it carries no marker of ours, a symbolic link leads to it, somebody works with
            it, or its device may not be overwritten.
    """
    # The working directory has no name that it could be removed by.
    directory = Path(directory).absolute()
    marker = ownership.read(directory)
    if marker is None:
        raise FolderError(f"{directory} carries no marker of Plimsoll; it is not deleted")
    marker.require_no_link()
    logs, named = marker.logs(), set(marker.file_names)
    idle.must_be_idle(marker)
    for device in marker.devices:
        block_devices.erase(device, destroy_serials or [])
    # Whoever is stopped in the middle can begin again, and nobody takes the rest for databases. A
    # full disk has no room to say so.
    with suppress(OSError):
        replace(marker, state=PARTIAL, records=None).write()
    # The marker of the databases last.
    return sum(delete_ours(place, named) for place in dict.fromkeys((logs or directory, directory)))


def delete_ours(place: Path, named: set[str]) -> int:
    """Delete what is ours in a directory, the marker last, and the directory if nothing is left.

    Returns:
        The bytes freed.

    Raises:
        FolderError: home folders hold what is not ours.
    """
    files = [path for path in place.iterdir() if path.is_file() and not path.is_symlink()]
    ours = [path for path in files if path.name in named or OUR_FILES.fullmatch(path.name)]
    # By the names that are there: a damaged marker may name anything.
    trees = [
        path
        for path in place.iterdir()
        if path.name in named and path.is_dir() and not path.is_symlink()
    ]
    size = sum(_delete_tree(tree) for tree in trees)
    left = [str(tree) for tree in trees if tree.is_dir()]
    if left:
        raise FolderError(
            f"{left[0]} holds what no run of Plimsoll has made there; move it elsewhere"
        )
    for path in [*sorted(ours), *(path for path in files if path.name == MARKER)]:
        size += path.stat().st_size
        path.unlink()
    if not any(place.iterdir()):
        # A mount point stays, and a folder of a folder that may not be changed.
        with suppress(OSError):
            place.rmdir()
    return size


def _delete_tree(tree: Path) -> int:
    """Delete the homes in a directory, and it where nothing else is in it.

    Returns:
        The bytes freed.
    """
    freed = 0
    for home in _folders(tree, _HOME):
        for folder in _folders(home, _FOLDER):
            for file in sorted(folder.iterdir()):
                if _FILE.fullmatch(file.name) and file.is_file() and not file.is_symlink():
                    freed += file.stat().st_size
                    file.unlink()
            _remove_empty(folder)
        _remove_empty(home)
    _remove_empty(tree)
    return freed


def _folders(place: Path, named: re.Pattern[str]) -> list[Path]:
    return [
        path
        for path in sorted(place.iterdir())
        if named.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
    ]


def _remove_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()
