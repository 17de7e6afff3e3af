"""A page of tables and charts that is not the report of one run.

Comparisons, repeated runs, studies.

It looks and behaves like the report: one file, no network, the result first, a table behind each
chart.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from markupsafe import Markup

from plimsoll import __version__
from plimsoll.pages.chart_script import script_bundle
from plimsoll.pages.kit import Chapter, page_style, safe_json, template_environment


@dataclass(frozen=True)
class Sheet:
    """What such a page says.

    Attributes:
        product: the small line above the title.
        title: the first heading.
        where: one line below it.
        status: "pass", "rehearsal", "fail", "inconclusive" or "neutral": how the box of the result
            is framed.
        headline: the result in words.
        sentences: what stands below it.
        warnings: what a reader must know first.
        chapters: tables and charts.
        made_by: the command that writes the page again; empty where none does.
        modelled: the banner of a page with simulated figures on it; empty where all were measured.
    """

    product: str
    title: str
    where: str
    status: str
    headline: str
    sentences: list[str]
    warnings: list[str]
    chapters: list[Chapter]
    made_by: str
    modelled: str = ""
    marks: dict[str, str] = field(
        default_factory=lambda: {
            "pass": "✓",
            "rehearsal": "✓",
            "fail": "✗",
            "inconclusive": "?",
            "neutral": "⇄",
        }
    )


def render_sheet(sheet: Sheet) -> str:
    """The page as text."""
    specs = {chart.name: chart.spec for chapter in sheet.chapters for chart in chapter.charts}
    return (
        template_environment()
        .get_template("sheet.html.j2")
        .render(
            sheet=sheet,
            mark=sheet.marks[sheet.status],
            specs=Markup(safe_json(specs)) if specs else "",
            bundle=Markup(script_bundle() if specs else ""),
            style=page_style(),
            version=__version__,
        )
    )
