"""The comparison as a page.

Result, improvement tables, charts, plans and environments side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plimsoll.compare.charts import comparison_charts
from plimsoll.compare.differences import is_modelled
from plimsoll.compare.gates import Finding
from plimsoll.compare.parts import OVERVIEW
from plimsoll.compare.sides import Side
from plimsoll.compare.text import confidence_note, factor_text, figure_rows, headline
from plimsoll.documents.comparison import Comparison, SideBySide
from plimsoll.pages.kit import Chapter
from plimsoll.pages.sheet import Sheet, render_sheet
from plimsoll.pages.tables import Table, duration_shown

DIFFERS, ALIKE = "≠ differs", "the same"


def render(found: Comparison, sides: Sequence[Side], findings: Sequence[Finding]) -> str:
    """The page as text."""
    names = [side.name for side in found.sides]
    simulated = [side.name for side in sides if is_modelled(side.first)]
    banner = f"MODELLED: no storage was touched by {', '.join(simulated)}" if simulated else ""
    chapters = [
        Chapter("improvement", "Improvement", _improvement(found)),
        Chapter("loads", "Loads and events", _parts(found)),
        Chapter("conditions", "Conditions", [_conditions(findings)] if findings else []),
        Chapter("charts", "Charts", [], comparison_charts(found, sides)),
        Chapter("runs", "What was compared", [_compared(found)]),
        Chapter("plans", "Plans side by side", _side_by_side(found.plan, names, "plan")),
        Chapter(
            "environments",
            "Environments side by side",
            _side_by_side(found.environment, names, "environment"),
        ),
    ]
    return render_sheet(
        Sheet(
            product="Plimsoll comparison" + (", MODELLED" if banner else ""),
            title=f"{' and '.join(names[1:])} against {names[0]}",
            where=f"{len(names)} sides; the first is the baseline",
            status=status_of(findings),
            headline=_headline(found, findings),
            sentences=[*_sentences(found, findings), *confidence_note(found)],
            warnings=list(found.warnings),
            chapters=[chapter for chapter in chapters if chapter.tables or chapter.charts],
            made_by="plimsoll compare",
            modelled=banner,
        )
    )


def status_of(findings: Sequence[Finding]) -> str:
    """How the box is framed: by the conditions, where there are any."""
    if not findings:
        return "neutral"
    if any(finding.holds for finding in findings):
        return "fail"
    return "inconclusive" if any(finding.holds is None for finding in findings) else "pass"


def _headline(found: Comparison, findings: Sequence[Finding]) -> str:
    match status_of(findings):
        case "fail":
            return "A condition of failure holds"
        case "inconclusive":
            return "A condition of failure could not be evaluated"
        case "pass":
            return "No condition of failure holds"
    first, second = found.sides[0].name, found.sides[1].name
    return (
        f"{second} against {first}: {headline(found, 0)}"
        if len(found.sides) == 2
        else f"{len(found.sides) - 1} sides against one"
    )


def _sentences(found: Comparison, findings: Sequence[Finding]) -> list[str]:
    if not findings and len(found.sides) == 2:
        return []
    return [f"{side.name}: {headline(found, index)}." for index, side in enumerate(found.sides[1:])]


def _improvement(found: Comparison) -> list[Table]:
    first = found.sides[0].name
    tables = []
    for index, side in enumerate(found.sides[1:]):
        headings = [
            "Figure",
            first,
            side.name,
            "Factor",
            "95 % of the factor",
            "In a word",
            "Confidence from",
        ]
        tables.append(
            Table(f"{side.name} against {first}", headings, figure_rows(found.figures, index))
        )
    return tables


def _parts(found: Comparison) -> list[Table]:
    """What every load did side by side, then each load and each event by itself."""
    if not found.parts:
        return []
    names = [side.name for side in found.sides]
    overview = [
        [part.title.removeprefix("Load "), row.title, row.unit, *(item.value for item in row.sides)]
        + [factor_text(against) for against in row.against_first]
        for part in found.parts
        for row in part.figures
        if row.name in OVERVIEW
    ]
    headings = ["Load", "Figure", "Unit", *names, *(f"Factor, {name}" for name in names[1:])]
    tables = [Table("Loads side by side", headings, overview)] if overview else []
    absent: list[list[Any]] = [
        [part.title, ", ".join(part.missing)] for part in found.parts if part.missing
    ]
    if absent:
        note = "What a single side has stands in the report of its run."
        tables.append(Table("Not on every side", ["Load or event", "Not in"], absent, note))
    for part in (part for part in found.parts if part.figures):
        note = f"Not in {', '.join(part.missing)}." if part.missing else ""
        for index, name in enumerate(names[1:]):
            title = part.title if len(names) == 2 else f"{part.title}: {name}"
            heads = ["Figure", names[0], name, "Factor", "95 % of the factor", "In a word"]
            heads.append("Confidence from")
            tables.append(Table(title, heads, figure_rows(part.figures, index), note))
    return tables


def _conditions(findings: Sequence[Finding]) -> Table:
    words = {True: "✗ holds", False: "✓ does not hold", None: "? not evaluated"}
    rows = [
        [finding.text, finding.side, words[finding.holds], finding.words] for finding in findings
    ]
    note = (
        "Conditions of failure: one that holds ends the comparison with exit code 1, one that "
        "could not be evaluated with 3."
    )
    return Table("Conditions of failure", ["Condition", "Side", "Result", "Why"], rows, note)


def _compared(found: Comparison) -> Table:
    headings = ["Side", "Plan", "Runs", "Began (UTC)", "Measured for", "Result", "Folder"]
    rows = [
        [
            side.name,
            side.plan,
            side.runs_count,
            (side.start_utc or "")[:16].replace("T", " ") or None,
            duration_shown(side.measured_s) if side.measured_s else None,
            side.result,
            side.path,
        ]
        for side in found.sides
    ]
    return Table(
        "Runs",
        headings,
        rows,
        "Of several runs of one side, the first began then, and the result is the worst of all.",
    )


def _side_by_side(rows: Sequence[SideBySide], names: Sequence[str], what: str) -> list[Table]:
    """What differs first, then what is alike: both marked by words in a column of their own."""
    tables = []
    for differs, title in ((True, "Differences"), (False, "What is the same")):
        chosen = [row for row in rows if row.differs is differs]
        if not chosen:
            continue
        content = [
            [row.key, DIFFERS if differs else ALIKE, *map(_plain, row.values)] for row in chosen
        ]
        headings = [f"Value of the {what}", "Compared", *names]
        tables.append(Table(f"{title} of the {what}s", headings, content, folded=not differs))
    return tables


def _plain(value: Any) -> str:
    if value is None or value == "":
        return "–"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
