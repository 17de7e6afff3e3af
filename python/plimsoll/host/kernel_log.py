"""What the kernel said of the disks under test while a run went on.

Messages of the severity "error" or worse count when they name one of the disks. They are read from
/dev/kmsg, which takes root or, where kernel.dmesg_restrict is 0, nothing; without it the run goes
on and its verdict says that nobody looked. Whoever gathers while the run goes on loses none to the
kernel's ring buffer; where some were dropped all the same, that is said. A run that goes on after a
crash of its process reads from where it first began, as long as the machine was not restarted.
What is said while an event of the plan harms the storage is told apart: it was asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from plimsoll.documents.environment import Environment, KernelLogMark
from plimsoll.documents.summary import KernelLogFile
from plimsoll.host.boot import boot_id

KERNEL_LOG_PATH = Path("/dev/kmsg")
#: The kernel's "error"; "critical", "alert" and "emergency" are lower numbers.
SEVERITY_MAX = 3
RECORD_BYTES_MAX = 16384
LINES_MAX = 200
OVERFLOWED = "messages were lost: the kernel log overflowed"


class KernelLog:
    """The kernel log from a mark on, or from now on.

    Args:
        path: where the kernel offers it.
        since: the mark of a run that goes on.
    """

    def __init__(self, path: Path = KERNEL_LOG_PATH, since: KernelLogMark | None = None) -> None:
        self._descriptor: int | None = None
        self._reason: str | None = None
        self._lost: str | None = None
        self._records: list[str] = []
        self._of_events: list[str] = []
        self._next = 0
        self.mark = KernelLogMark(boot_id=boot_id(), next_record=0)
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            self._begin(since)
        except OSError as error:
            self._reason = f"{path}: {error.strerror}"

    def _begin(self, since: KernelLogMark | None) -> None:
        """Pass over what was said before."""
        self._read()
        before, self._records, self._lost = self._records, [], None
        if since is None:
            self.mark["next_record"] = self._next
            return
        if since["boot_id"] != self.mark["boot_id"]:
            self._lost = "the machine was restarted: what its kernel said before that is gone"
            self.mark["next_record"] = self._next
            return
        self.mark = since
        self._records = [text for text in before if _number_of(text) >= since["next_record"]]
        first = min(map(_number_of, before), default=since["next_record"])
        if first > since["next_record"]:
            self._lost = OVERFLOWED

    def __enter__(self) -> KernelLog:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def gather(self, disks: list[str], harmed: frozenset[str] = frozenset()) -> None:
        """Read what was said meanwhile, before the ring buffer drops it.

        Args:
            disks: by the names the kernel gives them.
            harmed: those that an event of the plan has harmed meanwhile. What names another one too
                is not of the event.
        """
        known = len(self._records)
        self._read()
        told, self._records = self._records[known:], self._records[:known]
        for record in told:
            named = set(named_in(error_about(record, disks) or "", disks))
            (self._of_events if named and named <= harmed else self._records).append(record)
        for records in (self._records, self._of_events):
            records[:] = [text for text in records if error_about(text, disks)][:LINES_MAX]

    def errors_about(self, disks: list[str]) -> KernelLogFile:
        """Everything since the mark that speaks of one of the disks, as the content of
        `kernel-log.json`.
        """
        self.gather(disks)
        lines, of_events = (
            [line for line in (error_about(text, disks) for text in records) if line]
            for records in (self._records, self._of_events)
        )
        return KernelLogFile(
            schema_version=1,
            readable=self._reason is None,
            reason=self._reason or self._lost,
            disks=disks,
            lines=lines,
            of_events=of_events,
        )

    def _read(self) -> None:
        while self._descriptor is not None:
            try:
                record = os.read(self._descriptor, RECORD_BYTES_MAX)
            except BlockingIOError:
                return
            except BrokenPipeError:
                # The ring buffer went round: the next read goes on with the oldest message that is
                # left.
                self._lost = OVERFLOWED
                continue
            except OSError as error:
                self._reason = f"it could not be read to its end: {error.strerror}"
                return
            if not record:
                return
            text = record.decode("utf-8", errors="replace")
            self._next = _number_of(text) + 1
            self._records.append(text)


def _number_of(record: str) -> int:
    """The number of a record of /dev/kmsg; each follows the one before.

    >>> _number_of("3,17,2,-;blk_update_request: I/O error, dev sda, sector 8")
    17
    """
    fields = record.partition(";")[0].split(",")
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0


def error_about(record: str, disks: list[str]) -> str | None:
    """The text of a record of /dev/kmsg, if it is an error about one of the disks or their
    partitions.

    >>> error_about("3,1,2,-;blk_update_request: I/O error, dev sda, sector 8", ["sda"])
    'blk_update_request: I/O error, dev sda, sector 8'
    """
    head, _, body = record.partition(";")
    number = head.split(",")[0]
    if not number.isdigit() or int(number) & 7 > SEVERITY_MAX:
        return None
    text = body.splitlines()[0] if body else ""
    return text if named_in(text, disks) else None


def named_in(text: str, disks: Sequence[str]) -> list[str]:
    """The disks that a text names, or partitions of which.

    >>> named_in("md/raid1:md0: Disk failure on sdb1, disabling device", ["sda", "sdb", "md0"])
    ['sdb', 'md0']
    """
    return [
        disk
        for disk in disks
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(disk)}(p?\d+)?(?![A-Za-z0-9])", text)
    ]


def disks_of(environment: Environment) -> list[str]:
    """The disks under the targets by the names the kernel gives them.

    Devices and what they are built on.
    """
    names: list[str] = []
    for target in environment["targets"]:
        device = target.get("device")
        if device:
            names += [device["kernel_name"], *device["bottom_disks"]]
    return list(dict.fromkeys(names))
