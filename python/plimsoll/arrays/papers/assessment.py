"""How the modelled results stand against the published ones.

The bars, what lies beyond them and why, rows of a table.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.arrays.papers.points import Result, read_points

#: What the model is held to, in percent: one figure, and the mean of the unfitted IOPS.
IOPS_ERROR_MAX, IOPS_MEAN_ERROR_MAX = 10.0, 5.0
READ_LATENCY_ERROR_MAX, WRITE_LATENCY_ERROR_MAX = 12.0, 20.0

#: Why a figure lies outside its bar; shown beside it. A miss without a reason here is shown as
#: unexplained.
REASONS = {
    ("emc-6-threads", "log_write_latency"): (
        "the printed mean hides two volumes set up alike, one of 7.9 ms and one of 3.7 ms; the "
        "model has no cause for a "
        "difference between them and agrees with the second. What was tried is at the end of this "
        "page"
    ),
    ("emc-recovery", "maintenance_reads"): (
        "not reproduced; maintenance waits a tick and its own latency, so the printed rate means "
        "47 ms for each read, twice the latency "
        "of the redo reads beside it. Redo in batches leaves the drives idle between them, where "
        "maintenance slips in; "
        "a steady window of eight reads brings maintenance within 21 % but makes redo 28 % too fast"
    ),
    ("ps6000xv-initiators", "iops_gain"): (
        "not reproduced; a millisecond less in the host's stack is worth a few percent, the "
        "published gain would take nearly three, "
        "and nothing published says where they would be spent"
    ),
}


#: Every constant of the model that was chosen by looking at published results, and on what.
CONSTANTS = {
    "factor of the thread law": "IOPS and read latency of the four EMC runs",
    "processor time of a transaction": "IOPS and read latency of the four EMC runs",
    "interval of page writes": "page writes of the four EMC runs",
    "read latency of the VNXe3300": "log reads of the EMC run with 3 threads",
    "write latency of the VNXe3300": "log writes of the EMC run with 3 threads",
    "rate of its links": "checksum of the EMC databases",
    "pages of a redo batch": "recovery of the EMC databases",
    "depth of the checksum": "checksum of the EMC databases",
    "depth and wait of the backup": "backup of the EMC databases",
    "latency of the controller of the SanDisk servers": "log writes of the run with hard drives",
    "13 sessions": "IOPS and read latency of SanDisk flash",
    "seek factor of the PS6000XV": "its RAID 50 point",
    "seek factor of the PS6000X": "its RAID 50 point",
    "seek factor of the PS6500E": "its RAID 50 point",
    "share of old data in the cache": "RAID 10 points of the three EqualLogic arrays",
}


def counts_of_evidence(results: Sequence[Result]) -> str:
    """How many constants were chosen, on how many figures, and how many figures are left to say
    whether they hold.
    """
    fitted = sum(result.fitted for result in results)
    return (
        f"{len(CONSTANTS)} constants were chosen on {fitted} of the {len(results)} published "
        f"figures; "
        f"{len(results) - fitted} are independent of them."
    )


def bar_of(result: Result) -> float | None:
    """The error a figure may have, in percent; None where nothing is asked."""
    if result.metric == "iops":
        return IOPS_ERROR_MAX
    if result.metric == "database_read_latency":
        return READ_LATENCY_ERROR_MAX
    if result.metric in ("database_write_latency", "log_write_latency"):
        return WRITE_LATENCY_ERROR_MAX
    return None


def beyond(result: Result) -> str:
    """What bar a figure lies beyond, in words; empty when none."""
    if result.metric == "iops_spread_max":
        return (
            f"beyond the published {result.published:g} %"
            if result.modelled > result.published
            else ""
        )
    bar = bar_of(result)
    return f"beyond {bar:g} %" if bar is not None and abs(result.error_percent) > bar else ""


def mean_iops_error(results: Sequence[Result]) -> float | None:
    """Mean absolute error of the IOPS that nothing was fitted on."""
    errors = [
        abs(result.error_percent)
        for result in results
        if result.metric == "iops" and not result.fitted
    ]
    return sum(errors) / len(errors) if errors else None


def held_out_errors(results: Sequence[Result]) -> list[float]:
    """Absolute IOPS errors on the arrays of which no IOPS were fitted.

    How far a prediction for a new array may be off.
    """
    array_of = {name: point.array for name, point in read_points().items()}
    fitted = {
        array_of[result.id] for result in results if result.metric == "iops" and result.fitted
    }
    return [
        abs(result.error_percent)
        for result in results
        if result.metric == "iops" and array_of[result.id] not in fitted
    ]


def papers_table(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Point, figure, published, modelled, error and remark."""
    rows: list[tuple[str, ...]] = [("point", "figure", "published", "modelled", "error", "")]
    for result in results:
        remarks = [text for text in ("fitted" if result.fitted else "", beyond(result)) if text]
        figure = f"{result.metric.replace('_', ' ')}, {result.unit}"
        rows.append(
            (
                result.id,
                figure,
                f"{result.published:.2f}",
                f"{result.modelled:.2f}",
                f"{result.error_percent:+.1f} %",
                "; ".join(remarks),
            )
        )
    return rows


def papers_summary(results: Sequence[Result]) -> list[str]:
    """How the results stand against what the model is held to."""
    lines = []
    lines.append(counts_of_evidence(results))
    mean = mean_iops_error(results)
    if mean is not None:
        worst = max(abs(result.error_percent) for result in results if result.metric == "iops")
        lines.append(
            f"IOPS: worst error {worst:.1f} % (held to {IOPS_ERROR_MAX:g}); mean of the unfitted "
            f"{mean:.1f} % "
            f"(held to "
            f"{IOPS_MEAN_ERROR_MAX:g}{', which is not met' if mean > IOPS_MEAN_ERROR_MAX else ''})."
        )
    if held_out := held_out_errors(results):
        lines.append(
            f"Arrays of which no IOPS were fitted: mean error {sum(held_out) / len(held_out):.1f} "
            f"%, "
            f"worst {max(held_out):.1f} %."
        )
    lines.append(f"Figures beyond their bar: {sum(bool(beyond(result)) for result in results)}.")
    return lines
