"""The report and the terminal text: whole, self-contained, and honest about what was not stated."""

import re
from html.parser import HTMLParser

from plimsoll.sizing.design import size
from plimsoll.sizing.output_html import sizing_page
from plimsoll.sizing.output_text import SizingTerminal, sizing_text
from tests.support.sizing_designs import make


class Page(HTMLParser):
    """Collects ids, links, outside references and unclosed elements of a page."""

    VOID = ("meta", "br", "line", "polyline", "polygon", "circle")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.outside: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids += [str(values["id"])] if "id" in values else []
        self.links += [str(values["href"])] if "href" in values else []
        self.outside += [str(values[key]) for key in ("src", "action") if key in values]
        self.outside += [tag] if tag in ("script", "link", "iframe") else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_chain_can_be_walked_from_every_result_to_what_was_given() -> None:
    """Each name in a formula leads to the row where it was worked out.

    A link to nowhere breaks the chain.
    """
    sizing = size(make())
    page = Page(sizing_page(sizing))
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert {link for link in page.links if link[1:] not in page.ids} == set()
    assert {step.name for step in sizing.steps} <= set(page.ids)
    assert "#mailbox_size_mb" in page.links


def test_the_page_needs_nothing_from_outside() -> None:
    """It is handed over by mail and opened offline."""
    text = sizing_page(size(make()))
    assert Page(text).outside == []
    assert "http" not in text.replace("http-equiv", "")


def test_what_a_file_says_is_shown_as_text() -> None:
    """A title with markup in it must not become part of the page."""
    text = sizing_page(size(make(title='<script>alert("x")</script>')))
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_warnings_are_words_and_not_only_colours() -> None:
    text = sizing_page(size(make(network={"port_count": 1})))
    assert re.search(r'<span class="warning">warning</span>', text)


def test_the_terminal_text_has_every_step_and_every_difference() -> None:
    sizing = size(make(databases={"max_size": "1 TB"}))
    text = sizing_text(sizing, SizingTerminal(120))
    for step in sizing.results.values():
        if step.value:
            assert step.title in text, step.title
    assert "leaves out the 1.2 overhead of Table 14" in text
    assert "not stated, not checked" in text
    assert "1024-based" in text
    assert "\033" not in text
    assert "\033[1m" in sizing_text(sizing, SizingTerminal(120, weighted=True))


def test_no_line_is_wider_than_the_terminal() -> None:
    """Except tables, whose rows are kept whole."""
    text = sizing_text(size(make()), SizingTerminal(100))
    tables = (
        "  server ",
        "  figure ",
        "  edition",
        "  exchange_",
        "  mailbox GB",
        "  total_",
        "  white_",
        "  log_",
    )
    wide = [line for line in text.splitlines() if len(line) > 100 and not line.startswith(tables)]
    assert [
        line
        for line in wide
        if not re.match(r"  (users_per|database_|dumpster|mailbox_size|paths of)", line)
    ] == []


def test_a_standalone_and_a_transactional_design_are_written_too() -> None:
    """Sections that do not apply are left out, not written empty."""
    load = {
        "per_second": 800,
        "database_ios_each": 4,
        "data_size": "500 GB",
        "log_size_each": "6 KB",
    }
    for requirements in (
        make(copies={"mode": "standalone"}),
        make(users=None, transactions=load, copies={"mode": "standalone"}),
    ):
        sizing = size(requirements)
        assert Page(sizing_page(sizing)).open == []
        assert sizing_text(sizing, SizingTerminal())
    assert "Users for each mailbox size" not in sizing_page(sizing)
