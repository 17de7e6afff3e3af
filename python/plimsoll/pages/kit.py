"""What every page is put together from: charts, chapters, the templates and their style."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, TypedDict

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from plimsoll.pages.tables import Table, shown

STATUS_WORDS = {
    "pass": "✓ within its limit",
    "fail": "✗ beyond its limit",
    "not_evaluated": "? not evaluated",
    "not_applicable": "not applicable",
    "pass predicted": "✓ predicted within its limit",
    "fail predicted": "✗ predicted beyond its limit",
    "not_evaluated predicted": "? too close to its limit to call",
}


class Point(TypedDict, total=False):
    """A row of a chart's data: value, what it is of, its place on an axis, its bounds."""

    v: float
    w: str
    t: float
    x: float
    b: str
    f: str
    d: str
    l: float  # noqa: E741 - a key of the charts
    h: float


@dataclass(frozen=True)
class Chart:
    """One chart with its table behind it, and a note below it where marks need words."""

    name: str
    title: str
    description: str
    spec: dict[str, object]
    table: Table
    note: str = ""


@dataclass(frozen=True)
class Chapter:
    """A part of the report: tables, then charts."""

    id: str
    title: str
    tables: list[Table]
    charts: list[Chart] = field(default_factory=list)


@cache
def template_environment() -> Environment:
    """What the templates of all pages are rendered with; each is compiled once."""
    page = Environment(
        loader=PackageLoader("plimsoll.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page.filters["anchor"] = lambda title: re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    page.filters["status_word"] = lambda status: STATUS_WORDS.get(status, status)
    page.filters["used_words"] = lambda share: f"{shown(100 * share)} % of it used"
    page.filters["lower_first"] = _lower_first
    page.filters["breakable"] = _breakable
    return page


def _lower_first(title: str) -> str:
    """A title within a line; an abbreviation at its begin stays as it is.

    >>> _lower_first("Rate of I/O"), _lower_first("I/O per second")
    ('rate of I/O', 'I/O per second')
    """
    return title if not title[1:2].islower() else title[:1].lower() + title[1:]


def page_style() -> Markup:
    """The style sheet that every page carries within itself."""
    return Markup(
        files("plimsoll.pages").joinpath("templates/page.css").read_text(encoding="utf-8")
    )


def _breakable(text: str) -> Markup:
    """Text that may be broken behind the slashes of a path, and is not broken elsewhere while there
    is room.
    """
    return Markup("/<wbr>").join(text.split("/")) if "/" in text else escape(text)


def safe_json(value: Any) -> str:
    """JSON that can stand inside a script element whatever the plan's names are."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
