"""What devices and file systems themselves count as errors, before and after a run.

Nothing may be added while it goes on.

The kernel counts failed and timed-out commands of SCSI devices, errors of ext4 and btrfs, and
errors of the members of software arrays, each in a file of its own below /sys; what drives count
themselves comes from `smart.py`. A layer that counts nothing, or may not be read, is not there;
that is said, and never taken for the absence of errors.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from plimsoll.documents.summary import DeviceErrorsFile
from plimsoll.host import smart
from plimsoll.host.kernel_log import named_in

SYS = Path("/sys")
#: Files with one number each, by disk.
COUNTERS = (
    "block/{disk}/device/ioerr_cnt",
    "block/{disk}/device/iotmo_cnt",
    "fs/ext4/{disk}*/errors_count",
    "block/{disk}/md/dev-*/errors",
)
#: Files of lines "name number", not by disk.
TABLES = ("fs/btrfs/*/devinfo/*/error_stats",)


def read_counters(disks: list[str], root: Path = SYS) -> dict[str, int]:
    """Every error counter there is of these disks, by its path below /sys."""
    found: dict[str, int] = {}
    for disk in disks:
        for pattern in COUNTERS:
            for path in sorted(root.glob(pattern.format(disk=disk))):
                if not _names(path, disk):
                    continue
                number = _number(_text(path))
                if number is not None:
                    found[str(path.relative_to(root))] = number
    for pattern in TABLES:
        for path in sorted(root.glob(pattern)):
            for line in (_text(path) or "").splitlines():
                name, _, value = line.partition(" ")
                number = _number(value)
                if number is not None:
                    found[f"{path.relative_to(root)}:{name}"] = number
    return found


class ErrorCounts:
    """What was added to counters since the beginning of a run.

    >>> counts = ErrorCounts({"a": 1, "b": 2, "c": 3})
    >>> counts.look({"a": 1, "b": 5, "c": 1})
    >>> counts.found().lines
    ('b: 3 more errors (2 before, 5 after)', 'c: 1 more error (it was reset, 1 after)')

    Args:
        first: their values then, by name.
        disks: the disks of the run, by the names the kernel gives them.
    """

    def __init__(self, first: Mapping[str, int], disks: Sequence[str] = ()) -> None:
        self._disks = disks
        self._first, self._last = first, dict(first)
        self._added: Counter[str] = Counter()
        self._of_events: Counter[str] = Counter()
        self._lost: set[str] = set()
        self._lost_by_events: set[str] = set()
        self._reset: set[str] = set()

    def look(self, now: Mapping[str, int], harmed: frozenset[str] = frozenset()) -> None:
        """Take what was added since the last look.

        Args:
            now: values by name; a name that is missing cannot be read any more.
            harmed: the disks that an event of the plan has harmed since the last look, by their
                kernel names. What drives count of themselves is never its work: it is damage, and
                is read at the end.
        """
        for name, before in self._last.items():
            added, lost = (
                (self._of_events, self._lost_by_events)
                if self._is_of(name, harmed)
                else (self._added, self._lost)
            )
            if name not in now:
                lost.add(name)
                continue
            self._lost_by_events.discard(name)
            self._lost.discard(name)
            if now[name] < before:
                self._reset.add(name)
            counted = self._added if name.startswith(smart.PREFIX) else added
            counted[name] += now[name] - before if now[name] >= before else now[name]
        self._last |= {name: count for name, count in now.items() if name in self._first}

    def _is_of(self, name: str, harmed: frozenset[str]) -> bool:
        """Whether a counter is one of harmed disks and of no other; of btrfs no disk is known."""
        named = set(named_in(name, self._disks))
        return bool(harmed) and named <= harmed

    def found(self) -> DeviceErrorsFile:
        """The content of `device-errors.json`: what was counted, and what was added."""
        return DeviceErrorsFile(
            schema_version=1,
            readable=bool(self._first),
            counters=sorted(self._first),
            lines=self._lines(self._added, self._lost - self._lost_by_events),
            of_events=self._lines(self._of_events, self._lost_by_events),
        )

    def _lines(self, added: Counter[str], lost: set[str]) -> list[str]:
        lines = []
        for name, count in self._first.items():
            since = "it was reset" if name in self._reset else f"{count} before"
            if more := added[name]:
                lines.append(
                    f"{name}: {more} more error{'' if more == 1 else 's'} "
                    f"({since}, {self._last[name]} after)"
                )
        return lines + [
            f"{name}: could be read before the run and not after it" for name in sorted(lost)
        ]


def first_of(readings: Sequence[dict[str, int]]) -> dict[str, int]:
    """What counters are held against, of a run with gaps: their first values.

    A counter that is lower after a gap was reset when the machine was restarted, and what it had
    counted before that is gone.

    >>> first_of([{"a": 1, "b": 7}, {"a": 3, "b": 0, "c": 2}])
    {'a': 1, 'b': 0, 'c': 2}
    """
    found: dict[str, int] = {}
    for reading in readings:
        found |= {name: min(count, found.get(name, count)) for name, count in reading.items()}
    return found


def _names(path: Path, disk: str) -> bool:
    """Whether a file is about this disk or a partition of it, and not about another whose name
    begins alike.
    """
    return any(re.fullmatch(rf"{re.escape(disk)}(p?\d+)?", part) for part in path.parts)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None


def _number(text: str | None) -> int | None:
    try:
        return int((text or "").strip(), 0)
    except ValueError:
        return None
