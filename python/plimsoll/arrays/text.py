"""What a modelled run adds to its result, as sentences and rows.

The array, the band, the bottleneck, the formula.

Terminal and report say the same, so both take it from here.
"""

from __future__ import annotations

from plimsoll.arrays.faults import fault_words
from plimsoll.arrays.formula import formula_iops, neighbours_remark
from plimsoll.arrays.neighbours import neighbour_sentences, neighbour_words
from plimsoll.arrays.pools import group_words
from plimsoll.documents.array_sheet import ArraySheet
from plimsoll.documents.figures import ReportedTotals
from plimsoll.documents.outcome import ArrayReport
from plimsoll.documents.summary import AnySummary
from plimsoll.documents.verdict import Prediction

MARK = "MODELLED"
WARNING = f"{MARK}: no storage was touched; times are those of a simulated array"


def array_title(array: ArraySheet) -> str:
    """What was modelled, in a line."""
    sets = " + ".join(str(count) for count in array["sets"])
    boxes = f", {array['member_count']} boxes" if array["member_count"] > 1 else ""
    failed = array.get("failed_drive_count") or 0
    broken = f", {failed} failed" if failed else ""
    logs = ""
    if log_sets := array.get("log_sets"):
        count = " + ".join(str(count) for count in log_sets)
        logs = (
            f", logs on {count} x {array['log_drive_sheet']['name']}, "
            f"{array.get('log_level') or array['level']}"
        )
    groups = "".join(f"; {words}" for words in group_words(array))
    faults = "".join(f", {words}" for words in fault_words(array))
    beside = "; ".join(neighbour_words(array))
    neighbours = f"; neighbours: {beside}" if beside else ""
    drives = f"{sets} x {array['drive_sheet']['name']}, {array['level']}{groups}{logs}"
    return f"{array['title']}: {drives}{boxes}{broken}{faults}{neighbours}"


def bottleneck(report: ArrayReport) -> str:
    """The stage that would give way first."""
    first = report.stages[0]
    return f"the busiest stage is {first.stage}, at work {first.utilisation:.0%} of the time"


def rebuild_sentences(report: ArrayReport) -> list[str]:
    """How far spares are filled: what a degraded array is waiting for."""
    sentences = []
    for row in report.rebuilds:
        took = (
            f"{row.duration_s / 3600:,.1f} h"
            if row.duration_s >= 3600
            else f"{row.duration_s:,.0f} s"
        )
        if row.share >= 1:
            sentences.append(f"a spare was filled in {took}")
            continue
        rate = row.share / row.duration_s if row.duration_s else 0
        rest = (
            f", the rest would take {(1 - row.share) / rate / 3600:,.1f} h more at this rate"
            if rate
            else ""
        )
        sentences.append(f"a spare was filled to {row.share:.1%} in {took}{rest}")
    return sentences


def formula_sentence(array: ArraySheet, total: ReportedTotals) -> str:
    """The planner's formula beside the modelled rate."""
    achieved = total.database_iops or 0.0
    reads = (total.database_read.per_s or 0.0) if achieved else 0.0
    formula = formula_iops(array, reads / achieved if achieved else 0.5)
    if formula is None:
        return "the planner's formula has no rule for these drives"
    remark = neighbours_remark(array)
    return (
        f"the planner's formula says {formula:,.0f} database IOPS at any latency{remark}; the "
        f"model {achieved:,.0f} at this load"
    )


def lines_of(array: ArraySheet, summary: AnySummary, prediction: Prediction) -> list[str]:
    """What stands below the verdict of a modelled run."""
    bands = prediction.band_percent
    nearest = prediction.nearest_validated_point
    lines = [
        f"{WARNING}.",
        f"  {array_title(array)}",
        f"  error band, from arrays predicted without a constant of their own: IOPS "
        f"{bands['database_iops']:.0f} %, database reads "
        f"{bands['database_read']:.0f} %, page writes {bands['database_write']:.0f} %, log writes "
        f"{bands['log_write']:.0f} %",
        f"  nearest validated point: {nearest.id}, {nearest.how}, IOPS off by "
        f"{nearest.error_percent:+.1f} % there",
        f"  {formula_sentence(array, summary.total)}",
    ]
    if summary.array:
        lines.append(f"  {bottleneck(summary.array)}")
        sentences = neighbour_sentences(summary.array) + rebuild_sentences(summary.array)
        lines += [f"  {sentence}" for sentence in sentences]
    return lines
