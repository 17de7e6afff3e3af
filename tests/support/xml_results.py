"""Result files in XML, written by these tests in the shape that published scripts read."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import quoteattr

from plimsoll.imports.jetstress import report_labels
from plimsoll.imports.jetstress.report_labels import PARTS
from plimsoll.imports.report_model import sections_of


def result_xml(report: dict[str, Any]) -> str:
    """A report as the tool's result file, without its log."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<output>"]
    parts = {part.title: part for part in PARTS}
    for section in sections_of(report):
        part = parts[section.title]
        name = next((other for other in part.other_titles if other.islower()), None)
        if name is None or part.name.startswith("checksum"):
            continue
        lines.append(f"<{name}>")
        if part.shape == report_labels.PAIRS:
            lines += [
                f"<element name={quoteattr(row.cells[0])} value={quoteattr(row.cells[1])} />"
                for row in section.rows
            ]
        elif part.shape == report_labels.ROWS:
            lines.append('<object name="MSExchange Database ==&gt; Instances">')
            for row in section.rows[1:]:
                lines.append(f"<instance name={quoteattr(row.cells[0])}>")
                lines += [
                    f"<counter name={quoteattr(head)} average={quoteattr(cell)} />"
                    for head, cell in zip(section.rows[0].cells[1:], row.cells[1:], strict=True)
                ]
                lines.append("</instance>")
            lines.append("</object>")
        elif part.shape == report_labels.LEVELS:
            lines.append('<object name="host"><instance>')
            for row in section.rows[1:]:
                values = " ".join(
                    f"{key}={quoteattr(cell)}"
                    for key, cell in zip(
                        ("average", "minimum", "maximum"), row.cells[1:], strict=True
                    )
                )
                lines.append(f"<counter name={quoteattr(row.cells[0])} {values} />")
            lines.append("</instance></object>")
        lines.append(f"</{name}>")
    return "\n".join([*lines, "</output>"]) + "\n"
