"""The workbook of a cost study.

Its formulas live, and LibreOffice recalculates them to the same numbers.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from plimsoll.sizing.cost_study import CostStudy, read_cost_study
from plimsoll.sizing.cost_workbook import cost_workbook

SOFFICE = shutil.which("soffice")
EXAMPLE = Path(__file__).parents[2] / "examples" / "cost_two_designs.toml"
needs_office = pytest.mark.skipif(
    SOFFICE is None, reason="LibreOffice is not installed: apt-get install libreoffice-calc"
)


def changed(workbook: bytes, sheet: str, cell: str, value: float) -> bytes:
    """The workbook with every stored result removed and one input changed, so that only its
    formulas can answer.
    """
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as source, zipfile.ZipFile(result, "w") as target:
        order = re.findall(r'<sheet name="(\w+)"', source.read("xl/workbook.xml").decode())
        for item in source.infolist():
            content = source.read(item)
            if item.filename.startswith("xl/worksheets/sheet"):
                text = re.sub(r"(</f>)<v>[^<]*</v>", r"\1", content.decode())
                if item.filename == f"xl/worksheets/sheet{order.index(sheet) + 1}.xml":
                    text, count = re.subn(
                        rf'(<c r="{cell}"[^>]*>)<v>[^<]*</v>', rf"\g<1><v>{value!r}</v>", text
                    )
                    assert count == 1
                content = text.encode()
            target.writestr(item, content)
    return result.getvalue()


def recalculated(workbook: bytes, folder: Path) -> dict[str, list[list[str]]]:
    """What LibreOffice makes of every sheet."""
    (folder / "cost.xlsx").write_bytes(workbook)
    assert SOFFICE
    # Separator, quote, UTF-8, from line 1, cells as stored and not as formatted, all sheets.
    form = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1"
    subprocess.run(
        [
            SOFFICE,
            f"-env:UserInstallation=file://{folder}/profile",
            "--headless",
            "--convert-to",
            form,
            "--outdir",
            str(folder),
            str(folder / "cost.xlsx"),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return {
        path.stem.removeprefix("cost-"): list(csv.reader(path.open(encoding="utf-8")))
        for path in folder.glob("cost-*.csv")
    }


def figures(sheet: list[list[str]]) -> dict[str, float]:
    """The value of each figure of an option's sheet, by name."""
    return {row[3]: float(row[1]) for row in sheet[3:] if len(row) > 3 and row[3]}


def row_of(study: CostStudy, option: str, figure: str) -> int:
    """The row a figure stands on."""
    return 4 + list(study.option(option).figures).index(figure)


@needs_office
def test_TCO_05_libreoffice_recalculates_the_same_numbers(tmp_path: Path) -> None:
    """The formulas of both options, with every stored result removed, give what Python gave."""
    study = read_cost_study()
    row = row_of(study, "hdd", "drive_price_usd")
    sheets = recalculated(changed(cost_workbook(study), "hdd", f"B{row}", 307.99), tmp_path)
    for cost in study.options:
        found = figures(sheets[cost.option.name])
        assert set(found) == set(cost.figures)
        for name, step in cost.figures.items():
            assert found[name] == pytest.approx(step.value, rel=1e-9), name
    purchase = next(row for row in sheets["Comparison"] if row and row[0] == "Purchase")
    assert [float(cell) for cell in purchase[1:4]] == pytest.approx(
        [5600, 34_175.28, 6.1027], rel=1e-4
    )
    assert any(
        row[0] == "S-03a" and row[5] == "does not hold" for row in sheets["Statements"] if row
    )


@needs_office
def test_a_changed_price_recalculates_to_what_python_says(tmp_path: Path) -> None:
    """A buyer types another quotation into the sheet.

    The sheet must follow as the program would.
    """
    study = read_cost_study(EXAMPLE)
    row = row_of(study, "hard_drives", "drive_price_usd")
    sheets = recalculated(changed(cost_workbook(study), "hard_drives", f"B{row}", 410.5), tmp_path)
    other = tmp_path / "other.toml"
    other.write_text(
        EXAMPLE.read_text().replace("drive_price_usd = 330", "drive_price_usd = 410.5")
    )
    expected = read_cost_study(other)
    for name, step in expected.option("hard_drives").figures.items():
        assert figures(sheets["hard_drives"])[name] == pytest.approx(step.value, rel=1e-9), name
    purchase = next(row for row in sheets["Comparison"] if row and row[0] == "Purchase")
    assert float(purchase[3]) == pytest.approx(expected.ratio("hard_drives", "purchase_usd"))


def test_every_derived_figure_is_a_formula() -> None:
    """A figure written as a plain number would stay as it was when an input is changed."""
    study = read_cost_study()
    with zipfile.ZipFile(io.BytesIO(cost_workbook(study))) as book:
        sheets = [book.read(f"xl/worksheets/sheet{number}.xml").decode() for number in (2, 3)]
        names = book.read("xl/workbook.xml").decode()
    for cost, sheet in zip(study.options, sheets, strict=True):
        derived = sum(step.definition is not None for step in cost.figures.values())
        assert sheet.count("<f>") == derived
    assert names.count('name="drive_count"') == 2, "each option has names of its own"


@pytest.mark.parametrize(
    "name", ['=HYPERLINK("file:///etc/passwd")', "{=4711+1}", "https://example.org/4711"]
)
def test_what_a_study_is_called_is_no_formula(name: str) -> None:
    """Studies come by mail, and workbooks are handed on."""
    with zipfile.ZipFile(io.BytesIO(cost_workbook(replace(read_cost_study(), name=name)))) as book:
        sheets = [
            book.read(item).decode()
            for item in book.namelist()
            if item.startswith("xl/worksheets/")
        ]
    formulas = "".join(re.findall(r"<f[^>]*>(.*?)</f>", "".join(sheets)))
    assert "$B$7" in formulas
    assert not re.search(r"HYPERLINK|4711", formulas)
    assert not any("hyperlink" in sheet for sheet in sheets)
