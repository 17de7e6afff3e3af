"""The program in a process of its own that has imported its modules already.

Of a short command most of the processor time is the start of Python and the import of modules. A
server imports them once for each process that tests run in, and forks for each command: the
command has arguments, directory, environment and streams of its own, as a user's has. How the
program starts by itself is what tests hold that start it by `PLIMSOLL`.

    python -m tests.support.warm_program

reads a JSON line for each command and answers with a line: its exit code, or minus the signal that
ended it, or null if it took longer than it may.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

COLD = [sys.executable, "-m", "plimsoll.cli"]
#: What commands import when they need it, beside our own modules.
LIBRARIES = ("duckdb", "numpy", "jinja2")
#: Of a child in which not even the program could be started.
_NOT_STARTED = 70

_asking = threading.Lock()
_server: subprocess.Popen[str] | None = None


def run_warm(
    arguments: Sequence[str],
    cwd: Path,
    timeout: float = 300,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """The program with these arguments, without a terminal.

    Raises:
        subprocess.TimeoutExpired: it took longer than `timeout` seconds, and was killed.
    """
    if not _asking.acquire(blocking=False):
        # Another thread of this test has a command under way: it gets a process as usual.
        return subprocess.run(
            [*COLD, *arguments],
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
    try:
        return _ask(list(arguments), cwd, timeout, environment)
    finally:
        _asking.release()


def _ask(
    arguments: list[str], cwd: Path, timeout: float, environment: dict[str, str] | None
) -> subprocess.CompletedProcess[str]:
    server = _running_server()
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        own = f"/proc/{os.getpid()}/fd"
        request = {
            "arguments": arguments,
            "cwd": str(cwd),
            "timeout_s": timeout,
            "environment": dict(os.environ) if environment is None else environment,
            "output": f"{own}/{output.fileno()}",
            "errors": f"{own}/{errors.fileno()}",
        }
        print(json.dumps(request), file=server.stdin, flush=True)
        code = json.loads(server.stdout.readline())
        said = []
        for file in (output, errors):
            file.seek(0)
            said.append(file.read().decode())
    command = [*COLD, *arguments]
    if code is None:
        raise subprocess.TimeoutExpired(command, timeout, *said)
    return subprocess.CompletedProcess(command, code, *said)


def _running_server() -> subprocess.Popen[str]:
    global _server
    if _server is None or _server.poll() is not None:
        _server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm_program"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(_server.kill)
    return _server


def _import_everything() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    package = importlib.import_module("plimsoll")
    for module in pkgutil.walk_packages(package.__path__, "plimsoll."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _serve() -> None:
    for line in sys.stdin:
        print(json.dumps(_carried_out(json.loads(line))), flush=True)


def _carried_out(request: dict[str, Any]) -> int | None:
    child = os.fork()
    if child == 0:
        _become(request)
    ended = os.pidfd_open(child)
    try:
        is_over = bool(select.select([ended], [], [], request["timeout_s"])[0])
        if not is_over:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(ended)
    return os.waitstatus_to_exitcode(status) if is_over else None


def _become(request: dict[str, Any]) -> NoReturn:
    """What a program finds that was started: arguments, directory, environment and streams."""
    code = _NOT_STARTED
    try:
        os.environ.clear()
        os.environ.update(request["environment"])
        streams = (
            (os.devnull, os.O_RDONLY),
            (request["output"], os.O_WRONLY),
            (request["errors"], os.O_WRONLY),
        )
        for descriptor, (path, flags) in enumerate(streams):
            opened = os.open(path, flags)
            os.dup2(opened, descriptor)
            os.close(opened)
        os.chdir(request["cwd"])
        sys.argv = ["plimsoll", *request["arguments"]]
        importlib.import_module("plimsoll.cli").main()
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _import_everything()
    _serve()
