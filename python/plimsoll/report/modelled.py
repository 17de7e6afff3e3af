"""The chapter of a report whose storage was modelled.

What was modelled, how far to trust it, what each stage did.

The array counts by itself, by volume and member, as the tools of an array do. Host and array agree,
or the model is wrong.
"""

from __future__ import annotations

from typing import Any

from plimsoll.arrays.burst_credits import lived_on_credits
from plimsoll.arrays.faults import fault_words
from plimsoll.arrays.inheritance import by_figure
from plimsoll.arrays.neighbours import neighbour_rows, neighbour_sentences, neighbour_words
from plimsoll.arrays.pools import group_words, pools_of, volume_words
from plimsoll.arrays.text import MARK, array_title, bottleneck, formula_sentence, rebuild_sentences
from plimsoll.documents.array_sheet import ArraySheet
from plimsoll.documents.figures import Totals
from plimsoll.documents.outcome import ArrayReport
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Prediction, Verdict
from plimsoll.pages.tables import Table

_NOT_FIGURES = ("name", "title", "sources", "drive_sheet", "log_drive_sheet")
#: Lists of tables of an array, and what puts them into words.
_TABLES = {
    "faults": fault_words,
    "groups": group_words,
    "volumes": volume_words,
    "neighbours": neighbour_words,
}


def modelled_sections(plan: Plan, summary: Summary, verdict: Verdict) -> list[Table]:
    """The tables of a modelled run; none of a real one."""
    array, report = plan.judgement.modelled, summary.array
    if not array or not verdict.prediction:
        return []
    tables = [_trust(array, summary, verdict.prediction), _array(array)]
    if report:
        tables += [_stages(report), _volumes(report, summary)]
        tables += [_neighbours(report)] if report.neighbours else []
        tables += [_members(report), _drives(report)]
    return tables


def _trust(array: ArraySheet, summary: Summary, found: Prediction) -> Table:
    nearest, bands = found.nearest_validated_point, found.band_percent
    rows: list[list[Any]] = [
        ["Array", array_title(array)],
        ["Prediction", found.result],
        ["Nearest validated point", f"{nearest.id}: {nearest.how}"],
        ["Error of the IOPS there (%)", nearest.error_percent],
        ["Band of database IOPS (%)", bands["database_iops"]],
        ["Band of database read latency (%)", bands["database_read"]],
        ["Band of page write latency (%)", bands["database_write"]],
        ["Band of log write latency (%)", bands["log_write"]],
        ["Planner's formula next to it", formula_sentence(array, summary.total)],
    ]
    note = (
        "A band is the worst error of the model on arrays predicted without a constant of their "
        "own (docs/papers.md). Maxima and "
        "percentiles were not published, so that their band is a guess."
    )
    return Table(f"{MARK}: how far to trust it", [], rows, note)


def _array(array: ArraySheet) -> Table:
    source_of = by_figure(array.get("sources") or {})
    rows: list[list[Any]] = []
    for key, value in array.items():
        if key not in _NOT_FIGURES and value is not None and value != []:
            shown = _TABLES[key](array) if key in _TABLES else value
            between = "; " if key in _TABLES else ", "
            rows.append(
                [
                    key.replace("_", " "),
                    between.join(map(str, shown)) if isinstance(shown, list) else shown,
                ]
            )
            unsaid = (
                "stated with the array" if key in _TABLES else "as usual, where nothing is said"
            )
            rows[-1].append(source_of.get(key, unsaid))
    groups = [group for pool in pools_of(array).values() for group in pool]
    for name, sheet in {group.sheet["name"]: group.sheet for group in groups}.items():
        sources = by_figure(sheet.get("sources") or {})
        drive = "drive" if name == array["drive_sheet"]["name"] else name
        rows += [
            [f"{drive}: {key.replace('_', ' ')}", value, sources.get(key, "")]
            for key, value in sheet.items()
            if key not in _NOT_FIGURES and value is not None
        ]
    return Table(f"{MARK}: the array as described", ["Figure", "Value", "Source"], rows)


def _stages(report: ArrayReport) -> Table:
    keys = ("per_second", "present_mean", "stay_ms_mean")
    rows = [
        [stage.stage.capitalize(), 100 * stage.utilisation, *(getattr(stage, key) for key in keys)]
        for stage in report.stages
    ]
    headings = ["Stage", "At work (%)", "Through it (1/s)", "There, mean", "Stay, mean (ms)"]
    if report.neighbours:
        headings.append("At work for neighbours (%)")
        for row, stage in zip(rows, report.stages, strict=True):
            row.append(100 * stage.neighbour_utilisation)
    sentences = [
        f"First to give way: {bottleneck(report)}",
        *neighbour_sentences(report),
        *rebuild_sentences(report),
    ]
    borrowed = lived_on_credits(report)
    sentences += [borrowed] if borrowed else []
    note = " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences)
    note += (
        " A read is at the links, at a controller (with the time it takes there) and, unless it "
        "comes from memory, at the drives; a "
        "write is at the drives later, and as old data, new data and parity. Waiting counts as "
        "being there."
    )
    return Table(f"{MARK}: stages", headings, rows, note)


def _neighbours(report: ArrayReport) -> Table:
    keys = (
        "name",
        "volume",
        "wanted_iops",
        "iops",
        "left_out_count",
        "request_percent",
        "read_count",
        "write_count",
        "read_latency_ms",
        "write_latency_ms",
    )
    headings = [
        "Neighbour",
        "Volume",
        "IOPS wanted",
        "IOPS made",
        "Requests left out",
        "Of all requests (%)",
        "Reads",
        "Writes",
        "Read, mean (ms)",
        "Write, mean (ms)",
    ]
    note = (
        "What other applications did on volumes of theirs. None of it is in the counts by volume "
        "above or in those of the host; "
        "the boxes and drives below counted it with the host's."
    )
    rows = [[getattr(row, key) for key in keys] for row in neighbour_rows(report)]
    return Table(f"{MARK}: neighbours, as the array counted them", headings, rows, note)


def _volumes(report: ArrayReport, summary: Summary) -> Table:
    keys = (
        "read_count",
        "write_count",
        "read_latency_ms",
        "write_latency_ms",
        "read_bytes",
        "write_bytes",
    )
    rows: list[list[Any]] = [
        [volume.name, *(getattr(volume, key) for key in keys)] for volume in report.volumes
    ]
    for row in rows:
        # No request has no latency.
        row[3], row[4] = row[3] if row[1] else None, row[4] if row[2] else None
    sums: list[Any] = [
        "Together",
        *(sum(getattr(volume, key) for volume in report.volumes) for key in keys),
    ]
    sums[3] = sums[4] = None
    headings = [
        "Volume",
        "Reads",
        "Writes",
        "Read, mean (ms)",
        "Write, mean (ms)",
        "Bytes read",
        "Bytes written",
    ]
    hosts = _as_the_host_counted(summary.total)
    seconds = summary.window.seconds
    note = (
        f"As the array counted in {seconds:.0f} s, beside what the host counted of page reads and "
        f"writes, log reads and writes and "
        "maintenance. The array counts file headers and log generations written in advance too, "
        "and each side what was on its way when "
        "counting began."
    )
    return Table(f"{MARK}: counted by the array, by volume", headings, [*rows, sums, hosts], note)


#: What the host counts by itself, reads and writes.
_HOST_READS = ("database_read", "maintenance", "log_read", "log_replication")
_HOST_WRITES = ("database_write", "log_write")


def _as_the_host_counted(total: Totals) -> list[Any]:
    """The host's own counts in the columns of the array's."""
    counts: list[int] = []
    latencies: list[float | None] = []
    sizes: list[int] = []
    for names in (_HOST_READS, _HOST_WRITES):
        found = [total.transfers(name) for name in names]
        count = sum(item.count for item in found)
        counts.append(count)
        latencies.append(
            sum(item.count * (item.latency_ms_mean or 0.0) for item in found) / count
            if count
            else None
        )
        sizes.append(int(sum(item.count * (item.bytes_mean or 0.0) for item in found)))
    return ["Host", *counts, *latencies, *sizes]


def _members(report: ArrayReport) -> Table:
    keys = (
        "read_hit_count",
        "write_stall_count",
        "destaged_row_count",
        "full_stripe_count",
        "dirty_bytes",
    )
    rows = [
        [
            f"Box {number}",
            *(getattr(box, key) for key in keys),
            # Runs of earlier versions did not count it.
            box.dirty.present_mean if box.dirty else None,
            box.dirty.stay_ms_mean if box.dirty else None,
        ]
        for number, box in enumerate(report.members, 1)
    ]
    headings = [
        "Box",
        "Reads from memory",
        "Writes that waited",
        "Rows destaged",
        "Of these whole",
        "Dirty bytes at the end",
        "Dirty bytes, mean",
        "Dirty for, mean (ms)",
    ]
    return Table(f"{MARK}: counted by the array, by box", headings, rows)


def _drives(report: ArrayReport) -> Table:
    rows = []
    for number, drive in enumerate(report.drives, 1):
        operations = ", ".join(f"{count:,} {cause}" for cause, count in drive.operations)
        utilisation = 100 * drive.utilisation
        present, response_ms = drive.present_mean, drive.response_ms
        rows.append(
            [f"Drive {number}", drive.member + 1, utilisation, present, response_ms, operations]
        )
    headings = ["Drive", "Box", "At work (%)", "There, mean", "Response, mean (ms)", "Operations"]
    return Table(f"{MARK}: drives", headings, rows)
