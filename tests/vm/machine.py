"""A virtual machine for tests that want modules which the kernel of this machine lacks.

Debian's kernel and tools are downloaded with `apt-get download` and unpacked into a folder of
their own. qemu boots the kernel with the root of this machine (9p, read-only), covered by the tools
and a layer in memory (overlayfs). What the command leaves behind is gone with the machine.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Kernel and tools, unpacked; kept from run to run.
PLACE = ROOT / ".vm"
KERNEL = "linux-image-amd64"
PACKAGES = (
    "dmsetup",
    "kmod",
    "kpartx",
    "libaio1",
    "libconfig-general-perl",
    "libdevmapper1.02.1",
    "libedit2",
    "libibverbs1",
    "libisns0",
    "libjson-c5",
    "libkmod2",
    "libnl-3-200",
    "libnl-route-3-200",
    "libopeniscsiusr",
    "librdmacm1",
    "liburcu8",
    "mdadm",
    "multipath-tools",
    "open-iscsi",
    "sg3-utils",
    "sg3-utils-udev",
    "tgt",
    "udev",
)
#: What the first steps of the machine need; their order is that of their dependences.
MODULES = ("virtio_pci", "virtio_blk", "9pnet_virtio", "9p", "overlay")
DISKS = 8
DISK_MIB = 160
MEMORY_MIB = 3072

# What lies in the layer of tools must not hide the links of a merged /usr.
_MERGED = ("bin", "sbin", "lib")

_INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /host /tools /upper /sysroot
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in {modules}; do modprobe $module || echo "no module $module"; done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=524288 host /host || exit
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=524288 tools /tools || exit
mount -t tmpfs -o size=80% upper /upper
mkdir /upper/top /upper/work
mount -t overlay -o lowerdir=/tools:/host,upperdir=/upper/top,workdir=/upper/work \\
    overlay /sysroot || exit
mkdir -p /sysroot/mnt/outside
mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,msize=524288 outside /sysroot/mnt/outside
for place in proc sys dev; do mount --move /$place /sysroot/$place; done
exec switch_root /sysroot /bin/sh {guest} /mnt/outside
"""


class MissingError(Exception):
    """What this machine lacks to run another one."""


def missing() -> str | None:
    """Why no virtual machine can be started here, in a sentence; None where it can."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "the virtual machine wants Linux on x86-64"
    if os.geteuid() != 0:
        return "the virtual machine reads files of root: run it as root"
    for tool, package in (
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("busybox", "busybox-static"),
        ("apt-get", "apt"),
        ("dpkg-deb", "dpkg"),
    ):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (package {package})"
    return None


def unpacked() -> Path:
    """Kernel and tools; downloads and unpacks them where they are not there yet.

    Raises:
        MissingError: they cannot be downloaded, or this machine lacks a tool.
    """
    lacks = missing()
    if lacks is not None:
        raise MissingError(lacks)
    tools = PLACE / "tools"
    if (PLACE / "complete").exists():
        return tools
    shutil.rmtree(PLACE, ignore_errors=True)
    downloads = PLACE / "packages"
    downloads.mkdir(parents=True)
    depends = _output("apt-cache", "depends", "--important", KERNEL)
    kernels = [line.split()[-1] for line in depends.splitlines() if "Depends: linux-image" in line]
    if not kernels:
        raise MissingError(f"apt knows no package {KERNEL}; run apt-get update")
    _output("apt-get", "download", "-q", kernels[0], *PACKAGES, cwd=downloads)
    raw = PLACE / "raw"
    for package in sorted(downloads.glob("*.deb")):
        _output("dpkg-deb", "-x", package, raw)
    (raw / "usr").mkdir(exist_ok=True)
    for name in _MERGED:
        if (raw / name).is_dir():
            _output("cp", "-al", f"{raw / name}/.", raw / "usr" / name)
            shutil.rmtree(raw / name)
    shutil.rmtree(downloads)
    raw.rename(tools)
    # kmod is one program of many names; this one indexes the modules.
    subprocess.run(
        ["depmod", "-b", str(tools / "usr"), _version(tools)],
        executable=tools / "usr/bin/kmod",
        check=True,
        capture_output=True,
    )
    (PLACE / "complete").touch()
    return tools


def run(command: Sequence[str], timeout_s: float) -> int:
    """Run a command in the machine, in the root of this tree; what it prints goes to our output.

    Args:
        command: program and arguments.
        timeout_s: seconds from the start of the machine to its end.

    Returns:
        The exit code of the command; 124 where the time was over.

    Raises:
        MissingError: this machine lacks something, or the other one did not come up.
    """
    tools = unpacked()
    version = _version(tools)
    with tempfile.TemporaryDirectory(prefix="plimsoll-vm-") as name:
        place = Path(name)
        outside = place / "outside"
        outside.mkdir()
        (outside / "command").write_text(
            f"cd {shlex.quote(str(ROOT))}\nexport PATH={shlex.quote(_search_path())}\n"
            f"export PYTHONPATH={ROOT / 'python'}\n"
            f"exec {shlex.join(command)}\n"
        )
        initrd = _initrd(place, tools, version)
        drives = []
        for number in range(DISKS):
            disk = place / f"disk{number}"
            disk.touch()
            os.truncate(disk, DISK_MIB << 20)
            drives += ["-drive", f"if=virtio,format=raw,cache=unsafe,file={disk}"]
        # Emulated: under a hypervisor that offers /dev/kvm, Debian's kernel may hang at its start.
        machine = os.environ.get("PLIMSOLL_VM_ACCEL", "tcg")
        qemu = [
            *(
                "qemu-system-x86_64",
                "-machine",
                f"q35,accel={machine}",
                "-cpu",
                "max,arch-capabilities=off",
            ),
            *("-smp", "2", "-m", str(MEMORY_MIB), "-display", "none", "-nodefaults", "-no-reboot"),
            *("-net", "none", "-kernel", str(tools / f"boot/vmlinuz-{version}")),
            *("-initrd", str(initrd), "-append", "console=ttyS0 quiet panic=-1"),
            *("-serial", f"file:{place / 'kernel'}", "-serial", f"file:{place / 'output'}"),
            *_shared("host", "/", ",readonly=on"),
            *_shared("tools", str(tools), ",readonly=on"),
            *_shared("outside", str(outside), ""),
            *drives,
        ]
        _followed(qemu, place / "output", timeout_s)
        code = outside / "exit-code"
        if code.exists():
            return int(code.read_text())
        told = (place / "kernel").read_text(errors="replace")[-3000:]
        if (outside / "up").exists():
            print(f"the command did not end within {timeout_s:g} s; the kernel wrote:\n{told}")
            return 124
        raise MissingError(f"the virtual machine did not come up; its kernel wrote:\n{told}")


def _followed(qemu: Sequence[str], output: Path, timeout_s: float) -> None:
    """Run qemu to its end, or to the end of the time, and print what the command writes."""
    output.touch()
    until = time.monotonic() + timeout_s
    process = subprocess.Popen(qemu, stdin=subprocess.DEVNULL)
    try:
        with output.open("rb") as written:
            ended = False
            while True:
                sys.stdout.buffer.write(written.read().replace(b"\r\n", b"\n"))
                sys.stdout.flush()
                if ended or time.monotonic() > until:
                    return
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
                    ended = True
    finally:
        process.kill()
        process.wait()


def _shared(tag: str, path: str, more: str) -> list[str]:
    """A folder of this machine that the other one mounts by its tag."""
    return [
        "-fsdev",
        f"local,id={tag},path={path},security_model=none,multidevs=remap{more}",
        "-device",
        f"virtio-9p-pci,fsdev={tag},mount_tag={tag}",
    ]


def _initrd(place: Path, tools: Path, version: str) -> Path:
    """The first files of the machine: busybox, the modules for its root, and a script."""
    top = place / "initrd.d"
    (top / "bin").mkdir(parents=True)
    shutil.copy(str(shutil.which("busybox")), top / "bin/busybox")
    guest = Path(__file__).parent / "guest.sh"
    init = top / "init"
    init.write_text(_INIT.format(modules=" ".join(MODULES), guest=guest))
    init.chmod(0o755)
    modules = tools / "usr/lib/modules" / version
    own = top / "lib/modules" / version
    wanted = _with_dependences(modules)
    for path in wanted:
        (own / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(modules / path, own / path)
    for index in modules.glob("modules.*"):
        shutil.copy(index, own / index.name)
    names = "\n".join(str(path.relative_to(top)) for path in sorted(top.rglob("*")))
    initrd = place / "initrd"
    cpio = [str(shutil.which("busybox")), "cpio", "-o", "-H", "newc"]
    with initrd.open("wb") as packed:
        subprocess.run(
            cpio, cwd=top, input=names.encode(), stdout=packed, stderr=subprocess.PIPE, check=True
        )
    return initrd


def _with_dependences(modules: Path) -> set[str]:
    needs = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, others = line.partition(":")
        needs[Path(path).name.removesuffix(".ko").replace("-", "_")] = (path, others.split())
    found = set[str]()
    for name in MODULES:
        path, others = needs[name]
        found |= {path, *others}
    return found


def _version(tools: Path) -> str:
    return next((tools / "usr/lib/modules").iterdir()).name


def _search_path() -> str:
    own = str(Path(sys.executable).parent)
    return f"{own}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"


def _output(*command: str | Path, cwd: Path | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        told = (done.stderr or done.stdout).strip()[-500:]
        raise MissingError(f"`{shlex.join(words[:3])}` failed: {told}")
    return done.stdout
