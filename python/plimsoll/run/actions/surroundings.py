"""What ready actions see of the machine and of the run, and what they answer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.documents.ready_actions import Step
from plimsoll.documents.staged_events import file_name_of
from plimsoll.errors import PlimsollError
from plimsoll.files.claims import PROC
from plimsoll.host import processes
from plimsoll.host.probe import nearest_existing

SYS = Path("/sys")


class ActionError(PlimsollError):
    """A ready action that cannot be carried out here, in a sentence."""


@dataclass(frozen=True)
class Prepared:
    """The steps of an action.

    Attributes:
        apply: what begins it.
        prove: what shows that it took.
        undo: what ends it, also when only a part of `apply` was carried out.
        remark: what a reader of the result has to know; empty if nothing.
        ends_with_boot: whether a restart of the machine undoes it.
    """

    apply: Sequence[Step]
    prove: Sequence[Step]
    undo: Sequence[Step]
    remark: str = ""
    ends_with_boot: bool = True


@dataclass(frozen=True)
class Surroundings:
    """This machine and this run; tests put trees of their own in the place of `/sys` and `/proc`.

    Attributes:
        event: the name of the event.
        run_folder: where what it writes is kept.
        targets: the paths of the plan's targets by name.
        sys: the kernel's devices and control groups.
        proc: its processes and mounts.
        user: who asks; 0 may do everything.
    """

    event: str
    run_folder: Path
    targets: Mapping[str, str]
    sys: Path = SYS
    proc: Path = PROC
    user: int = field(default_factory=os.geteuid)

    @property
    def slug(self) -> str:
        """The name of the event as a part of names of files."""
        return file_name_of(self.event)

    def tool(self, name: str, package: str) -> str:
        """A program that an action needs.

        Raises:
            ActionError: it is not installed.
        """
        found = shutil.which(name)
        if found is None:
            raise ActionError(f"`{name}` is not installed (package {package})")
        return found

    def need_root(self) -> None:
        """Raises:
        ActionError: whoever asks is not root.
        """
        if self.user != 0:
            raise ActionError("only root may do it")

    def block_device(self, target: str | None) -> tuple[str, str]:
        """The whole disk under a target: its kernel name and its number as `8:0`.

        Args:
            target: the name of the target; the first one if null.

        Raises:
            ActionError: there is no such disk.
        """
        if not self.targets:
            raise ActionError("no target of the plan lies on a device of this machine")
        name = target or next(iter(self.targets))
        if name not in self.targets:
            raise ActionError(f"target {name} lies on no device of this machine")
        path = nearest_existing(Path(self.targets[name]))
        status = path.stat()
        number = status.st_rdev if path.is_block_device() else status.st_dev
        shown = f"{os.major(number)}:{os.minor(number)}"
        device = self.sys / "dev/block" / shown
        if not device.exists():
            shown = self._mounted_from(path, shown)
            device = self.sys / "dev/block" / shown
        if not device.exists():
            raise ActionError(f"{path} lies on no block device")
        device = device.resolve()
        if (device / "partition").exists():
            device = device.parent
        return device.name, (device / "dev").read_text().strip()

    def _mounted_from(self, path: Path, number: str) -> str:
        """The number of the device below a file system that has one of its own, such as btrfs."""
        for line in (self.proc / "self/mountinfo").read_text().splitlines():
            fields = line.split()
            source = fields[fields.index("-") + 2] if "-" in fields else ""
            if fields[2] == number and source.startswith("/dev/") and Path(source).exists():
                found = Path(source).stat().st_rdev
                return f"{os.major(found)}:{os.minor(found)}"
        raise ActionError(f"{path} lies on no block device")

    def server(self, port: int | None, pid_file: str | None) -> int:
        """The process of a server, by its port or by the file that names it.

        Raises:
            ActionError: there is none.
        """
        try:
            if port is not None:
                return processes.listener_on(port, self.proc)
            return processes.from_pid_file(Path(pid_file or ""), self.proc)
        except processes.ProcessError as error:
            raise ActionError(str(error)) from error
