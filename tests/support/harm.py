"""Surroundings that do harm, as far as a test can make them.

Calls that are forbidden, clocks that go back, storage that hangs.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.places import PLIMSOLL, file_system, mounted, plimsoll

__all__ = ["PLIMSOLL", "file_system", "mounted", "plimsoll"]

#: The shortest run that measures anything.
SHORT = ["--databases", "1", "--size-mib", "64", "--minutes", "0.03", "--cache-mib", "4"]
ENDED = (0, 1, 3)

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO_EPERM = 0x7FFF0000, 0x00050001
_IO_URING_SETUP = 425
#: Nothing that waits for a frozen file system waits for longer.
_FROZEN_S_MAX = 150


class _Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def forbid_io_uring() -> None:
    """For a child between fork and exec.

    Io_uring answers "not permitted", as in most containers.
    """
    filters = b"".join(
        struct.pack("HBBI", *row)
        for row in (
            (_LOAD_WORD, 0, 0, 0),
            (_JUMP_IF_EQUAL, 0, 1, _IO_URING_SETUP),
            (_RETURN, 0, 0, _ERRNO_EPERM),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    held = ctypes.create_string_buffer(filters, len(filters))
    program = _Program(len(filters) // 8, ctypes.addressof(held))
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if library.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


_CLOCK = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>
/* The time of day goes back by an hour as soon as a file is there. */
int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, clock, time);
    const char *signal = getenv("CLOCK_STEPS_BACK_WITH");
    if (result == 0 && clock == CLOCK_REALTIME && signal && access(signal, F_OK) == 0) time->tv_sec -= 3600;
    return result;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""  # noqa: E501


def clock_that_steps_back(home: Path, when: Path) -> dict[str, str]:
    """The environment of a program whose clock goes back by an hour as soon as a file is there.

    Skips the test without a C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or platform.system() != "Linux":
        pytest.skip("a clock that steps back is made with a C compiler, and there is none")
    (home / "clock.c").write_text(_CLOCK)
    library = home / "clock.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", library, home / "clock.c"], check=True
    )
    return {**os.environ, "LD_PRELOAD": str(library), "CLOCK_STEPS_BACK_WITH": str(when)}


@contextmanager
def frozen(point: Path) -> Iterator[None]:
    """No write to a file system returns while this lasts.

    It thaws even if the test dies: nothing could remove it otherwise.
    """
    watchdog = subprocess.Popen(
        ["sh", "-c", 'sleep "$1"; fsfreeze --unfreeze "$2"', "sh", str(_FROZEN_S_MAX), point],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        subprocess.run(["fsfreeze", "--freeze", point], check=True, timeout=30)
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", point], check=False, timeout=30)
        os.killpg(watchdog.pid, signal.SIGKILL)
        watchdog.wait()


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something holds.

    Raises:
        AssertionError: it never did.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)


def wait_for(path: Path, words: str, seconds: float = 120) -> None:
    """Wait until a file of a run folder says something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if path.exists() and words in path.read_text(errors="replace"):
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} never said {words}")
