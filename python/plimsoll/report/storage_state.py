"""In which state the storage was measured, how skewed the load was, and what the written pages are
like.
"""

from __future__ import annotations

from typing import Any

from plimsoll.documents.content import Content
from plimsoll.documents.summary import Conditioning, Summary
from plimsoll.pages.tables import Table, duration_shown, size_shown


def condition_tables(summary: Summary) -> list[Table]:
    """Nothing where a run has neither."""
    return [*_conditioning(summary.conditioning), *_content(summary.content)]


def _conditioning(found: Conditioning | None) -> list[Table]:
    if found is None:
        return []
    rows: list[list[Any]] = []
    if found.soaked_s:
        rows.append(["Soaked before measuring", duration_shown(found.soaked_s)])
    if found.precondition:
        rows.append(["Preconditioned before measuring", duration_shown(found.preconditioned_s)])
        rows.append(["Steady state", found.text])
        rounds = ", ".join(f"{iops:,.0f}" for iops in found.precondition.rounds_iops)
        rows.append(["Database IOPS of the rounds", rounds])
    for hot in found.hot_sets:
        got = (
            "nothing was measured"
            if hot.access_percent is None
            else f"{hot.access_percent:.1f} % went there"
        )
        rows.append(
            [
                f"Hot set of {hot.workload}",
                f"{hot.hot_percent} % of the records, {hot.asked_access_percent} % of the "
                f"operations asked; {got}",
            ]
        )
    return [Table("Conditioning", [], rows)] if rows else []


def _content(found: Content | None) -> list[Table]:
    if found is None:
        return []
    rows: list[list[Any]] = [
        [
            item.path,
            item.asked_compressible_percent,
            item.compressible_percent,
            item.zero_percent,
            size_shown(item.sampled_bytes) if item.sampled_bytes is not None else item.reason,
        ]
        for item in found.databases
    ]
    headings = [
        "Database",
        "Content asked, % compressible",
        "Pages, % compressible",
        "Pages, % zeros",
        "Sample",
    ]
    duplicate = found.duplicate_percent
    asked = found.asked_duplicate_percent
    of_asked = (
        f", {asked} % of the prepared pages were asked for; what the load changed is no duplicate "
        f"any more"
        if asked
        else ""
    )
    again = (
        ""
        if duplicate is None
        else f" {duplicate:.1f} % of the sampled blocks of 4 KiB occur again{of_asked}."
    )
    note = (
        f"Measured on a sample of the pages as they lie in the files, headers and empty space "
        f"included: {found.algorithm}.{again}"
    )
    return [Table("Content of the written pages", headings, rows, note)]
