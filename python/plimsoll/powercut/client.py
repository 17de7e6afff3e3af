"""The machine under test: durable work below, and the witness told of each acknowledgement as soon
as it is known.

An acknowledgement leaves after the storage has said that the data is durable, never before. While
the witness is too far behind the work waits, so that no amount of evidence is ever only under way;
and when the witness is gone the work ends.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.documents.powercut import RunDescription
from plimsoll.powercut.witness import (
    GREETING,
    TICK,
    TICK_S,
    WitnessError,
    address_of,
    reason_of,
    written,
)

if TYPE_CHECKING:
    from plimsoll import _native

#: A witness that says nothing for so long is gone.
PATIENCE_S = 30.0
#: Acknowledgements are waited for this long at once.
LOOK_S = 0.2
#: Storage that makes nothing durable for so long is spoken of.
STALL_S = 30.0
#: How long storage may take to let go of the work when it is to end.
LEAVE_S, LEAVE_LOOK_S = 30.0, 0.05
LETTERS = {"commit": "c", "mark": "m"}


@dataclass
class PowercutProgress:
    """How far the work is.

    Attributes:
        commits: acknowledged.
        marks: acknowledged.
        confirmed: how many of both lie on the witness's disk.
    """

    commits: int = 0
    marks: int = 0
    confirmed: int = 0

    def add(self, lines: list[tuple[str, int, int, int, int]]) -> None:
        """Count acknowledgements."""
        commits = sum(line[0] == "commit" for line in lines)
        self.commits += commits
        self.marks += len(lines) - commits


class Link:
    """The connection to the witness."""

    def __init__(
        self, address: str, description: RunDescription, patience_s: float = PATIENCE_S
    ) -> None:
        """Connect and introduce the run.

        Raises:
            WitnessError: nobody is there, or somebody else.
        """
        from plimsoll import _native

        host, port = address_of(address, "--witness")
        self._name = f"{host}:{port}"
        greeting = GREETING + json.dumps(description) + "\n"
        try:
            self._native = _native.WitnessLink(written(host, port), greeting, patience_s)
        except TimeoutError as error:
            raise WitnessError(
                f"--witness: {self._name} does not answer; is it a witness, does it hear another "
                f"machine, does this one reach it?"
            ) from error
        except ConnectionError as error:
            raise WitnessError(
                f"--witness: {reason_of(error)}; start `plimsoll witness` there, and see that this "
                f"machine reaches it"
            ) from error
        except ValueError as error:
            answer = str(error)[:80]
            raise WitnessError(
                f"--witness: {self._name} answered {answer!r}; is it a witness, and a free one?"
            ) from error
        self.is_here = self._native.is_local

    @property
    def confirmed(self) -> int:
        """How many acknowledgements lie on the witness's disk."""
        return self._native.confirmed

    def tell(self, lines: list[tuple[str, int, int, int, int]]) -> None:
        """Send acknowledgements; an empty list says that the machine still lives.

        Raises:
            WitnessError: the witness is gone.
        """
        said = [
            f"{LETTERS[kind]} {lane} {sequence} {number} {started}"
            for kind, lane, sequence, number, started in lines
        ]
        self._native.tell("\n".join(said or [TICK]) + "\n")
        if (lost := self._native.lost) is not None:
            raise WitnessError(f"the witness {self._name} is gone: {reason_of(lost)}")

    def end(self) -> None:
        """Leave of our own will."""
        self._native.end()


def carry_on(
    native: _native.Powercut,
    link: Link,
    show: Callable[[PowercutProgress], None],
    warn: Callable[[str], None],
) -> PowercutProgress:
    """Tell the witness of everything until the work is over.

    Raises:
        WitnessError: the witness is gone; the work was asked to stop.
        KeyboardInterrupt: the user wants to stop; the work was asked to.
    """
    progress = PowercutProgress()
    said_at = shown_at = heard_at = time.monotonic()
    has_warned = False
    try:
        while (lines := native.next_acknowledged(LOOK_S)) is not None:
            now = time.monotonic()
            if lines or now - said_at >= TICK_S:
                link.tell(lines)
                said_at = now
            if lines:
                heard_at, has_warned = now, False
            elif now - heard_at >= STALL_S and not has_warned:
                has_warned = True
                warn(f"nothing has become durable for {STALL_S:.0f} s; the storage does not answer")
            progress.add(lines)
            progress.confirmed = link.confirmed
            native.confirm(link.confirmed)
            if now - shown_at >= 1:
                shown_at = now
                show(progress)
    except (WitnessError, KeyboardInterrupt):
        native.stop()
        raise
    return progress


def leave(native: _native.Powercut) -> bool:
    """Wait for work that was asked to stop; false when the storage does not let go of it."""
    native.stop()
    deadline = time.monotonic() + LEAVE_S
    while not native.is_over() and time.monotonic() < deadline:
        time.sleep(LEAVE_LOOK_S)
    return native.is_over()
