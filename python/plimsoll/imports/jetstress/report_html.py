"""Result pages of the test tool: HTML to sections, and sections to a page in the same shape.

A scanner of our own looks at names of tags and at text, nothing else, in one pass whose time grows
with the size alone: the standard library's parser takes minutes for a hostile page. A damaged page
yields fewer sections; what is missing is found by `reported`. A section begins with a legend, a
heading or a caption whose words are known; its rows are table rows with at least two cells. Pages
are UTF-8, UTF-16 with a mark, or Windows-1252.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape, unescape

from plimsoll.documents.reported import ReportedTest
from plimsoll.imports.report_model import Row, Section, reported_of
from plimsoll.inputs.mistakes import InputError, Mistake

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
            name,
            [Mistake(line, "", "is not text in UTF-8, UTF-16 or Windows-1252", "save it as UTF-8")],
        ) from error


def read_html(name: str, content: bytes) -> ReportedTest:
    """The report on a page.

    Raises:
        InputError: the page holds no report, or a table of it is damaged.
    """
    return reported_of(name, sections_of_page(name, decode(name, content)))


def sections_of_page(name: str, text: str) -> list[Section]:
    """Every section of a page."""
    reader = _Page(name)
    for kind, content, line in _pieces(text):
        match kind:
            case "start":
                reader.start(content, line)
            case "end":
                reader.end(content)
            case _:
                reader.text(content, line)
    reader.finish()
    return reader.sections


_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,20})")
_SILENT_END = {tag: re.compile(rf"</{tag}", re.IGNORECASE) for tag in ("script", "style")}


def _pieces(text: str) -> Iterator[tuple[str, str, int]]:
    """Start tags, end tags and text between them, each with its line.

    What is never closed ends the page.
    """
    place, line = 0, 1
    while (start := text.find("<", place)) >= 0:
        if start > place:
            yield "text", text[place:start], line
        line += text.count("\n", place, start)
        match = _TAG.match(text, start)
        if match is None and text[start + 1 : start + 2] not in ("!", "?"):
            yield "text", "<", line
            place = start + 1
            continue
        closing = "-->" if text.startswith("<!--", start) else ">"
        end = text.find(closing, start)
        if end < 0:
            return
        place = end + len(closing)
        line += text.count("\n", start, place)
        if match is None:
            continue
        tag = match.group(2).lower()
        if tag in _SILENT_END and not match.group(1):
            silent_end = _SILENT_END[tag].search(text, place)
            if silent_end is None:
                return
            line += text.count("\n", place, silent_end.start())
            place = silent_end.start()
        yield ("end" if match.group(1) else "start"), tag, line
    if place < len(text):
        yield "text", text[place:], line


class _Page:
    """Collects sections; an open cell or title takes all text."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sections: list[Section] = []
        self.row: Row | None = None
        self.taking: list[str] | None = None
        self.taking_line = 0
        self.is_title = False

    def start(self, tag: str, line: int) -> None:
        if tag in TITLES:
            self._end_text()
            self._begin(line, is_title=True)
        elif tag == "tr":
            self._end_row()
            self.row = Row(line, [])
        elif tag in CELLS and self.row is not None:
            self._end_text()
            self._begin(line, is_title=False)
        elif tag in BREAKS:
            self._break()

    def end(self, tag: str) -> None:
        if tag in TITLES or tag in CELLS:
            self._end_text()
        elif tag in ("tr", "table"):
            self._end_row()
        elif tag in BREAKS:
            self._break()

    def text(self, data: str, line: int) -> None:
        if self.taking is not None:
            self.taking.append(unescape(data))
        elif self.sections and self.row is None:
            for offset, text in enumerate(data.split("\n")):
                if text.strip():
                    self.sections[-1].lines.append((line + offset, unescape(text).strip()))

    def finish(self) -> None:
        """What stands open at the end of the page."""
        self._end_row()
        self._end_text()

    def _begin(self, line: int, *, is_title: bool) -> None:
        self.taking, self.is_title, self.taking_line = [], is_title, line

    def _break(self) -> None:
        if self.taking is not None:
            self.taking.append("\n")

    def _end_text(self) -> None:
        if self.taking is None:
            return
        text = "\n".join(
            part for line in "".join(self.taking).split("\n") if (part := " ".join(line.split()))
        )
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
            message = f"has more than {ROWS_MAX:,} rows"
            hint = "this is no report of the test tool"
            raise InputError(self.name, [Mistake(row.line, section.title[:60], message, hint)])


def page_of(title: str, sections: list[Section]) -> str:
    """Sections as a page of their own."""
    body = "\n".join(section_html(section) for section in sections)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta '
        f'charset="utf-8"><title>{escape(title)}</title></head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body></html>\n'
    )


def section_html(section: Section) -> str:
    """One section: its title as the legend, its rows as a table, its lines one below the other."""
    rows = "\n".join(
        "<tr>" + "".join(_cell(text, place) for place, text in enumerate(row.cells)) + "</tr>"
        for row in section.rows
    )
    table = f"<table>\n{rows}\n</table>" if rows else ""
    lines = "<br>\n".join(escape(text) for _, text in section.lines)
    return f"<fieldset><legend>{escape(section.title)}</legend>\n{table}{lines}\n</fieldset>"


def _cell(text: str, place: int) -> str:
    content = "<br>".join(escape(line) for line in text.split("\n"))
    return f'<td class="grid_row_header">{content}</td>' if place == 0 else f"<td>{content}</td>"
