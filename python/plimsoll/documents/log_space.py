"""The space that the log of an instance took, in a summary."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.documents.document import Document
from plimsoll.documents.figures import Level
from plimsoll.documents.run_spec import LaggedCopy


class LogSpaceFigures(Document):
    """Log on the volume of an instance: what was there, what copies need, and what sizing says.

    Attributes:
        instance: whose log it is.
        log_directory: where it lies.
        copies: the copies that lag, as the plan states them.
        kept_bytes: generations on the disk while it was measured.
        kept_bytes_max: the most of them at any sample of the run.
        lagged_bytes_max: the most that the most lagged copy needed; None without such copies.
        written_bytes_per_s: log that was written while it was measured.
        lag_reached: whether the run was longer than every lag.
        needed_bytes: what the volume must hold once every lag has passed: as measured where it
            has, else what was kept besides the copies and a whole lag at the measured rate.
        room_bytes: of its volume; None where it is not known.
        room_source: who says so.
        sizing_bytes: the lag at the measured rate by the published rule, with its overhead.
        sizing_users_bytes: the same for the logs that the published formula expects of the users
            of a mail store; None for other loads, and for lags in logs.
    """

    instance: str
    log_directory: str
    copies: Sequence[LaggedCopy]
    kept_bytes: Level
    kept_bytes_max: float
    lagged_bytes_max: float | None
    written_bytes_per_s: float | None
    lag_reached: bool
    needed_bytes: float | None
    room_bytes: float | None
    room_source: str | None
    sizing_bytes: float | None
    sizing_users_bytes: float | None
