"""A cost study as a workbook whose formulas live.

Change a price or a number of drives and every figure follows.

Each option has a sheet of its own: a row for every figure, inputs in yellow, everything else a
formula written from the same expression that gave the figure here. Names such as `drive_count` are
names of that sheet, so the options do not get into each other's way. The first sheet compares the
options, and its cells point to theirs. Statements stand on a sheet as they were judged; they do not
follow a changed input. A test has LibreOffice recalculate the options and the comparison.
"""

from __future__ import annotations

from plimsoll.sizing.cost import OptionCost
from plimsoll.sizing.cost_study import CostStudy
from plimsoll.sizing.output_xlsx import Book, spreadsheet_formula

FIRST_ROW = 3
VALUE_COLUMN = 1


def cost_workbook(study: CostStudy) -> bytes:
    """Write the workbook.

    Args:
        study: what `read_cost_study` returned.

    Returns:
        The content of an `.xlsx` file.
    """
    book = Book()
    names = [cost.option.name for cost in study.options]
    others = [name for name in names if name != study.reference]
    header = ["Figure", *names, *(f"{name} / {study.reference}" for name in others), "Unit"]
    comparison = book.sheet("Comparison", study.name, header, [44, *(16 for _ in header[1:])])
    for row, figure in enumerate(_compared(study), start=FIRST_ROW):
        steps = {cost.option.name: cost.figures.get(figure) for cost in study.options}
        known = next(step for step in steps.values() if step)
        comparison.write_string(row, 0, known.title, book.formats["wrap"])
        for column, name in enumerate(names, start=1):
            step = steps[name]
            if step is None:
                comparison.write_string(row, column, "not stated", book.formats["dim"])
            else:
                comparison.write_formula(
                    row,
                    column,
                    f"={_cell(study.option(name), figure)}",
                    book.formats["number"],
                    step.value,
                )
        for column, name in enumerate(others, start=1 + len(names)):
            ratio = study.ratio(name, figure)
            if ratio is not None:
                over, under = (
                    _cell(study.option(name), figure),
                    _cell(study.option(study.reference), figure),
                )
                comparison.write_formula(
                    row, column, f"={over}/{under}", book.formats["number"], ratio
                )
        comparison.write_string(row, len(header) - 1, known.unit, book.formats["unit"])
    for cost in study.options:
        _option_sheet(book, cost)
    if study.claims:
        sheet = book.sheet(
            "Statements",
            "Statements next to the figures",
            ["", "Statement", "Stated", "Computed", "Off by %", ""],
            [22, 60, 12, 14, 10, 16],
        )
        words = {True: "holds", False: "does not hold", None: "not evaluated"}
        blank: tuple[object, object] = ("", "")
        book.rows(
            sheet,
            [
                (
                    c.id,
                    c.statement,
                    c.stated,
                    *((c.computed, c.difference_pct or 0.0) if c.computed is not None else blank),
                    words[c.holds],
                )
                for c in study.claims
            ],
            FIRST_ROW,
        )
    book.file.close()
    return book.content.getvalue()


def _compared(study: CostStudy) -> list[str]:
    """Figures that follow from others, in the order of the first option that has them."""
    found: dict[str, None] = {}
    for cost in study.options:
        found |= {name: None for name, step in cost.figures.items() if step.definition is not None}
    return list(found)


def _cell(cost: OptionCost, figure: str) -> str:
    """Where a figure of an option stands, for a formula of another sheet."""
    row = FIRST_ROW + list(cost.figures).index(figure) + 1
    return f"'{cost.option.name}'!$B${row}"


def _option_sheet(book: Book, cost: OptionCost) -> None:
    widths = (44, 16, 12, 34, 60, 60)
    name = cost.option.name
    header = ("Figure", "Value", "Unit", "Name", "Formula", "Source")
    sheet = book.sheet(
        name, f"{name}: {cost.option.title}; change the yellow cells", header, widths
    )
    for row, (figure, step) in enumerate(cost.figures.items(), start=FIRST_ROW):
        sheet.write_string(row, 0, step.title, book.formats["wrap"])
        if step.definition is None:
            sheet.write_number(row, VALUE_COLUMN, step.value, book.formats["input"])
        else:
            sheet.write_formula(
                row, VALUE_COLUMN, spreadsheet_formula(step), book.formats["number"], step.value
            )
        book.texts(sheet, row, 2, (step.unit, figure, step.formula or "given", step.source), widths)
        book.file.define_name(f"'{name}'!{figure}", f"='{name}'!$B${row + 1}")
