"""Database and mail servers of Debian's packages for tests.

Unprivileged, on the loopback, in a folder of their own, stopped by their pid.

A server is a subclass that says how it is prepared, started and asked whether it is ready. What all
have in common is here: they refuse to run as root, so root becomes `nobody`; their folder lies
below the temporary directory, because others may not enter those of pytest; they die with the
process that started them. `kill` is what a crash is, `stop` what an administrator does; `start`
starts the same server again on the same port.

A server that is not installed is skipped with the line that installs it.
`PLIMSOLL_REQUIRE_SERVERS=postgresql,mariadb` makes that a failure: `.ci/run` sets it for what it
installs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Self, TypeVar

REQUIRE_VARIABLE = "PLIMSOLL_REQUIRE_SERVERS"
HOST = "127.0.0.1"
#: Its number is the same everywhere.
NOBODY = 65534
READY_PATIENCE_S, STOP_PATIENCE_S = 60.0, 30.0

Kind = TypeVar("Kind", bound="Server")


class NotInstalledError(Exception):
    """A server that this machine does not have, and how it comes to have it."""


class Server:
    """See the text of this file."""

    KIND: ClassVar[str]
    #: What Debian calls it.
    PACKAGES: ClassVar[str]
    #: What ends it without a chance to write anything down, and what asks it to end.
    STOP_SIGNAL: ClassVar[signal.Signals] = signal.SIGTERM
    #: What it says where children of a killed one are still there; nothing if it never does.
    STILL_THERE: ClassVar[bytes] = b""

    def __init__(self, folder: Path) -> None:
        """`folder` is empty and belongs to whom the server runs as."""
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @classmethod
    def program(cls) -> Path | None:
        """The server, if it is installed."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Make what the server works on, before its first start."""
        raise NotImplementedError

    def command(self) -> Sequence[str | Path]:
        """What starts the server in the foreground."""
        raise NotImplementedError

    def is_ready(self) -> bool:
        """Whether it answers."""
        raise NotImplementedError

    def populate(self) -> None:
        """Make users and databases, after the first start."""

    def facts(self) -> dict[str, str | int]:
        """What a test in another language needs to know."""
        return {"kind": self.KIND, "host": HOST, "port": self.port, "folder": str(self.folder)}

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def start(self) -> Self:
        """Start it and wait until it answers.

        It ends with the thread that calls this, so call it from one that stays.
        """
        deadline = time.monotonic() + READY_PATIENCE_S
        process, said = self._begin()
        while not self.is_ready():
            ended = process.poll() is not None
            # The children of a killed one go on for a moment, and nothing starts beside them.
            if ended and self.STILL_THERE and self.STILL_THERE in self.log.read_bytes()[said:]:
                time.sleep(0.2)
                process, said = self._begin()
            elif ended or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(
                    f"{self.KIND} does not start:\n{self.log.read_text(errors='replace')[-4000:]}"
                )
            time.sleep(0.05)
        return self

    def _begin(self) -> tuple[subprocess.Popen[bytes], int]:
        """Its new process, and how much its log said before."""
        with self.log.open("ab") as log:
            said = log.tell()
            self.process = subprocess.Popen(
                unprivileged(*self.command(), dies_with_us=True),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self.process, said

    def kill(self) -> None:
        """End it as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end and wait for it; a server that does not is killed."""
        self._end(self.STOP_SIGNAL)

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def run(self, *command: str | Path, stdin: str | None = None) -> str:
        """Run a program of the server's package as whom the server runs as; its output."""
        done = subprocess.run(
            unprivileged(*command),
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{command[0]} failed: {done.stdout}{done.stderr}"
        return done.stdout


def unprivileged(*command: str | Path, dies_with_us: bool = False) -> list[str]:
    """A command that does not run as root, whoever starts it."""
    rights = (
        ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        if os.geteuid() == 0
        else []
    )
    death = ["--pdeathsig", "QUIT"] if dies_with_us else []
    words = [str(word) for word in command]
    return ["setpriv", *rights, *death, "--", *words] if rights or death else words


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


@contextmanager
def own_folder(kind: str, place: Path | None = None) -> Iterator[Path]:
    """An empty folder that belongs to whom a server runs as, short enough for a socket in it.

    Removed afterwards.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"plimsoll-{kind}-", dir=place))
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    try:
        yield folder
    finally:
        # Servers that were killed leave children that end on their own, a moment later.
        for _ in range(50):
            with suppress(OSError):
                shutil.rmtree(folder)
            if not folder.exists():
                break
            time.sleep(0.1)


def check_installed(server: type[Server]) -> None:
    """Raises `NotInstalledError` for a server that is not there."""
    if server.program() is None:
        raise NotInstalledError(f"{server.KIND} is not installed: apt install {server.PACKAGES}")


def is_required(kind: str) -> bool:
    """Whether a server that is not there is a failure."""
    return kind in os.environ.get(REQUIRE_VARIABLE, "").split(",")


@contextmanager
def running(server: type[Kind], place: Path | None = None) -> Iterator[Kind]:
    """A server of its own that is ready; `place` is a directory in the place of the temporary one.

    Raises:
        NotInstalledError: it is not there.
    """
    check_installed(server)
    with own_folder(server.KIND, place) as folder:
        made = server(folder)
        made.prepare()
        try:
            made.start()
            made.populate()
            yield made
        finally:
            made.stop()
