"""The results of stores as scripts for DVD Store expect them: the table that its driver writes to a
file, and the lines that it prints, of which `Final` is the last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.errors.system_errors import system_reason
from plimsoll.files import folder
from plimsoll.files.damage import reading
from plimsoll.files.paths import StrPath
from plimsoll.results.distributions import Counted
from plimsoll.results.dvdstore import DvdStoreLine, DvdStoreTable
from plimsoll.results.measurements import Measurements
from plimsoll.units import NS_PER_MS

DVDSTORE_CSV = "dvdstore.csv"
#: The head of the driver's table, word for word; the first column is a time and the seconds.
HEADING = (
    "datetime et, n_overall, opm, rt_tot_lastn_max_msec, rt_tot_avg_msec, rt_tot_sampled, "
    "n_rollbacks_overall, rollback_pct"
)


@dataclass(frozen=True)
class DvdStoreExport:
    """What was written, and what the driver would have printed.

    Attributes:
        path: the table.
        lines: one for every ten seconds, those of the end, and `Final` of every target where
            there are several.
    """

    path: Path
    lines: list[str]


def export_dvdstore(run_folder: StrPath, csv_file: StrPath | None = None) -> DvdStoreExport:
    """Write the results of stores as the driver of DVD Store does.

    Args:
        run_folder: the folder of one run.
        csv_file: where to write the table; `dvdstore.csv` in the folder if left out.

    Raises:
        FolderError: the run loaded no store, files are missing or damaged, or the file cannot be
            written.
    """
    run_folder = Path(run_folder)
    csv_file = None if csv_file is None else Path(csv_file)
    folder.require_single(run_folder, "export")
    with reading(run_folder):
        plan = Plan.read(run_folder / folder.PLAN)
        summary = Summary.read(run_folder / folder.SUMMARY)
        with Measurements(run_folder, Outcome.read(run_folder / folder.OUTCOME)) as measured:
            tables = measured.dvdstore(plan)
    if not tables:
        raise folder.FolderError(
            f"{run_folder} loaded no store, which is what DVD Store does; export its counters "
            f"instead"
        )
    begun = _moment(summary.window.start_utc)
    target = csv_file or run_folder / DVDSTORE_CSV
    text = "\n".join([HEADING, *(_row(line, begun) for line in tables[0].lines)])
    try:
        target.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise folder.FolderError(f"{target}: {system_reason(error)}; name another file") from error
    return DvdStoreExport(target, _printed(tables, begun))


def _moment(utc: str | None) -> datetime:
    """When measuring began; the beginning of time where the run does not know."""
    return datetime.fromisoformat(utc) if utc else datetime.fromtimestamp(0, UTC)


def _row(line: DvdStoreLine, begun: datetime) -> str:
    """A row of the table."""
    return (
        f"{_stamp(line, begun)}  {line.seconds:7.1f},{line.orders},{line.opm},"
        f"{_whole(line.longest_ms)},{_whole(line.mean_ms)},{_whole(line.sampled_ms)},"
        f"{line.rolled_back},{line.rolled_back_percent:5.1f}"
    )


def _stamp(line: DvdStoreLine, begun: datetime) -> str:
    when = begun + timedelta(seconds=line.seconds)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{when.microsecond // 1000:03}Z"


def _whole(value: float) -> int:
    return math.floor(value)


def _printed(tables: list[DvdStoreTable], begun: datetime) -> list[str]:
    """What the driver prints."""
    whole, *targets = tables
    ended = begun + timedelta(seconds=whole.lines[-1].seconds)
    lines = [_progress(line) for line in whole.lines]
    lines.append(f"Final ({ended:%Y-%m-%d %H:%M:%S}): {_final(whole)}")
    if targets:
        lines.append("Individual Stats for each DB / Web Server: ")
        lines += [f"Final: {_final(target)}" for target in targets]
    return [*lines, *(_from_start(table) for table in tables)]


def _progress(line: DvdStoreLine) -> str:
    return (
        f"et={line.seconds:7.1f} n_overall={line.orders} opm={line.opm} "
        f"rt_tot_lastn_max_msec={_whole(line.longest_ms)} rt_tot_avg_msec={_whole(line.mean_ms)} "
        f"rt_tot_sampled={_whole(line.sampled_ms)} "
        f"rollbacks: n={line.rolled_back} %={line.rolled_back_percent:5.1f} "
    )


def _final(table: DvdStoreTable) -> str:
    """The names and their order are those of version 2.1; version 3 puts further ones between."""
    line = table.lines[-1]
    counts = {f"n_{name}_overall": step.count for name, step in table.steps.items()}
    means = {f"rt_{name}_avg_msec": _mean_ms(step) for name, step in table.steps.items()}
    named: dict[str, int] = {
        "n_overall": line.orders,
        "opm": line.opm,
        "rt_tot_lastn_max": _whole(line.longest_ms),
        "rt_tot_avg": _whole(line.mean_ms),
        **counts,
        **means,
        "rt_tot_sampled": _whole(line.sampled_ms),
        "n_rollbacks_overall": line.rolled_back,
    }
    words = " ".join(f"{name}={value}" for name, value in named.items())
    return f"et={line.seconds:7.1f} {words} rollback_rate = {line.rolled_back_percent:5.1f}%"


def _mean_ms(step: Counted) -> int:
    """0 where there was none; the original prints the least number there is."""
    return _whole(step.total_ns / step.count / NS_PER_MS) if step.count else 0


def _from_start(table: DvdStoreTable) -> str:
    return (
        f"n_purchase_from_start= {table.orders_from_start} "
        f"n_rollbacks_from_start= {table.rolled_back_from_start}"
    )
