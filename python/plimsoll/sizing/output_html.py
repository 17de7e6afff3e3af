"""A sizing as one self-contained page for handing over.

Answer, findings, every step, plan, comparisons, sources.

Every formula is written in the names of its steps and each name leads to the row where it was
worked out, so a reader can walk the chain back to answers and published figures. No script and
nothing from the network; a table stands behind the chart; it prints.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from plimsoll import __version__
from plimsoll.sizing.design import Sizing, UsersTable
from plimsoll.sizing.guidance import DATA
from plimsoll.sizing.output_json import cited_sources
from plimsoll.sizing.output_text import drives_line, precise, shown, shown_step
from plimsoll.sizing.traced import Step
from plimsoll.units import SIZE_NOTE

CHART_WIDTH, CHART_HEIGHT, CHART_LEFT, CHART_BOTTOM = 640, 340, 80, 48


def sizing_page(sizing: Sizing) -> str:
    """Write the report.

    Args:
        sizing: What `size` returned.

    Returns:
        A whole HTML page.
    """
    title = escape(f"Sizing: {sizing.requirements.title or sizing.requirements.name}")
    parts = [
        ("answer", "Answer", _answer(sizing)),
        ("findings", "Findings", _findings(sizing)),
        ("steps", "Every step", _steps(sizing)),
        ("given", "Answers, defaults and published figures", _given(sizing)),
        (
            "users",
            "Users for each mailbox size",
            _users(sizing.users_table) if sizing.users_table else iter(()),
        ),
        ("editions", "Under each edition's guidance", _editions(sizing)),
        ("published", "The published example and its formulas", _differences(sizing)),
        ("plan", "Provisioning plan", _plan(sizing)),
        ("sources", "Sources", _sources(sizing)),
    ]
    written = [(key, heading, "\n".join(lines)) for key, heading, lines in parts]
    present = [part for part in written if part[2]]
    links = " ".join(f'<a href="#{key}">{escape(heading)}</a>' for key, heading, _ in present)
    body = "\n".join(
        f'<section id="{key}"><h2>{escape(heading)}</h2>\n{text}</section>'
        for key, heading, text in present
    )
    style = (DATA / "sizing_report.css").read_text(encoding="utf-8")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, '
        f'initial-scale=1">\n<title>{title}</title>\n'
        f"<style>\n{style}</style></head>\n<body><main>\n<h1>{title}</h1>\n{_subtitle(sizing)}\n"
        f'<nav aria-label="Contents">{links}</nav>\n{body}\n'
        f'<p class="dim">Made by plimsoll {escape(__version__)}.</p>\n</main></body></html>\n'
    )


def _subtitle(sizing: Sizing) -> str:
    copies = sizing.requirements.copies
    reading = (
        "formulas as printed"
        if sizing.reading == "formulas"
        else f"as published by {sizing.reading}"
    )
    text = (
        f"{sizing.requirements.guidance.title}; {reading}; {copies.mode}, copies: {copies.count}, "
        f"servers: {copies.servers}."
    )
    return f'<p class="dim">{escape(text)} {escape(SIZE_NOTE)}</p>'


def _table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    values: Sequence[int] = (),
    caption: str = "",
) -> Iterator[str]:
    """A table of ready-made cell contents; the columns in `values` are numbers."""

    def cell(tag: str, column: int, text: str, extra: str = "") -> str:
        kind = ' class="value"' if column in values else ""
        return f"<{tag}{kind}{extra}>{text}</{tag}>"

    yield '<div class="scroll"><table>'
    if caption:
        yield f"<caption>{escape(caption)}</caption>"
    head = "".join(
        cell("th", column, escape(text), ' scope="col"') for column, text in enumerate(header)
    )
    yield f"<thead><tr>{head}</tr></thead><tbody>"
    for row in rows:
        yield (
            "<tr>" + "".join(cell("td", column, text) for column, text in enumerate(row)) + "</tr>"
        )
    yield "</tbody></table></div>"


def _answer(sizing: Sizing) -> Iterator[str]:
    figures = sizing.results
    cards = [
        (
            f"{shown(figures['database_count'].value)} databases",
            f"of {shown_step(figures['database_size_gb'])} each",
        ),
        (shown_step(figures["database_volume_size_gb"]), "for each database volume"),
        (shown_step(figures["log_volume_size_gb"]), "for each log volume"),
        (shown_step(figures["total_capacity_gb"]), "for one copy of everything"),
        (shown_step(figures["total_capacity_all_copies_gb"]), "for all copies"),
        (shown_step(figures["database_iops"]), "of database I/O, headroom included"),
        (shown_step(figures["log_iops"]), "of log I/O, never added to the array's"),
        (sizing.volumes[0].raid, f"on {sizing.proposal.drive_class} drives"),
    ]
    yield '<div class="answer">'
    for big, small in cards:
        yield f"<div><b>{escape(big)}</b>{escape(small)}</div>"
    yield "</div>"
    yield f"<p>{escape(drives_line(sizing))}.</p>"


def _findings(sizing: Sizing) -> Iterator[str]:
    rows = [
        (
            f'<span class="{finding.level}">{finding.level}</span>',
            escape(finding.subject),
            escape(finding.message),
            escape(finding.advice),
            f'<span class="dim">{escape(finding.source)}</span>',
        )
        for finding in sizing.findings
    ]
    if rows:
        yield from _table(("Level", "Subject", "What was found", "What to do", "Source"), rows)
    else:
        yield "<p>Nothing stands against the design as stated.</p>"
    unstated = [rule.name for rule in sizing.network_rules if rule.holds is None]
    if unstated:
        yield f"<p>Not stated and so not checked: {escape(', '.join(unstated))}.</p>"


def _linked(formula: str, names: Iterable[str]) -> str:
    """A formula whose step names lead to their rows."""
    known = set(names)
    text = escape(formula)
    return re.sub(
        r"[a-z][a-z0-9_]*",
        lambda match: f'<a href="#{match[0]}">{match[0]}</a>' if match[0] in known else match[0],
        text,
    )


def _row(step: Step, names: Sequence[str]) -> str:
    note = f"<br>{escape(step.note)}" if step.note else ""
    how = ""
    if step.definition is not None:
        arithmetic = (
            ""
            if step.arithmetic == shown(step.value)
            else f"<br><code>= {escape(step.arithmetic)}</code>"
        )
        how = f"<td><code>{_linked(step.formula, names)}</code>{arithmetic}</td>"
    return (
        f'<tr id="{step.name}"><td>{escape(step.title)}</td><td '
        f'class="value">{escape(shown_step(step))}</td>{how}'
        f'<td class="source">{escape(step.source)}{note}</td></tr>'
    )


def _step_table(caption: str, steps: Iterable[Step], names: Sequence[str]) -> Iterator[str]:
    yield f'<div class="scroll"><table><caption>{escape(caption)}</caption>'
    yield '<thead><tr><th scope="col">Figure</th><th scope="col" class="value">Value</th>'
    yield '<th scope="col">How</th><th scope="col">Source</th></tr></thead><tbody>'
    yield from (_row(step, names) for step in steps)
    yield "</tbody></table></div>"


def _steps(sizing: Sizing) -> Iterator[str]:
    names = [step.name for step in sizing.steps]
    listed: set[str] = set()
    for section in sizing.sections:
        steps = [
            step
            for step in section.steps
            if step.definition is not None and step.name not in listed
        ]
        listed |= {step.name for step in steps}
        if steps:
            yield from _step_table(section.title, steps, names)
    rest = [
        step for step in sizing.steps if step.definition is not None and step.name not in listed
    ]
    if rest:
        yield from _step_table("Steps on the way", rest, names)


def _given(sizing: Sizing) -> Iterator[str]:
    yield '<div class="scroll"><table>'
    yield '<thead><tr><th scope="col">Figure</th><th scope="col" class="value">Value</th>'
    yield '<th scope="col">Source</th></tr></thead><tbody>'
    yield from (_row(step, ()) for step in sizing.steps if step.definition is None)
    yield "</tbody></table></div>"


def _plan(sizing: Sizing) -> Iterator[str]:
    first = sizing.volumes[0]
    yield (
        f"<p>{escape(first.partition_table)}, {escape(first.file_system)} with "
        f"{first.allocation_unit_kb:g} KB allocation "
        f"units, partitions beginning at {first.partition_offset_kb:g} KB, {escape(first.raid)}, "
        f"{escape(first.multipath_policy)}.</p>"
    )
    paths = [
        (escape(volume.server), "<br>".join(escape(" > ".join(path)) for path in volume.paths))
        for volume in {volume.server: volume for volume in sizing.volumes}.values()
    ]
    yield from _table(("Server", "Paths of each of its volumes"), paths)
    rows = [
        (
            escape(volume.name),
            escape(volume.server),
            "active" if volume.active else "passive",
            f"{volume.size_gb:,}",
            escape(volume.pool),
            escape(volume.controller),
            f"<code>{escape(volume.mount_point)}</code>",
        )
        for volume in sizing.volumes
    ]
    header = ("Volume", "Server", "Copy", "GB", "Pool", "Controller", "Mount point")
    yield from _table(
        header, rows, values=(3,), caption=f"{len(rows)} volumes, sizes rounded up to whole GB"
    )


def _users(table: UsersTable) -> Iterator[str]:
    yield f"<p>{escape(table.basis[0].upper() + table.basis[1:])}.</p>"
    yield from _chart(table)
    rows = [
        (
            shown(row.mailbox_size_gb),
            f"{row.users_by_capacity:,}",
            f"{row.users_by_iops:,}",
            f"{row.users:,}",
            escape(row.limit),
        )
        for row in table.rows
    ]
    header = ("Mailbox GB", "Users that fit", "Users the I/O carries", "Users", "Limit")
    yield from _table(header, rows, values=(0, 1, 2, 3))


def _chart(table: UsersTable) -> Iterator[str]:
    """Users against mailbox size.

    What the I/O carries is a line, what fits a curve, the area below both is possible.
    """
    size_max = max(row.mailbox_size_gb for row in table.rows)
    top = 1.6 * max(row.users for row in table.rows) or 1

    def place(size: float, users: float) -> tuple[float, float]:
        x = CHART_LEFT + (CHART_WIDTH - CHART_LEFT - 20) * size / size_max
        return x, CHART_HEIGHT - CHART_BOTTOM - (CHART_HEIGHT - CHART_BOTTOM - 20) * min(
            users, top
        ) / top

    smallest = min(row.mailbox_size_gb for row in table.rows)
    steps = [smallest + (size_max - smallest) * step / 120 for step in range(121)]
    by_iops = table.rows[0].users_by_iops
    possible = [place(size, min(by_iops, table.mailbox_space_gb / size)) for size in steps]
    curve = [
        place(size, table.mailbox_space_gb / size)
        for size in steps
        if table.mailbox_space_gb / size <= top
    ]
    (left, level), (right, base) = place(smallest, by_iops), place(size_max, 0)
    area = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(left, base), *possible, (right, base)])
    yield (
        f'<figure><svg viewBox="0 0 {CHART_WIDTH} {CHART_HEIGHT}" role="img" aria-label="Users '
        f'against mailbox size; the table below has the figures">'
    )
    yield f'<polygon points="{area}" fill="#dbe8f4"/>'
    yield (
        f'<line x1="{left:.1f}" y1="{level:.1f}" x2="{right:.1f}" y2="{level:.1f}" '
        f'stroke="#8a3b00" stroke-width="2" stroke-dasharray="6 4"/>'
    )
    yield (
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in curve)}" fill="none" '
        f'stroke="#0b5394" stroke-width="2"/>'
    )
    for row in table.rows:
        x, y = place(row.mailbox_size_gb, row.users)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#1b2733"/>'
    yield (
        f'<text x="{right:.1f}" y="{level - 6:.1f}" text-anchor="end">what the I/O carries: '
        f"{by_iops:,}</text>"
    )
    x, y = curve[0] if curve else (left, level)
    yield f'<text x="{x + 8:.1f}" y="{y + 4:.1f}">what fits</text>'
    yield from _axes(place, size_max, top)
    yield (
        "</svg><figcaption>The shaded area is possible; the points are the rows of the "
        "table.</figcaption></figure>"
    )


def _axes(
    place: Callable[[float, float], tuple[float, float]], size_max: float, top: float
) -> Iterator[str]:
    origin_x, origin_y = place(0, 0)
    end_x, _ = place(size_max, 0)
    yield (
        f'<line x1="{origin_x}" y1="{origin_y}" x2="{end_x:.1f}" y2="{origin_y}" stroke="#566473"/>'
    )
    yield f'<line x1="{origin_x}" y1="20" x2="{origin_x}" y2="{origin_y}" stroke="#566473"/>'
    for tick in _ticks(size_max):
        x, _ = place(tick, 0)
        yield f'<text x="{x:.1f}" y="{origin_y + 18}" text-anchor="middle">{tick:g}</text>'
    for tick in _ticks(top):
        _, y = place(0, tick)
        yield f'<text x="{origin_x - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:,.0f}</text>'
    yield (
        f'<text x="{(origin_x + end_x) / 2:.1f}" y="{CHART_HEIGHT - 8}" '
        f'text-anchor="middle">mailbox size, GB</text>'
    )
    yield f'<text x="{origin_x}" y="14" text-anchor="start">users</text>'


def _ticks(top: float) -> list[float]:
    """Round numbers from 0 to at most `top`, four to eight of them.

    Example:
        >>> _ticks(95869)
        [0.0, 20000.0, 40000.0, 60000.0, 80000.0]
    """
    magnitude = 10.0 ** math.floor(math.log10(top / 4))
    step = max(factor * magnitude for factor in (1, 2, 5) if factor * magnitude <= top / 4)
    return [count * step for count in range(int(top / step) + 1)]


def _editions(sizing: Sizing) -> Iterator[str]:
    if not sizing.editions:
        return
    rows = [
        (
            escape(row.title),
            f"{row.iops_per_user:.3f}",
            shown(row.database_iops),
            str(row.database_count),
            shown(row.database_volume_size_gb),
            shown(row.log_volume_size_gb),
            shown(row.total_capacity_gb),
            shown(row.cache_mb_per_user),
            escape(", ".join(row.bases)),
        )
        for row in sizing.editions
    ]
    header = (
        "Edition",
        "IOPS per user",
        "IOPS",
        "Databases",
        "Volume GB",
        "Log GB",
        "One copy GB",
        "Cache MB per user",
        "Figures were",
    )
    yield from _table(header, rows, values=tuple(range(1, 8)))
    yield (
        "<p>Figures recalled or assumed were not read from their source: check them before "
        "quoting.</p>"
    )


def _differences(sizing: Sizing) -> Iterator[str]:
    if not sizing.differences:
        return
    yield (
        "<p>The Dell paper's worked example rounds and leaves factors out that its formulas "
        "have.</p>"
    )
    rows = [
        (
            f"<code>{escape(each.name)}</code>",
            precise(each.published),
            precise(each.formulas),
            escape(each.unit),
            escape(each.reason),
        )
        for each in sizing.differences
    ]
    yield from _table(
        ("Figure", "As published", "By the formulas", "Unit", "Why"), rows, values=(1, 2)
    )


def _sources(sizing: Sizing) -> Iterator[str]:
    rows = [
        (f"<code>{escape(key)}</code>", escape(document))
        for key, document in cited_sources(sizing).items()
    ]
    yield from _table(("Key", "Document"), rows)
