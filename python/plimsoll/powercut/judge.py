"""What the difference between a witness's log and what was found means.

Whatever is numbered N in the log was durable, by the storage's own word, before anything began that
says it started after N acknowledgements. So two questions are asked of everything acknowledged and
not found. Is something there that began after it was acknowledged? Then a later write was kept and
an earlier, flushed one was not: the storage reorders across flushes. If nothing is, the end was cut
off: the storage said that it had flushed and had not.

A place in a ring that holds something later than was acknowledged has lost nothing: the later write
was under way. A block whose sectors are of different writes was torn. Storage that promises sectors
of 4 KiB may not do that; other storage may, and it is said; of storage that promises nothing nobody
knows.

A pass needs a cut: work that was ended, a link that was closed, a machine that was not restarted or
a log that is not whole prove nothing by what is there. What is missing counts all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from plimsoll.documents.powercut import AuditFinding, Judgement, PagesFound, Survey
from plimsoll.powercut.witness_log import Line, Statement

Result = Literal["pass", "fail", "inconclusive"]
PASS: Result = "pass"
FAIL: Result = "fail"
INCONCLUSIVE: Result = "inconclusive"
EXAMPLES_MAX = 10
#: What verification counts that recovery with page images leaves nowhere, in words.
_Wrong = Literal["bad", "correctable", "wrong_page_number", "unreadable", "deep_findings"]
WRONG_PAGES: dict[_Wrong, str] = {
    "bad": "bad pages",
    "correctable": "pages with a flipped bit",
    "wrong_page_number": "pages in the place of others",
    "unreadable": "unreadable pages",
    "deep_findings": "findings of the deep check",
}
MARK_BYTES = 4096

DROPS, REORDERS, TEARS = "drops_flushes", "reorders", "tears_4k"
UNRECOVERABLE, HALF, DAMAGED, UNREADABLE = (
    "unrecoverable",
    "half_transactions",
    "damaged",
    "unreadable_marks",
)
LOST_FILES, DAMAGED_PAGES, UNREADABLE_BLOCKS = "lost_files", "damaged_pages", "unreadable_blocks"

MEANINGS = {
    DROPS: "the storage says that it has flushed before it has: a cache that loses its content, or "
    "a layer that forgets the flush. "
    "What applications were told is safe is not. Switch the volatile cache off, give it power that "
    "lasts, or do not use this storage for data",
    REORDERS: "later writes are there and earlier ones, flushed before they began, are not: the "
    "order across a flush is not kept. "
    "Logs and journals rely on that order, so databases and file systems can be damaged beyond "
    "their repair",
    TEARS: "a block of 4 KiB was written in pieces, and the cut fell between them. Databases of 4 "
    "KiB pages and larger need page images "
    "or a double write on this storage",
    UNRECOVERABLE: "the engine refuses the database after the cut; with page images on, it "
    "recovers on any storage that keeps what it has flushed",
    HALF: "half of a transaction is there: the log or the pages were changed behind the engine's "
    "back",
    DAMAGED: "content is there that was never written so",
    UNREADABLE: "the marks cannot be read",
    LOST_FILES: "files that were made and flushed before the first acknowledgement are gone or "
    "hold something else; if no one has touched them, the "
    "storage or its file system has lost what it had flushed",
    DAMAGED_PAGES: "pages of the recovered database do not hold what they must; recovery with page "
    "images repairs whatever a cut may do to pages, so what "
    "had been flushed was changed or forgotten",
    UNREADABLE_BLOCKS: "the storage reports an error where files were flushed; what lies there is "
    "lost, whatever it was",
}


@dataclass
class Finding:
    """One thing that is not as it must be.

    Attributes:
        name: what it is.
        count: how often.
        text: what was seen.
        meaning: what that says of the storage.
        counts_against: whether it fails the storage; None where nobody has said whether it may.
            Else it is only told.
        examples: the first few, in words.
    """

    name: str
    count: int
    text: str
    meaning: str = ""
    counts_against: bool | None = True
    examples: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.meaning = self.meaning or MEANINGS[self.name]

    def plain(self) -> AuditFinding:
        """As the audit's result has it."""
        return AuditFinding(
            name=self.name,
            count=self.count,
            text=self.text,
            meaning=self.meaning,
            counts_against=self.counts_against,
            examples=self.examples,
        )


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
    survey: Survey,
    *,
    physical_bytes: int | None,
    unwitnessed_max: int,
    was_closed: bool = False,
    was_cut: bool = False,
    same_start: bool = False,
    lost_files: Sequence[str] = (),
    unreadable: Mapping[str, int] | None = None,
    pages_after: PagesFound | None = None,
) -> Judgement:
    """Hold what was found against what was acknowledged.

    Args:
        statement: what the witness knows.
        survey: what the native side found.
        physical_bytes: how large the pieces are that are written whole, by what the device says;
            less where blocks of files do not begin with them.
        unwitnessed_max: how many acknowledgements the witness may not have heard of.
        was_closed: whether the work was ended before any cut.
        was_cut: whether the user says that the power went while the work went on, of whatever the
            log cannot show that: the storage alone, a guest.
        same_start: whether the machine has not been restarted since.
        lost_files: names of files that must be there, as they were made, and are not.
        unreadable: blocks of 4 KiB that could not be read, by file.
        pages_after: what deep verification says of the recovered database.

    Returns:
        Result, reasons, findings and figures as plain data.
    """
    places = _places_of(survey)
    expected = statement.newest
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
        *(
            [Finding(LOST_FILES, len(lost_files), f"{', '.join(lost_files)}: gone or damaged")]
            if lost_files
            else []
        ),
        *_lost(late, DROPS, "acknowledged and gone, and so is everything that began after"),
        *_lost(
            early, REORDERS, "acknowledged and gone, though something that began later is there"
        ),
        *_torn(places, expected, physical_bytes),
        *_of_survey(survey),
        *_of_pages(unreadable or {}, pages_after),
    ]
    doubts = [] if was_cut else _no_cut(statement, same_start)
    if was_closed:
        doubts = [
            "the work was ended before, by its user or for want of a witness, and not by a power "
            "cut; nothing was at risk"
        ]
    begun = max((place.started for place in places.values()), default=0)
    if statement.missing_count or begun > statement.last_number + unwitnessed_max:
        doubts.append(
            f"the log is not whole: it ends with {statement.last_number:,}, "
            f"{statement.missing_count:,} before that are missing, and something was begun after "
            f"{begun:,}; copy it again from the witness"
        )
    result, reasons = _result(statement, findings, doubts)
    return {
        "result": result,
        "reasons": reasons,
        "findings": [finding.plain() for finding in findings],
        "figures": {
            "acknowledged_commits": statement.counts["commit"],
            "acknowledged_marks": statement.counts["mark"],
            "acknowledged_last_second": statement.last_count,
            "looked_for": sum(readable[line.kind] for line in expected.values()),
            "lost_commits": sum(line.kind == "commit" for line in missing),
            "lost_marks": sum(line.kind == "mark" for line in missing),
            "first_lost_number": min((line.number for line in missing), default=None),
            "last_number": statement.last_number,
            "witness_numbers_missing": statement.missing_count,
            "witness_ended": statement.ended,
            "witness_lines_unreadable": statement.unreadable_lines,
        },
    }


def _places_of(survey: Survey) -> dict[tuple[str, int, int], _Place]:
    places = {}
    for row in survey["commits"]:
        places["commit", row["lane"], row["slot"]] = _Place(
            [row["sequence"]], row["started"] if row["is_sound"] else 0
        )
    for mark in survey["marks"]:
        sectors = mark["sectors"] or [mark["sequence"]]
        places["mark", mark["lane"], mark["slot"]] = _Place(sectors, mark["started"])
    return places


def _torn_by_later(found: _Place, line: Line) -> bool:
    """Whether a write under way at the cut has destroyed a block that was whole.

    That is no lost write. What is older was never made good by it.
    """
    known = [sequence for sequence in found.sequences if sequence is not None]
    return line.sequence in known and min(known) == line.sequence < max(known)


def _lost(lines: list[Line], name: str, text: str) -> list[Finding]:
    if not lines:
        return []
    lines = sorted(lines, key=lambda line: line.number)
    commits = sum(line.kind == "commit" for line in lines)
    marks = len(lines) - commits
    examples = [
        f"{line.kind} {line.sequence} of lane {line.lane}, acknowledgement {line.number}"
        for line in lines
    ]
    return [
        Finding(
            name,
            len(lines),
            f"{commits} commits and {marks} marks were {text}",
            examples=examples[:EXAMPLES_MAX],
        )
    ]


def _torn(
    places: dict[tuple[str, int, int], _Place],
    expected: dict[tuple[str, int, int], Line],
    physical_bytes: int | None,
) -> list[Finding]:
    torn = {place: found for place, found in places.items() if found.is_torn}
    if not torn:
        return []
    acknowledged = [
        place
        for place, found in torn.items()
        if place in expected
        and not found.holds(expected[place].sequence)
        and not _torn_by_later(found, expected[place])
    ]
    promised = None if physical_bytes is None else physical_bytes >= MARK_BYTES
    says = (
        "does not say how large its sectors are"
        if physical_bytes is None
        else f"promises to write {physical_bytes} bytes whole"
    )
    allowed = "" if promised is not False or acknowledged else ", so that it may"
    examples = [
        f"lane {lane}, block {slot}: sectors of writes "
        f"{', '.join('?' if s is None else str(s) for s in found.sequences)}"
        for (_, lane, slot), found in sorted(torn.items())[:EXAMPLES_MAX]
    ]
    text = (
        f"{len(torn)} blocks of 4 KiB hold sectors of different writes, {len(acknowledged)} of "
        f"them acknowledged; "
        f"the storage {says}{allowed}"
    )
    return [
        Finding(
            TEARS,
            len(torn),
            text,
            counts_against=True if acknowledged else promised,
            examples=examples,
        )
    ]


def _of_survey(survey: Survey) -> list[Finding]:
    findings = []
    if survey["database_error"]:
        findings.append(Finding(UNRECOVERABLE, 1, survey["database_error"]["text"]))
    if survey["marks_error"]:
        findings.append(Finding(UNREADABLE, 1, survey["marks_error"]["text"]))
    half = [row for row in survey["commits"] if row["sequence"] != row["twin"]]
    unsound = [
        row for row in survey["commits"] if row["sequence"] == row["twin"] and not row["is_sound"]
    ]
    for name, rows, text in (
        (HALF, half, "rows and their twins are of different transactions"),
        (DAMAGED, unsound, "rows do not hold what was written"),
    ):
        if rows:
            examples = [
                f"session {row['lane']}, row {row['slot']}: transaction {row['sequence']}, twin "
                f"{row['twin']}"
                for row in rows[:EXAMPLES_MAX]
            ]
            findings.append(Finding(name, len(rows), f"{len(rows)} {text}", examples=examples))
    return findings


def _of_pages(unreadable: Mapping[str, int], after: PagesFound | None) -> list[Finding]:
    findings = []
    if unreadable:
        where = ", ".join(f"{count} of {name}" for name, count in sorted(unreadable.items()))
        findings.append(
            Finding(
                UNREADABLE_BLOCKS,
                sum(unreadable.values()),
                f"blocks of 4 KiB cannot be read: {where}",
            )
        )
    wrong = {key: after.get(key) or 0 for key in WRONG_PAGES} if after else {}
    if after and (after.get("verdict") != "sound" or any(wrong.values())):
        seen = ", ".join(
            f"{count} {WRONG_PAGES[key]}" for key, count in wrong.items() if count
        ) or after.get("error")
        findings.append(
            Finding(
                DAMAGED_PAGES,
                sum(wrong.values()) or 1,
                f"after recovery: {seen or after.get('verdict')}",
            )
        )
    return findings


def _no_cut(statement: Statement, same_start: bool) -> list[str]:
    """Why the log or the machine speak against a power cut under load."""
    doubts = []
    if statement.ended == "closed":
        doubts.append(
            "the link to the witness was closed and did not fall silent: a machine without power "
            "closes nothing"
        )
    if same_start:
        doubts.append(
            "this machine has not been restarted since: what its kernel remembered was never at "
            "risk"
        )
    if doubts:
        doubts.append(
            "if the power went while the work went on, of the storage alone (and it was mounted "
            "again) or of a guest, say so with --cut-under-load"
        )
    return doubts


def _result(
    statement: Statement, findings: list[Finding], doubts: list[str]
) -> tuple[Result, list[str]]:
    if not statement.counts:
        # Files are made before the first acknowledgement, and the cut may have come while they
        # were.
        return INCONCLUSIVE, [
            "the witness knows of nothing acknowledged; let the work go on for a while before the "
            "cut",
            *doubts,
        ]
    against = [finding for finding in findings if finding.counts_against]
    if against:
        return FAIL, [f"{finding.name}: {finding.text}" for finding in against]
    unknown = [
        f"{finding.name}: {finding.text}" for finding in findings if finding.counts_against is None
    ]
    if doubts or unknown:
        return INCONCLUSIVE, [*unknown, *doubts]
    return PASS, [
        f"everything acknowledged is there, {statement.last_count} acknowledgements of the last "
        f"second among it",
        "one cut shows what was in the caches at one moment; repeat it",
    ]
