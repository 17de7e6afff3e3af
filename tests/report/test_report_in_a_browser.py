"""The report in a real browser.

Without a network, on a phone, in print, with the keyboard, and for those who see little.

Needs Debian's chromium; axe-core comes inside the package `axe-playwright-python`.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.files import folder
from tests.support.synthetic import EMC, finish, make_folder, make_slow_folder
from tests.support.two_loads import two_loads

BROWSER = shutil.which("chromium")
CHARTS = 13
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=arguments)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run beyond its limits, which has other colours and other sections."""
    return finish(make_slow_folder(tmp_path_factory.mktemp("failed") / "run"))


NAME = "the mail of everyone in the western branch offices and of the call centre"


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A modelled run of two loads, one of them with a long name."""
    loads = [
        {"name": NAME, "instances": ["shop"], "think_s": 0.5, "load": {"users": 40}},
        {
            "name": "files",
            "instances": ["share"],
            "pattern": "file-server",
            "load": {"users": 50, "iops_per_user": 0.7},
        },
    ]
    return two_loads(tmp_path_factory.mktemp("several") / "run", workload=loads)


def drawn(browser: Any, path: Path, width: int = 1280, charts: int = CHARTS) -> Any:
    """The page with all its charts drawn; anything it fetches or trips over fails the test."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_default_timeout(60_000)
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on(
        "console",
        lambda message: failures.append(message.text) if message.type == "error" else None,
    )
    page.on(
        "request",
        lambda request: None if request.url.startswith("file:") else failures.append(request.url),
    )
    page.goto(path.as_uri())
    page.wait_for_function(
        f"document.querySelectorAll('.chart svg[aria-hidden]').length === {charts}"
    )
    assert failures == []
    return page


@pytest.mark.parametrize("width", [390, 1280])
def test_RPT_16_it_draws_without_a_network_and_without_scrolling_sideways(
    browser: Any, published: Path, width: int
) -> None:
    """One file is all a reader gets; a phone shows it as well as a desk."""
    page = drawn(browser, published / folder.REPORT, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    too_wide = (
        "[...document.querySelectorAll('.chart svg')].filter(e => e.getBoundingClientRect().right "
        "> innerWidth + 1).length"
    )
    assert page.evaluate(too_wide) == 0
    page.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_name_of_a_load_neither_is_cut_nor_narrows_its_chart(
    browser: Any, several: Path, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((several / folder.REPORT).as_uri())
    page.wait_for_selector("#together-2 svg[aria-hidden]")
    shown = page.evaluate("""() => {
        const right = element => element.getBoundingClientRect().right;
        const chart = document.querySelector("#together-1");
        const words = [...chart.querySelectorAll(".role-title text")];
        const plot = chart.querySelector(".background").getBoundingClientRect();
        return {
            beyond: words.filter(text => right(text) > right(chart)).length,
            share: plot.width / chart.clientWidth,
            told: words.map(text => text.textContent).join(" "),
        };
    }""")
    assert shown["beyond"] == 0 and shown["share"] > 0.7, shown
    assert "call centre" in shown["told"]
    page.close()


def test_the_mark_of_a_modelled_run_covers_nothing_on_paper(browser: Any, several: Path) -> None:
    """Every page bears it, and has room for it above what else stands there."""
    page = browser.new_page()
    page.goto((several / folder.REPORT).as_uri())
    page.emulate_media(media="print")
    mark = page.evaluate("document.querySelector('.modelled').offsetHeight")
    body = page.evaluate(
        "(({ paddingTop, boxDecorationBreak }) => [parseFloat(paddingTop), boxDecorationBreak])"
        "(getComputedStyle(document.body))"
    )
    assert body[0] > mark and body[1] == "clone"
    page.close()


def test_the_first_charts_stand_within_one_screen_of_the_top(
    browser: Any, published: Path, failed: Path
) -> None:
    """A reader sees how the storage went before scrolling.

    Rates and latencies over time with their limits, below the verdict.
    """
    for run_folder in (published, failed):
        page = drawn(browser, run_folder / folder.REPORT, 1200)
        for name in ("overview-iops", "overview-latency"):
            box = page.query_selector(f"#{name} svg").bounding_box()
            assert box["y"] + box["height"] <= 900, (run_folder, name, box)
        words = page.get_attribute("#overview-latency", "aria-label")
        for curve in ("database reads", "database writes", "log writes"):
            assert curve in words
        marks = page.eval_on_selector_all(
            "#overview-latency text", "texts => texts.map(text => text.textContent)"
        )
        assert {"limit of database reads 20 ms", "limit of log writes 10 ms"} <= set(marks)
        page.close()


def test_no_table_is_cut_off(browser: Any, published: Path, golden: Path, tmp_path: Path) -> None:
    """A column behind the edge is not read.

    Every table fits at 1,200 px, folded ones and those of a dozen databases too.
    """
    many = finish(make_folder(tmp_path / "many", rates=EMC * 6))
    cut = (
        "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)"
        ".map(e => e.getAttribute('aria-label'))"
    )
    for run_folder, charts in ((published, CHARTS), (golden, CHARTS - 1), (many, CHARTS)):
        page = drawn(browser, run_folder / folder.REPORT, 1200, charts)
        page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
        assert page.evaluate(cut) == [], run_folder
        page.close()


@pytest.mark.parametrize("width", [pytest.param(390, marks=pytest.mark.slow), 1280])
def test_axe_finds_nothing_serious(
    browser: Any, published: Path, golden: Path, failed: Path, width: int
) -> None:
    """Contrast, names, roles, headings, focus.

    What a machine can judge, with every table opened.
    """
    from axe_playwright_python.sync_playwright import Axe

    for run_folder, charts in ((published, CHARTS), (golden, CHARTS - 1), (failed, CHARTS)):
        page = drawn(browser, run_folder / folder.REPORT, width, charts)
        page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
        found = Axe().run(page).response["violations"]
        serious = [
            (item["id"], item["nodes"][0]["html"][:200])
            for item in found
            if item["impact"] in ("serious", "critical")
        ]
        assert serious == []
        page.close()


def test_axe_would_find_something(browser: Any, published: Path, tmp_path: Path) -> None:
    """A test that finds nothing must be able to find: pale text on white is a serious finding."""
    from axe_playwright_python.sync_playwright import Axe

    broken = tmp_path / "report.html"
    html = (published / folder.REPORT).read_text(encoding="utf-8")
    broken.write_text(html.replace("--soft: #4a4a4a", "--soft: #c0c0c0"), encoding="utf-8")
    page = drawn(browser, broken)
    assert "color-contrast" in {item["id"] for item in Axe().run(page).response["violations"]}
    page.close()


def test_the_keyboard_reaches_everything(browser: Any, published: Path) -> None:
    """Skip link, contents, wide tables and the tables behind charts, in this order and without a
    mouse.
    """
    page = drawn(browser, published / folder.REPORT)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#verdict"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus can be seen"
    page.focus("figure summary")
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('figure details').open")
    unreachable = "[...document.querySelectorAll('.scroll')].filter(e => e.tabIndex !== 0).length"
    assert page.evaluate(unreachable) == 0
    page.close()


def test_every_chart_has_words_and_a_table(browser: Any, published: Path) -> None:
    """Who cannot see a chart hears what it shows and reads its values."""
    page = drawn(browser, published / folder.REPORT)
    for figure in page.query_selector_all("figure"):
        assert len(figure.query_selector(".chart").get_attribute("aria-label")) > 40
        assert len(figure.query_selector_all("tbody tr")) >= 3
    page.close()


def test_the_verdict_is_not_said_by_colour_alone(browser: Any, published: Path) -> None:
    """Without any colour the mark and the word are still there, for the verdict and for every
    check.
    """
    page = drawn(browser, published / folder.REPORT)
    assert page.inner_text(".verdict .headline").split() == ["✓", "Pass"]
    words = page.eval_on_selector_all(
        "#checks tbody th", "cells => cells.map(cell => cell.innerText)"
    )
    assert words and all(
        word in ("✓ pass", "✗ FAIL", "? not evaluated", "not applicable") for word in words
    )
    assert "within its limit" in page.inner_text(".card .status")
    page.close()


@pytest.mark.slow
def test_it_prints_on_paper(browser: Any, published: Path, tmp_path: Path) -> None:
    """On paper nothing is cut off at the right, and what only serves the screen is gone."""
    page = drawn(browser, published / folder.REPORT)
    page.emulate_media(media="print")
    page.set_viewport_size(
        {"width": 703, "height": 1000}
    )  # A4 without its margins, at 96 points an inch
    assert page.evaluate("document.documentElement.scrollWidth") <= 703
    assert not page.is_visible("nav")
    assert not page.is_visible("figure summary")
    pdf = page.pdf(path=str(tmp_path / "report.pdf"), prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF") and len(pdf) > 50_000
    page.close()
