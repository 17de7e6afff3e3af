"""Durable work on the machine that loses its power, reported to a witness on another, from its
directory to its end.

Nothing here comes back when the power is cut; what the difference means is said by the audit, when
the power is back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plimsoll.documents.powercut import RunDescription, WorkOutcome
from plimsoll.errors import CorruptionError, DiskError, EngineError, PowercutError, of_the_engine
from plimsoll.files.paths import StrPath
from plimsoll.live.listener import Listener
from plimsoll.powercut import workspace
from plimsoll.powercut.client import Link, PowercutProgress, carry_on, leave
from plimsoll.powercut.witness import WitnessError

_IF_CUT = "If its power was cut: bring it back, mount it, and `plimsoll audit --cut-under-load`"


class StorageFailedError(PowercutError):
    """The storage failed, or does not answer, while the work went on."""


class WitnessLostError(WitnessError):
    """The witness went away while the work went on; the work was stopped."""


@dataclass(frozen=True)
class WorkEnded:
    """Work that ended without a cut.

    Attributes:
        outcome: what was done.
        place: the directory it worked in.
        interrupted: whether somebody stopped it.
    """

    outcome: WorkOutcome
    place: Path
    interrupted: bool


def work_until_cut(
    wanted: workspace.PowercutWanted,
    witness: str,
    *,
    listener: Listener | None = None,
    show: Callable[[PowercutProgress], None] = lambda _: None,
) -> WorkEnded:
    """Commit durably and tell a witness of every commit, until the power is cut, the time is over
    or Ctrl-C.

    Args:
        wanted: where, how much and how long.
        witness: HOST:PORT where `plimsoll witness` listens.
        listener: told what goes on, and warned.
        show: told how far it is.

    Raises:
        PlaceError: the place is not fit, or somebody's.
        WitnessError: the witness cannot be reached; a WitnessLostError when that happens later.
        ConfigError: what was wanted is wrong.
        StorageFailedError: the storage failed.
    """
    hears = listener or Listener()
    for warning in workspace.inspect(wanted):
        hears.warning(warning)
    work = workspace.work_of(wanted)
    with workspace.made(Path(work["directory"])):
        description = workspace.describe_run(wanted, work)
        link = Link(witness, description)
        return _work(link, wanted, description, hears, show)


def _work(
    link: Link,
    wanted: workspace.PowercutWanted,
    description: RunDescription,
    listener: Listener,
    show: Callable[[PowercutProgress], None],
) -> WorkEnded:
    """Take the directory and work in it."""
    from plimsoll import _native

    place, work = workspace.take(wanted, description), description["work"]
    if link.is_here:
        listener.warning(
            "the witness is on this machine; its log must lie on storage that keeps its power, or "
            "it proves nothing"
        )
    with of_the_engine():
        native = _native.Powercut(json.dumps(work))
    interrupted = False
    try:
        listener.say(
            f"run {workspace.run_name(work)}: about {wanted.size_bytes >> 20} MiB in {place}; cut "
            f"the power whenever you like, or stop with Ctrl-C"
        )
        carry_on(native, link, show, listener.warning)
    except WitnessError as error:
        _end(native, place, link)
        raise WitnessLostError(f"{error}; the work was stopped") from error
    except KeyboardInterrupt:
        interrupted = True
    return WorkEnded(_end(native, place, link), place, interrupted)


def _end(native: Any, place: Path, link: Link) -> WorkOutcome:
    """Let the work close its files, and note that it did.

    Raises:
        StorageFailedError: it cannot.
    """
    if not leave(native):
        raise StorageFailedError(
            f"the storage does not answer; what was under way is left as it is. {_IF_CUT}"
        )
    try:
        with of_the_engine():
            outcome: WorkOutcome = json.loads(native.outcome())
    except (DiskError, CorruptionError) as error:
        raise StorageFailedError(f"the storage failed: {error}. {_IF_CUT}") from error
    except EngineError as error:
        if "disk" in str(error):
            raise StorageFailedError(str(error)) from error
        raise EngineError(str(error)) from error
    link.end()
    try:
        workspace.close(place)
    except OSError as error:
        raise StorageFailedError(f"the storage failed: {error}. {_IF_CUT}") from error
    return outcome


def remember(
    log: StrPath, address: str, *, once: bool = False, listener: Listener | None = None
) -> None:
    """Listen for machines under test and keep on stable storage what they say is durable, until
    Ctrl-C.

    Args:
        log: appended to, never overwritten.
        address: HOST:PORT where to listen.
        once: end with the first machine that was heard.
        listener: told who was heard.

    Raises:
        WitnessError: the log cannot be written, or the address cannot be had.
    """
    log = Path(log)
    from plimsoll.powercut.witness import Listener as Ear
    from plimsoll.powercut.witness import WitnessLog

    hears = listener or Listener()
    opened = WitnessLog(log)
    ear = Ear(address, opened, hears.say)
    open_to = "" if ear.is_private else ", open to everybody who reaches this address"
    try:
        hears.say(f"witness: listening at {ear.place}{open_to}; writing {log}")
        while True:
            ending = ear.hear_one()
            hears.say(
                f"{ending['peer']}: {ending['lines']:,} acknowledgements, then {ending['why']}"
            )
            if once:
                break
    finally:
        ear.close()
        opened.close()
