"""A sizing as a workbook whose formulas live: change an input and every figure follows.

Every step of the chain has a row and its name is a name of the workbook, so a cell reads
`=user_count * mailbox_size_mb * database_overhead_factor / 1024` and not `=C4*C9*C12/1024`. Answers
and published figures stand on one sheet, what follows from them on another. The formulas are
written from the same expressions that gave the figures; a test has LibreOffice recalculate them.

Limit: the number of rows of the volume and placement sheets is that of the design sized; sizes on
them are live.
"""

from collections.abc import Iterable, Sequence
from io import BytesIO
from math import ceil
from typing import Any

import xlsxwriter

from plimsoll.sizing.design import Sizing
from plimsoll.sizing.output_json import cited_sources
from plimsoll.sizing.traced import WHOLE_DIGITS, Step, render
from plimsoll.units import SIZE_NOTE

SPREADSHEET_FUNCTIONS = {
    "ceil": f"ROUNDUP(ROUND({{}},{WHOLE_DIGITS}),0)",
    "floor": f"ROUNDDOWN(ROUND({{}},{WHOLE_DIGITS}),0)",
    "round_half_up": "ROUND({},0)",
    "max": "MAX({})",
    "min": "MIN({})",
    "if_at_most": "IF({}<={},{},{})",
}


def spreadsheet_formula(step: Step) -> str:
    """The definition of a step as a spreadsheet formula over names.

    Raises:
        ValueError: The step was given, not derived.

    Example:
        >>> from plimsoll.sizing.traced import ceil, derive, given
        >>> total = given("total_gb", 11505, "Total", "example")
        >>> spreadsheet_formula(derive("database_count", ceil(total / 1024), "Databases", "example"))
        '=ROUNDUP(ROUND(total_gb / 1024,9),0)'
    """  # noqa: E501
    if step.definition is None:
        raise ValueError(f"{step.name} was given and has no formula")
    return "=" + render(step.definition, lambda each: each.name, _call)


def _call(function: str, arguments: list[str]) -> str:
    template = SPREADSHEET_FUNCTIONS[function]
    if function in ("max", "min"):
        return template.format(",".join(arguments))
    return template.format(*arguments)


class Book:
    """A workbook being written: its sheets and formats."""

    def __init__(self) -> None:
        self.content = BytesIO()
        # What a file says is never a formula or a link: those are written as such.
        options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        self.file = xlsxwriter.Workbook(self.content, options)
        self.file.set_calc_mode("auto")
        formats: dict[str, dict[str, object]] = {
            "title": {"bold": True, "font_size": 14},
            "head": {"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"},
            "section": {"bold": True, "bg_color": "#E8EEF4"},
            "wrap": {"text_wrap": True, "valign": "top"},
            "number": {"num_format": "#,##0.00", "valign": "top"},
            "whole": {"num_format": "#,##0", "valign": "top"},
            "input": {
                "num_format": "#,##0.######",
                "bg_color": "#FFF8DC",
                "valign": "top",
                "border": 1,
            },
            "unit": {"font_color": "#606060", "valign": "top", "indent": 1},
            "dim": {"font_color": "#606060", "text_wrap": True, "valign": "top"},
            "line": {"font_color": "#606060"},
        }
        self.formats = {name: self.file.add_format(settings) for name, settings in formats.items()}

    def sheet(self, name: str, title: str, header: Sequence[str], widths: Sequence[int]) -> Any:
        """Add a sheet with a title in row 1 and a header in row 3 that stays in view."""
        sheet = self.file.add_worksheet(name)
        sheet.write(0, 0, title, self.formats["title"])
        for column, (text, width) in enumerate(zip(header, widths, strict=True)):
            sheet.set_column(column, column, width)
            sheet.write(2, column, text, self.formats["head"])
        sheet.freeze_panes(3, 0)
        sheet.set_landscape()
        sheet.fit_to_pages(1, 0)
        return sheet

    def rows(self, sheet: Any, rows: Iterable[Sequence[object]], first: int = 3) -> None:
        """Write plain rows: numbers as numbers, everything else as text."""
        for number, row in enumerate(rows, start=first):
            for column, value in enumerate(row):
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    kind = "whole" if value == int(value) else "number"
                    sheet.write_number(number, column, value, self.formats[kind])
                else:
                    sheet.write_string(number, column, str(value), self.formats["wrap"])

    def texts(
        self, sheet: Any, row: int, first: int, texts: Sequence[str], widths: Sequence[int]
    ) -> None:
        """Write texts beside a figure, the first one its unit, and make the row as high as the
        longest needs.
        """
        for column, text in enumerate(texts, start=first):
            sheet.write_string(
                row, column, text, self.formats["unit" if column == first else "dim"]
            )
        lines = max(
            ceil(len(text) * 1.1 / width) for text, width in zip(texts, widths[first:], strict=True)
        )
        if lines > 1:
            sheet.set_row(row, 15 * lines)

    def name_cell(self, name: str, sheet: str, row: int, column: int) -> None:
        """Give a cell the name of its step."""
        letter = chr(ord("A") + column)
        self.file.define_name(name, f"='{sheet}'!${letter}${row + 1}")


def sizing_workbook(sizing: Sizing) -> bytes:
    """Write the workbook.

    Args:
        sizing: What `size` returned.

    Returns:
        The content of an XLSX file.
    """
    book = Book()
    title = sizing.requirements.title or sizing.requirements.name
    _summary(book, sizing, title)
    _figures(book, sizing, title)
    _inputs(book, sizing)
    _users(book, sizing)
    _volumes(book, sizing)
    _placement(book, sizing)
    _comparisons(book, sizing)
    book.file.close()
    return book.content.getvalue()


SUMMARY = (
    "user_count",
    "mailbox_size_mb",
    "total_database_size_gb",
    "database_count",
    "database_size_gb",
    "database_volume_size_gb",
    "log_volume_size_gb",
    "total_capacity_gb",
    "total_capacity_all_copies_gb",
    "database_iops",
    "log_iops",
    "server_database_iops",
    "server_memory_gb",
    "path_utilisation_pct",
    "backup_window_h",
    "replay_h",
)


def _summary(book: Book, sizing: Sizing, title: str) -> None:
    sheet = book.sheet("Summary", f"Sizing: {title}", ("Figure", "Value", "Unit"), (52, 18, 18))
    reading = (
        "formulas as printed"
        if sizing.reading == "formulas"
        else f"as published by {sizing.reading}"
    )
    sheet.write(
        1, 0, f"{sizing.requirements.guidance.title}; {reading}. {SIZE_NOTE}", book.formats["line"]
    )
    results = sizing.results
    row = 3
    for step in (results[name] for name in SUMMARY if name in results):
        sheet.write(row, 0, step.title)
        kind = "whole" if step.unit == "count" else "number"
        sheet.write_formula(row, 1, f"={step.name}", book.formats[kind], step.value)
        sheet.write(row, 2, step.unit, book.formats["unit"])
        row += 1
    sheet.write(row + 1, 0, "Findings", book.formats["head"])
    for number, finding in enumerate(sizing.findings, start=row + 2):
        text = (
            f"{finding.level}: {finding.subject}: {finding.message}: {finding.advice} "
            f"[{finding.source}]"
        )
        sheet.merge_range(number, 0, number, 2, text, book.formats["wrap"])
        sheet.set_row(number, 32)


def _figures(book: Book, sizing: Sizing, title: str) -> None:
    header = ("Figure", "Value", "Unit", "Name", "Formula", "Source", "Note")
    widths = (44, 16, 16, 34, 70, 36, 30)
    sheet = book.sheet("Sizing", f"Every step: {title}", header, widths)
    shown: set[str] = set()
    row = 3
    sections = [(section.title, section.steps) for section in sizing.sections]
    on_the_way = tuple(
        step for step in sizing.steps if step.definition and step.name not in sizing.results
    )
    for heading, steps in [*sections, ("Steps on the way", on_the_way)]:
        derived = [step for step in steps if step.definition is not None and step.name not in shown]
        if not derived:
            continue
        for column in range(len(header)):
            sheet.write_string(row, column, "" if column else heading, book.formats["section"])
        row += 1
        for step in derived:
            shown.add(step.name)
            kind = "whole" if step.unit == "count" and step.value == int(step.value) else "number"
            sheet.write(row, 0, step.title, book.formats["wrap"])
            sheet.write_formula(row, 1, spreadsheet_formula(step), book.formats[kind], step.value)
            book.texts(
                sheet, row, 2, (step.unit, step.name, step.formula, step.source, step.note), widths
            )
            book.name_cell(step.name, "Sizing", row, 1)
            row += 1


def _inputs(book: Book, sizing: Sizing) -> None:
    header, widths = ("Input", "Value", "Unit", "Name", "Source", "Note"), (44, 16, 18, 34, 60, 30)
    sheet = book.sheet(
        "Inputs", "Answers, defaults and published figures: change the yellow cells", header, widths
    )
    row = 3
    for step in sizing.steps:
        if step.definition is None:
            sheet.write(row, 0, step.title, book.formats["wrap"])
            sheet.write_number(row, 1, step.value, book.formats["input"])
            book.texts(sheet, row, 2, (step.unit, step.name, step.source, step.note), widths)
            book.name_cell(step.name, "Inputs", row, 1)
            row += 1


def _users(book: Book, sizing: Sizing) -> None:
    table = sizing.users_table
    if table is None:
        return
    header = ("Mailbox GB", "Users that fit", "Users by IOPS", "Users", "Limit")
    sheet = book.sheet(
        "Users by mailbox size", "Users for each mailbox size", header, (24, 16, 16, 16, 14)
    )
    sheet.write(1, 0, table.basis, book.formats["line"])
    sheet.set_column(7, 7, 26)
    sheet.write(0, 7, "Space for mailboxes GB")
    sheet.write(1, 7, "IOPS for them")
    if table.measured:
        sheet.write_number(0, 8, table.mailbox_space_gb, book.formats["input"])
        sheet.write_number(1, 8, table.available_iops, book.formats["input"])
    else:
        space = "=mailbox_size_mb / 1024 * user_count"
        sheet.write_formula(0, 8, space, book.formats["number"], table.mailbox_space_gb)
        sheet.write_formula(1, 8, "=database_iops", book.formats["number"], table.available_iops)
    for number, row in enumerate(table.rows, start=3):
        cell = number + 1
        if row.mailbox_size_gb == table.design_mailbox_gb:
            sheet.write_formula(
                number, 0, "=mailbox_size_mb / 1024", book.formats["number"], row.mailbox_size_gb
            )
        else:
            sheet.write_number(number, 0, row.mailbox_size_gb, book.formats["input"])
        fits = f"=ROUNDDOWN(ROUND($I$1 / A{cell},{WHOLE_DIGITS}),0)"
        carried = f"=ROUNDDOWN(ROUND($I$2 / headroom_iops_per_user,{WHOLE_DIGITS}),0)"
        sheet.write_formula(number, 1, fits, book.formats["whole"], row.users_by_capacity)
        sheet.write_formula(number, 2, carried, book.formats["whole"], row.users_by_iops)
        sheet.write_formula(number, 3, f"=MIN(B{cell},C{cell})", book.formats["whole"], row.users)
        sheet.write_formula(
            number, 4, f'=IF(B{cell}<C{cell},"capacity","IOPS")', book.formats["wrap"], row.limit
        )
    last = 2 + len(table.rows)
    chart = book.file.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
    where = ["Users by mailbox size", 3, 0, last, 0]
    for column, name in ((3, "users"), (1, "users that fit"), (2, "users by IOPS")):
        chart.add_series(
            {
                "name": name,
                "categories": where,
                "values": ["Users by mailbox size", 3, column, last, column],
            }
        )
    chart.set_title({"name": "Users against mailbox size"})
    chart.set_x_axis({"name": "Mailbox size, GB", "min": 0})
    chart.set_y_axis({"name": "Users", "min": 0, "max": 2 * max(row.users for row in table.rows)})
    sheet.insert_chart("G4", chart, {"x_scale": 1.3, "y_scale": 1.3})


def _volumes(book: Book, sizing: Sizing) -> None:
    header = (
        "Volume",
        "Server",
        "Role",
        "Active",
        "GB",
        "Pool",
        "RAID",
        "Controller",
        "Format",
        "Mount point",
        "Paths",
    )
    sheet = book.sheet(
        "Volumes", "Provisioning plan", header, (14, 12, 10, 8, 12, 14, 10, 14, 40, 28, 70)
    )
    for number, volume in enumerate(sizing.volumes, start=3):
        form = (
            f"{volume.partition_table}, {volume.file_system}, {volume.allocation_unit_kb:g} KB "
            f"units, "
            f"partition at {volume.partition_offset_kb:g} KB"
        )
        paths = "; ".join(" > ".join(path) for path in volume.paths)
        active = "active" if volume.active else "passive"
        text = (
            volume.name,
            volume.server,
            volume.role,
            active,
            "",
            volume.pool,
            volume.raid,
            volume.controller,
        )
        book.rows(
            sheet,
            [(*text, form, volume.mount_point, f"{volume.multipath_policy}: {paths}")],
            number,
        )
        size = f"=ROUNDUP(ROUND({volume.role}_volume_size_gb,6),0)"
        sheet.write_formula(number, 4, size, book.formats["whole"], volume.size_gb)


def _placement(book: Book, sizing: Sizing) -> None:
    copies = sizing.requirements.copies.count
    header = ("Database", "Active on", *(f"Copy {number} on" for number in range(2, copies + 1)))
    sheet = book.sheet("Placement", "Which server holds which copy", header, (12,) * len(header))
    book.rows(
        sheet,
        [
            (placement.database + 1, *(f"server {server + 1}" for server in placement.servers))
            for placement in sizing.placements
        ],
    )


def _comparisons(book: Book, sizing: Sizing) -> None:
    if sizing.editions:
        columns = (
            "IOPS per user",
            "Database IOPS",
            "Total GB",
            "Databases",
            "Volume GB",
            "Log GB",
            "One copy GB",
        )
        header = ("Edition", *columns, "Cache MB per user", "Basis")
        widths = (44, *(13 for _ in columns), 14, 30)
        sheet = book.sheet(
            "Editions", "The same requirements under each edition's guidance", header, widths
        )
        book.rows(
            sheet,
            [
                (
                    row.title,
                    row.iops_per_user,
                    row.database_iops,
                    row.total_database_size_gb,
                    row.database_count,
                    row.database_volume_size_gb,
                    row.log_volume_size_gb,
                    row.total_capacity_gb,
                    row.cache_mb_per_user,
                    ", ".join(row.bases),
                )
                for row in sizing.editions
            ],
        )
    if sizing.differences:
        heading = "Where the paper's example and its formulas differ"
        names = ("Figure", "As published", "By the formulas", "Unit", "Why")
        sheet = book.sheet("Published example", heading, names, (32, 16, 16, 14, 80))
        book.rows(
            sheet,
            [
                (each.name, each.published, each.formulas, each.unit, each.reason)
                for each in sizing.differences
            ],
        )
    sheet = book.sheet("Sources", "Sources", ("Key", "Document"), (20, 100))
    book.rows(sheet, list(cited_sources(sizing).items()))
