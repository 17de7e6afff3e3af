"""What a witness log says of one run: each acknowledgement in its order, and how it ended.

A log may hold several runs and end in the middle of a line, if the witness lost its power too.
Nothing of it is trusted further than its form: lines that are none are counted and left out. Days
of acknowledgements are read in the memory of a few: of each place of a ring only the newest is
kept, because that is all an audit looks for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, cast

from plimsoll.documents.powercut import WitnessNote
from plimsoll.errors.system_errors import system_reason
from plimsoll.files.sanitize import parse_json
from plimsoll.powercut.witness import GREETING_BYTES_MAX, WitnessError, is_witness_log

KINDS = {"c": "commit", "m": "mark"}
#: The key of the work that says how many places the ring of a kind has.
RINGS = {"commit": "rows", "mark": "slots"}
#: What is longer was not written by a witness, and is read piece by piece.
LINE_CHARACTERS_MAX = 4 * GREETING_BYTES_MAX
#: So many runs are named to who looked for another.
NAMES_MAX = 10
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
        rings: how many places the ring of each kind has.
        newest: the newest acknowledgement of each place, by kind, lane and place in the ring;
            earlier ones were overwritten.
        counts: acknowledgements by kind.
        last_number: the largest number.
        missing_count: numbers that were passed over: the log is not whole.
        last_count: how many of them came within the last second or two.
        ended: how the link ended: "silent", "closed", "stopped" or a sentence; None if the log ends
            before.
        ended_at: when.
        unreadable_lines: lines that are none.
    """

    run: Mapping[str, object]
    rings: dict[str, int]
    newest: dict[tuple[str, int, int], Line] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    last_number: int = 0
    missing_count: int = 0
    last_count: int = 0
    ended: str | None = None
    ended_at: str | None = None
    unreadable_lines: int = 0
    #: Acknowledgements before the last two notes of the time, which come once a second at most.
    _at_times: tuple[int, int] = (0, 0)

    def add(self, line: Line) -> None:
        """Take an acknowledgement in."""
        self.counts[line.kind] += 1
        self.missing_count += max(line.number - self.last_number - 1, 0)
        self.last_number = max(line.number, self.last_number)
        place = (line.kind, line.lane, line.sequence % self.rings[line.kind])
        if place not in self.newest or self.newest[place].sequence < line.sequence:
            self.newest[place] = line
        self.last_count = self.counts.total() - self._at_times[0]

    def note_time(self) -> None:
        """A second has passed for the witness."""
        self._at_times = (self._at_times[1], self.counts.total())


def read_statement(
    path: Path, fits: Callable[[Mapping[str, object]], bool], what: str
) -> Statement:
    """Read a log.

    Args:
        path: the log.
        fits: whether a run, by its description, is the one that is looked for. Of several the last
            one is taken that has said anything.
        what: how a message calls that run.

    Raises:
        WitnessError: it is no log, or knows nothing of the run.
    """
    try:
        if not is_witness_log(path):
            raise WitnessError(
                f"{path} is no log of a witness; name the file that `plimsoll witness` wrote"
            )
        found, known = _read(path, fits)
    except OSError as error:
        raise WitnessError(f"{path}: {system_reason(error)}") from error
    if not found:
        others = f"knows {', '.join(known)}, but not {what}" if known else "knows of no run"
        raise WitnessError(f"{path} {others}; name the log of that run's witness")
    return next((statement for statement in reversed(found) if statement.counts), found[-1])


def rings_of(work: object) -> dict[str, int]:
    """How many places the ring of each kind has, by the description of the work.

    One where it says nothing that can be.
    """
    said = {kind: work.get(key) if isinstance(work, dict) else None for kind, key in RINGS.items()}
    return {
        kind: count if isinstance(count, int) and count > 0 else 1 for kind, count in said.items()
    }


def _read(
    path: Path, fits: Callable[[Mapping[str, object]], bool]
) -> tuple[list[Statement], list[str]]:
    """The statements of the runs that fit, and the names of all."""
    found: list[Statement] = []
    known: list[str] = []
    current: Statement | None = None
    with path.open(encoding="ascii", errors="replace") as file:
        while text := file.readline(LINE_CHARACTERS_MAX):
            if not text.startswith("{"):
                if current is not None:
                    _hear(current, text)
                continue
            note = _note(text)
            if note.get("event") == "begun" and isinstance(run := note.get("run"), dict):
                known = [*known[1 - NAMES_MAX :], str(run.get("run"))]
                current = Statement(run, rings_of(run.get("work"))) if fits(run) else None
                found += [current] if current is not None else []
            elif note.get("event") == "ended" and current is not None and current.ended is None:
                current.ended, current.ended_at = note.get("why"), note.get("at")
    return found, known


def _note(text: str) -> WitnessNote:
    """A line of the witness's own."""
    try:
        note = parse_json(text)
    except ValueError:
        return {}
    return cast(WitnessNote, note) if isinstance(note, dict) else {}


def _hear(statement: Statement, text: str) -> None:
    words = text.split()
    # A line that was being written when the witness itself lost power has no end.
    if not text.endswith("\n") or not words:
        statement.unreadable_lines += 1
    elif words[0] == "t" and len(words) == 2 and _NUMBER.fullmatch(words[1]):
        statement.note_time()
    elif (
        words[0] in KINDS and len(words) == 5 and all(_NUMBER.fullmatch(word) for word in words[1:])
    ):
        lane, sequence, number, started = map(int, words[1:])
        statement.add(Line(KINDS[words[0]], lane, sequence, number, started))
    else:
        statement.unreadable_lines += 1
