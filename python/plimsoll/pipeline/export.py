"""The table of counters of a run as CSV, for spreadsheets and the tools that read performance
logs.
"""

from __future__ import annotations

import csv
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from plimsoll.errors.system_errors import system_reason
from plimsoll.files import folder
from plimsoll.files.damage import reading
from plimsoll.files.paths import StrPath
from plimsoll.results import counters

#: What is written when no file is named.
COUNTERS_CSV = "counters.csv"


@dataclass(frozen=True)
class Exported:
    """A table that was written.

    Attributes:
        path: its file.
        intervals: its rows.
        counters: its columns without those of the time.
    """

    path: Path
    intervals: int
    counters: int


def export_counters(run_folder: StrPath, csv_file: StrPath | None = None) -> Exported:
    """Write the counters of a run as CSV.

    One line for each interval, one column for each counter of each place.

    Args:
        run_folder: the folder of one run.
        csv_file: where to write; `counters.csv` in the folder if left out.

    Raises:
        FolderError: it holds several runs, or files are missing or damaged, or the file cannot be
            written.
    """
    run_folder = Path(run_folder)
    csv_file = None if csv_file is None else Path(csv_file)
    folder.require_single(run_folder, "export")
    with reading(run_folder):
        if not (run_folder / folder.COUNTERS).exists():
            counters.write_counters(run_folder)
        headings, rows = counters.wide_table(run_folder)
    target = csv_file or run_folder / COUNTERS_CSV
    try:
        # What the user names may be a link or a pipe of his own.
        with (
            nullcontext(csv_file) if csv_file else folder.replacing(target) as path,
            path.open("w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(headings)
            writer.writerows(rows)
    except OSError as error:
        raise folder.FolderError(f"{target}: {system_reason(error)}; name another file") from error
    return Exported(target, len(rows), len(headings) - 2)
