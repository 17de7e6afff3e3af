"""Old results of Iometer: the table that it writes, of version 2006.07.27, 1.1.0 and those between.

Lenient, with a warning at the line of whatever is unusual; a row that cannot be told apart is left
out. Nothing is corrected. What is known to be wrong in the original is said: rows of disks repeat
the raw sums and bins of their worker, the bin that is headed 4.7 s ends at 4 s, megabytes of 2006
are binary, and -1 stands for settings that differ. Source of the form: Iometer's
`PageDisplay.cpp`, `ManagerList.cpp` and `Worker.cpp`, and tables of both versions.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from plimsoll.imports.consistency_checks import CONTRADICTION, ODDITY, Finding
from plimsoll.imports.iometer.icf import IcfRead, read_icf
from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.workloads.files.patterns import AccessLine, mean_bytes

KINDS = ("ALL", "MANAGER", "PROCESSOR", "WORKER", "DISK", "NETWORK")
TABLES_MAX, ROWS_MAX = 1000, 100_000
#: Rates are printed with six digits; sums of several differ by this share at most.
SHARE_SLACK = 0.001
#: What is under way by rate and latency, beside the depth that was asked for.
DEPTH_SLACK = 0.1
MIB, MB = 2**20, 10**6
#: Columns of a row of a disk that are those of its worker.
_OF_WORKER = ("Total Raw ", "Maximum Raw ")
_NAMES = ("Target Type", "Target Name", "Access Specification Name")


@dataclass
class ResultRow:
    """One row.

    Attributes:
        kind: one of `KINDS`.
        name: of the manager, worker or target.
        specification: the access specification.
        line: of the file.
        figures: numbers by the headings of their columns; what is blank is left out.
    """

    kind: str
    name: str
    specification: str
    line: int
    figures: dict[str, float] = field(default_factory=dict)

    def figure(self, *headings: str) -> float | None:
        """The first of several columns that is there."""
        return next((self.figures[name] for name in headings if name in self.figures), None)

    @property
    def mib_per_s(self) -> float | None:
        """Binary megabytes per second, whatever the version calls them."""
        found = self.figure("MiBps (Binary)", "MBps (Binary)", "MBps")
        decimal = self.figure("MBps (Decimal)")
        return decimal * MB / MIB if found is None and decimal is not None else found


@dataclass
class ResultTable:
    """One test: what was run, when, and its rows."""

    description: str = ""
    version: str = ""
    began: str = ""
    ended: str = ""
    specifications: dict[str, list[AccessLine]] = field(default_factory=dict)
    rows: list[ResultRow] = field(default_factory=list)
    line: int = 0

    def of(self, kind: str) -> list[ResultRow]:
        """The rows of a kind."""
        return [row for row in self.rows if row.kind == kind]

    def in_words(self) -> str:
        """The row of all, or the first one, as a line."""
        row = next(iter([*self.of("ALL"), *self.rows]), None)
        if row is None:
            return f"{self.description or 'a test'}: no rows"
        shown = [
            (row.figure("IOps"), "{:,.0f} I/O per second"),
            (row.mib_per_s, "{:,.1f} MiB per second"),
            (row.figure("Average Response Time"), "mean {:.3f} ms"),
            (row.figure("Maximum Response Time"), "longest {:.1f} ms"),
            (row.figure("Errors"), "{:.0f} errors"),
        ]
        figures = ", ".join(form.format(value) for value, form in shown if value is not None)
        return f"{row.specification or self.description or row.name}: {figures}"


@dataclass
class IometerResults:
    """The tables of a file, and what was unusual or does not add up in them."""

    name: str
    tables: list[ResultTable]
    warnings: list[Mistake]
    findings: list[Finding]


def is_results(start: bytes) -> bool:
    r"""Whether a file begins as results do; the beginning is in small letters.

    >>> is_results(b"'test type,test description\n"), is_results(b"'test setup ===")
    (True, False)
    """
    return b"'test type,test description" in start or b"'target type,target name" in start


def read_results(name: str, text: str) -> IometerResults:
    """Read a file of results.

    Args:
        name: of the file, for mistakes.
        text: its content.

    Raises:
        InputError: no row of it can be read.
    """
    reader = _Reader(text)
    reader.read()
    tables = [table for table in reader.tables if table.rows]
    if not tables:
        hint = "look at the warnings" if reader.warnings else "write it by Iometer's Results tab"
        raise InputError(name, [*reader.warnings[:20], Mistake(0, "", "holds no results", hint)])
    findings = [finding for table in tables for finding in check_results(table)]
    return IometerResults(name, tables, reader.warnings, findings)


class _Reader:
    """Walks over the lines; a key is a line that begins with `'`, its value the next one."""

    def __init__(self, text: str) -> None:
        self.lines = text.replace("\0", "").splitlines()
        self.tables: list[ResultTable] = []
        self.warnings: list[Mistake] = []
        self.headings: list[str] = []
        self.at = 0

    def warn(self, message: str, hint: str = "it is passed over") -> None:
        self.warnings.append(Mistake(self.at, "", message, hint))

    @property
    def table(self) -> ResultTable:
        if not self.tables:
            self.tables.append(ResultTable(line=self.at))
        return self.tables[-1]

    def value(self) -> str:
        """The line below a key; nothing where another key follows."""
        following = self.lines[self.at] if self.at < len(self.lines) else ""
        return "" if following.startswith("'") else following.strip()

    def read(self) -> None:
        specifications = 0
        for number, line in enumerate(self.lines, 1):
            self.at = number
            key = line[1:].strip().lower() if line.startswith("'") else ""
            if key.startswith("test type"):
                if len(self.tables) >= TABLES_MAX:
                    self.warn(f"is one more test than {TABLES_MAX}")
                    return
                description = self.value().partition(",")[2]
                self.tables.append(ResultTable(description=description, line=number))
                self.headings = []
            elif key == "version":
                self.table.version = self.value()
            elif key == "time stamp":
                when = "ended" if self.headings else "began"
                setattr(self.table, when, self.value())
            elif key == "access specifications":
                specifications = number
            elif key == "end access specifications" and specifications:
                self._specifications(self.lines[specifications - 1 : number], specifications)
            elif key.startswith("target type,"):
                self.headings = [heading.strip() for heading in line[1:].split(",")]
            elif not key and line.strip() and self.headings and line.split(",")[0] in KINDS:
                self._row(line)
            elif not key and self.headings and line.strip() and not self._is_value():
                self.warn(f'"{line.strip()[:40]}" is no row')

    def _is_value(self) -> bool:
        """Whether the line above is a key."""
        return self.at >= 2 and self.lines[self.at - 2].startswith("'")

    def _specifications(self, lines: Sequence[str], first: int) -> None:
        text = "\n".join(_as_configuration(lines))
        try:
            read: IcfRead = read_icf("", text)
        except InputError as error:
            for mistake in error.mistakes:
                self.warnings.append(
                    Mistake(first - 1 + mistake.line, "", mistake.message, "it is passed over")
                )
            return
        self.table.specifications = {item.name: item.lines for item in read.icf.specifications}

    def _row(self, line: str) -> None:
        if len(self.table.rows) >= ROWS_MAX:
            return
        try:
            values = next(csv.reader([line]))
        except csv.Error as error:
            self.warn(f"is no row of a table: {error}")
            return
        if len(values) < len(_NAMES):
            self.warn("has no name and specification")
            return
        more = len(values) - len(self.headings)
        if more > 0 and any(value.strip() for value in values[len(self.headings) :]):
            self.warn(
                f"has {len(values)} columns of {len(self.headings)}: decimal commas part numbers",
                "save the table with decimal points",
            )
            return
        row = ResultRow(values[0], values[1].strip(), values[2].strip(), self.at)
        for heading, value in list(zip(self.headings, values, strict=False))[len(_NAMES) :]:
            number = _number(value)
            if number is None and value.strip():
                self.warn(f'"{value.strip()[:20]}" in {heading} is not a number')
            elif number is not None:
                row.figures[heading] = number
        self.table.rows.append(row)


def _as_configuration(lines: Sequence[str]) -> Iterator[str]:
    """Access specifications as a configuration has them.

    Here values stand without a tab, and the default assignment is a number.
    """
    names = ("NONE", "ALL", "DISK", "NET")
    is_name = False
    yield "Version 1.1.0"
    for line in lines:
        if line.startswith("'"):
            is_name = "specification name" in line.lower()
            yield line
        elif line.strip():
            name, _, default = line.strip().rpartition(",")
            if is_name and default in ("0", "1", "2", "3"):
                yield f"\t{name},{names[int(default)]}"
            else:
                yield f"\t{line.strip()}"
    yield "Version 1.1.0"


def _number(text: str) -> float | None:
    """A number; what divides by nothing in the original is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def check_results(table: ResultTable) -> list[Finding]:
    """What does not add up in a table, contradictions first."""
    found = [finding for rule in _RULES for finding in rule(table)]
    return sorted(found, key=lambda finding: finding.kind != CONTRADICTION)


def _where(row: ResultRow) -> str:
    return f"line {row.line}, {row.kind} {row.name}"


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > SHARE_SLACK * max(abs(one), abs(other)) + 1e-4


def _directions(table: ResultTable) -> Iterator[Finding]:
    """Reads and writes make all."""
    for row in table.rows:
        for name, read, write in (
            ("IOps", "Read IOps", "Write IOps"),
            ("Bytes", "Bytes Read", "Bytes Written"),
        ):
            whole, parts = row.figure(name), [row.figure(read), row.figure(write)]
            if whole is None or parts[0] is None or parts[1] is None:
                continue
            if _differ(whole, parts[0] + parts[1]):
                text = f"{name} is {whole:g}, reads and writes make {parts[0] + parts[1]:g}"
                yield Finding("iometer_directions", CONTRADICTION, _where(row), text)


def _sums(table: ResultTable) -> Iterator[Finding]:
    """Managers make all; workers make their managers, where there is one."""
    whole, managers, workers = (table.of(kind) for kind in ("ALL", "MANAGER", "WORKER"))
    pairs = [(whole, managers)] if len(whole) == 1 else []
    pairs += [(managers, workers)] if len(managers) == 1 else []
    for (row,), parts in pairs:
        rates = [part.figures.get("IOps") for part in parts]
        total, known = row.figures.get("IOps"), [rate for rate in rates if rate is not None]
        if parts and total is not None and len(known) == len(parts) and _differ(total, sum(known)):
            text = (
                f"IOps is {total:g}, the rows of each {parts[0].kind.lower()} make {sum(known):g}"
            )
            yield Finding("iometer_sums", CONTRADICTION, _where(row), text)


def _sizes(table: ResultTable) -> Iterator[Finding]:
    """Rate times mean size of the specification is the throughput, where all is read or written."""
    for row in table.of("ALL"):
        lines = table.specifications.get(row.specification)
        rate, throughput = row.figures.get("IOps"), row.mib_per_s
        if not lines or not rate or throughput is None or any(line.reply_bytes for line in lines):
            continue
        mean = mean_bytes(lines)
        measured = throughput * MIB / rate
        if abs(measured - mean) > 0.05 * mean:
            text = f"{measured:,.0f} bytes a transfer, but the specification makes {mean:,.0f}"
            yield Finding("iometer_sizes", ODDITY, _where(row), text)


def _depth(table: ResultTable) -> Iterator[Finding]:
    """Rate times latency is what was under way."""
    for row in table.of("WORKER"):
        rate, mean = row.figures.get("IOps"), row.figures.get("Average Response Time")
        depth, disks = row.figures.get("Queue Depth"), row.figures.get("# Disks")
        if not rate or not mean or not depth or depth < 0 or not disks:
            continue
        kept, asked = rate * mean / 1000, depth * disks
        if abs(kept - asked) > DEPTH_SLACK * asked + 0.5:
            text = f"{kept:.1f} transfers were under way, {asked:g} were asked for"
            yield Finding("iometer_depth", ODDITY, _where(row), text)


def _known_faults(table: ResultTable) -> Iterator[Finding]:
    """What the original does wrong, once for each table."""
    disks = table.of("DISK")
    repeated = [row for row in disks if any(name.startswith(_OF_WORKER) for name in row.figures)]
    if len(repeated) > 1:
        text = "raw sums and bins of a disk are those of its worker; do not add them up"
        yield Finding("iometer_disks", ODDITY, _where(repeated[0]), text)
    if any("2 to 4.7 s" in row.figures for row in table.rows):
        text = 'the bin "2 to 4.7 s" ends at 4 s, whatever its heading says'
        yield Finding("iometer_bin", ODDITY, f"line {table.line}", text)
    if any("MBps" in row.figures for row in table.rows):
        text = "MBps are binary megabytes (2^20 bytes) in this version"
        yield Finding("iometer_binary", ODDITY, f"line {table.line}", text)
    for row in table.rows:
        if errors := row.figures.get("Errors"):
            yield Finding("iometer_errors", ODDITY, _where(row), f"{errors:g} errors")
        if row.figures.get("Queue Depth") == -1:
            text = "the queue depth is -1: those of its workers differ"
            yield Finding("iometer_mixed", ODDITY, _where(row), text)


_RULES = (_directions, _sums, _sizes, _depth, _known_faults)
