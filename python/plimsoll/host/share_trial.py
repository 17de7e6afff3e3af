"""What a mounted share honours of what a file system of this machine does.

A share of a server (NFS, SMB) or one in user space (FUSE) may take a call and do less than it
says. So the calls that databases and users rely on are tried in a directory of their own, which is
removed again: direct I/O, flushes, exclusive creation, replacing by renaming, locks. What is
acknowledged is believed here: whether a flush survives a power cut, only `plimsoll powercut` finds
out.

Locks are tried between two openings of one process, so a lock that a server keeps from other
machines is not seen.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from plimsoll.documents.environment import ShareTrial
from plimsoll.files.paths import StrPath
from plimsoll.host.probe import StorageError

BLOCK = 4096
PREFIX = ".plimsoll-trial-"


def is_share(kind: str, *, is_network: bool) -> bool:
    """Whether a kind of file system is served by another machine or by a program.

    >>> is_share("nfs4", is_network=True), is_share("fuse.smbnetfs", is_network=False), is_share("ext4", is_network=False)
    (True, True, False)
    """  # noqa: E501
    return is_network or kind == "fuse" or kind.startswith("fuse.")


def try_share(directory: StrPath) -> list[ShareTrial]:
    """What is honoured below a directory.

    Raises:
        StorageError: it is no directory, or nothing can be written there.
    """
    directory = Path(directory)
    try:
        return try_out(directory)
    except OSError as error:
        raise StorageError(
            f"{directory}: nothing can be tried there ({error.strerror or error}); name a "
            f"directory that this user may write to"
        ) from error


def try_out(directory: Path) -> list[ShareTrial]:
    """Try the calls in a new directory below one that is there.

    Raises:
        OSError: no directory can be made there.
    """
    place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=directory))
    try:
        return [_tried(name, means, trial, place) for name, means, trial in _TRIALS]
    finally:
        shutil.rmtree(place, ignore_errors=True)


def try_out_or_say(directory: Path) -> list[ShareTrial]:
    """The same; where no directory can be made, that is what is not honoured."""
    try:
        return try_out(directory)
    except OSError as error:
        means = "nothing of what it honours is known"
        said = _name_of(error)
        return [{"name": "new directories", "honoured": False, "said": said, "means": means}]


def refused(trials: list[ShareTrial]) -> list[str]:
    """What is not honoured, in sentences."""
    return [
        f"the share does not honour {item['name']} ({item['said']}): {item['means']}"
        for item in trials
        if not item["honoured"]
    ]


def _tried(name: str, means: str, trial: Callable[[Path], str], place: Path) -> ShareTrial:
    """One trial; what it raises is an answer."""
    try:
        said = trial(place)
    except OSError as error:
        said = _name_of(error)
    return {"name": name, "honoured": not said, "said": said or "as it should be", "means": means}


def _name_of(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, "EIO")


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)


def _direct_io(place: Path) -> str:
    flags = os.O_RDWR | os.O_CREAT | os.O_DIRECT | os.O_CLOEXEC
    descriptor = os.open(place / "direct", flags, 0o600)
    try:
        with mmap.mmap(-1, BLOCK) as block, mmap.mmap(-1, BLOCK) as back:
            block[:] = b"d" * BLOCK
            if os.pwritev(descriptor, [block], 0) != BLOCK:
                return "a write came to its end early"
            if os.preadv(descriptor, [back], 0) != BLOCK or back[:] != block[:]:
                return "what was written is not read back"
    finally:
        os.close(descriptor)
    return ""


def _flush(place: Path) -> str:
    with (place / "flushed").open("wb") as file:
        file.write(b"f" * BLOCK)
        file.flush()
        os.fsync(file.fileno())
        os.fdatasync(file.fileno())
    return ""


def _flush_names(place: Path) -> str:
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return ""


def _create_once(place: Path) -> str:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    os.close(os.open(place / "once", flags, 0o600))
    try:
        os.close(os.open(place / "once", flags, 0o600))
    except FileExistsError:
        return ""
    return "a name that is taken was created again"


def _replace(place: Path) -> str:
    new, old = place / "new", place / "old"
    _write(old, b"old")
    _write(new, b"new content")
    new.rename(old)
    if new.exists():
        return "the old name stays"
    return "" if old.read_bytes() == b"new content" else "the target keeps its content"


def _rename_open(place: Path) -> str:
    before, after = place / "before", place / "after"
    with before.open("wb") as file:
        before.rename(after)
        file.write(b"written later")
    return "" if after.read_bytes() == b"written later" else "what was written later is lost"


def _lock(place: Path) -> str:
    path = place / "locked"
    _write(path, b"")
    with path.open("r+b") as holder, path.open("r+b") as other:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return ""
    return "two hold it at once"


def _seen_at_once(place: Path) -> str:
    path = place / "seen"
    _write(path, b"s" * BLOCK)
    if path not in place.iterdir():
        return "a new name is not listed"
    if path.stat().st_size != BLOCK:
        return "a new length is not told"
    path.unlink()
    return "" if path not in place.iterdir() else "a deleted name is still listed"


#: What is tried, and what it means where it is not honoured.
_TRIALS: tuple[tuple[str, str, Callable[[Path], str]], ...] = (
    ("direct I/O", "figures would include the page cache of this machine", _direct_io),
    ("flushes of files", "nothing that is acknowledged is known to be safe", _flush),
    ("flushes of names", "a new name may be gone after a power cut", _flush_names),
    ("exclusive creation", "two programs may take one name", _create_once),
    ("replacing by renaming", "an editor that saves may leave the old file", _replace),
    (
        "renaming an open file",
        "a log that is renamed while it is written may lose its end",
        _rename_open,
    ),
    ("locks", "nothing keeps two runs from one database", _lock),
    (
        "names at once",
        "a listing may show what was, so home folders cannot be compared",
        _seen_at_once,
    ),
)
