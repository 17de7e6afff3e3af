"""Results as sections of text and tables, shown in a terminal or written as one HTML file.

A command describes its result once, as `Section`s; this module renders them. The HTML is
self-contained, prints well and needs no script. Cells are plain text: nothing a user wrote is taken
as markup in either rendering.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.errors.system_errors import system_reason
from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.pages.svg import SVG_NAMESPACE


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs, at most one table, and drawings.

    Attributes:
        title: the heading.
        paragraphs: sentences shown before the table.
        columns: column headings; a name ending in a blank and ">" is aligned right.
        rows: cells, one tuple per row.
        marks: row indexes to stress, with the word that says why; colour is never the only sign.
        drawings: captions with their SVG; a page shows them, a terminal cannot.
    """

    title: str
    paragraphs: Sequence[str] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    marks: frozenset[int] = field(default_factory=frozenset)
    drawings: Sequence[tuple[str, str]] = ()


#: Narrower than this a column of text is harder to read than a line that runs over.
COLUMN_WIDTH_MIN = 12

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.table { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.35rem 0.7rem; border-bottom: 1px solid #d0d7de; text-align: left; vertical-align: top; }
th { border-bottom: 2px solid #57606a; } td { overflow-wrap: anywhere; min-width: 6rem; } ul { margin: 0.2rem 0; }
.right { text-align: right; font-variant-numeric: tabular-nums; }
tr.mark { background: #ddf4e4; font-weight: 600; } footer { margin-top: 2.5rem; color: #57606a; font-size: 0.85rem; }
figure { margin: 1.2rem 0; } figure svg { max-width: 100%; height: auto; } figcaption { color: #57606a; font-size: 0.85rem; }
@media print { figure { break-inside: avoid; } body { margin: 0; max-width: none; } tr { break-inside: avoid; } }
"""  # noqa: E501


def html_page(title: str, sections: Sequence[Section], footer: str = "") -> str:
    """The sections as one self-contained HTML document."""
    body = "\n".join(_html_section(section) for section in sections)
    note = f"<footer>{html.escape(footer)}</footer>" if footer else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><main><h1>{html.escape(title)}</h1>\n{body}\n</main>{note}</body></html>\n"
    )


def write_html(path: Path, title: str, sections: Sequence[Section], footer: str = "") -> None:
    """Write the sections to an HTML file.

    Raises:
        InputError: it cannot be written there.
    """
    try:
        path.write_text(html_page(title, sections, footer), encoding="utf-8")
    except OSError as error:
        message = f"cannot be written: {system_reason(error)}"
        raise InputError(
            str(path), [Mistake(0, "--html", message, "name a file in a folder that exists")]
        ) from error


def section_lines(sections: Sequence[Section], width: int, *, weighted: bool) -> Iterator[str]:
    """The sections as lines of a terminal, headings in bold where it can show that.

    Written plainly: importing a table library would take a quarter of the time an answer may take.
    """
    bold = ("\033[1m", "\033[0m") if weighted else ("", "")
    for section in sections:
        yield _wrapped(section.title, width, bold)
        for paragraph in section.paragraphs:
            yield _wrapped(paragraph, width)
        if section.columns:
            yield "\n".join(_table_lines(section, width, bold))
        yield ""


def _wrapped(text: str, width: int, style: tuple[str, str] = ("", "")) -> str:
    return style[0] + "\n".join(textwrap.wrap(text, width) or [""]) + style[1]


def _table_lines(section: Section, width: int, bold: tuple[str, str]) -> list[str]:
    """A table's lines: a heading, a rule under each column, and cells wrapped inside their
    column.
    """
    headings = [_heading(column) for column in section.columns]
    table = [[name for name, _ in headings], *(list(row) for row in section.rows)]
    widths = _column_widths(
        [max(map(len, column)) for column in zip(*table, strict=True)], headings, width
    )
    lines: list[str] = []
    for index, row in enumerate(table):
        cells = [textwrap.wrap(cell, size) or [""] for cell, size in zip(row, widths, strict=True)]
        marked = bold if index - 1 in section.marks else ("", "")
        for part in range(max(map(len, cells))):
            shown = [cell[part] if part < len(cell) else "" for cell in cells]
            texts = [
                text.rjust(size) if right else text.ljust(size)
                for text, size, (_, right) in zip(shown, widths, headings, strict=True)
            ]
            lines.append(marked[0] + "  ".join(texts).rstrip() + marked[1])
        if index == 0:
            lines.append("  ".join("-" * size for size in widths))
    return lines


def _column_widths(widths: list[int], headings: list[tuple[str, bool]], width: int) -> list[int]:
    """Widths that fit the terminal: the widest text column gives way first, numbers never."""
    room = width - 2 * (len(widths) - 1)
    texts = [index for index, (_, right) in enumerate(headings) if not right]
    while sum(widths) > room and texts:
        widest = max(texts, key=lambda index: widths[index])
        if widths[widest] <= COLUMN_WIDTH_MIN:
            break
        widths[widest] -= 1
    return widths


def _heading(column: str) -> tuple[str, bool]:
    return (column[:-2], True) if column.endswith(" >") else (column, False)


def _html_paragraph(paragraph: str) -> str:
    """A paragraph, or an item of a list where it begins with a dash."""
    if paragraph.startswith("- "):
        return f"<ul><li>{html.escape(paragraph[2:])}</li></ul>"
    return f"<p>{html.escape(paragraph)}</p>"


def _html_section(section: Section) -> str:
    parts = [f"<h2>{html.escape(section.title)}</h2>"]
    parts += [_html_paragraph(paragraph) for paragraph in section.paragraphs]
    if section.columns:
        headings = [_heading(column) for column in section.columns]
        classes = [' class="right"' if right else "" for _, right in headings]
        head = "".join(
            f'<th scope="col"{css}>{html.escape(name)}</th>'
            for (name, _), css in zip(headings, classes, strict=True)
        )
        parts.append(
            f'<div class="table" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>'
        )
        for index, row in enumerate(section.rows):
            cells = "".join(
                f"<td{css}>{html.escape(cell)}</td>" for cell, css in zip(row, classes, strict=True)
            )
            row_class = ' class="mark"' if index in section.marks else ""
            parts.append(f"<tr{row_class}>{cells}</tr>")
        parts.append("</tbody></table></div>")
    parts += [_figure(caption, svg) for caption, svg in section.drawings]
    return f"<section>{''.join(parts)}</section>"


def _figure(caption: str, svg: str) -> str:
    """A drawing with its caption; one that was left out is its caption alone."""
    # Within a page a drawing needs no name of its language.
    drawn = svg.replace(SVG_NAMESPACE, "")
    return f"<figure>{drawn}<figcaption>{html.escape(caption)}</figcaption></figure>"
