"""Whether what was written can be read, and what the system said meanwhile.

Each claim of a reliability test with its evidence.

Published reliability tests claim "no errors in database and log checksum" and "no errors in the
system log". Neither is claimed here of what nobody looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.documents.summary import Summary
from plimsoll.files import folder
from plimsoll.pages.tables import Table
from plimsoll.verdict.checks import files_read

#: Of what is wrong, so much stands in the report; all of it is in the files of the run folder.
SHOWN_MAX = 3


def integrity_sections(summary: Summary) -> list[Table]:
    """What was found, row by row; nothing where nobody looked at anything."""
    rows = [row for row in (_checksums(summary), _system_log(summary)) if row is not None]
    return (
        [Table("Integrity", ["What", "Found", "Evidence"], [[*row] for row in rows])]
        if rows
        else []
    )


def integrity_sentences(summary: Summary) -> list[str]:
    """The same as sentences."""
    return [
        f"{found[0].upper()}{found[1:]} in the {what.lower()}: {evidence}."
        for table in integrity_sections(summary)
        for what, found, evidence in table.rows
    ]


def _checksums(summary: Summary) -> tuple[str, str, str] | None:
    if not summary.checksums:
        return None
    pages = sum(item.pages_seen for item in summary.checksums)
    wrong = [
        f"{item.name}: {count} of its pages are damaged, corrected or misplaced"
        for item in summary.checksums
        if (count := item.bad + item.correctable + item.wrong_page_number)
    ]
    count = len({item.name for item in summary.checksums})
    evidence = (
        f"{pages:,} pages of {count} database{'' if count == 1 else 's'} were read and verified"
    )
    if summary.log_check is None:
        return (
            "Database checksum",
            _found(wrong),
            _evidence(wrong, f"{evidence}; the logs were not verified"),
        )
    unread = [
        f"the logs of {item.instance} could not be read: {item.unread}"
        for item in summary.log_check
        if item.unread
    ]
    wrong += [f"{item.instance}: {text}" for item in summary.log_check for text in item.findings]
    logs = [f"{item.instance}: {files_read(item)}" for item in summary.log_check if not item.unread]
    if not summary.log_check:
        return (
            "Database checksum",
            _found(wrong),
            _evidence(wrong, f"{evidence}; raw files have no logs to verify"),
        )
    read = "; ".join([evidence, *logs, *unread]) + f" ({folder.LOG_CHECK})"
    known = "not everything was read" if unread and not wrong else _found(wrong)
    return "Database and log checksum", known, _evidence(wrong, read)


def _system_log(summary: Summary) -> tuple[str, str, str] | None:
    log = summary.kernel_log
    if log is None:
        return None
    if not log.readable:
        return "System log", "not read", f"{log.reason}"
    named = f" about {', '.join(log.disks)}" if log.disks else ""
    evidence = (
        f'no message of the severity "error" or worse{named} while the run went on '
        f"({folder.KERNEL_LOG})"
    )
    if log.reason and not log.lines:
        return "System log", "not everything was read", f"{evidence}; {log.reason}"
    if log.of_events and not log.lines:
        evidence += (
            f"; while events of the plan harmed the storage it said: {_evidence(log.of_events, '')}"
        )
    return "System log", _found(log.lines), _evidence(log.lines, evidence)


def _found(wrong: Sequence[str]) -> str:
    return f"{len(wrong)} error{'' if len(wrong) == 1 else 's'}" if wrong else "no errors"


def _evidence(wrong: Sequence[str], otherwise: str) -> str:
    rest = f"; and {len(wrong) - SHOWN_MAX} more" if len(wrong) > SHOWN_MAX else ""
    return "; ".join(wrong[:SHOWN_MAX]) + rest if wrong else otherwise
