"""`throttle`: a target's device lets through so many reads and writes of a process and no more.

A control group with a limit is made, and the process is moved into it with all its threads: in
version 1 below its own group of `blkio` (kernel documentation, cgroup-v1/blkio-controller), in
version 2 at the top, where a group with processes may have no children (cgroup-v2, "No Internal
Process Constraint"). The limit holds for I/O that the process itself submits: with version 1 the
kernel's late writing of buffered pages passes it by. Reads and writes have a limit each. Should our
process be killed, the limit ends with it, and an empty group is left to be removed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from plimsoll.documents.ready_actions import ReadyAction, Step
from plimsoll.host import processes
from plimsoll.run.actions.surroundings import ActionError, Prepared, Surroundings

_MIB = 1 << 20
#: How the groups of throttles begin.
_OURS = "plimsoll-"
_V1 = {
    "iops": ("blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"),
    "bytes": ("blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"),
}


def throttle(action: ReadyAction, here: Surroundings) -> Prepared:
    """The steps that limit the I/O of a process on a target's device.

    Raises:
        ActionError: the target lies on no device, there are no control groups for I/O, or they may
        not be changed.
    """
    _, device = here.block_device(action.target)
    leader, members = _members(action, here)
    limits = {
        "iops": None if action.iops is None else max(int(action.iops), 1),
        "bytes": None if action.mib_per_s is None else max(int(action.mib_per_s * _MIB), 1),
    }
    name = f"{_OURS}{os.getpid()}-{here.slug}"
    mount = _mounted("cgroup", "blkio", here)
    if mount is not None:
        former = mount / _group_of(leader, "blkio", here)
        _check_writable(former)
        return _version_1(former, former / name, device, limits, members)
    mount = _mounted("cgroup2", "", here)
    if mount is None:
        raise ActionError("neither cgroup2 nor the blkio controller of cgroup is mounted")
    _check_writable(mount)
    if "io" not in (mount / "cgroup.controllers").read_text().split():
        raise ActionError(
            "the kernel's control groups do not limit I/O: no `io` in cgroup.controllers"
        )
    former = mount / _group_of(leader, "", here)
    for other in mount.glob(f"{_OURS}*/"):
        # Whichever is undone first would take the controller from both.
        raise ActionError(
            f"the group {other.name} is there, of another throttle or of a run that was killed; "
            f"let that be undone first"
        )
    return _version_2(mount, former, name, device, limits, members)


def _members(action: ReadyAction, here: Surroundings) -> tuple[int, Sequence[int]]:
    """The process whose group is left, and all that leave it: we, or a server with all of it."""
    if action.port is None and action.pid_file is None:
        return os.getpid(), [os.getpid()]
    leader = here.server(action.port, action.pid_file)
    return leader, [process.number for process in processes.family(leader, here.proc)]


def _version_1(
    former: Path,
    group: Path,
    device: str,
    limits: Mapping[str, int | None],
    members: Sequence[int],
) -> Prepared:
    stated = [
        (group / name, limit)
        for kind, limit in limits.items()
        if limit is not None
        for name in _V1[kind]
    ]
    joins = [_write(group / "cgroup.procs", str(member)) for member in members]
    return Prepared(
        apply=[
            Step(kind="make", path=str(group)),
            *(_write(path, f"{device} {limit}") for path, limit in stated),
            *joins,
        ],
        prove=[
            *(_contains(path, f"{device} {limit}\n") for path, limit in stated),
            _contains(group / "cgroup.procs", f"{members[0]}\n"),
        ],
        # What waits in the group is let go before anybody leaves it.
        undo=[
            *(_undoing(path, f"{device} 0") for path, _ in stated),
            Step(kind="empty", path=str(group), text=str(former)),
            Step(kind="remove", path=str(group)),
        ],
        remark="the limit does not hold for pages that the kernel writes later",
    )


def _version_2(
    mount: Path,
    former: Path,
    name: str,
    device: str,
    limits: Mapping[str, int | None],
    members: Sequence[int],
) -> Prepared:
    group, control = mount / name, mount / "cgroup.subtree_control"
    words = [
        f"{side}{unit}={limit}"
        for unit, limit in (("bps", limits["bytes"]), ("iops", limits["iops"]))
        if limit is not None
        for side in ("r", "w")
    ]
    ends = " ".join(f"{word.partition('=')[0]}=max" for word in words)
    has_io = "io" in control.read_text().split()
    return Prepared(
        apply=[
            *([] if has_io else [_write(control, "+io")]),
            Step(kind="make", path=str(group)),
            _write(group / "io.max", f"{device} {' '.join(words)}"),
            *(_write(group / "cgroup.procs", str(member)) for member in members),
        ],
        prove=[
            *(_contains(group / "io.max", word) for word in words),
            _contains(group / "cgroup.procs", f"{members[0]}\n"),
        ],
        undo=[
            _undoing(group / "io.max", f"{device} {ends}"),
            Step(kind="empty", path=str(group), text=str(former)),
            Step(kind="remove", path=str(group)),
            *([] if has_io else [_write(control, "-io")]),
        ],
    )


def _mounted(kind: str, option: str, here: Surroundings) -> Path | None:
    """Where control groups of a kind are mounted."""
    for line in (here.proc / "self/mountinfo").read_text().splitlines():
        fields = line.split()
        place = fields.index("-") if "-" in fields else len(fields)
        if fields[place + 1 : place + 2] != [kind]:
            continue
        if option and option not in fields[-1].split(","):
            continue
        found = Path(fields[4])
        # With both versions mounted, I/O belongs to the first of them; the second has no `io` then.
        return here.sys / found.relative_to("/sys") if found.is_relative_to("/sys") else found
    return None


def _group_of(number: int, controller: str, here: Surroundings) -> str:
    """The group of a process below the mount, as `/proc/PID/cgroup` has it."""
    for line in (here.proc / str(number) / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            if Path(path).name.startswith(_OURS):
                # What the undo would bring back is what another event has made.
                raise ActionError(
                    f"process {number} is throttled already, by {path}; let the event before be "
                    f"undone first, or clean the run that was killed"
                )
            return path.strip("/")
    raise ActionError(f"process {number} is in no control group for I/O")


def _check_writable(group: Path) -> None:
    if not os.access(group, os.W_OK):
        raise ActionError(f"control groups may not be changed here: {group} cannot be written")


def _write(path: Path, text: str) -> Step:
    return Step(kind="write", path=str(path), text=text)


def _undoing(path: Path, text: str) -> Step:
    return Step(kind="release", path=str(path), text=text)


def _contains(path: Path, text: str) -> Step:
    return Step(kind="contains", path=str(path), text=text)
