"""The numbered tables in the text of a solution paper.

Configuration, disks, summary of the results, users by mailbox size.

A table is found by its caption, a figure by its label, in the words of the published template or in
ours. Names are those of the published results. What a paper words differently is not found, and
then not checked; nothing is guessed.
"""

from __future__ import annotations

import re
from typing import Literal, TypedDict

from plimsoll.imports.jetstress.log_lines import read_time
from plimsoll.imports.papers.text import APPENDIX, Lines, content_lines

CAPTION = re.compile(r"\s*Table\s+(\d{1,2})\b[\s:.–—-]*(?!.*\.{4,})", re.I)
_FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")
#: For each table, the name of a figure and how its label may begin.
LABELS: dict[int, dict[str, tuple[str, ...]]] = {
    1: {
        "mailboxes_simulated": ("Number of Exchange mailboxes simulated", "Mailboxes simulated"),
        "databases_per_host": ("Number of databases/host", "Databases of a host"),
        "copies_per_database": ("Number of copies/database", "Copies of a database"),
        "mailboxes_per_database": ("Number of mailboxes/database", "Mailboxes of a database"),
        "iops_per_mailbox": ("Simulated profile", "I/O per second of a mailbox"),
        "database_lun_size": ("Database LUN size", "Size of a database volume"),
        "total_database_size_gb": (
            "Total database size for performance testing",
            "Size of all databases in the performance test",
        ),
        "used_by_database_pct": (
            "% storage capacity used by",
            "Share of the volumes that databases use",
        ),
    },
    4: {
        "raw_capacity_per_disk_gb": ("Raw capacity per disk", "Raw capacity of a disk"),
        "physical_disks": ("Number of physical disks in test", "Disks in the test"),
        "total_raw_capacity_gb": ("Total raw storage capacity", "Raw capacity (GB)"),
        "total_formatted_capacity_gb": ("Total formatted capacity", "Formatted capacity (GB)"),
        "storage_capacity_utilization_pct": ("Storage capacity utili",),
        "database_capacity_utilization_pct": ("Database capacity utili",),
    },
    5: {"total_formatted_capacity_gb": ("Total formatted capacity", "Formatted capacity (GB)")},
    6: {
        "database_disk_transfers_per_sec": ("Database disk transfers", "Database disks transfers"),
        "database_disk_reads_per_sec": ("Database disk reads", "Database disks reads"),
        "database_disk_writes_per_sec": ("Database disk writes", "Database disks writes"),
        "average_database_disk_read_latency_ms": ("Average database disk read latency",),
        "average_database_disk_write_latency_ms": ("Average database disk write latency",),
        "log_disk_writes_per_sec": ("Log disk writes", "Log disks writes"),
        "average_log_disk_write_latency_ms": ("Average log disk write latency",),
    },
    7: {
        "mb_read_per_sec_per_database": ("MB read/sec per database", "MB read/s of each database"),
        "mb_read_per_sec_total_per_server": (
            "MB read/sec total per server",
            "MB read/s of the server",
        ),
    },
    8: {
        "average_time_to_play_one_log_s": ("Average time to play one log file",),
        "log_files_nominal": ("Number of log files", "Log files played"),
    },
}


#: The tables that are read by the labels of their figures.
_TABLES: dict[int, Literal["table_1", "table_4", "table_5", "table_6", "table_7", "table_8"]] = {
    1: "table_1",
    4: "table_4",
    5: "table_5",
    6: "table_6",
    7: "table_7",
    8: "table_8",
}


class UsersByMailbox(TypedDict, total=False):
    """Table 9: users, and the size of their mailboxes."""

    rows: list[tuple[str, ...]]


class PaperTables(TypedDict, total=False):
    """The figures of each numbered table as texts of numbers with their units, by name."""

    table_1: dict[str, str]
    table_2: dict[str, str]
    table_4: dict[str, str]
    table_5: dict[str, str]
    table_6: dict[str, str]
    table_7: dict[str, str]
    table_8: dict[str, str]
    table_9: UsersByMailbox
    tested_date: str
    max_users_stated: str


def read_tables(text: str) -> PaperTables:
    """The figures of a paper's tables as texts of numbers, so that their digits are known.

    Users by mailbox size as pairs.
    """
    found: PaperTables = {}
    body = _before_reports(content_lines(text))
    lines_of = _tables(body)
    for number, table in _TABLES.items():
        figures = _figures(lines_of.get(number, []), LABELS[number])
        if figures:
            found[table] = figures
    memory = re.search(
        r"(\d+)\s*GB\s+(?:of\s+)?memory", " ".join(line for _, line in lines_of.get(2, [])), re.I
    )
    if memory:
        found["table_2"] = {"host_memory_gb": memory.group(1)}
    rows = [
        match.groups()
        for _, line in lines_of.get(9, [])
        if (match := re.fullmatch(r"\s*([\d,]+)\s+(\d+(?:\.\d+)?)(?:\s+\w.*)?\s*", line))
    ]
    if rows:
        found["table_9"] = {"rows": rows}
    whole = "\n".join(line for _, line in body)
    tested = re.search(r"Tested(?: date)?:\s*(\d{1,2}/\d{1,2}/\d{4})", whole, re.I)
    if tested:
        found["tested_date"] = (read_time(f"{tested.group(1)} 00:00:00") or "")[:10]
    users = re.search(r"maximum (?:number of )?users\D{0,80}?([\d,]{3,9})", whole, re.I)
    if users:
        found["max_users_stated"] = users.group(1)
    return found


def _figures(lines: Lines, labels: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """The first figure of each label."""
    found = {
        name: next((value for _, line in lines if (value := _value(line, begins))), None)
        for name, begins in labels.items()
    }
    return {name: value for name, value in found.items() if value is not None}


def _before_reports(lines: Lines) -> Lines:
    """The paper up to appendix B; tables of reports are no numbered tables."""
    for place, (_, line) in enumerate(lines):
        match = APPENDIX.match(line)
        if match and match.group(1) not in "Aa" and not re.search(r"\.{4,}|\s\d+$", line):
            return lines[:place]
    return lines


def _tables(lines: Lines) -> dict[int, Lines]:
    """The lines of each table, from its caption to the next."""
    found: dict[int, Lines] = {}
    current: int | None = None
    for number, line in lines:
        match = CAPTION.match(line)
        if match:
            current = int(match.group(1))
            found.setdefault(current, [])
        elif current is not None:
            found[current].append((number, line))
    return found


def _value(line: str, labels: tuple[str, ...]) -> str | None:
    """The first figure behind a label, with its unit where it has one."""
    text = " ".join(line.split())
    for label in labels:
        if text.lower().startswith(label.lower()):
            # Figures inside the label, as in "20 % headroom", stand before a wide gap.
            rest = re.split(r"\s{2,}", line.strip(), maxsplit=1)
            tail = rest[1] if len(rest) > 1 else text[len(label) :]
            match = _FIGURE.search(tail)
            if match:
                unit = re.match(r"\s*(TB|GB|MB|%)?", tail[match.end() :])
                return (
                    f"{match.group().replace(',', '')} {unit.group(1) or ''}".strip()
                    if unit
                    else match.group()
                )
    return None
