"""A report of the test tool as one typed dictionary.

What HTML, XML and the text of a paper are all read into.

A reader of a format hands over sections: a title with rows of cells, or lines. Here they become one
dictionary whose names are those of the published results (`labels`), and the dictionary becomes
sections again. Whatever has no name here is kept under its own label in `other`. Every cell that is
not what its column promises is reported with its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plimsoll.documents.document import checked
from plimsoll.documents.reported import (
    Kind,
    ReportedChecksumRow,
    ReportedLevel,
    ReportedPaths,
    ReportedTest,
)
from plimsoll.imports.jetstress import report_labels
from plimsoll.imports.jetstress.log_lines import (
    base_name,
    read_log,
    read_time,
    write_event,
    write_time,
)
from plimsoll.imports.jetstress.report_labels import PART_OF, PARTS, Label, Part, bare
from plimsoll.inputs.mistakes import InputError, Mistake

#: A cell as a value; a table by place, as its columns are named.
Cell = str | float | bool | None
Table = dict[str, dict[str, Cell]]
NUMBER_MAX = 1e18
NOTHING = ("", "-", "–", "n/a", "none")
#: Parts that are tables by place, under the same name in the dictionary.
TABLES = (
    "transactional_io",
    "background_database_maintenance_io",
    "log_replication_io",
    "total_io",
)
RENAMED = {
    "backup": "database_backup_statistics",
    "recovery": "soft_recovery_statistics",
    "parameters": "jetstress_system_parameters",
    "configuration": "database_configuration",
    "host": "host_system_performance",
}


@dataclass
class Row:
    """Cells with the line they begin on."""

    line: int
    cells: list[str]


@dataclass
class Section:
    """A part of a report as a format has it."""

    title: str
    line: int = 0
    rows: list[Row] = field(default_factory=list)
    lines: list[tuple[int, str]] = field(default_factory=list)
    #: What had to be repaired to read it.
    repairs: list[str] = field(default_factory=list)


@dataclass
class _Reader:
    """Turns cells into values, and keeps the mistakes and what has no name here."""

    name: str
    decimal_comma: bool = False
    mistakes: list[Mistake] = field(default_factory=list)
    #: What was found, by the name of its part.
    parts: dict[str, object] = field(default_factory=dict)
    #: Lines without a name here, by the title of their part.
    other: dict[str, list[str]] = field(default_factory=dict)

    def wrong(self, line: int, where: str, message: str, hint: str = "") -> None:
        self.mistakes.append(Mistake(line, where, message, hint))

    def part(self, name: str) -> dict[str, object]:
        """A part that several sections add to."""
        found = self.parts.setdefault(name, {})
        assert isinstance(found, dict)
        return found

    def unnamed(self, title: str, *texts: str) -> None:
        """Keep lines that have no name here."""
        self.other.setdefault(title, []).extend(text[:500] for text in texts)

    def value(self, text: str, kind: str, line: int, where: str) -> Cell:
        text = " ".join(text.split())
        match kind:
            case report_labels.TEXT:
                return text
            case report_labels.FILE:
                return base_name(text) if text else ""
            case report_labels.TIME:
                time = read_time(text)
                if time is None and text:
                    self.wrong(
                        line,
                        where,
                        f'is "{text[:40]}", but a time was expected',
                        "4/21/2011 3:43:49 AM or 2011-04-21 03:43:49",
                    )
                return time
            case report_labels.FLAG:
                return text.lower() in ("true", "yes", "on")
            case report_labels.CLOCK:
                return self._clock(text, line, where)
        return self.number(text, line, where, whole=kind == report_labels.WHOLE)

    def _clock(self, text: str, line: int, where: str) -> str | None:
        if re.fullmatch(r"\d{1,5}:\d{2}:\d{2}(\.\d{1,9})?", text):
            return text
        self.wrong(
            line,
            where,
            f'is "{text[:40]}", but hours, minutes and seconds were expected',
            "04:41:38",
        )
        return None

    def number(
        self, text: str, line: int, where: str, *, whole: bool = False
    ) -> float | int | None:
        if text.lower() in NOTHING:
            return None
        bare_text = re.sub(
            r"\s*(%|MB(?:ytes)?|MBytes|\(per database\)|per database|sec|s|ms(?:ec)?)\s*$",
            "",
            text,
            flags=re.I,
        )
        if self.decimal_comma:
            bare_text = bare_text.replace(".", "").replace(",", ".")
        elif re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d+)?", bare_text):
            bare_text = bare_text.replace(",", "")
        if not re.fullmatch(r"-?\d{1,25}(\.\d{1,20})?", bare_text):
            self.wrong(
                line,
                where,
                f'is "{text[:40]}", but a number was expected',
                "the table is damaged; look at this line",
            )
            return None
        value = float(bare_text)
        if not 0 <= value <= NUMBER_MAX:
            self.wrong(
                line,
                where,
                f"is {text[:40]}, which no such report can hold",
                "a number from 0 to 1e18 was expected",
            )
            return None
        if whole and value != int(value):
            self.wrong(line, where, f"is {text[:40]}, but a whole number was expected")
        return int(value) if whole else value


def part_of(title: str) -> Part | None:
    """The part that a title begins, whatever stands behind it in brackets."""
    return PART_OF.get(bare(title)) or PART_OF.get(bare(title.partition("(")[0]))


def reported_of(name: str, sections: list[Section], lost: Sequence[Mistake] = ()) -> ReportedTest:
    """The report in its sections.

    Args:
        name: the file as the user named it.
        sections: in the order of the file.
        lost: what is wrong with parts that could not be read at all; kept under `losses`.

    Raises:
        InputError: with every cell that is not what its column promises, or when this is no report
            of the tool.
    """
    reader = _Reader(name, decimal_comma=_has_decimal_comma(sections))
    repairs: list[str] = []
    for section in sections:
        part = part_of(section.title)
        if part is None:
            _keep(reader, section)
            continue
        repairs += section.repairs
        _read_part(reader, part, section)
    if reader.mistakes:
        raise InputError(name, reader.mistakes)
    found = reader.parts
    if not any(
        key in found
        for key in (
            "transactional_io",
            "database_backup_statistics",
            "soft_recovery_statistics",
            "checksum",
        )
    ):
        seen = ", ".join(section.title for section in sections[:6]) or "nothing"
        hint = (
            f'sections such as "Transactional I/O Performance" or "Checksum Statistics - All" were '
            f"expected; found: {seen[:200]}"
        )
        raise InputError(name, [Mistake(0, "", "holds no results of the test tool", hint)])
    content = {
        "other": reader.other,
        "repairs": repairs,
        "losses": [_loss(mistake) for mistake in lost],
        **found,
        # Told below, from the checked parts.
        "test_type": "performance",
    }
    report: ReportedTest = checked(ReportedTest, content, name)
    report["test_type"] = test_type(report)
    return report


def _loss(mistake: Mistake) -> str:
    return f"line {mistake.line}, {mistake.where}: {mistake.message}; {mistake.hint}"


def _has_decimal_comma(sections: list[Section]) -> bool:
    """Whether the report was written where a comma stands before decimals.

    Some do, and no cell has a point before three.
    """
    cells = [cell for section in sections for row in section.rows for cell in row.cells[1:]]
    return any(re.fullmatch(r"0,\d+|\d+,\d{3}", cell) for cell in cells) and not any(
        re.fullmatch(r"\d+\.\d{3}", cell) for cell in cells
    )


def _keep(reader: _Reader, section: Section) -> None:
    """What has no name here, under its own."""
    texts = [" | ".join(row.cells) for row in section.rows] + [text for _, text in section.lines]
    if texts and section.title:
        reader.unnamed(section.title[:100], *texts[:1000])


def _read_part(reader: _Reader, part: Part, section: Section) -> None:
    key, found = RENAMED.get(part.name, part.name), reader.parts
    match part.shape:
        case report_labels.PAIRS:
            target = "test_summary" if part.name in ("summary", "sizing") else key
            reader.part(target).update(_pairs(reader, part, section))
        case report_labels.LEVELS:
            levels = _levels(reader, part, section)
            if part.name == "checksum_host":
                reader.part("checksum")["host_performance"] = levels
            else:
                found[key] = levels
        case report_labels.PLACES:
            found[key] = _places(reader, section)
        case report_labels.ROWS if part.name == "checksum":
            reader.part("checksum")["statistics"] = _checksums(reader, part, section)
        case report_labels.ROWS if part.name == "checksum_disks":
            rows = _rows(reader, part, section)
            reader.part("checksum")["disk_subsystem_performance"] = [
                {"logical_disk": place, **row} for place, row in rows.items()
            ]
        case report_labels.ROWS:
            rows = _rows(reader, part, section)
            if part.name == "backup":
                rows = {place: _with_seconds(row) for place, row in rows.items()}
            found[key] = rows
        case _ if part.name == "log":
            lines = section.lines or [(row.line, " ".join(row.cells)) for row in section.rows]
            before = found.setdefault("test_log_events", [])
            assert isinstance(before, list)
            before += read_log(lines)
        case _:
            found["issues"] = [text for _, text in section.lines] + [
                " ".join(row.cells) for row in section.rows
            ]


def _pairs(reader: _Reader, part: Part, section: Section) -> dict[str, Cell]:
    known = {bare(label.label): label for label in part.labels}
    values: dict[str, Cell] = {}
    for row in section.rows:
        if len(row.cells) < 2:
            continue
        title, text = row.cells[0], row.cells[1]
        label = known.get(bare(title))
        if label is not None and label.name == "thread_count" and "per database" in text.lower():
            label = next(item for item in part.labels if item.name == "thread_count_per_database")
        if label is None:
            reader.unnamed(part.title, f"{title} | {text}")
        else:
            values[label.name] = reader.value(text, label.kind, row.line, f"{part.title}, {title}")
    return values


def _columns(
    part: Part, section: Section, wanted: tuple[Label, ...]
) -> tuple[list[Label | None], list[Row]]:
    """What each column after the first is, by the heading if there is one, and the rows without
    headings.
    """
    known = {bare(label.label): label for label in wanted}
    columns: list[Label | None] = list(wanted)
    rows = []
    for row in section.rows:
        headings = [known.get(bare(cell)) for cell in row.cells[1:]]
        if any(headings):
            columns = headings
        elif row.cells and row.cells[0].strip():
            rows.append(row)
    return columns, rows


def _rows(reader: _Reader, part: Part, section: Section) -> Table:
    columns, rows = _columns(part, section, part.labels)
    table: Table = {}
    for row in rows:
        place = row.cells[0].strip()
        where = f"{part.title}, {place[:60]}"
        if len(row.cells) - 1 < len(columns):
            reader.wrong(
                row.line,
                where,
                f"has {len(row.cells) - 1} values",
                f"{len(columns)} were expected; the table is cut off here",
            )
            continue
        table[place] = {label.name: None for label in part.labels}
        for index, (label, cell) in enumerate(zip(columns, row.cells[1:], strict=False), 2):
            if label is None:
                reader.unnamed(part.title, f"{place}, column {index} | {cell}")
            else:
                table[place][label.name] = reader.value(
                    cell, label.kind, row.line, f"{where}, {label.label}"
                )
    if not table and not reader.mistakes:
        reader.wrong(
            section.line,
            part.title,
            "has no rows",
            "one for each instance was expected; the table is cut off",
        )
    return table


def _levels(reader: _Reader, part: Part, section: Section) -> Table:
    known = {bare(label.label): label for label in part.labels}
    columns, rows = _columns(part, section, report_labels.LEVEL_COLUMNS)
    levels: Table = {}
    for row in rows:
        label = known.get(bare(row.cells[0]))
        if label is None:
            reader.unnamed(part.title, " | ".join(row.cells))
        elif len(row.cells) < 4:
            reader.wrong(
                row.line,
                f"{part.title}, {label.label}",
                f"has {len(row.cells) - 1} values",
                "average, minimum and maximum were expected",
            )
        else:
            levels[label.name] = {
                column.name: reader.value(
                    cell, column.kind, row.line, f"{part.title}, {label.label}"
                )
                for column, cell in zip(columns, row.cells[1:], strict=False)
                if column is not None
            }
    return levels


_LENGTH = re.compile(r"([\d.,]+)\s*MB(?:ytes)?\s*/\s*([\d.,]+)\s*s(?:ec(?:onds)?)?\.?", re.I)


def _checksums(reader: _Reader, part: Part, section: Section) -> list[dict[str, Cell]]:
    statistics = []
    for place, row in _rows(reader, part, section).items():
        text = str(row.pop("file_length_mb/elapsed_s", ""))
        match = _LENGTH.fullmatch(text)
        if match is None:
            reader.wrong(
                section.line,
                f"{part.title}, {place[:60]}",
                f'has "{text[:40]}" for length and time',
                "995402 MBytes/12298 sec was expected",
            )
            continue
        length, seconds = (
            reader.number(group, section.line, f"{part.title}, {place[:60]}")
            for group in match.groups()
        )
        statistics.append(
            {
                "database": place,
                **row,
                "file_length_mb": _whole(length),
                "elapsed_s": _whole(seconds),
            }
        )
    return statistics


def _whole(value: float | int | None) -> float | int | None:
    return int(value) if value is not None and value == int(value) else value


def _with_seconds(row: dict[str, Cell]) -> dict[str, Cell]:
    clock = str(row.get("elapsed_hms") or "")
    seconds = (
        sum(
            float(part) * factor
            for part, factor in zip(clock.split(":"), (3600, 60, 1), strict=True)
        )
        if clock
        else None
    )
    return {
        name: value
        for item, given in row.items()
        for name, value in (
            [(item, given), ("elapsed_s", _whole(seconds))]
            if item == "elapsed_hms"
            else [(item, given)]
        )
    }


def _places(reader: _Reader, section: Section) -> dict[str, ReportedPaths]:
    """Log path and database files of each instance, however the cells are broken."""
    places: dict[str, ReportedPaths] = {}
    for row in section.rows:
        name = row.cells[0].strip() if row.cells else ""
        text = "\n".join(row.cells[1:])
        log = re.search(r"Log path:\s*([^\n]+?)\s*(?=$|\n|Database:)", text)
        databases = [
            found.strip()
            for found in re.findall(r"Database:\s*([^\n]+?)\s*(?=$|\n|Database:)", text)
        ]
        if not name or not (log or databases):
            continue
        places[name] = {
            "log_path": log.group(1) if log else None,
            "database_file": databases[0] if databases else None,
        }
        if len(databases) > 1:
            places[name]["further_database_files"] = databases[1:]
    if section.rows and not places:
        reader.wrong(
            section.line,
            section.title,
            "names no instance",
            "a log path and a database for each instance were expected",
        )
    return places


def test_type(found: ReportedTest) -> Kind:
    """Which test a report is of.

    By what it holds, then by the name of its counter log, which does not follow the duration.
    """
    if "database_backup_statistics" in found:
        return "database_backup"
    if "soft_recovery_statistics" in found:
        return "soft_recovery"
    if "transactional_io" not in found:
        return "checksum"
    log = (found.get("test_summary") or {}).get("performance_log") or ""
    return "stress" if log.lower().startswith("stress") else "performance"


def sections_of(found: ReportedTest) -> list[Section]:
    """A report as sections with the published titles, labels and columns, in the published
    order.
    """
    sections = []
    for part in PARTS:
        section = Section(part.title)
        match part.shape:
            case report_labels.PAIRS:
                values = _part_named(found, part)
                section.rows = [
                    Row(0, [label.label, written(values[label.name], label.kind)])
                    for label in part.labels
                    if label.name in values
                ]
            case report_labels.LEVELS:
                checksum = found.get("checksum") or {}
                levels = (
                    found.get("host_system_performance")
                    if part.name == "host"
                    else checksum.get("host_performance")
                )
                section.rows = _level_rows(part, levels or {})
            case report_labels.PLACES:
                section.rows = [
                    Row(
                        0,
                        [
                            name,
                            "\n".join(
                                [
                                    f"Log path: {place['log_path']}",
                                    *(
                                        f"Database: {path}"
                                        for path in [
                                            place["database_file"],
                                            *place.get("further_database_files", []),
                                        ]
                                    ),
                                ]
                            ),
                        ],
                    )
                    for name, place in (found.get("database_configuration") or {}).items()
                ]
            case report_labels.ROWS:
                section.rows = _table_rows(part, found)
            case _ if part.name == "log":
                instances, volumes = names_of(found), volumes_of(found)
                section.lines = [
                    (0, write_event(event, instances, volumes))
                    for event in found.get("test_log_events") or []
                ]
            case _:
                section.lines = [(0, text) for text in found.get("issues") or []]
        if section.rows or section.lines:
            sections.append(section)
    return sections


def _part_named(found: ReportedTest, part: Part) -> Mapping[str, object]:
    """What a report has of a part, which is one of its keys."""
    summary = part.name in ("summary", "sizing")
    key = "test_summary" if summary else RENAMED.get(part.name, part.name)
    value = dict[str, object](found).get(key) or {}
    assert isinstance(value, dict)
    return value


def checksums_of(report: ReportedTest) -> list[ReportedChecksumRow]:
    """The rows of a report's checksum.

    One for each file, and one of sums whose name begins with a parenthesis; none where it has none.
    """
    return (report.get("checksum") or {}).get("statistics") or []


def names_of(found: ReportedTest) -> list[str]:
    """The instances of a report."""
    tables: tuple[Mapping[str, object] | None, ...] = (
        found.get("database_configuration"),
        found.get("transactional_io"),
        found.get("database_backup_statistics"),
        found.get("soft_recovery_statistics"),
    )
    named = next((table for table in tables if table), {})
    return [name for name in named if not name.startswith("(")]


def volumes_of(found: ReportedTest) -> list[str]:
    """The volumes that databases lie on."""
    files = [
        place["database_file"] or ""
        for place in (found.get("database_configuration") or {}).values()
    ]
    return list(dict.fromkeys(path[:2] for path in files if path[1:2] == ":")) or names_of(found)


def _level_rows(part: Part, levels: Mapping[str, ReportedLevel]) -> list[Row]:
    rows = [
        Row(
            0,
            [
                label.label,
                *(
                    written(levels[label.name].get(column.name), label.kind)
                    for column in report_labels.LEVEL_COLUMNS
                ),
            ],
        )
        for label in part.labels
        if label.name in levels
    ]
    return (
        [Row(0, [part.first, *(column.label for column in report_labels.LEVEL_COLUMNS)]), *rows]
        if rows
        else []
    )


def _table_rows(part: Part, found: ReportedTest) -> list[Row]:
    checksum, table = found.get("checksum") or {}, dict[str, Mapping[str, object]]()
    if part.name == "checksum":
        table = {
            item["database"]: {
                **item,
                "file_length_mb/elapsed_s": f"{written(item['file_length_mb'], report_labels.EXACT)} MBytes/{written(item['elapsed_s'], report_labels.EXACT)} sec",  # noqa: E501
            }
            for item in checksums_of(found)
        }
    elif part.name == "checksum_disks":
        table = {
            item["logical_disk"]: item for item in checksum.get("disk_subsystem_performance") or []
        }
    else:
        for place, row in _part_named(found, part).items():
            assert isinstance(row, dict)
            table[place] = row
    rows = [
        Row(0, [place, *(written(row.get(label.name), label.kind) for label in part.labels)])
        for place, row in table.items()
    ]
    return [Row(0, [part.first, *(label.label for label in part.labels)]), *rows] if rows else []


def written(value: object, kind: str) -> str:
    """A value as the report prints it."""
    if value is None:
        return "-"
    if kind == report_labels.TIME:
        return write_time(str(value))
    if not isinstance(value, (int, float)):
        return str(value)
    match kind:
        case report_labels.DECIMAL:
            return f"{value:.3f}"
        case report_labels.PERCENT:
            return f"{value:g}%"
        case report_labels.MEGABYTES:
            return f"{value:.1f} MB"
        case report_labels.FLAG:
            return "True" if value else "False"
    return str(value)
