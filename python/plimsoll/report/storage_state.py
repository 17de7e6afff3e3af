"""In which state the storage was measured, how skewed the load was, and what the written pages are like."""

from __future__ import annotations

from typing import Any

from plimsoll.pages.tables import Table, duration_shown, size_shown


def condition_tables(summary: dict[str, Any]) -> list[Table]:
    """Nothing where a run has neither."""
    return [*_conditioning(summary.get("conditioning") or {}), *_content(summary.get("content") or {})]


def _conditioning(found: dict[str, Any]) -> list[Table]:
    rows: list[list[Any]] = []
    if found.get("soaked_s"):
        rows.append(["Soaked before measuring", duration_shown(found["soaked_s"])])
    if found.get("text"):
        rows.append(["Preconditioned before measuring", duration_shown(found["preconditioned_s"])])
        rows.append(["Steady state", found["text"]])
        rounds = ", ".join(f"{iops:,.0f}" for iops in found["precondition"]["rounds_iops"])
        rows.append(["Database IOPS of the rounds", rounds])
    for hot in found.get("hot_sets", []):
        got = "nothing was measured" if hot["access_percent"] is None else f"{hot['access_percent']:.1f} % went there"
        rows.append(
            [
                f"Hot set of {hot['workload']}",
                f"{hot['hot_percent']} % of the records, {hot['asked_access_percent']} % of the operations asked; {got}",
            ]
        )
    return [Table("Conditioning", [], rows)] if rows else []


def _content(found: dict[str, Any]) -> list[Table]:
    if not found:
        return []
    rows: list[list[Any]] = [
        [
            item["path"],
            item["asked_compressible_percent"],
            item.get("compressible_percent"),
            item.get("zero_percent"),
            size_shown(item["sampled_bytes"]) if "sampled_bytes" in item else item["reason"],
        ]
        for item in found["databases"]
    ]
    headings = ["Database", "Content asked, % compressible", "Pages, % compressible", "Pages, % zeros", "Sample"]
    duplicate = found["duplicate_percent"]
    asked = found.get("asked_duplicate_percent") or 0
    of_asked = (
        f", {asked} % of the prepared pages were asked for; what the load changed is no duplicate any more"
        if asked
        else ""
    )
    again = "" if duplicate is None else f" {duplicate:.1f} % of the sampled blocks of 4 KiB occur again{of_asked}."
    note = f"Measured on a sample of the pages as they lie in the files, headers and empty space included: {found['algorithm']}.{again}"
    return [Table("Content of the written pages", headings, rows, note)]
