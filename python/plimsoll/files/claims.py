"""Claims on directories and on numbered things, so that two runs never work with one.

Each is a name among the kernel's sockets: it ends with its process, whatever ends that, and leaves
no file behind. It holds on this machine, among processes of one network namespace.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
from pathlib import Path

PROC = Path("/proc")
#: Places in `/proc/PID/stat`, counted behind the name: proc(5) counts from 1 and has two fields
#: before.
STATE, BEGAN_TICKS = 0, 19


def claim(directory: Path) -> socket.socket | None:
    """Claim a directory, which need not be there yet, until what is answered is closed.

    None where another has claimed it.
    """
    return _bound(_name_of(directory))


def claim_numbers(kind: str, numbers: range, proc: Path = PROC) -> socket.socket | None:
    """Claim some numbers of a kind until what is answered is closed.

    None where another has claimed any of them. Of two that claim at one moment, both may be
    refused.
    """
    stem = f"plimsoll-{hashlib.sha256(kind.encode()).hexdigest()}-"
    held = _bound(f"\0{stem}{numbers.start}-{numbers.stop}")
    if held is None:
        return None
    try:
        lines = (proc / "net" / "unix").read_text(errors="replace").splitlines()
    except OSError:
        return held
    names = [line.partition(f"@{stem}")[2] for line in lines]
    claimed = [tuple(map(int, name.split("-"))) for name in names if name]
    if sum(begin < numbers.stop and numbers.start < end for begin, end in claimed) > 1:
        held.close()
        return None
    return held


def _bound(name: str) -> socket.socket | None:
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        held.bind(name)
    except OSError as error:
        held.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return held


def is_claimed(directory: Path) -> bool:
    """Whether anybody has claimed a directory, this process too."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(_name_of(directory))
        except OSError:
            return False
    return True


def _name_of(directory: Path) -> str:
    return f"\0plimsoll-{hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()}"


def began_ticks(process_id: int) -> int | None:
    """When a process began, in clock ticks since the machine was started; None where it is gone.

    Numbers of processes are given out again; together with this they are not.
    """
    fields = stat_of(process_id)
    return None if fields is None else int(fields[BEGAN_TICKS])


def stat_of(process_id: int, proc: Path = PROC) -> list[str] | None:
    """The fields of a process in `/proc/PID/stat` behind its name; None where it is gone or has
    ended.
    """
    try:
        text = (proc / str(process_id) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > BEGAN_TICKS and fields[STATE] not in "ZX" else None
