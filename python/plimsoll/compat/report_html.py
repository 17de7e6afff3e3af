"""Result pages of the test tool: HTML to sections, and sections to a page in the same shape.

The standard library's parser reads any text without failing, so a damaged page yields fewer sections instead of an
exception; what is missing is found by `reported`. A section begins with a legend, a heading or a caption whose words are
known; its rows are table rows with at least two cells. Pages are UTF-8, UTF-16 with a mark, or Windows-1252.
"""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser
from typing import Any

from plimsoll.compat.reported import Row, Section, reported_of
from plimsoll.sizing.mistakes import InputError, Mistake

TITLES = {"legend", "h1", "h2", "h3", "h4", "h5", "h6", "caption"}
BREAKS = {"br", "p", "div", "li", "pre"}
CELLS = {"td", "th"}
ROWS_MAX = 100_000


def decode(name: str, content: bytes) -> str:
    """The text of a page or paper.

    Raises:
        InputError: it is in none of the encodings that such files have.
    """
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding != "utf-16" and b"\x00" not in content:
            return content.decode("cp1252", errors="replace")
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            name, [Mistake(line, "", "is not text in UTF-8, UTF-16 or Windows-1252", "save it as UTF-8")]
        ) from error


def read_html(name: str, content: bytes) -> dict[str, Any]:
    """The report on a page.

    Raises:
        InputError: the page holds no report, or a table of it is damaged.
    """
    return reported_of(name, sections_of_page(name, decode(name, content)))


def sections_of_page(name: str, text: str) -> list[Section]:
    """Every section of a page."""
    reader = _Page(name)
    reader.feed(text)
    reader.close()
    reader.finish()
    return reader.sections


class _Page(HTMLParser):
    """Collects sections; an open cell or title takes all text."""

    def __init__(self, name: str) -> None:
        super().__init__(convert_charrefs=True)
        self.name = name
        self.sections: list[Section] = []
        self.row: Row | None = None
        self.taking: list[str] | None = None
        self.taking_line = 0
        self.is_title = False
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self.silent += 1
        elif tag in TITLES:
            self._end_text()
            self._begin(is_title=True)
        elif tag == "tr":
            self._end_row()
            self.row = Row(self.getpos()[0], [])
        elif tag in CELLS and self.row is not None:
            self._end_text()
            self._begin(is_title=False)
        elif tag in BREAKS:
            self._break()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in BREAKS:
            self._break()

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self.silent = max(0, self.silent - 1)
        elif tag in TITLES or tag in CELLS:
            self._end_text()
        elif tag in ("tr", "table"):
            self._end_row()
        elif tag in BREAKS:
            self._break()

    def handle_data(self, data: str) -> None:
        if self.silent:
            return
        if self.taking is not None:
            self.taking.append(data)
        elif self.sections and self.row is None:
            line = self.getpos()[0]
            section = self.sections[-1]
            for offset, text in enumerate(data.split("\n")):
                if text.strip():
                    section.lines.append((line + offset, text.strip()))

    def finish(self) -> None:
        """What stands open at the end of the page."""
        self._end_row()
        self._end_text()

    def _begin(self, *, is_title: bool) -> None:
        self.taking, self.is_title, self.taking_line = [], is_title, self.getpos()[0]

    def _break(self) -> None:
        if self.taking is not None:
            self.taking.append("\n")

    def _end_text(self) -> None:
        if self.taking is None:
            return
        text = "\n".join(part for line in "".join(self.taking).split("\n") if (part := " ".join(line.split())))
        self.taking = None
        if self.is_title:
            self._title(" ".join(text.split()))
        elif self.row is not None:
            self.row.cells.append(text)

    def _title(self, title: str) -> None:
        if title:
            self.sections.append(Section(title, self.taking_line))

    def _end_row(self) -> None:
        self._end_text()
        row, self.row = self.row, None
        if row is None or not row.cells:
            return
        if not self.sections:
            self.sections.append(Section("", row.line))
        section = self.sections[-1]
        if len(row.cells) == 1:
            section.lines += [(row.line, text) for text in row.cells[0].split("\n") if text]
        elif len(section.rows) < ROWS_MAX:
            section.rows.append(row)
        else:
            raise InputError(
                self.name,
                [
                    Mistake(
                        row.line,
                        section.title[:60],
                        f"has more than {ROWS_MAX:,} rows",
                        "this is no report of the test tool",
                    )
                ],
            )


def page_of(title: str, sections: list[Section]) -> str:
    """Sections as a page of their own."""
    body = "\n".join(section_html(section) for section in sections)
    return f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title></head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body></html>\n'


def section_html(section: Section) -> str:
    """One section: its title as the legend, its rows as a table, its lines one below the other."""
    rows = "\n".join(
        "<tr>" + "".join(_cell(text, place) for place, text in enumerate(row.cells)) + "</tr>" for row in section.rows
    )
    table = f"<table>\n{rows}\n</table>" if rows else ""
    lines = "<br>\n".join(escape(text) for _, text in section.lines)
    return f"<fieldset><legend>{escape(section.title)}</legend>\n{table}{lines}\n</fieldset>"


def _cell(text: str, place: int) -> str:
    content = "<br>".join(escape(line) for line in text.split("\n"))
    return f'<td class="grid_row_header">{content}</td>' if place == 0 else f"<td>{content}</td>"
