"""The text of a solution paper.

The reports in its appendices, out of tables that printing has broken.

The text is what `pdftotext -layout` prints of a paper, or any other way that keeps the cells of a
row together. Parts are found by their titles, labels by their words, rows by the names of
instances; everything between them (page headings, repeated column titles, prose) is passed over.
Reports follow each other: a new one begins where a part appears a second time. A test log that is
printed twice is taken once. A table that cannot be put together is left out of its report and named
among what was lost. Limit: English labels of the published template; figures in pictures are not in
the text.
"""

from __future__ import annotations

import re

from plimsoll.documents.reported import ReportedTest, ReportSource
from plimsoll.imports.jetstress import report_labels
from plimsoll.imports.jetstress.log_lines import TIME
from plimsoll.imports.jetstress.report_labels import PART_NAMED, Part, bare
from plimsoll.imports.papers.names import names_without_a_whole_one, whole_names, with_whole_names
from plimsoll.imports.papers.row_repair import blocks_of, cells_of, was_cut, whole_name
from plimsoll.imports.report_model import Row, Section, part_of, reported_of
from plimsoll.inputs.mistakes import InputError, Mistake

LINES_MAX = 400_000
#: Printing sometimes puts a blank into the name of an instance.
INSTANCE = re.compile(r"Instance ?\d+\.\d*|Instance ?\d+(?=\s|$)|\((?:Sum|Avg)\)")
DRIVE = re.compile(r"[A-Z]:(?=\s|$)")
APPENDIX = re.compile(r"\s*Appendix\s+([A-Z])\b[\s:.–—-]*(.*)", re.I)
#: Decimals of each table: the tool prints rates, sizes and latencies alike.
DECIMALS = 3
_FILE = r"(?<!\S)(\S{1,300}\.edb|\(Sum\))"
_CHECKSUM = re.compile(
    _FILE + r"\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*MB(?:ytes)?\s*/\s*(\d+)\s*sec", re.I
)
_BACKUP = re.compile(
    r"((?:Instance ?\d+(?:\.\d+)?|\((?:Sum|Avg)\)))\s+(\d+(?:\.\d+)?)\s+(\d+:\d{2}:\d{2})\s+(\d+(?:\.\d+)?)"  # noqa: E501
)
_RECOVERY = re.compile(r"((?:Instance ?\d+(?:\.\d+)?|\((?:Sum|Avg)\)))\s+(\d+)\s+(\d+\.\d+)")

#: What each row of these tables has once, whatever printing did to the rest of it.
_STARTS = {
    "checksum": (_FILE, r"MB(?:ytes)?\s*/\s*\d+\s*sec"),
    "backup": (r"Instance ?\d+", r"\d:\d{2}:\d{2}"),
    "recovery": (r"Instance ?\d+",),
}

Lines = list[tuple[int, str]]


def read_paper(name: str, text: str) -> list[ReportedTest]:
    """Every report in the text of a paper, in its order.

    Args:
        name: the file as the user named it.
        text: its content.

    Raises:
        InputError: it holds no report, or no result of a report can be put together; with the line
            and what was expected.
    """
    lines = content_lines(text)
    if len(lines) > LINES_MAX:
        raise InputError(
            name,
            [Mistake(0, "", f"has more than {LINES_MAX:,} lines", "no paper of this kind has")],
        )
    reports: list[ReportedTest] = []
    mistakes: list[Mistake] = []
    for appendix, parts in _split(lines):
        sections, lost = _sections(name, parts)
        try:
            report = reported_of(name, sections, lost)
        except InputError as error:
            mistakes += lost or list(error.mistakes)
            continue
        report["source"] = ReportSource(
            files=[name.rpartition("/")[2]],
            format="paper",
            part=_part_name(appendix, report, reports),
        )
        reports.append(report)
    if mistakes:
        raise InputError(name, mistakes)
    if not reports:
        hint = (
            'parts such as "Transactional I/O Performance" were expected; take the text with '
            "`pdftotext -layout`"
        )
        raise InputError(name, [Mistake(0, "", "holds no report of the test tool", hint)])
    return reports


def _part_name(appendix: str, report: ReportedTest, before: list[ReportedTest]) -> str:
    name = f"appendix-{appendix.lower()}" if appendix else "report"
    name = f"{name}-{report['test_type'].replace('_', '-')}"
    taken = sum(1 for other in before if other["source"]["part"].startswith(name))
    return f"{name}-{taken + 1}" if taken else name


def content_lines(text: str) -> Lines:
    """The lines of a text without what stands on every page: headings, footers and page numbers."""
    pages, number = [], 1
    for page in text.replace("\r\n", "\n").replace("\r", "\n").split("\f"):
        lines = [(number + place, line.rstrip()) for place, line in enumerate(page.split("\n"))]
        number += len(lines) - 1
        pages.append(lines)
    edges: dict[str, int] = {}
    for page_lines in pages:
        for _, line in _edges(page_lines):
            edges[_shape(line)] = edges.get(_shape(line), 0) + 1
    found: Lines = []
    often = max(3, len(pages) / 3)
    for page_lines in pages:
        # What begins or ends a third of the pages alike, but for its digits, is no content, unless
        # a part or row begins so.
        dropped = {
            number
            for number, line in _edges(page_lines)
            if edges[_shape(line)] >= often and not _is_content(line)
        }
        found += [(number, line) for number, line in page_lines if number not in dropped]
    return found


def _is_content(line: str) -> bool:
    text = line.strip()
    return bool(part_of(text) or TIME.match(text) or INSTANCE.match(text) or APPENDIX.match(text))


def _edges(lines: Lines) -> Lines:
    filled = [(number, line) for number, line in lines if line.strip()]
    return [filled[0], filled[-1]] if len(filled) > 1 else filled


def _shape(line: str) -> str:
    return re.sub(r"\d+", "#", " ".join(line.split()))


def _split(lines: Lines) -> list[tuple[str, list[tuple[Part, Lines]]]]:
    """The parts of each report, with the appendix it is in."""
    reports: list[tuple[str, list[tuple[Part, Lines]]]] = []
    appendix, taking = "", False
    for number, line in lines:
        match = APPENDIX.match(line)
        if match and not re.search(r"\.{4,}|\s\d+$", line):
            appendix, taking = match.group(1), False
            reports.append((appendix, []))
            continue
        part, rest = _begun(line)
        if part is not None:
            if not reports or _begins_another(part, [known.name for known, _ in reports[-1][1]]):
                reports.append((appendix, []))
            reports[-1][1].append((part, [(number, rest)]))
            taking = True
        elif taking:
            reports[-1][1][-1][1].append((number, line))
    return [
        (appendix, parts)
        for appendix, parts in reports
        if any(part.shape == report_labels.ROWS for part, _ in parts)
    ]


def _begun(line: str) -> tuple[Part | None, str]:
    """The part that a line begins, and what stands behind its title.

    The log's first entry may follow it in the same line.
    """
    if len(line) >= 200 or not line.strip():
        return None, ""
    time = TIME.search(line)
    if (
        time
        and (part := part_of(line[: time.start()])) is not None
        and part.shape == report_labels.LOG
    ):
        return part, line[time.start() :]
    return part_of(line), ""


def _begins_another(part: Part, names: list[str]) -> bool:
    """A second test summary, or any other part but the log, begins a report of its own."""
    if part.name == "log":
        return False
    if part.name == "summary":
        return any(name not in ("summary", "issues") for name in names)
    return part.name in names


def _sections(name: str, parts: list[tuple[Part, Lines]]) -> tuple[list[Section], list[Mistake]]:
    """Sections with whole cells, and what is wrong with those that could not be put together."""
    parts, repair = _with_whole_names(parts)
    known: list[str] = []
    for part, lines in parts:
        if part.name == "configuration":
            known = [row.cells[0] for row in _places(part, lines).rows]
    sections, mistakes = [], []
    for part, lines in parts:
        try:
            sections.append(_section(name, part, lines, known))
        except InputError as error:
            mistakes += list(error.mistakes)
    if repair and sections:
        sections[0].repairs.append(repair)
    return _one_log(sections), mistakes + _rows_that_are_missing(parts, sections)


def _with_whole_names(parts: list[tuple[Part, Lines]]) -> tuple[list[tuple[Part, Lines]], str]:
    """The parts with the names of instances as they were before the printing, and a sentence on how
    many were not.
    """
    every = [line for _, lines in parts for line in lines]
    known = whole_names(every) or names_without_a_whole_one(every)
    found, repaired = [], 0
    for part, lines in parts:
        whole, count = (
            with_whole_names(lines, known) if part.shape != report_labels.LOG else (lines, 0)
        )
        repaired += count
        found.append((part, whole))
    return (
        found,
        f"the names of {repaired} rows had lost or misplaced their point and were put right"
        if repaired
        else "",
    )


def _rows_that_are_missing(
    parts: list[tuple[Part, Lines]], sections: list[Section]
) -> list[Mistake]:
    """A table without a row of an instance that the other tables have.

    Its row is damaged beyond its name.
    """
    titles = {
        part.title for part, _ in parts if part.shape in (report_labels.ROWS, report_labels.PLACES)
    }
    named = {
        section.title: {row.cells[0] for row in section.rows if row.cells[0].startswith("Instance")}
        for section in sections
        if section.title in titles
    }
    every = set().union(*named.values())
    return [
        Mistake(
            section.line,
            f"{section.title}, {place}",
            "has no row",
            "other tables of the report name this instance; its row is damaged here",
        )
        for section in sections
        if named.get(section.title)
        for place in sorted(every - named[section.title])
    ]


def _one_log(sections: list[Section]) -> list[Section]:
    """The longest of several copies of the test log, as the others are its beginnings."""
    logs = [section for section in sections if section.title == PART_NAMED["log"].title]
    longest = max(logs, key=lambda section: len(section.lines), default=None)
    return [section for section in sections if section not in logs or section is longest]


def _section(name: str, part: Part, lines: Lines, known: list[str]) -> Section:
    match part.shape:
        case report_labels.PAIRS:
            return _pairs(part, lines)
        case report_labels.PLACES:
            return _places(part, lines)
        case report_labels.LEVELS:
            return _levels(name, part, lines)
        case report_labels.LOG:
            return Section(
                part.title,
                lines[0][0],
                lines=[(number, line) for number, line in lines if line.strip()],
            )
    if part.name in ("checksum", "backup", "recovery"):
        return _by_pattern(name, part, lines)
    return _rows(name, part, lines, DRIVE if part.name == "checksum_disks" else INSTANCE, known)


def _after(line: str, label: str) -> str | None:
    """What stands behind a label at the beginning of a line, whatever blanks and signs are in
    it.
    """
    wanted, place = bare(label), 0
    text = line.strip()
    for index, character in enumerate(text):
        if place == len(wanted):
            return text[index:].strip()
        if bare(character) == wanted[place]:
            place += 1
        elif bare(character):
            return None
    return "" if place == len(wanted) else None


def _pairs(part: Part, lines: Lines) -> Section:
    section = Section(part.title, lines[0][0])
    by_length = sorted(part.labels, key=lambda label: -len(bare(label.label)))
    for number, line in lines:
        if not line.strip():
            continue
        found = next(
            (
                (label, rest)
                for label in by_length
                if (rest := _after(line, label.label)) is not None
            ),
            None,
        )
        if found is not None:
            section.rows.append(Row(number, [found[0].label, found[1].lstrip(")]: ")]))
        elif section.rows:
            # A value that stands below its label, or the rest of a long path.
            row = section.rows[-1]
            label = next(label for label in part.labels if label.label == row.cells[0])
            if not row.cells[1] or label.kind in (report_labels.TEXT, report_labels.FILE):
                row.cells[1] = f"{row.cells[1]} {line.strip()}".strip()
    return section


def _places(part: Part, lines: Lines) -> Section:
    section = Section(part.title, lines[0][0])
    text = "\n".join(line for _, line in lines)
    for match in re.finditer(
        r"(Instance ?\d+(?:\.\d+)?)\s+Log path:\s*(\S+)((?:\s+Database:\s*\S+)+)", text
    ):
        databases = re.findall(r"Database:\s*(\S+)", match.group(3))
        number = lines[0][0] + text.count("\n", 0, match.start())
        cells = [f"Log path: {match.group(2)}", *(f"Database: {path}" for path in databases)]
        section.rows.append(Row(number, [_joined(match.group(1)), "\n".join(cells)]))
    return section


def _joined(name: str) -> str:
    """The name of a place without the blanks that printing put into it."""
    return re.sub(r"^Instance (?=\d)", "Instance", name)


def _levels(name: str, part: Part, lines: Lines) -> Section:
    section = Section(part.title, lines[0][0])
    titles = {
        label.label: re.compile(r"\s*".join(map(re.escape, label.label.split())), re.I)
        for label in part.labels
    }
    mistakes = []
    for title, pattern in titles.items():
        blocks = blocks_of(_until_next(lines, pattern, list(titles.values())), pattern)
        for block in blocks[:1]:
            cells = cells_of(block, 3, DECIMALS)
            if cells is None:
                mistakes.append(
                    _broken(
                        block.line,
                        f"{part.title}, {title}",
                        "average, minimum and maximum with three decimals",
                    )
                )
            else:
                section.rows.append(Row(block.line, [title, *cells]))
    if mistakes:
        raise InputError(name, mistakes)
    return section


def _until_next(
    lines: Lines, wanted: re.Pattern[str], all_patterns: list[re.Pattern[str]]
) -> Lines:
    """The lines from a label to the next label."""
    found: Lines = []
    for number, line in lines:
        if wanted.match(line.strip()):
            found = [(number, line)]
        elif found and any(pattern.match(line.strip()) for pattern in all_patterns):
            return found
        elif found:
            found.append((number, line))
    return found


def _broken(line: int, where: str, expected: str) -> Mistake:
    return Mistake(
        line,
        where,
        "cannot be put together from its pieces",
        f"{expected} were expected; the table is damaged here",
    )


def _by_pattern(name: str, part: Part, lines: Lines) -> Section:
    section = Section(part.title, lines[0][0])
    text = "\n".join(line for _, line in lines)
    pattern = {"checksum": _CHECKSUM, "backup": _BACKUP, "recovery": _RECOVERY}[part.name]
    for match in pattern.finditer(text):
        cells = [_joined(match.group(1)), *match.groups()[1:]]
        if part.name == "checksum":
            cells = [*cells[:5], f"{cells[5]} MBytes/{cells[6]} sec"]
        section.rows.append(Row(lines[0][0] + text.count("\n", 0, match.start()), cells))
    starts = max(len(re.findall(row, text, re.I)) for row in _STARTS[part.name])
    if starts > len(section.rows):
        columns = ", ".join(label.label for label in part.labels)
        raise InputError(name, [_broken(lines[0][0], part.title, f"{starts} rows of {columns}")])
    return section


def _rows(name: str, part: Part, lines: Lines, first: re.Pattern[str], known: list[str]) -> Section:
    section = Section(part.title, lines[0][0])
    mistakes, cut, seen = [], 0, []
    for block in blocks_of(lines, first):
        block.name = _joined(block.name)
        place = whole_name(block, known)
        cells = cells_of(block, len(part.labels), DECIMALS)
        if cells is None:
            mistakes.append(
                _broken(
                    block.line,
                    f"{part.title}, {place}",
                    f"{len(part.labels)} numbers with three decimals",
                )
            )
            continue
        cut += was_cut(block, cells)
        seen.append(place)
        section.rows.append(Row(block.line, [place, *cells]))
    if mistakes:
        raise InputError(name, mistakes)
    if cut:
        section.repairs.append(
            f"{part.title}: the cells of {cut} rows were cut in pieces and put together"
        )
    if len(seen) > len(set(seen)):
        section.repairs.append(
            f"{part.title}: rows of another table stand before its own and were left out"
        )
        last = {place: index for index, place in enumerate(seen)}
        section.rows = [section.rows[index] for index in sorted(last.values())]
    return section
