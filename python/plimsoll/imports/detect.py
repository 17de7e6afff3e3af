"""From files to reports: what each file is, which belong together, and how a finished import is
kept.

What a file is, its first words say, never its name. A checksum has a page of its own; it is put to
the latest load test that ended before it on the same machine, as the tool writes it after that
test.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from plimsoll.documents.reported import ReportedTest, ReportSource
from plimsoll.imports.dvdstore.config import is_dvdstore
from plimsoll.imports.iometer.results_csv import is_results
from plimsoll.imports.jetstress.report_html import decode, read_html
from plimsoll.imports.jetstress.report_xml import read_xml
from plimsoll.imports.report_model import checksums_of
from plimsoll.imports.report_origin import local_time
from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.inputs.safe_xml import read_bytes

CONFIGURATION, RESULTS, PAGE, PAPER, CLAIMS, ICF, DVDSTORE, IOMETER_RESULTS = (
    "configuration",
    "results",
    "page",
    "paper",
    "claims",
    "icf",
    "dvdstore",
    "iometer results",
)
LOADED = ("performance", "stress")


@dataclass(frozen=True)
class Source:
    """A file and what it is."""

    path: Path
    content: bytes
    kind: str


def recognise(path: Path) -> Source:
    """Read a file and tell what it is.

    Raises:
        InputError: it cannot be read, or nothing that can be imported.
    """
    content = read_bytes(path)
    start = content[:4096].replace(b"\x00", b"").lower()
    if re.search(rb"<configuration[\s>]", start):
        kind = CONFIGURATION
    elif re.search(rb"<output[\s>]", start) or (
        start.lstrip(b"\xef\xbb\xbf\xff\xfe \r\n\t").startswith(b"<?xml") and b"<html" not in start
    ):
        kind = RESULTS
    elif (
        b"<html" in start
        or b"<fieldset" in start
        or b"<table" in start
        or b"<!doctype html" in start
    ):
        kind = PAGE
    elif is_results(start):
        kind = IOMETER_RESULTS
    elif re.search(rb"^'(test setup|access specifications|manager list)", start, re.MULTILINE):
        kind = ICF
    elif re.search(rb'^kind\s*=\s*"claims"', start, re.MULTILINE):
        kind = CLAIMS
    elif is_dvdstore(start):
        kind = DVDSTORE
    elif start.startswith(b"%pdf"):
        hint = f"make text of it first: pdftotext -layout {path.name}"
        raise InputError(str(path), [Mistake(0, "", "is a PDF, but its text was expected", hint)])
    else:
        kind = PAPER
    return Source(path, content, kind)


def read_report(source: Source) -> ReportedTest:
    """The report in a page or result file.

    Raises:
        InputError: it is damaged.
    """
    name = str(source.path)
    report = (
        read_xml(name, source.content)
        if source.kind == RESULTS
        else read_html(name, source.content)
    )
    report["source"] = ReportSource(
        files=[source.path.name], format="xml" if source.kind == RESULTS else "html"
    )
    return report


def paper_text(source: Source) -> str:
    """The text of a paper, or of any other file that is nothing but text.

    Raises:
        InputError: it is in no known encoding.
    """
    return decode(str(source.path), source.content)


def joined(reports: list[ReportedTest]) -> list[ReportedTest]:
    """Reports with each checksum put to the test it followed.

    One that belongs to none stays alone.
    """
    tests = [report for report in reports if report["test_type"] != "checksum"]
    alone = []
    for checksum in (report for report in reports if report["test_type"] == "checksum"):
        before = [
            test
            for test in tests
            if test["test_type"] in LOADED and "checksum" not in test and _fits(test, checksum)
        ]
        if not before:
            alone.append(checksum)
            continue
        test = max(before, key=lambda test: str(local_time(test)))
        test["checksum"] = checksum.get("checksum") or {}
        test["source"]["files"] = test["source"]["files"] + checksum["source"]["files"]
    return tests + alone


def _fits(test: ReportedTest, checksum: ReportedTest) -> bool:
    begun, later = local_time(test), local_time(checksum)
    files = {
        place.get("database_file") for place in (test.get("database_configuration") or {}).values()
    }
    verified = {
        row["database"] for row in checksums_of(checksum) if not row["database"].startswith("(")
    }
    return (begun is None or later is None or begun <= later) and (not files or verified <= files)
