"""The results of files as Iometer's table, in the columns of version 2006.07.27 or 1.1.0, for
scripts that read these.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import FilesWorkload
from plimsoll.documents.summary import Summary
from plimsoll.errors import InvalidValueError
from plimsoll.errors.system_errors import system_reason
from plimsoll.files import folder
from plimsoll.files.damage import reading
from plimsoll.files.paths import StrPath
from plimsoll.results.distributions import QUANTILES
from plimsoll.results.iometer import MB, MIB, SECTOR_BYTES, WHOLE, Direction, IometerRow
from plimsoll.results.measurements import Measurements
from plimsoll.units import NS_PER_S
from plimsoll.workloads.files.patterns import numbers_of

#: The versions whose columns are known, with the name that each has in the table.
VERSIONS = {"2006": "2006.07.27", "1.1.0": "1.1.0"}
IOMETER_CSV = "iometer.csv"
_HEAD = (
    "Target Type",
    "Target Name",
    "Access Specification Name",
    "# Managers",
    "# Workers",
    "# Disks",
)
_RATES = ("IOps", "Read IOps", "Write IOps")
_MIBPS = ("MiBps (Binary)", "Read MiBps (Binary)", "Write MiBps (Binary)")
_MBPS = ("MBps (Decimal)", "Read MBps (Decimal)", "Write MBps (Decimal)")
_MBPS_2006 = ("MBps", "Read MBps", "Write MBps")
_REST = (
    "Transactions per Second",
    "Connections per Second",
    "Average Response Time",
    "Average Read Response Time",
    "Average Write Response Time",
    "Average Transaction Time",
    "Average Connection Time",
    "Maximum Response Time",
    "Maximum Read Response Time",
    "Maximum Write Response Time",
    "Maximum Transaction Time",
    "Maximum Connection Time",
    "Errors",
    "Read Errors",
    "Write Errors",
    "Bytes Read",
    "Bytes Written",
    "Read I/Os",
    "Write I/Os",
    "Connections",
    "Transactions per Connection",
    "Total Raw Read Response Time",
    "Total Raw Write Response Time",
    "Total Raw Transaction Time",
    "Total Raw Connection Time",
    "Maximum Raw Read Response Time",
    "Maximum Raw Write Response Time",
    "Maximum Raw Transaction Time",
    "Maximum Raw Connection Time",
    "Total Raw Run Time",
    "Starting Sector",
    "Maximum Size",
    "Queue Depth",
    "% CPU Utilization",
    "% User Time",
    "% Privileged Time",
    "% DPC Time",
    "% Interrupt Time",
    "Processor Speed",
    "Interrupts per Second",
    "CPU Effectiveness",
    "Packets/Second",
    "Packet Errors",
    "Segments Retransmitted/Second",
)
_BINS = (
    "0 to 50 uS",
    "50 to 100 uS",
    "100 to 200 uS",
    "200 to 500 uS",
    "0.5 to 1 mS",
    "1 to 2 mS",
    "2 to 5 mS",
    "5 to 10 mS",
    "10 to 15 mS",
    "15 to 20 mS",
    "20 to 30 mS",
    "30 to 50 mS",
    "50 to 100 mS",
    "100 to 200 mS",
    "200 to 500 mS",
    "0.5 to 1 S",
    "1 to 2 s",
    "2 to 4 s",
    "4 to 5 s",
    "5 to 10 s",
    " >= 10 s",
)
_PERCENTILES = {f"{name} (ms)": QUANTILES[name] for name in ("p50", "p95", "p99")}
#: Raw times are counted in these; the original counts ticks of a timer whose speed stands in the
#: row.
_TICKS_PER_S = NS_PER_S


def export_iometer(run_folder: StrPath, version: str, csv_file: StrPath | None = None) -> Path:
    """Write the results of files in the columns of a version of Iometer.

    Percentiles follow in columns of their own.

    Args:
        run_folder: the folder of one run.
        version: one of `VERSIONS`.
        csv_file: where to write; `iometer.csv` in the folder if left out.

    Raises:
        InvalidValueError: there is no such version.
        FolderError: the run loaded no files, files are missing or damaged, or the file cannot be
            written.
    """
    run_folder = Path(run_folder)
    csv_file = None if csv_file is None else Path(csv_file)
    if version not in VERSIONS:
        raise InvalidValueError(
            f'"{version}" is no version of Iometer that is known here; write '
            f"{' or '.join(VERSIONS)}"
        )
    folder.require_single(run_folder, "export")
    with reading(run_folder):
        plan, summary = (
            Plan.read(run_folder / folder.PLAN),
            Summary.read(run_folder / folder.SUMMARY),
        )
        with Measurements(run_folder, Outcome.read(run_folder / folder.OUTCOME)) as measured:
            rows = measured.iometer(plan)
    if not rows:
        raise folder.FolderError(
            f"{run_folder} loaded no files, which is what Iometer does; export its counters instead"
        )
    target = csv_file or run_folder / IOMETER_CSV
    try:
        target.write_text(_text(plan, summary, rows, version), encoding="utf-8")
    except OSError as error:
        raise folder.FolderError(f"{target}: {system_reason(error)}; name another file") from error
    return target


def _text(plan: Plan, summary: Summary, rows: list[IometerRow], version: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    window = summary.window
    out.write(f"'Test Type,Test Description\n0,{_word(plan.description or plan.name)}\n")
    out.write(f"'Version\n{VERSIONS[version]}\n'Time Stamp\n{_stamp(window.start_utc)}\n")
    out.write("'Access specifications\n")
    loads = [item for item in plan.run.workloads if isinstance(item, FilesWorkload)]
    named = {plan.judgement.files[load.name].pattern or load.name: load.access for load in loads}
    for name, lines in named.items():
        out.write(f"'Access specification name,default assignment\n{_word(name)},0\n")
        out.write("'size,% of size,% reads,% random,delay,burst,align,reply\n")
        for line in lines:
            out.write(",".join(str(number) for number in numbers_of(line)) + ",\n")
    out.write("'End access specifications\n'Results\n'")
    writer.writerow(headings(version))
    for row in rows:
        writer.writerow(_values(row, window.seconds, version))
    out.write(f"'Time Stamp\n{_stamp(window.end_utc)}\n'End Test\n")
    return out.getvalue()


def headings(version: str) -> list[str]:
    """The columns of a version, and those of percentiles.

    >>> len(headings("2006")) - 3, len(headings("1.1.0")) - 3
    (56, 80)
    """
    if version == "2006":
        return [*_HEAD, *_RATES, *_MBPS_2006, *_REST, *_PERCENTILES]
    return [*_HEAD, *_RATES, *_MIBPS, *_MBPS, *_REST, *_BINS, *_PERCENTILES]


def _values(row: IometerRow, seconds: float, version: str) -> list[object]:
    read, write, both, tasks = row.read, row.write, row.both, row.transactions
    is_all, is_disk = row.kind == "ALL", row.kind == "DISK"
    sizes = [_known(item, _bytes) for item in (both, read, write)]
    rates = ["" if isinstance(size, str) else size / seconds for size in sizes]
    binary, decimal = (
        ["" if isinstance(rate, str) else rate / unit for rate in rates] for unit in (MIB, MB)
    )
    whole = row.kind in WHOLE
    head: list[object] = [
        row.kind,
        row.name,
        row.specification,
        1 if is_all else "",
        row.workers if whole else "",
        "" if is_disk else row.disks,
        *(_known(item, lambda item: item.count / seconds) for item in (both, read, write)),
    ]
    means = [_known(item, lambda item: item.mean_ms) for item in (both, read, write, tasks)]
    longest = [_known(item, lambda item: item.max_ns / 1e6) for item in (both, read, write, tasks)]
    rest: list[object] = [tasks.count / seconds, 0, *means, 0, *longest, 0]
    rest += [_known(item, lambda item: item.errors) for item in (both, read, write)]
    rest += sizes[1:]
    rest += [_known(item, lambda item: item.count) for item in (read, write)]
    rest += [0, -1]
    rest += [_known(item, lambda item: int(item.total_ns)) for item in (read, write, tasks)]
    rest += [0, *(_known(item, lambda item: item.max_ns) for item in (read, write, tasks))]
    rest += [0, int(seconds * _TICKS_PER_S), 0, row.size_bytes // SECTOR_BYTES, row.depth]
    rest += [*[""] * 5, _TICKS_PER_S, *[""] * 5]
    percentiles = [row.quantile_ms(share) for share in _PERCENTILES.values()]
    if version == "2006":
        return [*head, *binary, *rest, *percentiles]
    return [*head, *binary, *decimal, *rest, *row.bins(), *percentiles]


def _bytes(direction: Direction) -> int | None:
    return direction.bytes


def _known(direction: Direction | None, figure: Callable[[Direction], float | None]) -> float | str:
    """A figure of a direction; empty where no one knows it."""
    found = None if direction is None else figure(direction)
    return "" if found is None else found


def _stamp(utc: str | None) -> str:
    """A time as the table has it: `2026-11-22 10:00:00:123`."""
    if utc is None:
        return ""
    when = datetime.fromisoformat(utc)
    return f"{when:%Y-%m-%d %H:%M:%S}:{when.microsecond // 1000:03}"


def _word(text: str) -> str:
    """A text without the comma, which parts columns; the original does likewise."""
    return text.replace(",", "-").replace("\n", " ")
