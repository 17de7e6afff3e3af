"""The witness: a listener that writes down, on stable storage, what another machine says it has
made durable.

What is said on the network, and the rules of it, stand in `plimsoll-powercut::wire`; here the log
is kept. Each step of a conversation that writes comes here, and is answered when it lies on the
disk.

Whoever reaches the port can write to the log and nowhere else: lines that are none of these end the
link, a log has a size it does not outgrow, and one link is heard at a time. It listens on the
loopback unless told otherwise; nothing is encrypted or proven.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from plimsoll.documents.powercut import LinkEnded, RunDescription
from plimsoll.errors import PowercutError
from plimsoll.errors.system_errors import system_reason
from plimsoll.files.paths import sync_directory
from plimsoll.files.sanitize import parse_json
from plimsoll.live.metrics_server import AddressError, is_loopback, parse_address

PORT = 17613
WITNESS_ADDRESS = f"127.0.0.1:{PORT}"
GREETING = "plimsoll-witness 1 "
TICK = "tick"
#: A longer first line is no description of ours.
GREETING_BYTES_MAX = 8192
#: A machine without power says nothing; after so long it is not waited for.
SILENCE_S = 15.0
#: How often the machine under test says something at least.
TICK_S = 1.0
LOG_BYTES_MAX = 16 << 30
#: First line of every log.
LOG_KIND = "plimsoll_witness_log"

Say = Callable[[str], None]


class WitnessError(PowercutError):
    """A witness that cannot do its work, or a machine under test that cannot reach it.

    The message says why.
    """


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
        raise WitnessError(
            f'{option}: "{text}" is no address; write HOST:PORT such as {WITNESS_ADDRESS}'
        ) from error


class WitnessLog:
    """The log: opened for appending only, locked, and on stable storage before anybody is told
    so.
    """

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
            raise WitnessError(
                f"{path} is written by another witness; name another file"
            ) from error
        except OSError as error:
            raise WitnessError(f"{path}: {system_reason(error)}; name another file") from error
        self.size = os.fstat(self._descriptor).st_size
        if self.size == 0:
            self.note({"kind": LOG_KIND, "schema_version": 1})
            sync_directory(path.absolute().parent)
        elif not is_witness_log(path):
            os.close(self._descriptor)
            raise WitnessError(
                f"{path} is no log of a witness; name another file, nothing is overwritten"
            )
        elif os.pread(self._descriptor, 1, self.size - 1) != b"\n":
            # This machine lost its power once: half a line must not become a whole one.
            self.append(b" cut off\n")

    def append(self, lines: bytes) -> None:
        """Append whole lines; they are on stable storage when this returns.

        Raises:
            WitnessError: the log has reached its size, or its storage takes no more.
        """
        if self.size + len(lines) > self._bytes_max:
            raise WitnessError(
                f"{self.path} has reached {self._bytes_max >> 20} MiB; begin another log"
            )
        written = 0
        try:
            while written < len(lines):
                count = os.write(self._descriptor, lines[written:])
                written, self.size = written + count, self.size + count
            os.fsync(self._descriptor)
        except OSError as error:
            raise WitnessError(f"{self.path}: {system_reason(error)}; begin another log") from error

    def note(self, event: Mapping[str, object]) -> None:
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

    def __init__(
        self, address: str, log: WitnessLog, say: Say = lambda _: None, silence_s: float = SILENCE_S
    ) -> None:
        """Take an address.

        Raises:
            WitnessError: it is none, or it is taken.
        """
        from plimsoll import _native

        host, port = address_of(address, "--listen")
        self._log, self._say = log, say
        try:
            self._native = _native.Witness(written(host, port), silence_s)
        except OSError as error:
            raise WitnessError(f"--listen: {reason_of(error)}; name another HOST:PORT") from error
        self.place = f"{host}:{self._native.place.rpartition(':')[2]}"
        self.is_private = is_loopback(host)

    def close(self) -> None:
        """Listen no more."""
        self._native.close()

    def hear_one(self) -> LinkEnded:
        """Wait for a link and write down what it says until it ends; returns how it ended."""
        self._native.hear()
        while True:
            kind, peer, said, lines = self._native.next_event()
            if kind == "ended":
                ending: LinkEnded = {
                    "event": "ended",
                    "at": _now(),
                    "peer": peer,
                    "lines": lines,
                    "why": said.decode(),
                }
                self._log.note(ending)
                return ending
            try:
                is_ours = self._begin(peer, said) if kind == "begin" else self._append(said)
            except WitnessError as error:
                self._native.logged(str(error), False)
            except OSError as error:
                self._native.logged(f"the log or the link failed: {error}", False)
            else:
                self._native.logged(None, is_ours)

    def _begin(self, peer: str, greeting: bytes) -> bool:
        """Note a run that begins; false when it describes none."""
        description = _description(greeting)
        if description is None:
            return False
        self._log.note({"event": "begun", "at": _now(), "peer": peer, "run": description})
        # What a stranger sends may hold more than a terminal should be shown.
        self._say(f"hearing {peer}: run {description['run']!a} on {description['path']!a}")
        return True

    def _append(self, lines: bytes) -> bool:
        self._log.append(lines)
        return True


def written(host: str, port: int) -> str:
    """An address as the network wants it: an IPv6 address in brackets.

    >>> written("::1", 17613)
    '[::1]:17613'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reason_of(error: Exception | str) -> str:
    """What went wrong, without the advice that the caller knows better."""
    return str(error).partition("; ")[0]


def _description(line: bytes) -> RunDescription | None:
    """The run that a first line describes."""
    try:
        text = line.decode("ascii")
        is_ours = text.startswith(GREETING) and len(text) <= GREETING_BYTES_MAX
        value = parse_json(text.removeprefix(GREETING)) if is_ours else None
    except ValueError:
        return None
    if not isinstance(value, dict) or "work" not in value:
        return None
    if not isinstance(value.get("run"), str) or not isinstance(value.get("path"), str):
        return None
    # The rest of it is looked at by the audit, once it is needed.
    return cast(RunDescription, value)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
