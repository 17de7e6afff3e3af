"""The document as one page that needs no network, and as a PDF printed from it by a browser.

Reports in the appendices stand on pages in landscape, so that no cell of their wide tables is
broken: broken cells are what made the published papers unreadable. Which browser prints, and why no
other way was taken: `docs/decisions/documents.md`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from html import escape
from pathlib import Path

from plimsoll.errors import PlimsollError
from plimsoll.pages.tables import Table
from plimsoll.solution.document import Document, Drawing, Heading, Lines, Paragraph

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PRINT_TIMEOUT_S = 120

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 "DejaVu Sans", Arial, sans-serif; color: #1a1a1a; background: #fff; margin: 0 auto; max-width: 60rem; padding: 2rem 1.5rem; }
h1 { font-size: 1.5rem; border-bottom: 2px solid #1d4f7c; padding-bottom: .2rem; margin: 2.4rem 0 1rem; }
h2 { font-size: 1.15rem; margin: 1.6rem 0 .5rem; } h3 { font-size: 1rem; margin: 1.3rem 0 .4rem; }
.cover { padding: 3rem 0 1rem; } .cover h1 { font-size: 2.1rem; border: 0; line-height: 1.2; margin: 0 0 1rem; } .cover p { margin: .2rem 0; color: #444; }
nav { columns: 2; margin: 1.5rem 0; } nav ul { list-style: none; margin: 0; padding: 0; } nav a { color: #1d4f7c; }
.scroll { overflow-x: auto; margin: .4rem 0 .3rem; } table { border-collapse: collapse; } caption { text-align: left; font-weight: bold; padding: .3rem 0; white-space: nowrap; }
th, td { border: 1px solid #b9c2c9; padding: .25rem .55rem; text-align: left; vertical-align: top; } thead th { background: #eef1f4; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; } tbody th { font-weight: normal; background: #f7f8f9; }
td, tbody th { white-space: pre-line; } .reports td, .reports tbody th { white-space: pre; }
.note { color: #444; font-size: .85rem; margin: .2rem 0 1rem; } figure { margin: 1rem 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; } figcaption { font-weight: bold; }
.lines p { margin: 0; font: 12px/1.5 "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.reports table { font-size: 12px; }
@page { size: A4; margin: 18mm 16mm; } @page wide { size: A4 landscape; margin: 12mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; } nav, .skip { display: none; } .scroll, figure { overflow: visible; }
  .reports { page: wide; break-before: page; } .cover { break-after: page; padding-top: 30vh; } .chapter-a { break-before: page; }
  h1, h2, h3 { break-after: avoid; } tr, figure, .chapter .scroll, .chapter-a .scroll { break-inside: avoid; } .reports table { font-size: 6.4pt; } .reports .note { font-size: 7.5pt; } .reports .lines p { font-size: 7.5pt; } .reports th, .reports td { padding: .15rem .25rem; }
  .reports thead th { max-width: 19mm; white-space: normal; }
}
"""  # noqa: E501


def page_of(document: Document) -> str:
    """The document as HTML."""
    head = f"<title>{escape(document.title)}</title><style>{STYLE}</style>"
    cover = (
        f"<header "
        f'class="cover"><h1>{escape(document.title)}</h1>{"".join(f"<p>{escape(line)}</p>" for line in document.cover)}</header>'  # noqa: E501
    )
    chapters = _chapters(document)
    contents = "".join(
        f'<li><a href="#{id_}">{escape(title)}</a></li>' for id_, title, _ in chapters
    )
    body = "".join(
        f'<section id="{id_}" class="{_class(id_)}">{"".join(parts)}</section>\n'
        for id_, _, parts in chapters
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1">{head}</head>\n'
        f"<body>{cover}\n<nav "
        f'aria-label="Contents"><ul>{contents}</ul></nav>\n<main>\n{body}</main></body></html>\n'
    )


def _class(id_: str) -> str:
    if id_ == "appendix-a":
        return "chapter-a"
    return "reports" if id_.startswith("appendix-") else "chapter"


def _chapters(document: Document) -> list[tuple[str, str, list[str]]]:
    chapters: list[tuple[str, str, list[str]]] = []
    for number, block in enumerate(document.blocks):
        if isinstance(block, Heading) and block.level == 1:
            chapters.append((block.id or f"chapter-{number}", block.text, []))
        chapters[-1][2].append(_block(block))
    return chapters


def _block(block: object) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{escape(text)}</p>"
        case Lines(lines):
            return (
                '<div class="lines">'
                + "\n".join(f"<p>{escape(line)}</p>" for line in lines)
                + "</div>"
            )
        case Drawing(name, svg, caption):
            return f'<figure id="{name}">{svg}<figcaption>{escape(caption)}</figcaption></figure>'
        case Table():
            return table_html(block)
    raise AssertionError(f"a block of a kind that no page has: {block!r}")


def table_html(table: Table) -> str:
    """A table; figures stand to the right."""
    head = ""
    if table.headings:
        cells = "".join(
            f'<th scope="col"{_number(table, place)}>{escape(text)}</th>'
            for place, text in enumerate(table.headings)
        )
        head = f"<thead><tr>{cells}</tr></thead>"
    rows = []
    for row in table.rows:
        first = f'<th scope="row">{escape(table.shown(row[0]))}</th>'
        cells = "".join(
            f"<td{_number(table, place)}>{escape(table.shown(cell, place))}</td>"
            for place, cell in enumerate(row[1:], 1)
        )
        rows.append(f"<tr>{first}{cells}</tr>")
    caption = f"<caption>{escape(table.title)}</caption>" if table.title.startswith("Table") else ""
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    label = escape(table.title or "table", quote=True)
    return (
        f'<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{label}"><table>{caption}{head}<tbody>{"".join(rows)}</tbody></table></div>{note}'
    )


def _number(table: Table, place: int) -> str:
    return ' class="number"' if table.is_numeric(place) else ""


class PrintError(PlimsollError):
    """The page could not be printed; the message says what to do."""


def find_browser() -> str | None:
    """A browser that can print, the one of `PLIMSOLL_BROWSER` first."""
    wanted = os.environ.get("PLIMSOLL_BROWSER")
    return wanted or next((found for name in BROWSERS if (found := shutil.which(name))), None)


def print_pdf(page: Path, pdf: Path) -> None:
    """Print a page as PDF.

    Raises:
        PrintError: there is no browser, or it failed.
    """
    browser = find_browser()
    if browser is None:
        raise PrintError(
            f"no Chromium was found to print with; open {page} in any browser and print it as PDF, "
            f"or name one in PLIMSOLL_BROWSER"
        )
    with tempfile.TemporaryDirectory(prefix="plimsoll-print-") as profile:
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            f"--user-data-dir={profile}",
            "--no-pdf-header-footer",
            f"--print-to-pdf={pdf.absolute()}",
            page.absolute().as_uri(),
        ]
        if os.geteuid() == 0:
            # Chromium refuses its sandbox to root; the page is our own and loads nothing.
            command.insert(1, "--no-sandbox")
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=PRINT_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PrintError(f"{browser} did not print: {error}") from error
    if done.returncode != 0 or not pdf.exists():
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise PrintError(f"{browser} did not print: {last[:300]}")
