"""Disks that are slow or fail, drives of md arrays, paths of multipath disks.

`disk slow` and `disk fails` exchange the table of a device mapper disk while it is in use: `delay`
and `error` in the place of what it has (kernel documentation, device-mapper/delay). The table is
read before and put back word by word. `md drive fails` fails one drive of an md array that can do
without it. `path fails` takes a SCSI disk offline below multipath, because a path that is only
failed by command is found well again by the next check of multipathd.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from plimsoll.documents.ready_actions import ReadyAction, Step
from plimsoll.run.actions.surroundings import ActionError, Prepared, Surroundings

_LOOK_S = 20


def disk_slow(action: ReadyAction, here: Surroundings) -> Prepared:
    """The steps that let every I/O of a device mapper disk come back later.

    Raises:
        ActionError: there is no such disk, or it is no plain piece of one device.
    """
    name, lines, dmsetup = _device_mapper(action, here)
    start, length, kind, *rest = lines[0].split()
    if len(lines) != 1 or kind != "linear":
        raise ActionError(f"{name} is not one linear piece of a device: {'; '.join(lines)}")
    place, offset = rest
    slow = f"{start} {length} delay {place} {offset} {max(round(action.delay_ms or 0), 1)}"
    return _exchanged(name, [slow], lines, dmsetup)


def disk_fails(action: ReadyAction, here: Surroundings) -> Prepared:
    """The steps that let every I/O of a device mapper disk fail.

    Raises:
        ActionError: there is no such disk.
    """
    name, lines, dmsetup = _device_mapper(action, here)
    first, last = lines[0].split(), lines[-1].split()
    length = int(last[0]) + int(last[1])
    return _exchanged(name, [f"{first[0]} {length} error"], lines, dmsetup)


def _device_mapper(action: ReadyAction, here: Surroundings) -> tuple[str, list[str], str]:
    """Name and table of a device mapper disk, and the program that changes it."""
    here.need_root()
    dmsetup = here.tool("dmsetup", "dmsetup")
    name = (action.device or "").removeprefix("/dev/mapper/")
    lines = printed([dmsetup, "table", name], f"there is no device mapper disk {name}")
    for line in lines:
        kind = line.split()[2]
        if kind in ("error", "delay"):
            # What the undo would bring back is what another event has made.
            raise ActionError(
                f"{name} is degraded already ({kind}); let the event before be undone first"
            )
    return name, lines, dmsetup


def _exchanged(name: str, new: Sequence[str], old: Sequence[str], dmsetup: str) -> Prepared:
    def steps(table: Sequence[str]) -> list[Step]:
        # What is on its way is not waited for: it may wait for the very thing that is exchanged.
        text = "\n".join(table)
        return [
            Step(kind="run", argv=[dmsetup, "suspend", "--noflush", "--nolockfs", name]),
            Step(kind="run", argv=[dmsetup, "load", name, "--table", text]),
            Step(kind="run", argv=[dmsetup, "resume", name]),
        ]

    return Prepared(
        apply=steps(new),
        prove=[
            Step(kind="shows", argv=[dmsetup, "table", name], text=" ".join(new[0].split()[2:]))
        ],
        undo=steps(old),
    )


def md_drive_fails(action: ReadyAction, here: Surroundings) -> Prepared:
    """The steps that fail a drive of an md array and add it again.

    Raises:
        ActionError: there is no such array or drive, or the array could not do without it.
    """
    here.need_root()
    mdadm = here.tool("mdadm", "mdadm")
    array, drive = _kernel_name(action.device), _kernel_name(action.member)
    place = here.sys / "block" / array / "md"
    if not place.is_dir():
        raise ActionError(f"{action.device} is no md array")
    if not (place / f"dev-{drive}").is_dir():
        raise ActionError(f"{action.member} is no drive of {action.device}")
    level, degraded = _word(place / "level"), _word(place / "degraded")
    if level in ("raid0", "linear") or degraded != "0":
        what = "lacks drives already" if degraded not in ("0", "") else f"is {level}"
        raise ActionError(f"{action.device} {what}: without {action.member} its data would be lost")
    state = str(place / f"dev-{drive}" / "state")
    path, member = f"/dev/{array}", f"/dev/{drive}"
    return Prepared(
        apply=[Step(kind="run", argv=[mdadm, "--manage", path, "--fail", member])],
        prove=[Step(kind="contains", path=state, text="faulty")],
        # A drive that never failed, or is back, can be neither removed nor added; what counts is
        # that it is there. `--add` tries `--re-add` first, which wants no whole rebuild.
        undo=[
            Step(
                kind="run", argv=[mdadm, "--manage", path, "--remove", member], otherwise=["true"]
            ),
            Step(kind="run", argv=[mdadm, "--manage", path, "--add", member], otherwise=["true"]),
            Step(kind="shows", argv=[mdadm, "--detail", path], text=member),
            Step(kind="lacks", path=state, text="faulty"),
        ],
        ends_with_boot=False,
        remark="the array rebuilds the drive after it was added again",
    )


def path_fails(action: ReadyAction, here: Surroundings) -> Prepared:
    """The steps that take one path of a multipath disk away and bring it back.

    Raises:
        ActionError: there is no such path, or it is the last one.
    """
    here.need_root()
    multipathd = here.tool("multipathd", "multipath-tools")
    disk = _kernel_name(action.device)
    state = here.sys / "block" / disk / "device/state"
    if not state.exists():
        raise ActionError(f"{action.device} is no SCSI disk that can be taken offline")
    if (word := _word(state)) != "running":
        raise ActionError(f"{action.device} is {word or 'in no known state'} already")
    maps = list((here.sys / "block" / disk / "holders").glob("dm-*"))
    if not maps:
        raise ActionError(f"{action.device} is no path of a multipath disk")
    paths = [path.name for path in (here.sys / "block" / maps[0].name / "slaves").iterdir()]
    # A path that multipath holds for failed carries nothing, also where SCSI says that it runs.
    told = printed(
        [multipathd, "show", "paths", "raw", "format", "%d %t"],
        "multipathd does not say which paths are active",
    )
    active = [line.split()[0] for line in told if line.split()[1:] == ["active"]]
    others = [
        name
        for name in paths
        if name != disk
        and name in active
        and _word(here.sys / "block" / name / "device/state") == "running"
    ]
    if not others:
        raise ActionError(f"{action.device} is the last path of its disk that runs")
    # The kernel takes the word of a state only with the end of its line.
    return Prepared(
        apply=[
            Step(kind="write", path=str(state), text="offline\n"),
            Step(kind="run", argv=[multipathd, "fail", "path", disk]),
        ],
        prove=[Step(kind="contains", path=str(state), text="offline")],
        undo=[
            Step(kind="write", path=str(state), text="running\n"),
            Step(kind="run", argv=[multipathd, "reinstate", "path", disk]),
        ],
    )


def disks_harmed(action: ReadyAction | None, here: Surroundings) -> frozenset[str] | None:
    """The disks that may fail by an event, and all that is built on them, by their kernel names.

    None where that is not known: of commands, steps of a person, links and sessions.
    """
    if action is None or action.device is None:
        return None
    found, waiting = set[str](), [_kernel_name(action.device)]
    waiting += [_kernel_name(action.member)] if action.member else []
    while waiting:
        disk = waiting.pop()
        if disk not in found:
            found.add(disk)
            holders = here.sys / "class/block" / disk / "holders"
            waiting += [path.name for path in holders.iterdir()] if holders.is_dir() else []
    return frozenset(found)


def _kernel_name(device: str | None) -> str:
    """What the kernel calls a device, as in `/sys/block`."""
    return Path(os.path.realpath(device or "")).name if "/" in (device or "") else device or ""


def _word(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def printed(argv: Sequence[str], otherwise: str = "") -> list[str]:
    """The lines that a command prints which changes nothing.

    Args:
        argv: program and arguments.
        otherwise: what it means when it fails or prints nothing; empty where that is no mistake.

    Raises:
        ActionError: it failed or printed nothing, and that is a mistake.
    """
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_LOOK_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ActionError(f"{otherwise or argv[0]}: {error}") from error
    lines = done.stdout.splitlines()
    if otherwise and (done.returncode or not lines):
        told = (done.stderr or done.stdout).strip().splitlines()
        raise ActionError(f"{otherwise}{': ' + told[0] if told else ''}")
    return lines
