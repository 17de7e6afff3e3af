"""Mailboxes that were moved while users worked: the rate next to the one asked for, and the log
that moves took next to what sizing counts for them.

Sizing multiplies the log of users by one and the share of the mailboxes that is moved while logs
are held (Dell EqualLogic Exchange 2010 sizing paper, the worked example: 10 %). Measured is one and
the log of the moves for each byte that the databases of the mailboxes logged beside them, in the
same time. The two are alike where moving a mailbox logs what its user does in the time measured.

Limit: what cleans up behind deleted rows in the background counts as log of users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.documents.mail import MailMoves, MailTiming
from plimsoll.documents.plan import MailAsked
from plimsoll.documents.run_spec import MailStoreInstance, MailWorkload
from plimsoll.files.parquet import Query
from plimsoll.results.distributions import Counted
from plimsoll.results.log_space import LOG_BYTES
from plimsoll.results.mail_timing import timing_of
from plimsoll.units import SECONDS_PER_HOUR

PLANNED, MOVED, CLOSED = "mail_moves_planned", "mail_mailbox_moved", "mail_mailbox_closed"
BYTES = ("mail_moves_read_bytes", "mail_moves_written_bytes", "mail_moves_log_bytes")


def moves_of(
    store: MailStoreInstance,
    load: MailWorkload,
    asked: MailAsked,
    counted: Mapping[str, Counted],
    ask: Query,
    seconds: float,
    phases: Sequence[str],
) -> MailMoves | None:
    """What moves came to in the measured time; None where none were asked for.

    Args:
        store: whose mailboxes are moved.
        load: the users of it.
        asked: what was asked of them.
        counted: what they counted in the measured phases.
        ask: of the tables of the run.
        seconds: how long was measured.
        phases: the measured ones.
    """
    if load.mailbox_moves_per_h is None:
        return None
    rows = ask(
        "SELECT metric, sum(bytes)::BIGINT AS bytes FROM measured WHERE workload = $workload"
        " AND list_contains($metrics, metric) GROUP BY metric",
        {"workload": load.name, "metrics": list(BYTES)},
    )
    sizes = {row["metric"]: row["bytes"] or 0 for row in rows}
    read, written, log = (sizes.get(metric, 0) for metric in BYTES)
    moved = counted[MOVED].count if MOVED in counted else 0
    mailboxes = store.filling.mailboxes
    others = _other_log_bytes(store, log, ask)

    def timing(metric: str, title: str) -> MailTiming | None:
        if metric not in counted:
            return None
        return timing_of(metric, title, counted, load.name, ask, phases)

    return MailMoves(
        asked_percent_per_day=asked.moved_percent_per_day or 0.0,
        asked_per_h=load.mailbox_moves_per_h,
        reached_per_h=moved / seconds * SECONDS_PER_HOUR,
        planned_count=counted[PLANNED].count if PLANNED in counted else 0,
        moved_count=moved,
        mailboxes=mailboxes,
        read_bytes=read,
        written_bytes=written,
        log_bytes=log,
        log_per_written_byte=log / written if written else None,
        other_log_bytes=others,
        sizing_factor=1 + moved / mailboxes,
        measured_factor=1 + log / others if others else None,
        moved=timing(MOVED, "move of a mailbox"),
        closed=timing(CLOSED, "mailbox closed for its user"),
    )


def _other_log_bytes(store: MailStoreInstance, moves: int, ask: Query) -> int | None:
    """What the databases of mailboxes logged beside moves, by the numbers of their generations;
    None where the time was too short for one to end.
    """
    rows = ask(
        "SELECT max(value) - min(value) AS logs FROM measured WHERE metric = 'log_generation'"
        " AND instance = $instance GROUP BY phase",
        {"instance": store.name},
    )
    others = int(sum(row["logs"] or 0 for row in rows)) * LOG_BYTES - moves
    return others if others > 0 else None
