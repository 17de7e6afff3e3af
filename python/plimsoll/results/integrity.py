"""What a run saw of its own faults and of the storage's.

Corrected pages, hung I/O, lost data, times in which it stood still.

Counts are those of the whole run: a bit that flipped while the cache warmed is as bad as one that
flipped later. Only the times in which the run itself stood still are those of the measured phases,
because figures of other phases are not judged.
"""

from __future__ import annotations

from pathlib import Path

from plimsoll.documents.document import ABSENT
from plimsoll.documents.event import read_events
from plimsoll.documents.event_figures import StoppedBy
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.summary import ClockGaps, DataLoss
from plimsoll.files import folder
from plimsoll.files.parquet import Query
from plimsoll.units import NS_PER_S


def pages_corrected(query: Query, instance: str, database: int) -> int | None:
    """Pages of a database that were read with one flipped bit under load.

    None for a run of a version that did not ask.
    """
    rows = query(
        "SELECT sum(count)::BIGINT AS count FROM sample WHERE metric = 'corrected_page'"
        " AND instance = $instance AND database = $database",
        {"instance": instance, "database": database},
    )
    return None if rows[0]["count"] is None else int(rows[0]["count"])


def clock_gaps(query: Query) -> ClockGaps:
    """How often and how long the run itself stood still while it was measured."""
    row = query(
        "SELECT coalesce(sum(count), 0)::BIGINT AS count, coalesce(sum(latency_ns_sum), 0)::DOUBLE "
        "AS total_ns,"
        " coalesce(max(latency_ns_max), 0)::BIGINT AS longest_ns FROM measured WHERE metric = "
        "'clock_gap'",
        {},
    )[0]
    if not row["count"]:
        absent: ClockGaps = ABSENT
        return absent
    return ClockGaps(
        count=row["count"],
        seconds=row["total_ns"] / NS_PER_S,
        longest_s=row["longest_ns"] / NS_PER_S,
    )


def data_loss(outcome: Outcome) -> DataLoss:
    """What a modelled array has lost in any phase.

    Absent where it has lost nothing, and on real storage.
    """
    reports = [phase.array for phase in outcome.phases if phase.array]
    requests = sum(volume.lost_count for report in reports for volume in report.volumes)
    # Each report has every set that was lost since the array began.
    sets = reports[-1].lost_sets if reports else ()
    if not requests and not sets:
        absent: DataLoss = ABSENT
        return absent
    return DataLoss(requests_count=requests, sets=sets)


def hung_told(run_folder: Path) -> int:
    """I/O that was told to hang.

    A thread that the kernel holds counts nothing any more; who watches it still tells.
    """
    if not (run_folder / folder.EVENTS).is_file():
        return 0
    return sum(event["kind"] == "hung_io" for event in folder.read_events(run_folder))


def failed_operations_s(run_folder: Path, outcome: Outcome) -> list[float]:
    """When operations failed, in seconds on the clock of the run.

    Those that the disk reports, and the one that ended the run where the disk has not: a file that
    is not there, or not what was written, is an answer to the disk.
    """
    told = [event for event in read_events(run_folder) if event.kind in ("io_error", "io_refused")]
    moments_s = [event.time_ns / NS_PER_S for event in told]
    error = outcome.error
    if error is not None and error.family in ("disk", "corruption"):
        ended = [phase.end_ns / NS_PER_S for phase in outcome.phases if not phase.complete]
        if not any(event.text in error.text for event in told):
            moments_s += ended[:1]
    return moments_s


def ended_by_an_operation(outcome: Outcome) -> bool:
    """Whether a failed operation ended the run; I/O that hangs is counted by itself."""
    error = outcome.error
    return error is not None and error.family == "disk" and not error.text.startswith("hung I/O")


def stopped_early_by(run_folder: Path, outcome: Outcome) -> StoppedBy | None:
    """Who ended the run before its time; None where it came to its end."""
    if outcome.ending != "interrupted":
        return None if outcome.ending == "complete" else "failure"
    kinds = {event.kind for event in read_events(run_folder)}
    return "condition" if "stopped_by_condition" in kinds else "person"
