"""A fixed run folder gives a fixed summary, verdict and report.

How the report reads and draws is tested in tests/report.
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import plimsoll
from plimsoll.files import folder, parquet
from plimsoll.report.page import render
from tests.support.plain_stages import judge, summarize

GOLDEN = Path(__file__).parents[1] / "golden" / "run"
WRITE = os.environ.get("PLIMSOLL_WRITE_GOLDEN") == "1"


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden run with its later stages done anew."""
    copy = tmp_path_factory.mktemp("golden") / "run"
    shutil.copytree(GOLDEN, copy)
    plan, environment = (
        folder.read_json(copy / name) for name in (folder.PLAN, folder.ENVIRONMENT)
    )
    summary = summarize(copy)
    folder.write_json(copy / folder.SUMMARY, summary)
    folder.write_json(copy / folder.VERDICT, judge(plan, summary, environment))
    (copy / folder.REPORT).write_text(render(copy), encoding="utf-8")
    return copy


def rounded(value: Any) -> Any:
    """Sums of floats may differ in the last digit with the order in which they are added."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def without_scripts(html: str) -> str:
    """The report without the charting libraries, whose text belongs to their authors, and without
    chart data.
    """
    return re.sub(r"<script>.*?</script>", "<script></script>", html, flags=re.DOTALL)


def test_steps_share_one_database_and_leave_nothing_in_it(tmp_path: Path) -> None:
    """Each step made a database of its own, for 17 ms; a table of one is no business of another."""
    run_folder = shutil.copytree(GOLDEN, tmp_path / "run")
    with parquet.database() as database:
        with parquet.database() as other:
            other.execute("CREATE TABLE seen AS SELECT 1")
        assert database.execute("FROM seen").fetchall() == [(1,)]
        database.execute("DROP TABLE seen")
        plimsoll.judge(run_folder)
        left = database.execute(
            "SELECT table_name FROM duckdb_tables() WHERE NOT temporary UNION ALL"
            " SELECT view_name FROM duckdb_views() WHERE NOT temporary AND NOT internal"
        )
        assert left.fetchall() == []


@pytest.mark.parametrize("name", [folder.SUMMARY, folder.VERDICT])
def test_golden_json(run_folder: Path, name: str) -> None:
    """Figures of old runs must not change under the hands of those who quote them."""
    if WRITE:
        shutil.copy(run_folder / name, GOLDEN / name)
    assert rounded(json.loads((run_folder / name).read_text())) == rounded(
        json.loads((GOLDEN / name).read_text())
    )


def test_golden_report(run_folder: Path) -> None:
    """A change of the report is looked at, not discovered."""
    text = without_scripts((run_folder / folder.REPORT).read_text())
    golden = GOLDEN / "report-without-scripts.html"
    if WRITE:
        golden.write_text(text)
    assert text == golden.read_text()


def test_names_from_a_plan_cannot_break_the_page(run_folder: Path, tmp_path: Path) -> None:
    """A plan may come from somebody else; its words are text, not markup."""
    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy)
    plan = folder.read_json(copy / folder.PLAN)
    plan["name"] = "</title><script>alert(1)</script>"
    plan["description"] = "<img src=x onerror=alert(1)>"
    folder.write_json(copy / folder.PLAN, plan)
    html = render(copy)
    assert "<script>alert(1)" not in html
    assert "<img src=x" not in html
