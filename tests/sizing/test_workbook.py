"""The workbook: its formulas live, and a program that is not ours recalculates them to the same
numbers.
"""

import csv
import io
import re
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from plimsoll.sizing.design import Sizing, size
from plimsoll.sizing.output_xlsx import sizing_workbook, spreadsheet_formula
from plimsoll.sizing.requirements import Requirements
from plimsoll.sizing.traced import (
    ceil,
    derive,
    floor,
    given,
    if_at_most,
    maximum,
    minimum,
    round_half_up,
)
from tests.support.sizing_designs import USERS, make

SOFFICE = shutil.which("soffice")
needs_office = pytest.mark.skipif(
    SOFFICE is None, reason="LibreOffice is not installed: apt-get install libreoffice-calc"
)


def test_functions_are_written_as_a_spreadsheet_knows_them() -> None:
    x, y = given("x_count", 3, "x", "t"), given("y_count", 2, "y", "t")
    for expression, formula in (
        (ceil(x / y), "=ROUNDUP(ROUND(x_count / y_count,9),0)"),
        (floor(x / y), "=ROUNDDOWN(ROUND(x_count / y_count,9),0)"),
        (round_half_up(x / y), "=ROUND(x_count / y_count,0)"),
        (maximum(x, y, 1), "=MAX(x_count,y_count,1)"),
        (minimum(x, y), "=MIN(x_count,y_count)"),
        (if_at_most(x, 75, 1.9, y), "=IF(x_count<=75,1.9,y_count)"),
        ((x + y) * (1 - y), "=(x_count + y_count) * (1 - y_count)"),
    ):
        assert spreadsheet_formula(derive("z_count", expression, "z", "t")) == formula
    with pytest.raises(ValueError, match="was given"):
        spreadsheet_formula(x)


def test_every_derived_step_is_a_formula_and_every_given_one_an_input() -> None:
    """A figure written as a plain number would stay as it was when an input is changed."""
    sizing = size(make())
    with zipfile.ZipFile(io.BytesIO(sizing_workbook(sizing))) as book:
        names = re.findall(
            r'<definedName name="(\w+)">\'?(\w+)\'?!', book.read("xl/workbook.xml").decode()
        )
    sheets = dict(names)
    assert {name for name, sheet in sheets.items() if sheet == "Sizing"} == {
        step.name for step in sizing.steps if step.definition is not None
    }
    assert {name for name, sheet in sheets.items() if sheet == "Inputs"} == {
        step.name for step in sizing.steps if step.definition is None
    }


def without_results(workbook: bytes, changed: Mapping[str, float], sizing: Sizing) -> bytes:
    """The workbook with every stored result removed and some inputs changed, so that only its
    formulas can answer.
    """
    rows = {
        step.name: row
        for row, step in enumerate((s for s in sizing.steps if s.definition is None), start=4)
    }
    cells = {f"B{rows[name]}": value for name, value in changed.items()}
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as source, zipfile.ZipFile(result, "w") as target:
        for item in source.infolist():
            content = source.read(item)
            if item.filename.startswith("xl/worksheets/sheet"):
                text = re.sub(r"(</f>)<v>[^<]*</v>", r"\1", content.decode())
                if "change the yellow cells" in sheet_title(source, item.filename):
                    for cell, value in cells.items():
                        text, count = re.subn(
                            rf'(<c r="{cell}"[^>]*>)<v>[^<]*</v>', rf"\g<1><v>{value!r}</v>", text
                        )
                        assert count == 1
                content = text.encode()
            target.writestr(item, content)
    return result.getvalue()


def sheet_title(book: zipfile.ZipFile, name: str) -> str:
    """The text of cell A1 of a sheet."""
    strings = re.findall(
        r"<si><t[^>]*>(.*?)</t></si>", book.read("xl/sharedStrings.xml").decode(), re.DOTALL
    )
    match = re.search(r'<c r="A1"[^>]*><v>(\d+)</v>', book.read(name).decode())
    return strings[int(match[1])] if match else ""


def recalculated(workbook: bytes, folder: Path) -> dict[str, float]:
    """What LibreOffice makes of the sheet of figures, by name of the step."""
    (folder / "sizing.xlsx").write_bytes(workbook)
    assert SOFFICE
    subprocess.run(
        [
            SOFFICE,
            f"-env:UserInstallation=file://{folder}/profile",
            "--headless",
            "--convert-to",
            # Separator, quote, UTF-8, from line 1, cells as stored and not as formatted, sheet 2.
            "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,2",
            "--outdir",
            str(folder),
            str(folder / "sizing.xlsx"),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    with (folder / "sizing-Sizing.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if len(row) > 3 and row[3]]
    return {row[3]: float(row[1]) for row in rows[1:]}


@needs_office
@pytest.mark.parametrize("reading", ["formulas", "dell_2010"])
def test_libreoffice_recalculates_the_same_numbers(reading: str, tmp_path: Path) -> None:
    """The formulas, with every stored result removed, give what Python gave."""
    sizing = size(make(databases={"max_size": "1 TB"}), reading)
    figures = recalculated(without_results(sizing_workbook(sizing), {}, sizing), tmp_path)
    expected = {step.name: step.value for step in sizing.steps if step.definition is not None}
    assert set(figures) == set(expected)
    for name, value in expected.items():
        assert figures[name] == pytest.approx(value, rel=1e-9), name


@needs_office
def test_a_changed_input_recalculates_to_what_python_says(tmp_path: Path) -> None:
    """An architect changes the users and the message size in the sheet.

    The sheet must follow as the program would.
    """
    sizing = size(make())
    changed = {"user_count": 7300, "message_kb": 120, "copy_count": 3, "server_count": 4}
    figures = recalculated(without_results(sizing_workbook(sizing), changed, sizing), tmp_path)
    users = USERS | {"count": 7300, "message_size": "120 KB"}
    other: Requirements = make(users=users, copies={"mode": "dag", "count": 3, "servers": 4})
    expected = {step.name: step.value for step in size(other).steps if step.definition is not None}
    for name, value in expected.items():
        assert figures[name] == pytest.approx(value, rel=1e-9), name
