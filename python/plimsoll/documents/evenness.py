"""How even the rate of a run was: whether it stood on two levels, what was sustained, when nothing
was answered, and what the end of the measured time cut off.
"""

from __future__ import annotations

from typing import Literal

from plimsoll.documents.document import Document

#: After a burst the mean of what is left and the low quantile are the same rate, but for this much.
BURST_SHARE = 0.1


class RateSteps(Document):
    """Whether the rate stood on two levels; without a step only how many blocks were looked at."""

    kind: Literal["none", "burst", "slow_start"]
    blocks_count: int | None = None
    of: str = ""
    unit: str = ""
    first: float = 0.0
    first_s: float = 0.0
    then: float = 0.0
    then_s: float = 0.0
    statistic: float = 0.0
    sustained_iops: float = 0.0
    text: str = ""


class SustainedRate(Document):
    """The database I/O per second that a share of the measured time reached, in blocks of a
    length.
    """

    database_iops: float
    block_s: float
    blocks_count: int
    share: float


class UnfinishedIo(Document):
    """The longest I/O of a place that was under way when the measured time was over.

    It is no part of the figures, because it ended after them.
    """

    instance: str
    database: int
    metric: str
    latency_ms_max: float


class RisingLatency(Document):
    """A place whose mean latency rose from each fifth of a measured phase to the next."""

    instance: str
    database: int
    metric: str
    first_ms: float
    last_ms: float


class StandStill(Document):
    """The time in which no I/O was completed although some was in flight."""

    seconds: float
    share: float
    longest_s: float
    count: int
