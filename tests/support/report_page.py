"""Reads a report as a reader does: its sections, and the tables under their headings."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path


@dataclass
class ReadTable:
    """A table of the page as text."""

    title: str
    headings: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)

    def row(self, name: str) -> list[str]:
        """The cells behind a row's name."""
        return next(row[1:] for row in self.rows if row[0] == name)


class Page(HTMLParser):
    """The headings of a report in order, its tables by heading, its links, and everything that is
    read.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.tables: dict[str, ReadTable] = {}
        self.links: list[str] = []
        self.sources: list[tuple[str, str]] = []
        self._inside: list[str] = []
        self._text = ""
        self._source: tuple[str, str] | None = None
        self.html = path.read_text(encoding="utf-8")
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag in ("h1", "h2", "h3", "th", "td"):
            self._text = ""
        if tag == "tr":
            self._cells: list[str] = []
        if tag == "thead":
            self._inside.append(tag)
        if tag == "table":
            self._table = self.tables.setdefault(self.headings[-1], ReadTable(self.headings[-1]))
        if tag == "a":
            self.links.append(named.get("href") or "")
        if tag == "data":
            self._source = (named["data-source"] or "", "")

    def handle_data(self, data: str) -> None:
        self._text += data
        if self._source:
            self._source = (self._source[0], self._source[1] + data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("h1", "h2", "h3"):
            self.headings.append(self._text.strip())
        if tag in ("th", "td"):
            self._cells.append(self._text.strip())
        if tag == "tr":
            (self._table.headings.extend if "thead" in self._inside else self._table.rows.append)(
                self._cells
            )
        if tag == "thead":
            self._inside.remove(tag)
        if tag == "data" and self._source:
            self.sources.append(self._source)
            self._source = None
