"""Percentiles that somebody chose, of every latency of the measured phases.

They come from the distributions in `histograms.parquet`, whose buckets are at most 1.6 % wide, and
not from samples. How far they can be trusted is a matter of counts: of 1,000 events one lies above
p99.9, and nothing says what p99.99 is. What fewer than ten events lie above is marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plimsoll import settings
from plimsoll.documents.outcome import Outcome
from plimsoll.errors import RefusedError
from plimsoll.files import folder, parquet
from plimsoll.files.paths import StrPath
from plimsoll.results.distributions import quantile_ms

#: Fewer events above a percentile say little of it.
ABOVE_MIN = 10
PERCENT_MAX = 99.999


class PercentileError(RefusedError):
    """Words that name no percentiles."""


def shares_of(text: str) -> tuple[float, ...]:
    """Percentiles of a command line, in percent.

    >>> shares_of("50, 99.99")
    (50.0, 99.99)

    Raises:
        PercentileError: with every mistake.
    """
    found, problems = [], []
    for part in text.split(","):
        try:
            value = float(part.strip().removeprefix("p"))
        except ValueError:
            value = 0.0
        if 0 < value <= PERCENT_MAX:
            found.append(value)
        else:
            problems.append(
                f"--percentiles {part.strip()!r} is no number above 0 and up to {PERCENT_MAX}; "
                "write them like 50,99.9"
            )
    if problems:
        raise PercentileError(problems)
    return tuple(found)


def percentile_lines(run_folder: StrPath, percents: Sequence[float]) -> list[str]:
    """A table of these percentiles in milliseconds, one row for each latency that was measured.

    Args:
        run_folder: of a run that ended.
        percents: from above 0 to 99.999.
    """
    run_folder = Path(run_folder)
    outcome = Outcome.read(run_folder / folder.OUTCOME)
    phases = [phase.name for phase in outcome.phases if phase.kind in settings.MEASURED_KINDS]
    with parquet.database() as database:
        rows = database.execute(
            "SELECT metric, upper_ns::BIGINT, sum(count)::BIGINT FROM "
            f"{parquet.rows_of(run_folder / folder.HISTOGRAMS)}"
            " WHERE list_contains(?, phase) AND count > 0 AND latency_ns_sum > 0"
            " GROUP BY metric, upper_ns ORDER BY metric, upper_ns",
            [phases],
        ).fetchall()
    buckets: dict[str, list[tuple[int, int]]] = {}
    for metric, upper_ns, count in rows:
        buckets.setdefault(metric, []).append((upper_ns, count))
    if not buckets:
        return ["no latencies were measured, so there are no percentiles"]
    headings = ["percentiles, ms", "count", *(f"p{percent:g}" for percent in percents)]
    table = [headings]
    for metric, found in buckets.items():
        count = sum(number for _, number in found)
        cells = []
        for percent in percents:
            value = quantile_ms(found, percent / 100)
            few = count * (1 - percent / 100) < ABOVE_MIN
            cells.append(f"{value:.3f}{'*' if few else ''}" if value is not None else "-")
        table.append([metric.replace("_", " "), f"{count:,}", *cells])
    widths = [max(len(row[column]) for row in table) for column in range(len(headings))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    ]
    if any("*" in line for line in lines):
        lines.append(f"* fewer than {ABOVE_MIN} events lie above it, so it says little")
    return lines
