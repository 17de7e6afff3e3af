"""Drawings of a solution as SVG.

The architecture, the disks, and how many mailboxes of which size it carries.

Drawn from the description alone and without any library, so that the same picture stands in the
page, the PDF and, as pixels, in the text document. Every box and disk carries its name as text, for
readers who cannot see the picture. Limit: columns of boxes and straight links; a description with
dozens of hosts becomes a tall drawing.
"""

from __future__ import annotations

from plimsoll.inputs.schema import Given
from plimsoll.pages.svg import (
    ARRAY,
    HOST,
    INK,
    LINE,
    SPARE,
    SWITCH,
    picture,
    rectangle,
    shortened,
    text,
)
from plimsoll.pages.svg import DISK as DISK_FILL
from plimsoll.solution.solution import Solution
from plimsoll.solution.tables import maximum_users, users_by_iops

BOX_WIDTH, BOX_HEIGHT, GAP, COLUMN = 210, 64, 26, 330
DISK, DISK_GAP, DISKS_IN_ROW = 42, 8, 14


def architecture(solution: Solution) -> str:
    """Hosts, switches and arrays in columns, with every link."""
    content = solution.content
    columns = [(content["host"], HOST), (content["switch"], SWITCH), (content["array"], ARRAY)]
    columns = [column for column in columns if column[0]]
    height = max(len(boxes) for boxes, _ in columns) * (BOX_HEIGHT + GAP) + 2 * GAP
    places: dict[str, tuple[float, float]] = {}
    drawn = []
    for number, (boxes, fill) in enumerate(columns):
        top = (height - len(boxes) * (BOX_HEIGHT + GAP) + GAP) / 2
        for index, box in enumerate(boxes):
            x, y = GAP + number * COLUMN, top + index * (BOX_HEIGHT + GAP)
            places[box["name"]] = (x, y)
            drawn.append(_box(box, x, y, fill))
    width = 2 * GAP + (len(columns) - 1) * COLUMN + BOX_WIDTH
    links = [part for link in content["link"] for part in _link(link, places, len(columns))]
    names = ", ".join(places)
    return picture(width, height, f"Architecture: {names}", [*links, *drawn])


def _box(box: Given, x: float, y: float, fill: str) -> str:
    middle = x + BOX_WIDTH / 2
    parts = [
        rectangle(x, y, BOX_WIDTH, BOX_HEIGHT, fill),
        text(middle, y + 22, shortened(box["name"], 27), 14, weight="bold"),
    ]
    lines = [
        box.get("detail"),
        f"{box['controllers']} controllers" if box.get("controllers", 0) > 1 else None,
    ]
    for number, line in enumerate(line for line in lines if line):
        parts.append(text(middle, y + 40 + 16 * number, shortened(line, 32), 11))
    return "".join(parts)


def _link(link: Given, places: dict[str, tuple[float, float]], columns_count: int) -> list[str]:
    (ax, ay), (bx, by) = sorted((places[link["from"]], places[link["to"]]))
    link_is_first = ax < GAP + COLUMN * (columns_count - 1) / 2
    x1, x2 = (ax + BOX_WIDTH, bx) if ax != bx else (ax + BOX_WIDTH / 2, bx + BOX_WIDTH / 2)
    parts = []
    for number in range(link["count"]):
        shift = (number - (link["count"] - 1) / 2) * 9
        y1, y2 = ay + BOX_HEIGHT / 2 + shift, by + BOX_HEIGHT / 2 + shift
        parts.append(
            f'<line class="link" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{LINE}" '
            f'stroke-width="1.6"/>'
        )
    label = " × ".join(
        part
        for part in (str(link["count"]) if link["count"] > 1 else "", link["label"] or "")
        if part
    )
    if label:
        # Nearer to the outer end, where the links of several boxes have not met yet.
        share = 0.3 if link_is_first else 0.7
        x, y = x1 + (x2 - x1) * share, ay + BOX_HEIGHT / 2 + (by - ay) * share
        shown = shortened(label, 18)
        width = 6.4 * len(shown) + 6
        parts.append(
            f'<rect x="{x - width / 2:g}" y="{y - 9:g}" width="{width:g}" height="17" '
            f'fill="#ffffff" opacity="0.92"/>'
        )
        parts.append(text(x, y + 4, shown, 11))
    return parts


def disk_layout(solution: Solution) -> str:
    """Every disk of every pool, the spares, and the volumes on them."""
    parts: list[str] = []
    y, width = float(GAP), 2.0 * GAP + DISKS_IN_ROW * (DISK + DISK_GAP)
    for pool in solution.content["pool"]:
        parts.append(
            text(
                GAP, y + 14, f"{pool['array']}: {pool['name']}, {pool['raid']}", 14, "start", "bold"
            )
        )
        y += 26
        count = pool["disks"] + pool["spares"]
        for number in range(count):
            row, column = divmod(number, DISKS_IN_ROW)
            x, top = GAP + column * (DISK + DISK_GAP), y + row * (DISK + DISK_GAP)
            spare = number >= pool["disks"]
            parts.append(
                f'<g class="{"spare" if spare else "disk"}">{rectangle(x, top, DISK, DISK, SPARE if spare else DISK_FILL)}'  # noqa: E501
            )
            parts.append(
                text(
                    x + DISK / 2,
                    top + DISK / 2 + 4,
                    "spare" if spare else str(number + 1),
                    10 if spare else 12,
                )
                + "</g>"
            )
        y += -(-count // DISKS_IN_ROW) * (DISK + DISK_GAP) + 6
        for volume in pool["volumes"]:
            parts.append(rectangle(GAP, y, width - 2 * GAP - DISK_GAP, 26, "#ffffff"))
            parts.append(text(GAP + 10, y + 18, shortened(volume, 90), 12, "start"))
            y += 32
        y += GAP
    return picture(
        width, y, "Disk layout: every disk of every group, and the volumes on them", parts
    )


def mailbox_chart(solution: Solution) -> str:
    """Users over the size of their mailboxes.

    What capacity allows, what I/O allows, and the rows of table 9.
    """
    rows = maximum_users(solution)
    profile = solution.content["profile"]
    capacity_gb = profile["mailbox_gb"] * profile["users"]
    by_iops, _ = users_by_iops(solution)
    sizes = [size for size, _, _ in rows]
    width, height, left, bottom = 700.0, 380.0, 80.0, 60.0
    size_max, users_max = max(sizes) * 1.1, by_iops * 1.25

    def at(size: float, users: float) -> tuple[float, float]:
        return left + (width - left - 30) * size / size_max, height - bottom - (
            height - bottom - 30
        ) * min(users, users_max) / users_max

    parts = [
        f'<line x1="{left}" y1="{height - bottom}" x2="{width - 20}" y2="{height - bottom}" '
        f'stroke="{INK}"/>',
        f'<line x1="{left}" y1="20" x2="{left}" y2="{height - bottom}" stroke="{INK}"/>',
    ]
    # The curve begins where capacity holds more users than the picture shows.
    first = capacity_gb / users_max
    sizes_drawn = (
        [first + (size_max - first) * step / 80 for step in range(81)]
        if first < size_max
        else [size_max]
    )
    curve = [at(size, capacity_gb / size) for size in sizes_drawn]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in curve)
    parts.append(f'<polyline points="{points}" fill="none" stroke="#b35900" stroke-width="2"/>')
    (x1, y1), (x2, _) = at(0, by_iops), at(size_max, by_iops)
    parts.append(
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y1:g}" stroke="#1d5b8f" stroke-width="2" '
        f'stroke-dasharray="7 4"/>'
    )
    parts.append(text(x2 - 4, y1 - 8, f"I/O carries {by_iops:,} users", 12, "end"))
    parts.append(
        text(width - 24, 36, f"curve: capacity of {capacity_gb:,.0f} GB; dashes: I/O", 12, "end")
    )
    for size, users, _ in rows:
        x, y = at(size, users)
        parts.append(f'<circle class="row" cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{INK}"/>')
        parts.append(text(x + 8, y - 10, f"{users:,}", 12, "start", "bold"))
        parts.append(text(x, height - bottom + 18, f"{size:g}", 12))
    parts.append(text((left + width) / 2, height - 14, "size of a mailbox, GB", 13))
    for users in _steps(users_max):
        _, y = at(0, users)
        parts.append(
            text(left - 8, y + 4, f"{users:,}", 12, "end")
            + f'<line x1="{left - 4}" y1="{y:g}" x2="{left}" y2="{y:g}" stroke="{INK}"/>'
        )
    parts.append(
        f'<g transform="translate(18 {height / 2:g}) rotate(-90)">{text(0, 0, "users", 13)}</g>'
    )
    return picture(
        width,
        height,
        "Users over the size of their mailboxes, with the limits of capacity and I/O",
        parts,
    )


def _steps(highest: float) -> list[int]:
    """Four or five round numbers up to the highest."""
    unit = 1
    while highest / unit > 5:
        unit = unit * 2 if str(unit)[0] != "2" else unit * 5 // 2
    return list(range(0, int(highest) + 1, unit))
