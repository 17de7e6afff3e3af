"""The audit after the power came back.

Copy, look at the pages as they were found, recover the copy, read, judge.

Recovery writes, so it works on a copy, and the files that the cut left are only read. Only who asks
for it has them recovered where they lie, and is told that they are evidence no longer.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from plimsoll.databases import ownership
from plimsoll.documents.document import DocumentError
from plimsoll.documents.powercut import (
    PagesFound,
    PowercutAudit,
    PowercutWork,
    RunDescription,
    Survey,
    SurveyError,
)
from plimsoll.errors import PowercutError
from plimsoll.errors.system_errors import system_reason
from plimsoll.files.paths import StrPath
from plimsoll.host.boot import boot_id
from plimsoll.powercut import workspace
from plimsoll.powercut.judge import judge
from plimsoll.powercut.witness import WitnessError
from plimsoll.powercut.witness_log import Statement, read_statement

COPY_PREFIX = "plimsoll-audit-"
PART_BYTES, BLOCK_BYTES = 1 << 20, 4096
#: What the system says where a device cannot give back what lies there.
LOST_BLOCKS = frozenset({errno.EIO, errno.ENODATA, errno.EILSEQ, errno.EREMOTEIO})
_SYSTEM_ERROR = re.compile(r"\(errno ([0-9]+)\)")


class AuditError(PowercutError):
    """An audit that cannot be made; the message says why and what to do."""


def audit_powercut(
    directory: StrPath,
    log: StrPath,
    *,
    work_in: StrPath | None,
    in_place: bool,
    keep: bool,
    was_cut: bool = False,
) -> PowercutAudit:
    """Audit what a power cut left.

    Args:
        directory: as `plimsoll powercut` was given it.
        log: the witness's log.
        work_in: where the copy is made; the directory for temporary files if left out.
        in_place: recover the files themselves instead of a copy.
        keep: leave the recovered copy.
        was_cut: the user says that the power went while the work went on, where neither log nor
            machine can show it.

    Raises:
        AuditError: there is no room for the copy, or this machine cannot do what an audit takes.
        PlaceError: there is nothing to audit, or the work goes on.
        WitnessError: the log is none, or of another run.
    """
    directory = Path(directory)
    log = Path(log)
    work_in = None if work_in is None else Path(work_in)
    case = _identify(directory, log)
    written, place = case.written, case.place
    unreadable: dict[str, int] = {}
    with workspace.held(place) if place.is_dir() else nullcontext():
        copy = place if in_place else _copy(place, work_in, unreadable)
        try:
            found = _look(copy, written["work"], in_place=in_place)
            lost_files = [
                name
                for name in (workspace.DATABASE, workspace.MARKS)
                if not (copy / name).is_file()
            ]
        finally:
            if not in_place and not keep:
                shutil.rmtree(copy)
    same_start = written["boot_id"] is not None and written["boot_id"] == boot_id()
    _name_original(found.survey, copy, place)
    judgement = judge(
        case.statement,
        found.survey,
        physical_bytes=workspace.whole_bytes(written["sectors"]),
        unwitnessed_max=int(written["work"]["unwitnessed_max"]),
        was_closed=case.was_closed,
        was_cut=was_cut,
        same_start=same_start,
        lost_files=[*([] if case.has_marker else [ownership.MARKER]), *lost_files],
        unreadable=unreadable,
        pages_after=found.after,
    )
    return {
        "kind": "power_cut_audit",
        "schema_version": 1,
        "path": str(place),
        "run": written["run"],
        "examined": {
            "on": "the files themselves" if in_place else "a copy",
            "copy": str(copy) if keep and not in_place else None,
            "original_changed": in_place,
        },
        "result": judgement["result"],
        "reasons": judgement["reasons"],
        "findings": judgement["findings"],
        "figures": judgement["figures"],
        "pages_before_recovery": found.before,
        "recovery": found.survey["recovery"],
        "pages_after_recovery": found.after,
        "same_start_of_machine": same_start,
    }


@dataclass(frozen=True)
class _Case:
    """What is to be audited.

    Attributes:
        place: the files' directory.
        written: the description of their run.
        statement: what the witness knows of it.
        has_marker: whether the marker is as it was made.
        was_closed: whether the work was ended before any cut.
    """

    place: Path
    written: RunDescription
    statement: Statement
    has_marker: bool
    was_closed: bool


def _identify(directory: Path, log: Path) -> _Case:
    """Whose files these are. If the marker itself was lost, the witness knows the run too.

    Raises:
        PlaceError: neither of them knows this place, or its storage is not mounted there.
    """
    try:
        place, written, was_closed = workspace.find(directory)
    except workspace.PlaceError as lost:
        return _without_marker(directory, log, lost)
    statement = read_statement(
        log, lambda run: run.get("run") == written["run"], f"run {written['run']}"
    )
    return _Case(place, written, statement, True, was_closed)


def _without_marker(directory: Path, log: Path, lost: workspace.PlaceError) -> _Case:
    possible = {
        str(path): path for path in (directory.absolute() / workspace.NAME, directory.absolute())
    }
    try:
        statement = read_statement(
            log, lambda run: run.get("path") in possible, f"a run in {directory}"
        )
    except WitnessError as error:
        raise workspace.PlaceError(f"{lost}; {error}") from error
    try:
        described = workspace.description_of(statement.run, str(log))
    except DocumentError:
        raise lost from None
    place = possible[described["path"]]
    if (missed := workspace.missed_mount(place.parent, described)) is not None:
        raise workspace.PlaceError(f"{missed}; mount the storage there and audit again")
    if statement.ended == "stopped":
        raise workspace.PlaceError(
            f"{lost}; the work there was ended by its user, and nothing was at risk"
        )
    return _Case(place, described, statement, False, False)


@dataclass(frozen=True)
class _Found:
    """Everything that is there: the pages as they were found, the survey, the recovered pages."""

    before: PagesFound
    survey: Survey
    after: PagesFound | None


def _look(place: Path, work: PowercutWork, *, in_place: bool) -> _Found:
    """Everything that is there.

    Raises:
        AuditError: it cannot be looked at, for a reason that lies with this machine or with whoever
            described the work.
    """
    from plimsoll import _native

    database = place / workspace.DATABASE
    before = _pages(database, "pages")
    try:
        # This machine may be another one than that which worked.
        survey: Survey = json.loads(
            _native.survey(json.dumps(work | {"directory": str(place), "io_method": "auto"}))
        )
    except _native.ConfigError as error:
        raise AuditError(
            f"the work that marker or witness describe cannot have been done: {error}"
        ) from error
    for said in (survey["database_error"], survey["marks_error"]):
        if said is not None and not _lies_with_storage(said, in_place=in_place):
            raise AuditError(
                f"this machine cannot look at the {'files' if in_place else 'copy'}: {said['text']}"
            )
    after = _pages(database, "deep") if survey["database_error"] is None else None
    return _Found(before, survey, after)


def _lies_with_storage(error: SurveyError, *, in_place: bool) -> bool:
    """Whether an error is one of the storage under audit.

    A copy lies elsewhere, and few descriptors are nobody's lie.
    """
    if error["family"] != "disk":
        return True
    number = _SYSTEM_ERROR.search(error["text"])
    return number is not None and int(number[1]) in (
        {errno.ENOENT, *LOST_BLOCKS} if in_place else {errno.ENOENT}
    )


def _name_original(survey: Survey, copy: Path, place: Path) -> None:
    """Say the names of the files that were copied, not of a copy that is gone."""
    for error in (survey["database_error"], survey["marks_error"]):
        if error is not None:
            error["text"] = error["text"].replace(str(copy), str(place))


def _pages(database: Path, depth: str) -> PagesFound:
    """What verification says of the pages, in short."""
    from plimsoll import _native

    file = json.loads(_native.verify([str(database)], depth))["files"][0]
    found = PagesFound(
        verdict=file.get("verdict"),
        pages_seen=file.get("pages_seen"),
        bad=file.get("bad"),
        correctable=file.get("correctable"),
        wrong_page_number=file.get("wrong_page_number"),
        uninitialized=file.get("uninitialized"),
        unreadable=file.get("unreadable"),
        error=file.get("error"),
    )
    if deep := file.get("deep"):
        found["deep_findings"] = len(deep["findings"]) + deep["findings_unlisted"]
    return found


def _copy(place: Path, work_in: Path | None, unreadable: dict[str, int]) -> Path:
    """A copy of everything, in a new directory.

    What cannot be read is zero there, and counted by file.

    Raises:
        AuditError: there is no room, or a file cannot be read at all.
    """
    parent = work_in or Path(tempfile.gettempdir())
    try:
        there = place.iterdir() if place.is_dir() else iter(())
        files = sorted(path for path in there if path.is_file() and not path.is_symlink())
        size = sum(path.stat().st_size for path in files)
        if shutil.disk_usage(parent).free < size + (64 << 20):
            raise AuditError(
                f"{parent} has no room for a copy of {size >> 20} MiB; name another directory with "
                f"--work"
            )
        copy = Path(tempfile.mkdtemp(prefix=COPY_PREFIX, dir=parent))
    except OSError as error:
        raise AuditError(f"{error.filename}: {system_reason(error)}; see --work") from error
    try:
        for path in files:
            if count := _copy_file(path, copy / path.name):
                unreadable[path.name] = count
    except OSError as error:
        shutil.rmtree(copy)
        where = error.filename or f"{place} or {copy}"
        raise AuditError(f"{where}: {system_reason(error)}; see --work") from error
    except BaseException:
        shutil.rmtree(copy)
        raise
    return copy


def _copy_file(source: Path, target: Path) -> int:
    """Read from the storage, not from what the kernel remembers of the file.

    Returns the blocks that cannot be read.
    """
    lost = 0
    with source.open("rb", buffering=0) as reader, target.open("wb") as writer:
        os.posix_fadvise(reader.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        size = os.fstat(reader.fileno()).st_size
        for at in range(0, size, PART_BYTES):
            part, blocks = _part(reader.fileno(), at, min(PART_BYTES, size - at))
            writer.write(part)
            lost += blocks
    return lost


def _part(descriptor: int, at: int, length: int) -> tuple[bytes, int]:
    """A part of a file, and how many of its blocks cannot be read; these are zero."""
    try:
        return _read(descriptor, at, length), 0
    except OSError as error:
        if error.errno not in LOST_BLOCKS:
            raise
    pieces, lost = [], 0
    for start in range(at, at + length, BLOCK_BYTES):
        wanted = min(BLOCK_BYTES, at + length - start)
        try:
            pieces.append(_read(descriptor, start, wanted))
        except OSError as error:
            if error.errno not in LOST_BLOCKS:
                raise
            pieces.append(bytes(wanted))
            lost += 1
    return b"".join(pieces), lost


def _read(descriptor: int, at: int, length: int) -> bytes:
    """All of it; shorter only where the file ends."""
    pieces = []
    while length and (piece := os.pread(descriptor, length, at)):
        pieces.append(piece)
        at, length = at + len(piece), length - len(piece)
    return b"".join(pieces)
