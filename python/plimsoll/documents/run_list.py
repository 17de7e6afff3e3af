"""The catalogue of what was run, as `plimsoll runs --json` prints it.

One entry for each folder, broken ones included.
"""

from __future__ import annotations

from plimsoll.documents.document import Document


class RunEntry(Document):
    """One run, or one series of runs; null is what its folder does not say."""

    folder: str
    state: str | None
    problem: str | None
    start_utc: str | None
    storage: str | None
    test: str | None
    result: str | None
    qualifying: bool | None
    headline: str | None
    measured_s: float | None
    runs_count: int | None
    database_iops: float | None
    database_read_latency_ms_mean: float | None
    log_write_latency_ms_mean: float | None
