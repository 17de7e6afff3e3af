"""The table "Mailbox moves": the rate next to the one asked for, what was read, written and logged,
and the log of moves next to what sizing counts for them.
"""

from __future__ import annotations

from typing import Any

from plimsoll.documents.mail import MailMoves
from plimsoll.pages.tables import Table
from plimsoll.units import BYTES_PER_MB


def moves_table(workload: str, moves: MailMoves) -> Table:
    """What moves of mailboxes came to."""
    rows: list[list[Any]] = [
        ["Asked for, percent of the mailboxes a day of users", moves.asked_percent_per_day],
        ["Asked for, mailboxes an hour", moves.asked_per_h],
        ["Reached, mailboxes an hour", moves.reached_per_h],
        ["Due", moves.planned_count],
        ["Moved", moves.moved_count],
        ["Of so many mailboxes", moves.mailboxes],
        ["Read at the old place, MiB", _mib(moves.read_bytes)],
        ["Written at the new place, MiB", _mib(moves.written_bytes)],
        ["Logged at both places, MiB", _mib(moves.log_bytes)],
        ["Logged for each byte written", moves.log_per_written_byte],
        ["Logged beside the moves, MiB", _mib(moves.other_log_bytes)],
        ["Move factor of the log, as sizing counts it", moves.sizing_factor],
        ["Move factor of the log, measured", moves.measured_factor],
    ]
    for timing, what in (
        (moves.moved, "A move from when it was due"),
        (moves.closed, "A mailbox closed for its user"),
    ):
        if timing is not None:
            rows += [
                [f"{what}, mean ms", timing.ms_mean],
                [f"{what}, p95 ms", timing.ms_p95],
                [f"{what}, longest ms", timing.ms_max],
            ]
    note = (
        "Sizing multiplies the log of users by one and the share of the mailboxes that is moved. "
        "Measured is one and the log of moves by the other log of the mailboxes' databases, in the "
        "measured time. The factors are alike where moving a mailbox logs as much as its user did."
    )
    return Table(f"Mailbox moves: {workload}", [], rows, note)


def _mib(size: int | None) -> float | None:
    return None if size is None else size / BYTES_PER_MB
