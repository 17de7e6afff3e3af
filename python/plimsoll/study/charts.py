"""Charts of a study as SVG text, for a document that is printed: a bar for each variant, and the
curve along an axis.

Values stand beside their bars as text; intervals are lines of twice the standard error to both
sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.pages.svg import INK, LINE, SERIES, fitting, group, line, picture, rectangle, text
from plimsoll.pages.tables import shown

WIDTH, LABELS, ROW, TOP = 760.0, 210.0, 34.0, 46.0
CURVE_HEIGHT, MARGIN = 340.0, 70.0


@dataclass(frozen=True)
class Bar:
    """One variant: its value, and its standard error as a share of it where it is known."""

    name: str
    value: float | None
    relative_error: float | None = None


def bars(title: str, unit: str, rows: Sequence[Bar]) -> str:
    """A bar for each row; a row without a value says so."""
    height = TOP + ROW * len(rows) + 10
    reach = max((_highest(row) for row in rows), default=0.0) or 1.0
    scale = (WIDTH - LABELS - 130) / reach
    parts = [text(10, 24, title + (f" ({unit})" if unit else ""), 14, "start", "bold")]
    for number, row in enumerate(rows):
        y = TOP + number * ROW
        label = text(LABELS - 8, y + 17, fitting(row.name, LABELS - 16, 12), 12, "end")
        if row.value is None:
            parts.append(group("missing", [label, text(LABELS + 6, y + 17, "none", 12, "start")]))
            continue
        length = max(row.value * scale, 1.0)
        shapes = [label, rectangle(LABELS, y + 3, length, ROW - 12, SERIES[number % len(SERIES)])]
        end = length
        if row.relative_error:
            reach_px = 2 * row.relative_error * row.value * scale
            start = max(LABELS, LABELS + length - reach_px)
            end = length + reach_px
            middle = y + 3 + (ROW - 12) / 2
            shapes.append(line((start, middle), (LABELS + end, middle), "interval", INK))
        shapes.append(text(LABELS + end + 8, y + 18, shown(row.value), 12, "start"))
        parts.append(group("bar", shapes))
    parts.append(line((LABELS, TOP - 6), (LABELS, height - 8), "axis"))
    return picture(WIDTH, height, title, parts)


def _highest(row: Bar) -> float:
    return (row.value or 0.0) * (1 + 2 * (row.relative_error or 0.0))


def curve(
    title: str,
    axes: tuple[str, str],
    points: Sequence[tuple[float, float]],
    limit: float | None = None,
) -> str:
    """Values along an axis.

    Args:
        title: what it shows.
        axes: what lies along it, and what goes up.
        points: places along the axis, in their order, with their values.
        limit: drawn across, dashed by its name.
    """
    lefts, heights = [x for x, _ in points], [y for _, y in points]
    low, high = min(lefts), max(lefts)
    top = max([*heights, limit or 0.0]) * 1.1 or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        share = (x - low) / (high - low) if high > low else 0.5
        return (
            MARGIN + (WIDTH - MARGIN - 40) * share,
            CURVE_HEIGHT - 50 - (CURVE_HEIGHT - 100) * y / top,
        )

    base = CURVE_HEIGHT - 50
    parts = [
        text(10, 24, title, 14, "start", "bold"),
        line((MARGIN, base), (WIDTH - 30, base), "axis"),
        line((MARGIN, 40), (MARGIN, base), "axis"),
        text((MARGIN + WIDTH) / 2, CURVE_HEIGHT - 10, axes[0], 12),
        text(MARGIN, 38, axes[1], 11, "start"),
    ]
    if limit is not None:
        (x1, y), (x2, _) = at(low, limit), at(high, limit)
        parts.append(line((x1, y), (x2, y), "limit", SERIES[1]))
        parts.append(text(x2, y - 6, f"limit {shown(limit)}", 11, "end"))
    places = [at(x, y) for x, y in points]
    parts += [line(one, two, "curve", SERIES[0]) for one, two in pairwise(places)]
    for (x, y), (value, height) in zip(places, points, strict=True):
        dot = f'<circle cx="{x:g}" cy="{y:g}" r="4" fill="{SERIES[0]}" stroke="{LINE}"/>'
        words = [text(x, y - 10, shown(height), 11), text(x, base + 16, f"{value:g}", 11)]
        parts.append(group("point", [dot, *words]))
    return picture(WIDTH, CURVE_HEIGHT, title, parts)
