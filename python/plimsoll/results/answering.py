"""What came to nothing while a load answered events: each event is judged by it, the run is not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from plimsoll.documents.event_figures import EventFigures
from plimsoll.files.parquet import Query
from plimsoll.results.events import answered_span
from plimsoll.units import NS_PER_S


def counts_while_answering(
    workload: str, metrics: Sequence[str], ask: Query, events: Sequence[EventFigures]
) -> Counter[str]:
    """How often each metric of a load was counted from an event until the load was back.

    Of a load that did not come back nothing is excused.

    Args:
        workload: its name.
        metrics: what is asked for.
        ask: asks the table `measured`.
        events: how the loads answered what was staged.
    """
    answers = [span for event in events if (span := answered_span(workload, event))]
    spans = [span for span in answers if span[1] < math.inf]
    counts: Counter[str] = Counter()
    if not spans:
        return counts
    rows = ask(
        "SELECT end_ns::DOUBLE AS end_ns, interval_ns::DOUBLE AS length_ns, metric,"
        " count::BIGINT AS count FROM measured"
        " WHERE workload = $workload AND list_contains($metrics, metric) AND count > 0",
        {"workload": workload, "metrics": list(metrics)},
    )
    for row in rows:
        end_s, begin_s = row["end_ns"] / NS_PER_S, (row["end_ns"] - row["length_ns"]) / NS_PER_S
        if any(end_s > begun_s and begin_s < back_s for begun_s, back_s in spans):
            counts[row["metric"]] += row["count"]
    return counts
