"""The check of the room of the log: whether its volume holds what the copies that lag need.

What is judged is the space once every lag has passed, also where the run was shorter: then the
reason says that it follows from the measured rate.
"""

from __future__ import annotations

from plimsoll import settings
from plimsoll.documents.log_space import LogSpaceFigures
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Check, Status
from plimsoll.results.digits import shown_apart
from plimsoll.units import BYTES_PER_MB

LOG_SPACE = "log_space"


def log_space_checks(summary: Summary) -> list[Check]:
    """One check for each instance whose room is known."""
    return [_check(item, item.room_bytes) for item in summary.log_space if item.room_bytes]


def _check(found: LogSpaceFigures, room_bytes: float) -> Check:
    rule = settings.single_rule(LOG_SPACE)
    room = room_bytes / BYTES_PER_MB
    needed = None if found.needed_bytes is None else found.needed_bytes / BYTES_PER_MB
    status: Status
    if needed is None:
        status = "not_evaluated"
        reason = "no log was completed in the measured time, so the space of a lag is not known"
    else:
        status = "pass" if needed <= room else "fail"
        told, bound = shown_apart(needed, room, "MiB")
        verb = "fit into" if status == "pass" else "do not fit into"
        reason = f"{told} {verb} the room of {bound} ({found.room_source})"
        if found.copies and not found.lag_reached:
            reason += "; the run was shorter than the lag, and this follows from its rate of log"
    return Check(
        name=LOG_SPACE,
        title=rule["title"],
        scope=found.instance,
        metric="log_space",
        statistic="needed",
        measured=needed,
        limit=room,
        unit="MiB",
        status=status,
        reason=reason,
        source=rule["source"],
    )
