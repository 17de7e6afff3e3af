"""What moves of mailboxes will take, before a run: mailboxes, their bytes, and the log of it.

The log for each byte moved is one that was measured (`settings.MAIL`); it depends on page images
and on how much of the pages is in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plimsoll import settings
from plimsoll.documents import phase_actions
from plimsoll.documents.run_spec import MailStoreInstance, MailWorkload, RunSpec
from plimsoll.units import SECONDS_PER_HOUR


@dataclass(frozen=True)
class MovesForecast:
    """Moves of one workload.

    Attributes:
        workload: which.
        store: whose mailboxes.
        count: mailboxes that come due; one that was moved may come back.
        size_bytes: of the mailboxes that are moved, each time.
        kept_bytes: of the further database, when most of them are there.
        log_bytes: what moving them logs.
    """

    workload: str
    store: MailStoreInstance
    count: int
    size_bytes: int
    kept_bytes: int
    log_bytes: int


def forecast_moves(run: RunSpec) -> Iterator[MovesForecast]:
    """What is moved in the phases that have a length."""
    for load in run.workloads:
        if not isinstance(load, MailWorkload) or load.mailbox_moves_per_h is None:
            continue
        seconds = sum(
            phase.action.duration_s
            for phase in run.phases
            if isinstance(phase.action, phase_actions.Soak | phase_actions.Measure)
            and (not phase.workloads or load.name in phase.workloads)
        )
        count = round(load.mailbox_moves_per_h * seconds / SECONDS_PER_HOUR)
        for store in (item for item in run.mail_stores if item.name in load.instances):
            mailboxes = store.filling.mailboxes
            each = store.databases[0].size_bytes // mailboxes
            yield MovesForecast(
                workload=load.name,
                store=store,
                count=count,
                size_bytes=count * each,
                kept_bytes=min(count, mailboxes) * each,
                log_bytes=round(count * each * settings.MAIL["move_log_per_byte"]),
            )
