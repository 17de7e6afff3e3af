"""The witness: a listener that writes down, on stable storage, what another machine says it has made durable.

What is said, line by line in ASCII. The machine under test: `plimsoll-witness 1 {...}` with the description of its run, then `c` or `m`
(commit, mark) with lane, sequence, number and acknowledgements at its beginning, `tick` when there is nothing to say, and `end` before it
leaves of its own will. The witness: `ready` or `no` with a reason, then how many lines of this link lie on its disk.

Whoever reaches the port can write to the log and nowhere else: lines that are none of these end the link, a log has a size it does not
outgrow, and one link is heard at a time. It listens on the loopback unless told otherwise; nothing is encrypted or proven.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plimsoll.errors import PowercutError
from plimsoll.files.sanitize import parse_json
from plimsoll.live.metrics_server import AddressError, is_loopback, parse_address

PORT = 17613
DEFAULT_ADDRESS = f"127.0.0.1:{PORT}"
GREETING = "plimsoll-witness 1 "
READY, END, TICK = "ready", "end", "tick"
#: A longer first line is no description of ours.
GREETING_BYTES_MAX = 8192
#: A machine without power says nothing; after so long it is not waited for.
SILENCE_S = 15.0
#: How often the machine under test says something at least.
TICK_S = 1.0
LOG_BYTES_MAX = 16 << 30
#: First line of every log.
LOG_KIND = "plimsoll_witness_log"
_SAID = re.compile(rb"[cm] [0-9]{1,5} [0-9]{1,20} [0-9]{1,20} [0-9]{1,20}")
_RECEIVED_BYTES_MAX = 1 << 20

Say = Callable[[str], None]


class WitnessError(PowercutError):
    """A witness that cannot do its work, or a machine under test that cannot reach it; the message says why."""


def address_of(text: str, option: str) -> tuple[str, int]:
    """Host and port.

    Raises:
        WitnessError: it is none.

    >>> address_of("array-host:17613", "--witness")
    ('array-host', 17613)
    """
    try:
        return parse_address(text)
    except AddressError as error:
        raise WitnessError(f'{option}: "{text}" is no address; write HOST:PORT such as {DEFAULT_ADDRESS}') from error


class WitnessLog:
    """The log: opened for appending only, locked, and on stable storage before anybody is told so."""

    def __init__(self, path: Path, bytes_max: int = LOG_BYTES_MAX) -> None:
        """Open or begin a log.

        Raises:
            WitnessError: the file is something else, or another witness writes it.
        """
        self.path = path
        self._bytes_max = bytes_max
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise WitnessError(f"{path} is written by another witness; name another file") from error
        except OSError as error:
            raise WitnessError(f"{path}: {(error.strerror or str(error)).lower()}; name another file") from error
        self.size = os.fstat(self._descriptor).st_size
        if self.size == 0:
            self.note({"kind": LOG_KIND, "schema_version": 1})
            directory = os.open(path.absolute().parent, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)
        elif not is_witness_log(path):
            os.close(self._descriptor)
            raise WitnessError(f"{path} is no log of a witness; name another file, nothing is overwritten")
        elif os.pread(self._descriptor, 1, self.size - 1) != b"\n":
            # This machine lost its power once: half a line must not become a whole one.
            self.append(b" cut off\n")

    def append(self, lines: bytes) -> None:
        """Append whole lines; they are on stable storage when this returns.

        Raises:
            WitnessError: the log has reached its size, or its storage takes no more.
        """
        if self.size + len(lines) > self._bytes_max:
            raise WitnessError(f"{self.path} has reached {self._bytes_max >> 20} MiB; begin another log")
        written = 0
        try:
            while written < len(lines):
                count = os.write(self._descriptor, lines[written:])
                written, self.size = written + count, self.size + count
            os.fsync(self._descriptor)
        except OSError as error:
            raise WitnessError(f"{self.path}: {(error.strerror or str(error)).lower()}; begin another log") from error

    def note(self, event: dict[str, Any]) -> None:
        """Append a line of the witness's own."""
        self.append((json.dumps(event) + "\n").encode())

    def close(self) -> None:
        """Let others write it."""
        os.close(self._descriptor)


def is_witness_log(path: Path) -> bool:
    """Whether a file begins as a log does."""
    with path.open("rb") as file:
        first = file.readline(GREETING_BYTES_MAX)
    try:
        begun = parse_json(first.decode("utf-8", "replace"))
    except ValueError:
        return False
    return isinstance(begun, dict) and begun.get("kind") == LOG_KIND


class Listener:
    """Takes an address at its construction and hears one link after the other."""

    def __init__(self, address: str, log: WitnessLog, say: Say = lambda _: None, silence_s: float = SILENCE_S) -> None:
        """Take an address.

        Raises:
            WitnessError: it is none, or it is taken.
        """
        host, port = address_of(address, "--listen")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._log, self._say, self._silence_s = log, say, silence_s
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen(4)
        except OSError as error:
            self._socket.close()
            reason = (error.strerror or str(error)).lower()
            raise WitnessError(f"--listen: {host}:{port}: {reason}; name another HOST:PORT") from error
        self.place = f"{host}:{self._socket.getsockname()[1]}"
        self.is_private = is_loopback(host)

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()

    def hear_one(self) -> dict[str, Any]:
        """Wait for a link and write down what it says until it ends; returns how it ended."""
        link, peer = self._socket.accept()
        with link:
            link.settimeout(self._silence_s)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ending = _Heard(link, self._log, self._say, str(peer[0])).until_the_end()
        self._log.note(ending)
        return ending


class _Heard:
    """One link."""

    def __init__(self, link: socket.socket, log: WitnessLog, say: Say, peer: str) -> None:
        self._link, self._log, self._say, self._peer = link, log, say, peer
        self._rest = b""
        self._count = 0
        self._noted_at = 0.0

    def until_the_end(self) -> dict[str, Any]:
        why = self._hear()
        return {"event": "ended", "at": _now(), "peer": self._peer, "lines": self._count, "why": why}

    def _hear(self) -> str:
        try:
            greeting = self._lines(GREETING_BYTES_MAX)
            description = _description(greeting[0]) if greeting else None
            if description is None:
                self._answer("no: this is a witness of Plimsoll")
                return "it was no machine under test"
            self._log.note({"event": "begun", "at": _now(), "peer": self._peer, "run": description})
            self._answer(READY)
            # What a stranger sends may hold more than a terminal should be shown.
            self._say(f"hearing {self._peer}: run {description['run']!a} on {description['path']!a}")
            said = greeting[1:]
            while True:
                ended = self._write_down(said)
                if ended is not None:
                    return ended
                said = self._lines(_RECEIVED_BYTES_MAX)
        except TimeoutError:
            return "silent"
        except (ConnectionError, EOFError):
            return "closed"
        except WitnessError as error:
            return str(error)
        except OSError as error:
            return f"the log or the link failed: {error}"

    def _lines(self, rest_max: int) -> list[bytes]:
        """The next whole lines, at least one.

        Raises:
            EOFError: the peer has closed.
            WitnessError: a line without end.
        """
        while True:
            received = self._link.recv(_RECEIVED_BYTES_MAX)
            if not received:
                raise EOFError
            *lines, self._rest = (self._rest + received).split(b"\n")
            if lines:
                return lines
            if len(self._rest) > rest_max:
                raise WitnessError("a line without end was sent")

    def _write_down(self, said: list[bytes]) -> str | None:
        """Append acknowledgements and say so; returns how the link ended if it did."""
        if not said:
            return None
        kept = [line for line in said if line not in (TICK.encode(), END.encode())]
        wrong = next((line for line in kept if _SAID.fullmatch(line) is None), None)
        if wrong is not None:
            return "something else was said"
        if kept:
            now = time.monotonic()
            if now - self._noted_at >= 1:
                self._noted_at = now
                kept.insert(0, b"t %d" % int(time.time() * 1000))
                self._count -= 1
            self._log.append(b"\n".join(kept) + b"\n")
            self._count += len(kept)
        self._answer(str(self._count))
        return "stopped" if END.encode() in said else None

    def _answer(self, text: str) -> None:
        self._link.sendall((text + "\n").encode())


def _description(line: bytes) -> dict[str, Any] | None:
    """The run that a first line describes."""
    try:
        text = line.decode("ascii")
        is_ours = text.startswith(GREETING) and len(text) <= GREETING_BYTES_MAX
        value = parse_json(text.removeprefix(GREETING)) if is_ours else None
    except ValueError:
        return None
    if not isinstance(value, dict) or "work" not in value:
        return None
    return value if isinstance(value.get("run"), str) and isinstance(value.get("path"), str) else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
