"""One command of a staged event.

An argument list without a shell, in a process group of its own, for a limited time.

The group is killed when the time is over, and when the command has ended: a server that is to stay
has to take a session of its own, as daemons do. The command sees PATH and the variables that it is
given, and nothing else.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plimsoll.errors.system_errors import system_reason

OUTPUT_BYTES_MAX = 64 << 10
_LOOK_EVERY_S = 0.02
#: How long a command that was killed is waited for. One of another user may not be killed.
KILLED_WITHIN_S = 5.0


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, output, and what went wrong.

    The code is negative for a signal, also for one that did not end it, and None if it never ran.
    `lives_on` is the number of a process that could not be killed.
    """

    exit_code: int | None
    output: str
    error: str | None
    lives_on: int | None = None


def shown(argv: Sequence[str]) -> str:
    """A command as it is named in sentences.

    >>> shown(["ssh", "array1", "reset a"])
    "ssh array1 'reset a'"
    """
    import shlex

    return shlex.join(argv)


def why_not_started(argv: Sequence[str]) -> str | None:
    """Why a command that is not due yet could not be started; None where its program is there."""
    program = Path(argv[0])
    if len(program.parts) == 1 and "/" not in argv[0]:
        return None if shutil.which(argv[0]) else f"{argv[0]} is not on the PATH; install it"
    if not program.is_absolute():
        return f"{argv[0]} is looked for in the run folder, which is empty; write its whole path"
    if program.is_file() and os.access(program, os.X_OK):
        return None
    return f"{argv[0]} is {'not executable' if program.exists() else 'not there'}"


def environment_of(own: Mapping[str, str]) -> dict[str, str]:
    """What a command sees: PATH, and what it is given."""
    return {key: os.environ[key] for key in ("PATH",) if key in os.environ} | dict(own)


def never() -> bool:
    """Nothing cuts a command short."""
    return False


def untold(_process_id: int) -> None:
    """Nobody is told that a command was started."""


def carry_out(
    argv: Sequence[str],
    timeout_s: float,
    own: Mapping[str, str],
    cwd: Path,
    is_cut: Callable[[], bool] = never,
    on_start: Callable[[int], None] = untold,
) -> Ended:
    """Run a command to its end, at most `timeout_s` seconds; nothing of its process group is left.

    It is killed as well where Ctrl-C or a signal ends the wait for it.

    Args:
        argv: program and arguments.
        timeout_s: seconds until its process group is killed.
        own: variables beside PATH.
        cwd: where it runs.
        is_cut: whether it is to be killed before.
        on_start: told the number of its process, which is that of its process group.
    """
    begun_s = time.monotonic()
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment_of(own),
            cwd=cwd,
            start_new_session=True,
        )
    except OSError as error:
        return Ended(None, "", f"`{shown(argv)}` cannot be started: {system_reason(error)}")
    output = bytearray()
    try:
        on_start(process.pid)
        over, code = _followed(process, timeout_s, output, is_cut)
    except BaseException:
        # Whoever stops us would leave it running.
        _killed(process)
        raise
    text = output.decode("utf-8", "replace")
    late = f"`{shown(argv)}` did not end within {timeout_s:g} s"
    if (lasted_s := time.monotonic() - begun_s) < timeout_s:
        late = f"`{shown(argv)}` had not ended after {lasted_s:.1f} s"
    if code is None:
        problem = f"{late} and could not be killed: end process {process.pid} by hand"
        return Ended(-signal.SIGKILL, text, problem, process.pid)
    if not over:
        return Ended(code, text, f"{late} and was killed")
    return Ended(code, text, None if code == 0 else f"`{shown(argv)}` ended with exit code {code}")


def _followed(
    process: subprocess.Popen[bytes],
    timeout_s: float,
    output: bytearray,
    is_cut: Callable[[], bool],
) -> tuple[bool, int | None]:
    """Take what a command writes; whether it ended by itself, and its exit code."""
    assert process.stdout is not None
    until = time.monotonic() + timeout_s

    def is_late() -> bool:
        return time.monotonic() >= until or is_cut()

    with process.stdout as pipe, selectors.DefaultSelector() as ready:
        os.set_blocking(pipe.fileno(), False)
        ready.register(pipe, selectors.EVENT_READ)
        while not (over := _has_ended(process.pid)) and not is_late():
            if not ready.select(_LOOK_EVERY_S):
                continue
            if not _take(pipe.fileno(), output):
                ready.unregister(pipe)
                _wait_until(process.pid, is_late)
        code = _killed(process)
        _take(pipe.fileno(), output)
    return over, code


def _killed(process: subprocess.Popen[bytes]) -> int | None:
    """Kill the process group of a command; answers its exit code, None where it lives on."""
    # The leader is not reaped yet, so its number cannot have gone to another group.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        return process.wait(KILLED_WITHIN_S)
    except subprocess.TimeoutExpired:
        threading.Thread(target=process.wait, daemon=True).start()
        return None


def _has_ended(process_id: int) -> bool:
    return os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _wait_until(process_id: int, is_late: Callable[[], bool]) -> None:
    while not _has_ended(process_id) and not is_late():
        time.sleep(_LOOK_EVERY_S)


def _take(descriptor: int, output: bytearray) -> bool:
    """Read what is there and keep the first 64 KiB; False when nobody writes any more."""
    while True:
        try:
            block = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return True
        if not block:
            return False
        output += block[: max(OUTPUT_BYTES_MAX - len(output), 0)]
        if len(block) < 1 << 16:
            return True
