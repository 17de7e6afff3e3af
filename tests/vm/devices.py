"""Devices of the virtual machine that ready actions degrade, each with a file system, mounted."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.harm import wait_until

IN_VM = Path("/run/plimsoll-vm").exists()
ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "deploy/iscsi/loopback.sh"
IQN = "iqn.2026-01.example.plimsoll:loopback"


@dataclass(frozen=True)
class Degradable:
    """A device, what an event says of it, and whether it is degraded.

    Attributes:
        mount: where its file system is mounted.
        event: the keys of the event.
        is_degraded: whether the event took, asked of the kernel or of a tool, not of the product.
        is_well: whether everything is as it was before.
    """

    mount: Path
    event: str
    is_degraded: Callable[[], bool]
    is_well: Callable[[], bool]


def run(*command: str | Path) -> str:
    """What a command prints.

    Raises:
        RuntimeError: it failed.
    """
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{words}: {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def mounted(device: str | Path, place: Path) -> Iterator[Path]:
    """An ext4 on a device."""
    mount = place / "mount"
    mount.mkdir()
    run("mkfs.ext4", "-q", "-F", device)
    run("mount", device, mount)
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=False)


@contextmanager
def linear(place: Path, action: str, more: str, kind: str) -> Iterator[Degradable]:
    """A device mapper disk on a scratch disk; `kind` is the target it gets."""
    name = f"lab{kind}"
    sectors = run("blockdev", "--getsz", "/dev/vda").strip()
    run("dmsetup", "create", name, "--table", f"0 {sectors} linear /dev/vda 0")

    def table() -> str:
        return run("dmsetup", "table", name).split()[2]

    try:
        with mounted(f"/dev/mapper/{name}", place) as mount:
            event = f'action = "{action}"\ndevice = "/dev/mapper/{name}"\n{more}'
            yield Degradable(mount, event, lambda: table() == kind, lambda: table() == "linear")
    finally:
        subprocess.run(["dmsetup", "remove", "--force", "--retry", name], check=False)
        run("udevadm", "settle")


@contextmanager
def mirror(place: Path) -> Iterator[Degradable]:
    """An md array of two drives."""
    run("mdadm", "--create", "/dev/md0", "--run", "--level=1", "--raid-devices=2", "--metadata=1.2",
        "--bitmap=internal", "/dev/vdb", "/dev/vdc")  # fmt: skip
    state = Path("/sys/block/md0/md")
    run("mdadm", "--wait", "/dev/md0") if not clean(state) else None
    try:
        with mounted("/dev/md0", place) as mount:
            event = 'action = "md drive fails"\ndevice = "/dev/md0"\nmember = "/dev/vdc"'
            yield Degradable(
                mount,
                event,
                lambda: (state / "degraded").read_text() == "1\n",
                lambda: clean(state),
            )
    finally:
        subprocess.run(["mdadm", "--stop", "/dev/md0"], check=False)
        for drive in ("/dev/vdb", "/dev/vdc"):
            subprocess.run(["mdadm", "--zero-superblock", drive], check=False)


def clean(array: Path) -> bool:
    """Whether an array has all its drives, in sync."""
    drives = [path.read_text().strip() for path in array.glob("dev-*/state")]
    return len(drives) == 2 and all("in_sync" in drive for drive in drives)


@contextmanager
def scratch(place: Path) -> Iterator[Degradable]:
    """A scratch disk that a control group limits."""
    groups = Path("/sys/fs/cgroup")

    def limited() -> bool:
        return any(path.read_text() for path in groups.glob("plimsoll-*/io.max"))

    with mounted("/dev/vdd", place) as mount:
        yield Degradable(
            mount,
            'action = "throttle"\niops = 20',
            limited,
            lambda: not list(groups.glob("plimsoll-*")),
        )


@contextmanager
def four_paths(place: Path) -> Iterator[Path]:
    """A multipath disk with a path for each of four portals; its device."""
    conf = Path("/etc/multipath/conf.d/plimsoll.conf")
    conf.parent.mkdir(parents=True, exist_ok=True)
    conf.write_text((ROOT / "deploy/iscsi/multipath.conf").read_text())
    Path("/etc/multipath.conf").write_text("defaults {\n find_multipaths no\n}\n")
    if subprocess.run(["pgrep", "-x", "multipathd"], check=False).returncode:
        run("multipathd")
    image = place / "image"
    try:
        print(run(SCRIPT, "up", image, "128"))
        wait_until(lambda: len(path_names()) == 4)
        run("udevadm", "settle")
        name = run("multipathd", "show", "maps", "raw", "format", "%n").split()[0]
        yield Path("/dev/mapper") / name
    finally:
        subprocess.run(["multipath", "-F"], check=False)
        print(run(SCRIPT, "down", image))


def path_names() -> list[str]:
    """The paths of the multipath disk, as the kernel calls them."""
    maps = [path for path in Path("/sys/block").glob("dm-*") if is_multipath(path)]
    return sorted(path.name for found in maps for path in (found / "slaves").iterdir())


def is_multipath(disk: Path) -> bool:
    return (disk / "dm/uuid").read_text().startswith("mpath-")


def sessions() -> int:
    """Sessions with the target."""
    done = subprocess.run(
        ["iscsiadm", "-m", "session"], capture_output=True, text=True, check=False
    )
    return done.stdout.count(IQN)


@contextmanager
def one_path(place: Path) -> Iterator[Degradable]:
    """A multipath disk of which one path fails."""
    with four_paths(place) as device, mounted(device, place) as mount:
        path = path_names()[0]
        state = Path("/sys/block") / path / "device/state"

        def well() -> bool:
            return (
                state.read_text() == "running\n"
                and run("multipathd", "show", "paths", "raw", "format", "%d %t").count("active")
                == 4
            )

        event = f'action = "path fails"\ndevice = "/dev/{path}"'
        yield Degradable(mount, event, lambda: state.read_text() == "offline\n", well)


@contextmanager
def one_session(place: Path) -> Iterator[Degradable]:
    """A multipath disk of which one session ends."""
    with four_paths(place) as device, mounted(device, place) as mount:
        event = f'action = "iscsi logout"\niqn = "{IQN}"\nportal = "127.0.0.2:3260"'
        yield Degradable(
            mount, event, lambda: sessions() == 3, lambda: sessions() == len(path_names()) == 4
        )


DEVICES = {
    "disk slow": lambda place: linear(place, "disk slow", "delay_ms = 60", "delay"),
    "disk fails": lambda place: linear(place, "disk fails", "", "error"),
    "md drive fails": mirror,
    "throttle": scratch,
    "path fails": one_path,
    "iscsi logout": one_session,
}
