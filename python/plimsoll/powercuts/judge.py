"""What the difference between a witness's log and what was found means.

Whatever is numbered N in the log was durable, by the storage's own word, before anything began that says it started after N
acknowledgements. So two questions are asked of everything acknowledged and not found. Is something there that began after it was
acknowledged? Then a later write was kept and an earlier, flushed one was not: the storage reorders across flushes. If nothing is, the end was cut off:
the storage said that it had flushed and had not.

A place in a ring that holds something later than was acknowledged has lost nothing: the later write was under way. A block whose
sectors are of different writes was torn. Storage that promises sectors of 4 KiB may not do that; other storage may, and it is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from plimsoll.powercuts.statement import Line, Statement

PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"
EXAMPLES_MAX = 10
MARK_BYTES = 4096

DROPS, REORDERS, TEARS = "drops_flushes", "reorders", "tears_4k"
UNRECOVERABLE, HALF, DAMAGED, UNREADABLE = "unrecoverable", "half_transactions", "damaged", "unreadable_marks"
LOST_FILES = "lost_files"

MEANINGS = {
    DROPS: "the storage says that it has flushed before it has: a cache that loses its content, or a layer that forgets the flush. "
    "What applications were told is safe is not. Switch the volatile cache off, give it power that lasts, or do not use this storage for data",
    REORDERS: "later writes are there and earlier ones, flushed before they began, are not: the order across a flush is not kept. "
    "Logs and journals rely on that order, so databases and file systems can be damaged beyond their repair",
    TEARS: "a block of 4 KiB was written in pieces, and the cut fell between them. Databases of 4 KiB pages and larger need page images "
    "or a double write on this storage",
    UNRECOVERABLE: "the engine refuses the database after the cut; with page images on, it recovers on any storage that keeps what it has flushed",
    HALF: "half of a transaction is there: the log or the pages were changed behind the engine's back",
    DAMAGED: "content is there that was never written so",
    UNREADABLE: "the marks cannot be read",
    LOST_FILES: "files that were made and flushed before the first acknowledgement are gone; if nobody has deleted them, the storage or its "
    "file system has lost what it had flushed",
}


@dataclass
class Finding:
    """One thing that is not as it must be.

    Attributes:
        name: what it is.
        count: how often.
        text: what was seen.
        meaning: what that says of the storage.
        counts_against: whether it fails the storage; else it is only told.
        examples: the first few, in words.
    """

    name: str
    count: int
    text: str
    meaning: str = ""
    counts_against: bool = True
    examples: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.meaning = self.meaning or MEANINGS[self.name]


@dataclass
class _Place:
    """A place of a ring as found: the writes its sectors are of."""

    sequences: list[int | None]
    started: int = 0

    @property
    def is_torn(self) -> bool:
        return len(set(self.sequences)) > 1

    def holds(self, sequence: int) -> bool:
        return all(found is not None and found >= sequence for found in self.sequences)


def judge(
    statement: Statement,
    survey: dict[str, Any],
    *,
    rings: dict[str, int],
    physical_bytes: int | None,
    was_closed: bool = False,
    lost_files: Sequence[str] = (),
) -> dict[str, Any]:
    """Hold what was found against what was acknowledged.

    Args:
        statement: what the witness knows.
        survey: what the native side found.
        rings: places of each ring, by kind: `rows` and `slots`.
        physical_bytes: what the device says of its sectors.
        was_closed: whether the user ended the work.
        lost_files: names of files that must be there and are not.

    Returns:
        Result, reasons, findings and figures as plain data.
    """
    places = _places_of(survey)
    expected = _newest(statement.lines, rings)
    readable = {"commit": survey["database_error"] is None, "mark": survey["marks_error"] is None}
    missing = [
        line
        for place, line in expected.items()
        if readable[line.kind]
        and not (found := places.get(place, _Place([None]))).holds(line.sequence)
        and not _torn_by_later(found, line)
    ]
    seen_until = max((place.started for place in places.values() if not place.is_torn), default=0)
    early = [line for line in missing if line.number <= seen_until]
    late = [line for line in missing if line.number > seen_until]
    findings = [
        *([Finding(LOST_FILES, len(lost_files), f"{', '.join(lost_files)} cannot be found")] if lost_files else []),
        *_lost(late, DROPS, "acknowledged and gone, and so is everything that began after"),
        *_lost(early, REORDERS, "acknowledged and gone, though something that began later is there"),
        *_torn(places, expected, physical_bytes),
        *_of_survey(survey),
    ]
    result, reasons = _result(statement, findings, was_closed)
    return {
        "result": result,
        "reasons": reasons,
        "findings": [vars(finding) for finding in findings],
        "figures": {
            "acknowledged_commits": sum(line.kind == "commit" for line in statement.lines),
            "acknowledged_marks": sum(line.kind == "mark" for line in statement.lines),
            "acknowledged_last_second": statement.last_count,
            "looked_for": sum(readable[line.kind] for line in expected.values()),
            "lost_commits": sum(line.kind == "commit" for line in missing),
            "lost_marks": sum(line.kind == "mark" for line in missing),
            "first_lost_number": min((line.number for line in missing), default=None),
            "last_number": max((line.number for line in statement.lines), default=0),
            "witness_ended": statement.ended,
            "witness_lines_unreadable": statement.unreadable_lines,
        },
    }


def _newest(lines: list[Line], rings: dict[str, int]) -> dict[tuple[str, int, int], Line]:
    """The newest acknowledged write of each place of each ring; earlier ones were overwritten."""
    newest: dict[tuple[str, int, int], Line] = {}
    for line in lines:
        place = (line.kind, line.lane, line.sequence % rings[line.kind])
        if place not in newest or newest[place].sequence < line.sequence:
            newest[place] = line
    return newest


def _places_of(survey: dict[str, Any]) -> dict[tuple[str, int, int], _Place]:
    places = {}
    for row in survey["commits"]:
        places["commit", row["lane"], row["slot"]] = _Place([row["sequence"]], row["started"] if row["is_sound"] else 0)
    for mark in survey["marks"]:
        sectors = mark["sectors"] or [mark["sequence"]]
        places["mark", mark["lane"], mark["slot"]] = _Place(sectors, mark["started"])
    return places


def _torn_by_later(found: _Place, line: Line) -> bool:
    """Whether a write under way at the cut has destroyed a block that was whole; that is no lost write."""
    return found.is_torn and line.sequence in found.sequences and any(
        sequence is not None and sequence > line.sequence for sequence in found.sequences
    )  # fmt: skip


def _lost(lines: list[Line], name: str, text: str) -> list[Finding]:
    if not lines:
        return []
    lines = sorted(lines, key=lambda line: line.number)
    commits = sum(line.kind == "commit" for line in lines)
    marks = len(lines) - commits
    examples = [f"{line.kind} {line.sequence} of lane {line.lane}, acknowledgement {line.number}" for line in lines]
    return [
        Finding(name, len(lines), f"{commits} commits and {marks} marks were {text}", examples=examples[:EXAMPLES_MAX])
    ]


def _torn(
    places: dict[tuple[str, int, int], _Place], expected: dict[tuple[str, int, int], Line], physical_bytes: int | None
) -> list[Finding]:
    torn = {place: found for place, found in places.items() if found.is_torn}
    if not torn:
        return []
    acknowledged = [
        place for place, found in torn.items()
        if place in expected and not found.holds(expected[place].sequence) and not _torn_by_later(found, expected[place])
    ]  # fmt: skip
    promised = physical_bytes is None or physical_bytes >= MARK_BYTES
    says = (
        "does not say how large its sectors are"
        if physical_bytes is None
        else f"says that its sectors have {physical_bytes} bytes"
    )
    allowed = "" if promised or acknowledged else ", so that it may"
    examples = [
        f"lane {lane}, block {slot}: sectors of writes {', '.join('?' if s is None else str(s) for s in found.sequences)}"
        for (_, lane, slot), found in sorted(torn.items())[:EXAMPLES_MAX]
    ]
    text = (
        f"{len(torn)} blocks of 4 KiB hold sectors of different writes, {len(acknowledged)} of them acknowledged; "
        f"the storage {says}{allowed}"
    )
    return [Finding(TEARS, len(torn), text, counts_against=promised or bool(acknowledged), examples=examples)]


def _of_survey(survey: dict[str, Any]) -> list[Finding]:
    findings = []
    if survey["database_error"]:
        findings.append(Finding(UNRECOVERABLE, 1, survey["database_error"]["text"]))
    if survey["marks_error"]:
        findings.append(Finding(UNREADABLE, 1, survey["marks_error"]["text"]))
    half = [row for row in survey["commits"] if row["sequence"] != row["twin"]]
    unsound = [row for row in survey["commits"] if row["sequence"] == row["twin"] and not row["is_sound"]]
    for name, rows, text in (
        (HALF, half, "rows and their twins are of different transactions"),
        (DAMAGED, unsound, "rows do not hold what was written"),
    ):
        if rows:
            examples = [
                f"session {row['lane']}, row {row['slot']}: transaction {row['sequence']}, twin {row['twin']}"
                for row in rows[:EXAMPLES_MAX]
            ]
            findings.append(Finding(name, len(rows), f"{len(rows)} {text}", examples=examples))
    return findings


def _result(statement: Statement, findings: list[Finding], was_closed: bool) -> tuple[str, list[str]]:
    against = [finding for finding in findings if finding.counts_against]
    if against:
        return FAIL, [f"{finding.name}: {finding.text}" for finding in against]
    if not statement.lines:
        return INCONCLUSIVE, [
            "the witness knows of nothing acknowledged; let the work go on for a while before the cut"
        ]
    if was_closed:
        return INCONCLUSIVE, ["the work was ended by its user and not by a power cut; nothing was at risk"]
    return PASS, [
        f"everything acknowledged is there, {statement.last_count} acknowledgements of the last second among it",
        "one cut shows what was in the caches at one moment; repeat it",
    ]
