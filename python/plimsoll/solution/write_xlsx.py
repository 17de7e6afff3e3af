"""The tables of a solution as a workbook.

Tables 1 to 9 on sheets of their own, each appendix on one.

Figures are numbers, so that a reader can compute with them; table 6 is made of formulas over the
databases beside it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import xlsxwriter

from plimsoll.pages.tables import Table
from plimsoll.solution import tables
from plimsoll.solution.document import Document, Heading, Lines
from plimsoll.solution.solution import Run, Solution

_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,10})?")
CELL_LETTERS_MAX = 32_000


def write_xlsx(solution: Solution, document: Document, path: Path) -> None:
    """Write the workbook."""
    with xlsxwriter.Workbook(str(path)) as book:
        # What a description or a report says must never be run as a formula.
        book.strings_to_formulas = book.strings_to_urls = False
        bold, note = (
            book.add_format({"bold": True, "text_wrap": True}),
            book.add_format({"italic": True}),
        )
        for table in (
            block
            for block in document.blocks
            if isinstance(block, Table) and re.match(r"Table \d", block.title)
        ):
            sheet = _sheet(book, table.title.partition(":")[0])
            row = _write_table(sheet, 0, table, bold, note)
            if table.title.startswith("Table 6"):
                _write_databases(sheet, row + 1, solution.runs["performance"], bold)
        for title, blocks in _appendices(document):
            sheet = _sheet(book, title)
            _write_blocks(sheet, blocks, bold, note)


def _sheet(book: Any, title: str) -> Any:
    """A sheet that prints as wide as a page, whatever is on it."""
    sheet = book.add_worksheet(title)
    sheet.set_landscape()
    sheet.set_paper(9)  # A4
    sheet.fit_to_pages(1, 0)
    sheet.set_margins(left=0.5, right=0.5, top=0.6, bottom=0.6)
    sheet.set_header(f"&L{title}")
    sheet.set_footer("&RPage &P of &N")
    return sheet


def _appendices(document: Document) -> list[tuple[str, list[Any]]]:
    found: list[tuple[str, list[Any]]] = []
    for block in document.blocks:
        if isinstance(block, Heading) and block.level == 1:
            found.append((block.text.partition(":")[0] if block.id else "", []))
        found[-1][1].append(block)
    return [(title, blocks) for title, blocks in found if title and title != "Appendix A"]


def _write_blocks(sheet: Any, blocks: list[Any], bold: Any, note: Any) -> None:
    row = 0
    for block in blocks:
        if isinstance(block, Heading):
            sheet.write_string(row, 0, block.text, bold)
            row += 1
        elif isinstance(block, Table):
            row = _write_table(sheet, row, block, bold, note)
        elif isinstance(block, Lines):
            for line in block.lines:
                sheet.write_string(row, 0, line[:CELL_LETTERS_MAX])
                row += 1
    sheet.set_column(0, 0, 44)
    sheet.set_column(1, 14, 18)


def _write_table(sheet: Any, row: int, table: Table, bold: Any, note: Any) -> int:
    if table.title:
        sheet.write_string(row, 0, table.title, bold)
        row += 1
    for column, heading in enumerate(table.headings):
        sheet.write_string(row, column, heading, bold)
    row += bool(table.headings)
    for cells in table.rows:
        for column, cell in enumerate(cells):
            _write_cell(sheet, row, column, cell, table)
        row += 1
    if table.note:
        sheet.write_string(row, 0, table.note, note)
        row += 1
    sheet.set_column(0, 0, 60)
    sheet.set_column(1, 6, 22)
    return row + 1


def _write_cell(sheet: Any, row: int, column: int, cell: Any, table: Table) -> None:
    text = cell if isinstance(cell, str) else table.shown(cell, column)
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        sheet.write_number(row, column, cell)
    elif column and _NUMBER.fullmatch(text):
        sheet.write_number(row, column, float(text))
    else:
        sheet.write_string(row, column, text[:CELL_LETTERS_MAX])


def _write_databases(sheet: Any, row: int, runs: tuple[Run, ...], bold: Any) -> None:
    """The databases behind table 6, and the same seven figures as formulas over them."""
    headings = [
        "Database",
        "Reads/s",
        "Writes/s",
        "Read latency (ms)",
        "Write latency (ms)",
        "Log writes/s",
        "Log write latency (ms)",
    ]
    for run in runs:
        for column, heading in enumerate([f"{run.machine or 'server'}: databases", *headings[1:]]):
            sheet.write_string(row, column, heading, bold)
        logs = {item["name"]: item["log_write"] for item in run.summary["instances"]}
        first = row + 1
        for place in run.summary["databases"]:
            row += 1
            sheet.write_string(row, 0, place["name"])
            read, write, log = (
                place["database_read"],
                place["database_write"],
                logs[place["instance"]],
            )
            figures = [
                read["per_s"],
                write["per_s"],
                tables.latency(read),
                tables.latency(write),
                log["per_s"],
                tables.latency(log),
            ]
            for column, figure in enumerate(figures, 1):
                if figure is not None:
                    sheet.write_number(row, column, figure)
        sheet.write_string(row + 1, 0, "Sum of rates, mean of latencies", bold)
        values = tables.server_figures(run)
        for column, (letter, value) in enumerate(
            zip(
                "BCDEFG",
                [values[1], values[2], values[3], values[4], values[5], values[6]],
                strict=True,
            ),
            1,
        ):
            rule = "AVERAGE" if column in (3, 4, 6) else "SUM"
            sheet.write_formula(
                row + 1,
                column,
                f"={rule}({letter}{first + 1}:{letter}{row + 1})",
                None,
                "" if value is None else float(value),
            )
        row += 3
