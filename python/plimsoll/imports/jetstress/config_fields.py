"""The fields of a JetstressConfig.xml as a flat list, and the file written from such a list again.

A field is a path and its text: `TestDesignInfo/Duration`, an attribute with an at sign, a repeated
element with its number: `ExchangeProfile/EseInstances/EseInstance[2]/LogPath`. Element names and
their order are those of two published files of the 2013 tool, which agree with each other; files of
the 2010 tool are read by the same names. Unknown fields are kept at the end of the element they
were found in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.inputs.safe_xml import Element

#: Elements that may stand several times below one parent; all others are read once.
REPEATED = ("Thresholds", "EseInstance", "Path")

#: The order in which the tool writes elements and attributes.
ORDER = (
    "JetstressVersionGenerated",
    "EseVersionGenerated",
    "TestDesignInfo",
    "Type",
    "MultiHostBreak",
    "Description",
    "Duration",
    "BinaryPerfLog",
    "VerifyChecksum",
    "RunDatabaseMaintenancePerformance",
    "RunDatabaseMaintenanceSoftRecovery",
    "ContinueOnErrors",
    "SuppressTuning",
    "UseEseCounters",
    "PreloadJetCache",
    "BackupToDisk",
    "LogFilesToReplay",
    "LogFilesToChecksum",
    "LogInterval",
    "LogInterval2",
    "OperationMix",
    "@LockOps",
    "@InsertOps",
    "@DeleteOps",
    "@ReplaceOps",
    "@LazyCommits",
    "RetrieveLVOnRead",
    "RetrieveLVOnScan",
    "PrereadOnRead",
    "PrereadOnScan",
    "UpdateLV",
    "ScanPercentage",
    "RestoreBackupPath",
    "OutputPath",
    "MaximumChecksumBuffers",
    "MaximumChecksumThreads",
    "MaximumLatencyErrors",
    "SluggishSessions",
    "BatchRecords",
    "BatchUpdates",
    "Bulky1Percentage",
    "Thresholds",
    "@Name",
    "@TestRunTypes",
    "AverageDatabaseReadLatency",
    "MaximumDatabaseReadLatency",
    "AverageLogWriteLatency",
    "MaximumLogWriteLatency",
    "ExchangeProfile",
    "ThreadCount",
    "TransPerSec",
    "ThroughputPercentage",
    "DatabaseSource",
    "DatabaseSizing",
    "CapacityPercentage",
    "MailboxCount",
    "MailboxQuota",
    "MailboxIops",
    "MarginIops",
    "LongPadLength",
    "ShortPadLength",
    "DatabaseSpaceReserved",
    "DatabaseCopyCount",
    "EseInstances",
    "EseInstance",
    "@IopsBias",
    "DatabasePaths",
    "Path",
    "LogPath",
    "DatabaseBackupPath",
    "JetSystemParams",
    "DatabasePageSize",
    "CircularLog",
    "LogFileSize",
    "MaxVerPages",
    "DBMThrottling",
)
_RANK = {name: rank for rank, name in enumerate(ORDER)}
_STEP = re.compile(r"(@?[A-Za-z_][\w.-]*)(?:\[(\d{1,6})\])?")

Fields = dict[str, str]


def fields_of(root: Element) -> tuple[Fields, dict[str, int]]:
    """Every field of a configuration in the order of the file, and the line of each."""
    fields: Fields = {}
    lines: dict[str, int] = {}
    for child, path in _numbered(root, ""):
        _flatten(child, path, fields, lines)
    return fields, lines


def _numbered(element: Element, prefix: str) -> Iterable[tuple[Element, str]]:
    seen: dict[str, int] = {}
    for child in element.children:
        seen[child.name] = number = seen.get(child.name, 0) + 1
        repeated = child.name in REPEATED or number > 1
        yield child, f"{prefix}{child.name}" + (f"[{number}]" if repeated else "")


def _flatten(element: Element, path: str, fields: Fields, lines: dict[str, int]) -> None:
    for name, value in element.attributes.items():
        fields[f"{path}/@{name.rpartition(':')[2]}"] = value
        lines[f"{path}/@{name.rpartition(':')[2]}"] = element.line
    if not element.children and (element.text.strip() or not element.attributes):
        fields[path] = element.text.strip()
        lines[path] = element.line
    for child, below in _numbered(element, f"{path}/"):
        _flatten(child, below, fields, lines)


def field_lines(fields: Fields) -> list[str]:
    """Fields as a plan keeps them, one text each.

    >>> field_lines({"TestDesignInfo/LogInterval2": "5000"})
    ['TestDesignInfo/LogInterval2 = 5000']
    """
    return [f"{path} = {value}".rstrip() for path, value in fields.items()]


def parse_field_lines(texts: Iterable[str], name: str = "plan", line: int = 0) -> Fields:
    """The fields that a plan kept.

    Raises:
        InputError: a text is no field.
    """
    fields: Fields = {}
    mistakes = []
    for text in texts:
        path, sign, value = text.partition("=")
        steps = path.strip().split("/")
        if not sign or not all(_STEP.fullmatch(step) for step in steps):
            mistakes.append(
                Mistake(line, text[:60], "is no field", "write TestDesignInfo/LogInterval2 = 5000")
            )
        fields[path.strip()] = value.strip()
    if mistakes:
        raise InputError(name, mistakes)
    return fields


class _Node:
    """An element that is being written."""

    def __init__(self) -> None:
        self.text = ""
        self.attributes: dict[str, str] = {}
        self.children: dict[tuple[str, int], _Node] = {}


def to_xml(fields: Fields) -> str:
    """The configuration file of a list of fields."""
    root = _Node()
    for path, value in fields.items():
        node = root
        for step in path.split("/"):
            match = _STEP.fullmatch(step)
            assert match, "paths are checked where they are read"
            name = match.group(1)
            if name.startswith("@"):
                node.attributes[name[1:]] = value
                break
            node = node.children.setdefault((name, int(match.group(2) or 1)), _Node())
        else:
            node.text = value
    head = '<?xml version="1.0"?>\n<configuration xmlns:xsd="http://www.w3.org/2001/XMLSchema" '
    lines = [head + 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">']
    _write(root, 1, lines)
    return "\n".join([*lines, "</configuration>"]) + "\n"


def _write(node: _Node, depth: int, lines: list[str]) -> None:
    last = len(ORDER)
    # Numbers of repeated elements follow each other only within a name; sorting is stable for names
    # nobody knows.
    for (name, _), child in sorted(
        node.children.items(), key=lambda item: (_RANK.get(item[0][0], last), item[0][1])
    ):
        attributes = sorted(
            child.attributes.items(), key=lambda item: _RANK.get("@" + item[0], last)
        )
        start = (
            "  " * depth
            + f"<{name}"
            + "".join(f" {key}={quoteattr(value)}" for key, value in attributes)
        )
        if child.children:
            lines.append(start + ">")
            _write(child, depth + 1, lines)
            lines.append("  " * depth + f"</{name}>")
        elif child.text:
            lines.append(f"{start}>{escape(child.text)}</{name}>")
        else:
            lines.append(start + " />")
