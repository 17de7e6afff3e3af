"""Where the time of I/O and of transactions went, layer by layer, as `summary.json` and
`verdict.json` hold it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document


class DeviceUse(Document):
    """What a disk did while an instance was measured.

    `servers` are those of the plan that work on it: what they did of their own is no one else's,
    though this run did not ask for it.
    """

    instance: str | None = None
    role: str | None = None
    name: str
    busy: float
    queue_mean: float
    read_latency_ms_mean: float | None
    write_latency_ms_mean: float | None
    flush_latency_ms_mean: float | None
    others_share: float
    servers: Sequence[str] = ()


class LogSplitMs(Document):
    """Milliseconds of one log write within a transaction.

    The kernel's queue is null where the block layer says nothing.
    """

    submission: float | None
    kernel_queue: float | None
    device: float | None

    def layer(self, name: str) -> float | None:
        """The milliseconds of a layer by its name."""
        found: float | None = getattr(self, name)
        return found


class SplitMs(LogSplitMs):
    """Milliseconds by layer, those of the engine among them."""

    engine: float | None
    log_flush: float | None


class Evidence(Document):
    """What speaks for one layer or another over the time of a split.

    Levels of the machine that were not sampled are absent.
    """

    seconds: float
    device: DeviceUse | None
    reap_gap_ms_max: float
    page_fault_stalls_count: int
    executor_busy: float | None = None
    executor_wait: float | None = None
    cpu_busy: float | None = None
    cpu_stolen: float | None = None
    cpu_throttled: float | None = None
    pressure_io_some: float | None = None
    pressure_io_full: float | None = None
    pressure_cpu_some: float | None = None
    pressure_memory_some: float | None = None
    pressure_memory_full: float | None = None
    clock_gap_ms_max: float | None = None

    def level(self, name: str) -> float | None:
        """A level of the machine by its name."""
        found: float | None = getattr(self, name, None)
        return found


class Split(Evidence):
    """The mean time of something, by layer, with the evidence."""

    split_ms: SplitMs


class TimeSplit(Split):
    """The latency of one purpose at one place, over all that was measured or over its worst
    interval.
    """

    scope: str
    metric: str
    window: Literal["whole", "worst_sample"]


class TransactionSplit(Split):
    """The time of transactions of one instance or of the run."""

    scope: str
    response_ms_mean: float
    pool_wait_ms_mean: float


class StallSplit(Split):
    """One of the longest transactions, split."""

    instance: str
    database: int
    operation: str
    length_ms: float
    log_split_ms: LogSplitMs | None
    begun_utc: str | None
