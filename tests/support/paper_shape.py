"""Text in the shape that `pdftotext` prints of a solution paper, built from figures.

Every sentence is ours.

Tables are damaged as the published text is: column titles and rows of another table repeated, cells
cut in two, the halves below each other, one after the other, with a blank line between, or side by
side; logs printed twice; paths broken."""

from __future__ import annotations

import random
import re
from typing import Any

from plimsoll.imports.jetstress import report_labels
from plimsoll.imports.jetstress.report_labels import PARTS
from plimsoll.imports.report_model import Section, sections_of

PARTS_BY_TITLE = {part.title: part for part in PARTS}
#: How the cells of wide tables are broken: not at all, halves below, after each other, with blank
#: lines, side by side.
WHOLE, BELOW, SEQUENCE, BLANKS, SPACE = "whole", "below", "sequence", "blanks", "space"
#: Cut in two lines where some cells were not cut: the line of the ends has gaps.
TAILS = "tails"
#: What a printed page does to a text beside its tables.
TITLE_WITH_ENTRY, BLANK_IN_NAME, STRAY_HEADINGS, ALL = (
    "title with entry",
    "blank in name",
    "stray headings",
    "all",
)
FAULTS = (TITLE_WITH_ENTRY, BLANK_IN_NAME, STRAY_HEADINGS, ALL)
WIDE = ("Transactional I/O Performance", "Total I/O Performance")


def _halves(text: str, chance: random.Random) -> tuple[str, str]:
    cut = chance.randint(1, len(text) - 1)
    return text[:cut], text[cut:]


def _broken_row(cells: list[str], way: str, chance: random.Random) -> list[str]:
    if way == WHOLE:
        return ["  ".join(f"{cell:<14}" for cell in cells).rstrip()]
    # A name is cut only behind its point, as a page cuts it.
    name, end = cells[0].rsplit(".", 1)
    pairs = [(f"{name}.", end), *(_halves(cell, chance) for cell in cells[1:])]
    if way == BELOW:
        return ["  ".join(f"{pair[half]:<12}" for pair in pairs).rstrip() for half in (0, 1)]
    if way == TAILS:
        pairs = [
            pair if index == 0 or chance.random() < 0.6 else (cells[index], "")
            for index, pair in enumerate(pairs)
        ]
        # The columns of the ends do not stand exactly below those of the heads.
        return [
            "  ".join(f"{head:<12}" for head, _ in pairs).rstrip(),
            "   ".join(tail for _, tail in pairs if tail),
        ]
    if way == SPACE:
        return [" ".join([cells[0], *(f"{head} {tail}" for head, tail in pairs[1:])])]
    lines = [piece for pair in pairs for piece in pair]
    return [line for piece in lines for line in ((piece, "") if way == BLANKS else (piece,))]


def _table(section: Section, way: str, chance: random.Random) -> list[str]:
    heading, *rows = section.rows
    lines = ["  ".join(heading.cells)]
    for row in rows:
        lines += _broken_row(row.cells, way, chance)
    return lines


def _section_lines(section: Section, way: str, chance: random.Random) -> list[str]:
    part = PARTS_BY_TITLE[section.title]
    if part.shape == report_labels.PAIRS:
        return [f"{row.cells[0]:<45}{_path(row.cells)}" for row in section.rows]
    if part.shape == report_labels.LOG:
        return [line for _, text in section.lines for line in _log_line(text)]
    if part.shape == report_labels.PLACES:
        return [line for row in section.rows for line in _place_lines(row.cells)]
    return _table(section, way if section.title in WIDE else WHOLE, chance)


def _path(cells: list[str]) -> str:
    return (
        f"C:\\Program Files\\Exchange\nJetstress\\{cells[1]}"
        if cells[0] == "Performance Log"
        else cells[1]
    )


def _log_line(text: str) -> list[str]:
    # A long line goes on below, as printing broke it.
    return (
        [text]
        if len(text) < 100
        else [text[: text.rindex(" ", 0, 90)], text[text.rindex(" ", 0, 90) + 1 :]]
    )


def _place_lines(cells: list[str]) -> list[str]:
    log, *databases = cells[1].split("\n")
    return [f"{cells[0]:<20}{log}", *(" " * 20 + text for text in databases)]


def report_lines(report: dict[str, Any], way: str = WHOLE, seed: int = 1) -> list[str]:
    """A report as lines of a paper."""
    chance = random.Random(seed)
    sections = sections_of(report)
    by_title = {section.title: section for section in sections}
    lines: list[str] = []
    for section in sections:
        if section.title == "Checksum Statistics - All" and "Test Log" in by_title and way != WHOLE:
            # The short copy of the log stands before the checksum.
            lines += [
                "Test Log",
                *_section_lines(
                    Section("Test Log", lines=by_title["Test Log"].lines[:5]), WHOLE, chance
                ),
                "",
            ]
        lines += [section.title]
        if section.title == "Total I/O Performance" and way != WHOLE:
            lines += _table(by_title["Transactional I/O Performance"], WHOLE, chance)
            lines += ["", "  ".join(section.rows[0].cells)]
        lines += [*_section_lines(section, way, chance), ""]
    return lines


def printed_with(fault: str, lines: list[str]) -> list[str]:
    """Lines of a report with a fault of printing."""
    found: list[str] = []
    title = ""
    for line in lines:
        title = line if line in PARTS_BY_TITLE else title
        if fault in (BLANK_IN_NAME, ALL):
            line = re.sub(r"^Instance(?=\d)", "Instance ", line)
        if fault in (TITLE_WITH_ENTRY, ALL) and found and found[-1] == "Test Log" and line:
            found[-1] = f"Test Log {line}"
            continue
        found.append(line)
        if (
            fault in (STRAY_HEADINGS, ALL)
            and title == "Total I/O Performance"
            and re.match(r"Instance ?\d+\.", line)
        ):
            found += [
                "I/O Database",
                "Reads Average",
                "Latency (msec)",
                "MSExchange Database ==> Instances",
            ]
    return found


def paper(reports: list[tuple[str, dict[str, Any], str]], tables: list[str] | None = None) -> str:
    """A paper: appendices with their letter and way of damage, with a heading and a number on each
    page.
    """
    lines = ["A storage solution for tests of an importer", "", *(tables or [])]
    for number, (letter, report, way) in enumerate(reports):
        if letter:
            lines += ["", f"Appendix {letter}: a report", ""]
        lines += report_lines(report, way, seed=number)
    pages = [lines[start : start + 40] for start in range(0, len(lines), 40)]
    return "\f".join(
        "\n".join(["Storage solution for readers", "", *page, "", f"                    {number}"])
        for number, page in enumerate(pages, 1)
    )
