"""Suggestions with their reasoning.

RAID level, drives, memory and copies, worked out from the figures of a sizing.

Each suggestion is what the calculators of this project give when asked the question, with the
figures in the text; the same figures always give the same text. Sources: the RAID and drive rules
of the Dell EqualLogic Exchange 2010 sizing paper (sections 3.1 and 3.4.1) applied to its catalogue,
its rule for copies (5.6), and the memory of the sizing itself. Limits: drives and RAID are weighed
over the catalogue given, which by default is the built-in one of the 2020s; cloud volumes are left
out, as nobody chooses their RAID level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from plimsoll.sizing.catalogue import ArrayRow
from plimsoll.sizing.raid import RaidLevel, write_penalty
from plimsoll.sizing.selection import Candidate, Need, select_arrays


@dataclass(frozen=True)
class Figures:
    """What the suggestions rest on.

    Attributes:
        need: capacity, IOPS and copies, as for the array choice.
        memory_needed_gb: memory of one server by the sizing, None when unknown.
        memory_stated_gb: memory it is planned with, None when not stated.
    """

    need: Need
    memory_needed_gb: float | None = None
    memory_stated_gb: float | None = None


@dataclass(frozen=True)
class Suggestion:
    """One proposal with the reasoning behind it.

    Attributes:
        subject: "RAID", "drives", "memory" or "copies".
        proposal: what to do.
        reasoning: the figures that lead there.
        source: where the rule comes from.
    """

    subject: str
    proposal: str
    reasoning: str
    source: str


def suggest(figures: Figures, rows: Sequence[ArrayRow]) -> list[Suggestion]:
    """Every suggestion the figures allow, in a fixed order.

    Args:
        figures: what the design must hold and carry.
        rows: the catalogue to weigh RAID levels and drives over.
    """
    found = [*_raid_and_drives(figures.need, rows), _copies(figures.need)]
    memory = _memory(figures)
    return [*found, memory] if memory else found


def _raid_and_drives(need: Need, rows: Sequence[ArrayRow]) -> list[Suggestion]:
    rows = [row for row in rows if not row.spares_by_provider]
    levels: dict[RaidLevel, Candidate] = {}
    for level in sorted({row.raid for row in rows}):
        chosen = select_arrays(replace(need, raid_levels=(level,)), rows).chosen
        if chosen is not None:
            levels[level] = chosen
    if not levels:
        text = "no row of the catalogue holds the capacity and carries the IOPS"
        return [
            Suggestion("RAID", "none of this catalogue", text, "array choice over the catalogue")
        ]
    best = min(levels.values(), key=lambda c: (c.arrays_total, c.unused_gb))
    compared = "; ".join(
        f"{level}: {c.arrays_total} x {c.row.model} with {c.row.drive_capacity_gb:g} GB drives, "
        f"{c.iops_per_copy or 0:,.0f} IOPS and {c.unused_gb:,.0f} GB spare a copy, "
        f"{write_penalty(level)} disk I/Os a write"
        for level, c in levels.items()
    )
    density = need.database_iops / (need.volumes_gb / 1000)
    iops_per_tb = (best.row.transactional_iops or 0) / (best.row.usable_capacity_gb / 1000)
    bound = "capacity" if best.arrays_for_capacity >= (best.arrays_for_iops or 0) else "IOPS"
    return [
        Suggestion(
            "RAID",
            best.row.raid,
            f"fewest arrays, then least unused space: {compared}",
            "Dell EqualLogic Exchange 2010 sizing paper, sections 3.1.3 and 3.4.1",
        ),
        Suggestion(
            "drives",
            f"{best.row.drive_capacity_gb:g} GB {best.row.drive_class}",
            f"the load asks for {density:,.0f} IOPS a TB; this array gives {iops_per_tb:,.0f}, and "
            f"{bound} decides the number",
            "Dell EqualLogic Exchange 2010 sizing paper, sections 3.1.1 and 3.4.1",
        ),
    ]


def _copies(need: Need) -> Suggestion:
    source = "Dell EqualLogic Exchange 2010 sizing paper, section 5.6"
    if need.copies == 1:
        reasoning = (
            f"one copy has no protection against the loss of its array; a second takes "
            f"{need.volumes_gb:,.0f} GB more"
        )
        return Suggestion("copies", "2", reasoning, source)
    reasoning = (
        f"{need.copies} copies survive the loss of {need.copies - 1}; each takes "
        f"{need.volumes_gb:,.0f} GB"
    )
    return Suggestion("copies", f"keep {need.copies}", reasoning, source)


def _memory(figures: Figures) -> Suggestion | None:
    if figures.memory_needed_gb is None:
        return None
    needed, stated = figures.memory_needed_gb, figures.memory_stated_gb
    source = "memory of the sizing: database cache of the users a server carries after a failure"
    if stated is None:
        return Suggestion(
            "memory", f"{needed:,.1f} GB in each server", "the requirements state no memory", source
        )
    if stated < needed:
        reasoning = (
            f"{stated:g} GB are planned; the database cache of the users asks for {needed:,.1f} GB"
        )
        return Suggestion("memory", f"{needed:,.1f} GB in each server", reasoning, source)
    return Suggestion("memory", f"keep {stated:g} GB", f"{needed:,.1f} GB are needed", source)
