"""A verdict in few lines, for a terminal: it stands first, then only what a reader has to act on.

Checks that pass are counted, not listed. Everything else is in `text.lines_of`, in `verdict.json`
and in the report.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from plimsoll.documents.verdict import Check, CheckBottleneck, Verdict
from plimsoll.verdict.text import WORDS

#: Begins what is said of another run, whose work is in every figure.
ANOTHER_RUN = "another run works on the same storage"
#: Rows of the terminal for the verdict; the command adds where its files are, and its headline once
#: more.
ROWS_MAX = 17


@dataclass(frozen=True)
class Part:
    """Some lines of one kind, of which the first few are shown."""

    heading: str
    lines: Sequence[str]
    shown_max: int
    #: Follows the number of those that are not shown.
    rest: str

    def shown(self, most: int) -> list[str]:
        """The heading and the first lines, with the number of the others."""
        if not self.lines or not most:
            return []
        first = list(self.lines[:most])
        left = len(self.lines) - len(first)
        return [
            *([self.heading] if self.heading else []),
            *first,
            *([f"  and {left} more {self.rest}"] if left else []),
        ]


def brief_of(
    found: Verdict,
    *,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    told: Collection[str] = (),
    width: int = 100,
) -> list[str]:
    """The verdict in at most 17 rows of a terminal of this width, whatever was found.

    Args:
        found: the verdict.
        before: what a search or a recovery was to find out; stands first.
        after: figures of the load, the most telling first.
        told: warnings that the terminal showed before; they are not said again.
        width: characters in a row of the terminal.
    """
    others = [text for text in found.warnings if text.startswith(ANOTHER_RUN)]
    warnings = [text for text in found.warnings if text not in told and text not in others]
    parts = [
        Part("", list(before), 3, "answers"),
        Part("", [*_head(found), *(f"  warning: {text}" for text in others[:1])], 7, "reasons"),
        Part("", _checks(found), 7, "checks that do not pass"),
        Part("", _causes(found), 2, "causes"),
        Part("", [f"  {text.strip()}" for text in after], 5, "lines with --verbose"),
        Part("", [f"  caution: {text}" for text in found.cautions], 2, "cautions"),
        Part("", [f"  warning: {text}" for text in warnings], 2, "warnings"),
        Part("not a qualification, because", _obstacles(found, told), 3, "reasons in verdict.json"),
        Part("", [f"note: {text.partition(':')[0]}" for text in found.not_tested], 1, "notes"),
    ]
    most = [part.shown_max for part in parts]
    while True:
        lines = [
            line for part, count in zip(parts, most, strict=True) for line in part.shown(count)
        ]
        if rows_of(lines, width) <= ROWS_MAX or max(most[2:]) == 0:
            return lines
        last = max(index for index in range(2, len(parts)) if most[index])
        most[last] -= 1


def rows_of(lines: Sequence[str], width: int) -> int:
    """How many rows of a terminal these lines take.

    >>> rows_of(["", "a" * 81], 80)
    3
    """
    return sum(max(1, -(-len(line) // width)) for line in lines)


def _head(found: Verdict) -> list[str]:
    reasons = [f"  {reason}" for reason in found.reasons]
    rate = [] if found.throughput in " ".join(found.reasons) else [f"  {found.throughput}"]
    return [found.headline, *reasons, *rate]


def _checks(found: Verdict) -> list[str]:
    """How many passed, and each that did not in a line, unless it is a reason of the result."""
    checks, lines = found.checks, []
    for status in ("fail", "not_evaluated"):
        for check in checks:
            if check.status == status and not _is_reason(check, found.reasons):
                doubted = " (in doubt)" if check.doubts else ""
                word = check.predicted or WORDS[status]
                lines.append(f"  {word}: {check.title} ({check.scope}): {check.reason}{doubted}")
    passed = sum(check.status == "pass" for check in checks)
    return [f"  {passed} of {len(checks)} checks pass", *lines] if checks else []


def _is_reason(check: Check, reasons: Sequence[str]) -> bool:
    where = f"{check.title} ({check.scope}): "
    return any(text.startswith(where) and check.reason in text for text in reasons)


def _causes(found: Verdict) -> list[str]:
    return list(
        dict.fromkeys(
            f"  bottleneck: {entry.text}"
            for entry in found.bottlenecks
            if isinstance(entry, CheckBottleneck)
        )
    )


def _obstacles(found: Verdict, told: Collection[str]) -> list[str]:
    """What keeps the run from qualifying, less what was warned of before it."""
    # A rehearsal that the disk's own remark follows says the same of each place: what follows the
    # first "but" is enough to tell.
    said = {text.partition(" but ")[2] for text in told if " but " in text}
    lines = [
        f"  - {text}"
        for text in found.not_qualifying_because
        if text not in told and (" but " not in text or text.partition(" but ")[2] not in said)
    ]
    known = len(found.not_qualifying_because) - len(lines)
    return [*lines, f"  - {known} that were warned of above"] if known else lines
