"""What a witness log says of one run: each acknowledgement in its order, and how it ended.

A log may hold several runs and end in the middle of a line, if the witness lost its power too. Nothing of it is trusted further than
its form: lines that are none are counted and left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from plimsoll.powercuts.witness import GREETING_BYTES_MAX, WitnessError, is_witness_log
from plimsoll.untrusted import parse_json

KINDS = {"c": "commit", "m": "mark"}
#: Acknowledgements of so long before the last one are told apart: what a cache can have held.
LAST_MS = 1000
#: What is longer was not written by a witness, and is read piece by piece.
LINE_CHARACTERS_MAX = 4 * GREETING_BYTES_MAX
#: What a witness writes fits into 64 bits.
_NUMBER = re.compile("[0-9]{1,20}")


class Line(NamedTuple):
    """One acknowledgement.

    Attributes:
        kind: "commit" or "mark".
        lane: whose.
        sequence: its number there.
        number: its number among all of the run.
        started: how many acknowledgements there were when it was begun.
    """

    kind: str
    lane: int
    sequence: int
    number: int
    started: int


@dataclass
class Statement:
    """What the witness knows of a run.

    Attributes:
        run: the description that the machine under test gave.
        lines: in the order of arrival.
        last_count: how many of them came within the last second.
        ended: how the link ended: "silent", "closed", "stopped" or a sentence; None if the log ends before.
        ended_at: when.
        unreadable_lines: lines that are none.
    """

    run: dict[str, Any]
    lines: list[Line] = field(default_factory=list)
    last_count: int = 0
    ended: str | None = None
    ended_at: str | None = None
    unreadable_lines: int = 0


def read_statement(path: Path, run: str | None) -> Statement:
    """Read a log.

    Args:
        path: the log.
        run: which run; the last one in the log if left out.

    Raises:
        WitnessError: it is no log, or knows nothing of the run.
    """
    try:
        if not is_witness_log(path):
            raise WitnessError(f"{path} is no log of a witness; name the file that `plimsoll witness` wrote")
        heard = _all(path)
    except OSError as error:
        raise WitnessError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    fitting = [statement for statement in heard if run is None or statement.run.get("run") == run]
    if not fitting:
        known = ", ".join(str(statement.run.get("run")) for statement in heard) or "nothing"
        raise WitnessError(f"{path} knows {known}, but not run {run}; name the log of that run's witness")
    return fitting[-1]


def _all(path: Path) -> list[Statement]:
    heard: list[Statement] = []
    times: list[tuple[int, int]] = []
    with path.open(encoding="ascii", errors="replace") as file:
        while text := file.readline(LINE_CHARACTERS_MAX):
            if text.startswith("{"):
                _note(heard, times, text)
            elif heard:
                _hear(heard[-1], times, text)
    if heard:
        heard[-1].last_count = _last_count(heard[-1], times)
    return heard


def _note(heard: list[Statement], times: list[tuple[int, int]], text: str) -> None:
    """A line of the witness's own."""
    try:
        note = parse_json(text)
    except ValueError:
        return
    if not isinstance(note, dict):
        return
    if note.get("event") == "begun" and isinstance(note.get("run"), dict):
        if heard:
            heard[-1].last_count = _last_count(heard[-1], times)
        times.clear()
        heard.append(Statement(note["run"]))
    elif note.get("event") == "ended" and heard and heard[-1].ended is None:
        heard[-1].ended, heard[-1].ended_at = note.get("why"), note.get("at")


def _hear(statement: Statement, times: list[tuple[int, int]], text: str) -> None:
    words = text.split()
    # A line that was being written when the witness itself lost power has no end.
    if not text.endswith("\n") or not words:
        statement.unreadable_lines += 1
    elif words[0] == "t" and len(words) == 2 and _NUMBER.fullmatch(words[1]):
        times.append((int(words[1]), len(statement.lines)))
    elif words[0] in KINDS and len(words) == 5 and all(_NUMBER.fullmatch(word) for word in words[1:]):
        lane, sequence, number, started = map(int, words[1:])
        statement.lines.append(Line(KINDS[words[0]], lane, sequence, number, started))
    else:
        statement.unreadable_lines += 1


def _last_count(statement: Statement, times: list[tuple[int, int]]) -> int:
    """Times are noted once a second at most, so this is a second or two."""
    if not times:
        return 0
    last_ms = times[-1][0]
    before = [count for at_ms, count in times if at_ms >= last_ms - LAST_MS]
    return len(statement.lines) - before[0]
