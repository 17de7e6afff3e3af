"""The page of a comparison: a golden text, and what a browser and axe say of it."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.compare import compare, read_sides
from plimsoll.compare.gates import evaluate, parse_condition
from plimsoll.compare.page import render
from tests.support.chart_schema import hold_charts

GOLDEN = Path(__file__).parents[1] / "golden" / "comparison-without-scripts.html"
BROWSER = shutil.which("chromium")
CHARTS = 8


@pytest.fixture(scope="module")
def html(fast: Path, slow: Path) -> str:
    """The fast run against the slow one with a condition that holds."""
    sides = read_sides([fast, slow])
    found = compare(sides)
    return render(
        found, sides, evaluate(parse_condition("database_iops<400"), sides, found, confident=False)
    )


def test_golden_comparison(html: str) -> None:
    """A change of the page is looked at, not discovered."""
    assert len(hold_charts(html)) == CHARTS
    text = re.sub(r"<script>.*?</script>", "<script></script>", html, flags=re.DOTALL)
    # What is the same of two plans grows with every key a plan may have.
    text = re.sub(r"<details><summary>What is the same.*?</details>", "", text, flags=re.DOTALL)
    text = re.sub(r"(?:/<wbr>[^<\s]+)+/<wbr>(fast|slow)\b", r"/somewhere/\1", text)
    if os.environ.get("PLIMSOLL_WRITE_GOLDEN") == "1":
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=arguments)
        yield opened
        opened.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.slow)])
def test_RPT_24_it_draws_and_axe_finds_nothing_serious(
    browser: Any, html: str, tmp_path: Path, width: int
) -> None:
    """RPT-24: every chart is drawn with a table behind it, on a phone and on a desk, for those who
    see little too.
    """
    from axe_playwright_python.sync_playwright import Axe

    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith("file:") else failures.append(request.url),
    )
    page.goto(path.as_uri())
    page.wait_for_function(
        f"document.querySelectorAll('.chart svg[aria-hidden]').length === {CHARTS}"
    )
    assert failures == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width < 1000:
        page.close()
        return
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
    assert all(
        len(figure.query_selector_all("tbody tr")) >= 2
        for figure in page.query_selector_all("figure")
    )
    found = Axe().run(page).response["violations"]
    assert [item["id"] for item in found if item["impact"] in ("serious", "critical")] == []
    page.close()
