"""Processes of this machine, from `/proc`: who listens on a port, and what each of them uses.

A process is named by its number and the tick it began at, because the kernel gives numbers out
again. Only processes of this network namespace are found by a port, and those of other users only
by a user who may look at them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plimsoll.errors import PlimsollError
from plimsoll.files.claims import BEGAN_TICKS, PROC, STATE, stat_of

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
#: The state of a listening socket in `/proc/net/tcp`.
_LISTENS = "0A"
#: Further places in what `stat_of` answers.
_PARENT, _GROUP, _USER_TICKS, _SYSTEM_TICKS, _RESIDENT_PAGES = 1, 2, 11, 12, 21


class ProcessError(PlimsollError):
    """A process that cannot be found, in a sentence."""


@dataclass(frozen=True)
class Process:
    """One process.

    Attributes:
        number: its number.
        began_ticks: when it began, in clock ticks since the machine was started.
        parent: the number of its parent.
        group: the number of its process group.
        state: one letter, as proc(5) has it.
        busy_s: processor time it used, in seconds, of all its threads.
        resident_bytes: memory it occupies; what processes share counts in each.
    """

    number: int
    began_ticks: int
    parent: int
    group: int
    state: str
    busy_s: float
    resident_bytes: int


def process_of(number: int, proc: Path = PROC) -> Process | None:
    """A process by its number; None where there is none, or where it has ended."""
    fields = stat_of(number, proc)
    if fields is None:
        return None
    return Process(
        number=number,
        began_ticks=int(fields[BEGAN_TICKS]),
        parent=int(fields[_PARENT]),
        group=int(fields[_GROUP]),
        state=fields[STATE],
        busy_s=(int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])) / _TICKS_PER_S,
        resident_bytes=int(fields[_RESIDENT_PAGES]) * _PAGE_BYTES,
    )


def now_ticks() -> int:
    """Clock ticks since the machine was started, as processes begin at."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_PER_S)


def lives(number: int, began_ticks: int, proc: Path = PROC) -> bool:
    """Whether a process that was looked at before is still there, and no other in its place."""
    found = process_of(number, proc)
    return found is not None and found.began_ticks == began_ticks


def all_processes(proc: Path = PROC) -> list[Process]:
    """Every process that can be seen."""
    numbers = [int(path.name) for path in proc.iterdir() if path.name.isdigit()]
    return [found for number in numbers if (found := process_of(number, proc)) is not None]


def is_given(number: int, variable: str, value: str, proc: Path = PROC) -> bool | None:
    """Whether a process was started with a variable of this value; None where that is unseen."""
    try:
        given = (proc / str(number) / "environ").read_bytes()
    except OSError:
        return None
    return os.fsencode(f"{variable}={value}") in given.split(b"\0")


def family(leader: int, proc: Path = PROC) -> list[Process]:
    """A process and all that descend from it, the leader first; empty where it is gone."""
    everyone = all_processes(proc)
    wanted, found = {leader}, [process for process in everyone if process.number == leader]
    if not found:
        return []
    waiting = [process for process in everyone if process.number != leader]
    while True:
        new = [process for process in waiting if process.parent in wanted]
        if not new:
            return found
        found += new
        wanted |= {process.number for process in new}
        waiting = [process for process in waiting if process.number not in wanted]


def listener_on(port: int, proc: Path = PROC) -> int:
    """The number of the process that listens on a TCP port; of several the ancestor of the others.

    Raises:
        ProcessError: nobody does, or it cannot be seen who.
    """
    sockets = {f"socket:[{inode}]" for inode in _listening(port, proc)}
    if not sockets:
        raise ProcessError(f"no process listens on port {port} of this machine")
    owners = [process for process in all_processes(proc) if _holds(process.number, sockets, proc)]
    if not owners:
        raise ProcessError(
            f"a process that this user cannot look into listens on port {port}; run as root, or "
            "write pid_file"
        )
    numbers = {process.number for process in owners}
    first = [process for process in owners if process.parent not in numbers]
    return min(first, key=lambda process: (process.began_ticks, process.number)).number


def from_pid_file(path: Path, proc: Path = PROC) -> int:
    """The process that a file names on its first line.

    Raises:
        ProcessError: there is no such file, or no such process.
    """
    try:
        with path.open(encoding="utf-8") as file:
            number = int(file.readline(64))
    except (OSError, ValueError) as error:
        raise ProcessError(f"{path} names no process: {error}") from error
    if process_of(number, proc) is None:
        raise ProcessError(f"{path} names process {number}, which does not live")
    return number


def with_arguments(are_wanted: Callable[[Sequence[str]], bool], proc: Path = PROC) -> list[Process]:
    """The processes whose command lines, with the program first, are wanted; not ourselves."""
    found = []
    for process in all_processes(proc):
        with suppress(OSError):
            text = (proc / str(process.number) / "cmdline").read_bytes()
            arguments = [os.fsdecode(word) for word in text.split(b"\0")[:-1]]
            if are_wanted(arguments) and process.number != os.getpid():
                found.append(process)
    return found


def _listening(port: int, proc: Path) -> Iterator[str]:
    """The inodes of the sockets that listen on a port."""
    for name in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _holds(number: int, sockets: Sequence[str] | set[str], proc: Path) -> bool:
    try:
        with os.scandir(proc / str(number) / "fd") as entries:
            for entry in entries:
                with suppress(OSError):
                    if str(Path(entry.path).readlink()) in sockets:
                        return True
    except OSError:
        return False
    return False
