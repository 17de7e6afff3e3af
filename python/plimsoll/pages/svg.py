"""The parts of which drawings are made, as SVG text without any library.

The same picture stands in a page, a PDF and, as pixels, in a text document. Every shape that means
something carries its name as text, for readers who cannot see the picture. What a user wrote is
escaped here, at one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

INK, LINE, PAPER = "#1a1a1a", "#5b6770", "#ffffff"
HOST, SWITCH, ARRAY, DISK, SPARE, MACHINE, ALARM = (
    "#dbe7f3",
    "#eeeeee",
    "#e3efdf",
    "#cfdcec",
    "#f6e3c5",
    "#f4f0fa",
    "#f8d9d4",
)
#: Colours of lines and bars that are told apart, dark enough to be read on paper.
SERIES = ("#1d5b8f", "#b35900", "#3f7d3a", "#7a4f9a", "#8c2f2f", "#4d4d4d")
_FONT = 'font-family="DejaVu Sans, Arial, sans-serif"'
#: What a drawing begins with where it stands by itself.
SVG_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
#: Width of a letter by the size of its font, on average and a little more.
LETTER_SHARE = 0.6


def text(
    x: float, y: float, words: str, size: int = 13, anchor: str = "middle", weight: str = "normal"
) -> str:
    """Words at a place.

    >>> "&lt;b&gt;" in text(0, 0, "<b>")
    True
    """
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
        f'font-weight="{weight}" fill="{INK}" {_FONT}>{escape(words)}</text>'
    )


def rectangle(
    x: float, y: float, width: float, height: float, fill: str, *, dashed: bool = False
) -> str:
    """A box with round corners."""
    dashes = ' stroke-dasharray="6 4"' if dashed else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" fill="{fill}" '
        f'stroke="{LINE}"{dashes}/>'
    )


def line(
    start: tuple[float, float], end: tuple[float, float], kind: str = "link", colour: str = LINE
) -> str:
    """A straight line; `kind` is its class, by which it can be counted."""
    return (
        f'<line class="{escape(kind)}" x1="{start[0]:g}" y1="{start[1]:g}" x2="{end[0]:g}" '
        f'y2="{end[1]:g}" stroke="{colour}" stroke-width="1.6"/>'
    )


def group(kind: str, parts: Sequence[str]) -> str:
    """Shapes that belong together, with a class."""
    return f'<g class="{escape(kind)}">{"".join(parts)}</g>'


def picture(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    """A whole drawing; its title is what a screen reader says."""
    return (
        f'<svg{SVG_NAMESPACE} viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def shortened(words: str, letters: int) -> str:
    """At most so many letters.

    >>> shortened("database", 5), shortened("log", 5)
    ('data…', 'log')
    """
    return words if len(words) <= letters else words[: letters - 1] + "…"


def fitting(words: str, width: float, size: int) -> str:
    """As many letters as a width has room for."""
    return shortened(words, max(2, int(width / (LETTER_SHARE * size))))
