"""What devices and file systems themselves count as errors, before and after a run.

Nothing may be added while it goes on.

The kernel counts failed and timed-out commands of SCSI devices, errors of ext4 and btrfs, and
errors of the members of software arrays, each in a file of its own below /sys; what drives count
themselves comes from `smart.py`. A layer that counts nothing, or may not be read, is not there;
that is said, and never taken for the absence of errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from plimsoll.documents.summary import DeviceErrorsFile

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


def compared(before: dict[str, int], after: dict[str, int]) -> DeviceErrorsFile:
    """The content of `device-errors.json`: what was counted, and what was added.

    >>> compared({"a": 1, "b": 2}, {"a": 1, "b": 5}).lines
    ('b: 3 more errors (2 before, 5 after)',)
    >>> compared({"a": 3}, {"a": 1}).lines
    ('a: 1 more error (it was reset, 1 after)',)
    """
    lines = []
    for name, count in before.items():
        now = after.get(name, count)
        more = now - count if now >= count else now
        since = f"{count} before" if now >= count else "it was reset"
        if more:
            lines.append(
                f"{name}: {more} more error{'' if more == 1 else 's'} ({since}, {now} after)"
            )
    lines += [
        f"{name}: could be read before the run and not after it"
        for name in before
        if name not in after
    ]
    return DeviceErrorsFile(
        schema_version=1, readable=bool(before), counters=sorted(before), lines=lines
    )


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
