"""Ready actions of events: what a plan says of them, and the steps they come down to.

A step is something small that can be shown, carried out and written down: a command, a text into a
file of the kernel, a process that is ended. What undoes an action is written as steps into
`undo-pending.json` before the action begins, so that it can be carried out when the process that
wrote it is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document

ActionName = Literal[
    "throttle",
    "server killed",
    "disk slow",
    "disk fails",
    "md drive fails",
    "link down",
    "path fails",
    "iscsi logout",
    "neighbour",
]

#: What takes away a path, a drive or a disk; what only slows it causes no errors.
HARMFUL_ACTIONS: frozenset[ActionName] = frozenset(
    {"disk slow", "disk fails", "md drive fails", "link down", "path fails", "iscsi logout"}
)

StepKind = Literal[
    "run", "write", "release", "make", "remove", "empty", "kill", "stop", "start",
    "contains", "lacks", "gone", "answers", "silent", "runs", "shows", "hides",
]  # fmt: skip


class ReadyAction(Document):
    """A ready action as a completed plan holds it; what is null was not written.

    Attributes:
        what: its name.
        target: the name of the target whose device it strikes.
        iops: reads per second, and likewise writes, that a throttle lets through.
        mib_per_s: MiB read per second, and likewise written, that a throttle lets through.
        port: the TCP port on which the server listens.
        pid_file: the file that names the process of the server.
        start: program and arguments that start the server again.
        device: a device mapper disk, an md array, or the disk of a path.
        member: the drive of an md array.
        delay_ms: how much later each I/O of a slow disk comes back.
        link: a network interface.
        namespace: the network namespace it is in.
        iqn: the name of an iSCSI target.
        portal: the address of an iSCSI portal.
        plan: the plan file of a neighbour.
        options: options of its command.
    """

    what: ActionName
    target: str | None = None
    iops: float | None = None
    mib_per_s: float | None = None
    port: int | None = None
    pid_file: str | None = None
    start: Sequence[str] | None = None
    device: str | None = None
    member: str | None = None
    delay_ms: float | None = None
    link: str | None = None
    namespace: str | None = None
    iqn: str | None = None
    portal: str | None = None
    plan: str | None = None
    options: Sequence[str] | None = None


class Step(Document):
    """One step; which of the keys it has follows from its kind.

    Attributes:
        kind: `run` a command; `write` a text into a file, and `release` likewise if it is there;
            `make` and `remove` a folder; `empty` a control group into another; `kill` a process and
            its descendants; `stop` the run of Plimsoll into a folder, gently first; `start` a
            program that stays; what a file `contains` or `lacks`; a process is `gone`; a port
            `answers` or is `silent`; what a pid file names `runs`; what a command prints `shows` or
            `hides` a text.
        argv: program and arguments.
        otherwise: program and arguments to try where the first ended with an error.
        path: the file or folder; what a program that is started writes goes to the file of that
            name in the run folder.
        text: what is written or looked for; the folder that processes go to; the run folder of
            a run to stop.
        process: the number of a process; of a server that was killed.
        began_ticks: when that process began, because numbers are given out again.
        port: a TCP port of this machine.
        pid_file: the file that names a server; one that is up is not started again.
        none_code: the exit code with which a command says that there is nothing to be shown.
        inherits: whether a started program sees our whole environment, being one of ours.
    """

    kind: StepKind
    argv: Sequence[str] = ()
    otherwise: Sequence[str] = ()
    path: str | None = None
    text: str | None = None
    process: int | None = None
    began_ticks: int | None = None
    port: int | None = None
    pid_file: str | None = None
    none_code: int | None = None
    inherits: bool = False
