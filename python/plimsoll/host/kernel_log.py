"""What the kernel said of the disks under test while a run went on.

Messages of the severity "error" or worse count when they name one of the disks. They are read from
/dev/kmsg, which takes root or, where kernel.dmesg_restrict is 0, nothing; without it the run goes
on and its verdict says that nobody looked. Messages that the kernel's ring buffer dropped before
the end of the run are not seen, and that is said too.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import TracebackType

from plimsoll.documents.environment import Environment
from plimsoll.documents.summary import KernelLogFile

KERNEL_LOG_PATH = Path("/dev/kmsg")
#: The kernel's "error"; "critical", "alert" and "emergency" are lower numbers.
SEVERITY_MAX = 3
RECORD_BYTES_MAX = 16384
LINES_MAX = 200


class KernelLog:
    """The kernel log from now on."""

    def __init__(self, path: Path = KERNEL_LOG_PATH) -> None:
        self._descriptor: int | None = None
        self._reason: str | None = None
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError as error:
            self._reason = f"{path}: {error.strerror}"

    def __enter__(self) -> KernelLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def errors_about(self, disks: list[str]) -> KernelLogFile:
        """Everything since the log was opened that speaks of one of the disks, as the content of
        `kernel-log.json`.
        """
        lines: list[str] = []
        while self._descriptor is not None:
            try:
                record = os.read(self._descriptor, RECORD_BYTES_MAX)
            except BlockingIOError:
                break
            except BrokenPipeError:
                # The ring buffer went round: the next read goes on with the oldest message that is
                # left.
                lines.append("messages were lost: the kernel log overflowed")
                continue
            except OSError as error:
                self._reason = f"it could not be read to its end: {error.strerror}"
                break
            if not record:
                break
            text = error_about(record.decode("utf-8", errors="replace"), disks)
            if text is not None:
                lines.append(text)
        return KernelLogFile(
            schema_version=1,
            readable=self._reason is None,
            reason=self._reason,
            disks=disks,
            lines=lines[:LINES_MAX],
        )


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
    named = any(
        re.search(rf"(?<![A-Za-z0-9]){re.escape(disk)}(p?\d+)?(?![A-Za-z0-9])", text)
        for disk in disks
    )
    return text if named else None


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
