"""The audit after the power came back: copy, look at the pages as they were found, recover the copy, read, judge.

Recovery writes, so it works on a copy, and the files that the cut left are only read. Only who asks for it has them recovered where
they lie, and is told that they are evidence no longer.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from plimsoll import premises
from plimsoll.powercuts import places
from plimsoll.powercuts.judge import judge
from plimsoll.powercuts.statement import read_statement

SCHEMA_VERSION = 1
COPY_PREFIX = "plimsoll-audit-"
PART_BYTES = 1 << 20


class AuditError(Exception):
    """An audit that cannot be made; the message says why and what to do."""


def audit(directory: Path, log: Path, *, work_in: Path | None, in_place: bool, keep: bool) -> dict[str, Any]:
    """Audit what a power cut left.

    Args:
        directory: as `plimsoll powercut` was given it.
        log: the witness's log.
        work_in: where the copy is made; the directory for temporary files if left out.
        in_place: recover the files themselves instead of a copy.
        keep: leave the recovered copy.

    Raises:
        AuditError: there is no room for the copy, or a file cannot be read.
        PlaceError: there is nothing to audit.
        WitnessError: the log is none, or of another run.
    """
    place, written, was_closed = _identify(directory, log)
    statement = read_statement(log, written["run"])
    copy = place if in_place else _copy(place, work_in)
    try:
        found = _look(copy, written["work"])
        names = (premises.MARKER, places.DATABASE, places.MARKS)
        lost_files = [name for name in names if not (copy / name).is_file()]
    finally:
        if not in_place and not keep:
            shutil.rmtree(copy)
    judgement = judge(
        statement,
        found["survey"],
        rings={"commit": written["work"]["rows"], "mark": written["work"]["slots"]},
        physical_bytes=written["sectors"]["physical_bytes"],
        was_closed=was_closed,
        lost_files=lost_files,
    )
    return {
        "kind": "power_cut_audit",
        "schema_version": SCHEMA_VERSION,
        "path": str(place),
        "run": written["run"],
        "examined": {
            "on": "the files themselves" if in_place else "a copy",
            "copy": str(copy) if keep and not in_place else None,
            "original_changed": in_place,
        },
        **judgement,
        "pages_before_recovery": found["before"],
        "recovery": found["survey"]["recovery"],
        "pages_after_recovery": found["after"],
        "same_start_of_machine": written["boot_id"] is not None and written["boot_id"] == places.boot_id(),
    }


def _identify(directory: Path, log: Path) -> tuple[Path, dict[str, Any], bool]:
    """The files' directory, the description of their run, and whether its user ended it.

    If the marker itself was lost, the witness knows the run too.

    Raises:
        PlaceError: neither of them knows this place.
    """
    try:
        place, marker = places.find(directory)
        return place, marker[places.NAME], marker.get("state") == premises.CLOSED
    except places.PlaceError:
        described = read_statement(log, None).run
        place = directory.absolute() / places.NAME
        if described["path"] != str(place) or not described.keys() >= {"work", "sectors", "boot_id"}:
            raise
        return place, described, False


def _look(place: Path, work: dict[str, Any]) -> dict[str, Any]:
    from plimsoll import _native

    database = place / places.DATABASE
    before = _pages(database, "pages")
    try:
        survey = json.loads(_native.survey(json.dumps(work | {"directory": str(place)})))
    except _native.ConfigError as error:
        raise AuditError(f"the work that marker or witness describe cannot have been done: {error}") from error
    after = _pages(database, "deep") if survey["database_error"] is None else None
    return {"before": before, "survey": survey, "after": after}


def _pages(database: Path, depth: str) -> dict[str, Any]:
    """What verification says of the pages, in short."""
    from plimsoll import _native

    file = json.loads(_native.verify([str(database)], depth))["files"][0]
    kept = ("verdict", "pages_seen", "bad", "correctable", "wrong_page_number", "uninitialized", "unreadable", "error")
    deep = file.get("deep")
    findings = {"deep_findings": len(deep["findings"]) + deep["findings_unlisted"]} if deep else {}
    return {key: file.get(key) for key in kept} | findings


def _copy(place: Path, work_in: Path | None) -> Path:
    """A copy of everything, in a new directory.

    Raises:
        AuditError: there is no room, or a file cannot be read.
    """
    parent = work_in or Path(tempfile.gettempdir())
    try:
        there = place.iterdir() if place.is_dir() else iter(())
        files = sorted(path for path in there if path.is_file() and not path.is_symlink())
        size = sum(path.stat().st_size for path in files)
        if shutil.disk_usage(parent).free < size + (64 << 20):
            raise AuditError(f"{parent} has no room for a copy of {size >> 20} MiB; name another directory with --work")
        copy = Path(tempfile.mkdtemp(prefix=COPY_PREFIX, dir=parent))
    except OSError as error:
        raise AuditError(f"{error.filename}: {(error.strerror or str(error)).lower()}; see --work") from error
    try:
        for path in files:
            _copy_file(path, copy / path.name)
    except OSError as error:
        shutil.rmtree(copy)
        raise AuditError(
            f"{error.filename or place} cannot be read: {(error.strerror or str(error)).lower()}"
        ) from error
    return copy


def _copy_file(source: Path, target: Path) -> None:
    """Read from the storage, not from what the kernel remembers of the file."""
    with source.open("rb") as reader, target.open("wb") as writer:
        os.posix_fadvise(reader.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while part := reader.read(PART_BYTES):
            writer.write(part)
