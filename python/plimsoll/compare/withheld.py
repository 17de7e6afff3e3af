"""What a load generator without a processor may have added to the figures of a run.

Two equal runs differ where others had the processors during one of them. No interval from within a
run sees that. The verdict excuses a failed check by the share of the time that was withheld; here
the same share widens intervals: a mean latency is longer by at most that share, and a rate lower.
Where the block layer counted the I/O, only what a latency has beyond that can be the generator's.

Limits: a generator that was busy by itself is a warning and widens nothing. What the storage lost
to the same neighbours, as a disk served by a process of this machine does, is the storage's.
"""

from __future__ import annotations

from plimsoll.compare.figures import Figure
from plimsoll.documents.summary import AnySummary, Summary
from plimsoll.documents.verdict import Doubt
from plimsoll.results.latency_breakdown import LAYERS
from plimsoll.verdict.confounders import withheld

#: A generator that works all of the time may be the limit, and nobody kept it from its work.
_ITS_OWN = "executor_busy"


def withheld_from(summary: AnySummary) -> list[tuple[Doubt, float]]:
    """What kept the generator of a run from its work, with the share of the time it took."""
    if not isinstance(summary, Summary):
        return []
    return [(found, share) for found, share in withheld(summary) if found.name != _ITS_OWN]


def withheld_share(figure: Figure, summary: AnySummary) -> float:
    """The largest share of a figure that the generator's lack of a processor can be."""
    share = max((share for _, share in withheld_from(summary)), default=0.0)
    if not share or not isinstance(summary, Summary) or figure.kind != "latency_ms":
        return min(share, 1.0)
    beyond = [
        1 - (split.split_ms.device or 0.0) / total
        for split in summary.time_splits
        if split.window == "whole"
        and split.metric in figure.metrics
        and split.split_ms.kernel_queue is not None
        and (total := sum(split.split_ms.layer(name) or 0.0 for name in LAYERS)) > 0
    ]
    return min(share, max(beyond, default=1.0), 1.0)
