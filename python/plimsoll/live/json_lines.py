"""Samples and events as lines of JSON, for programs that read a run while it goes on.

Each line is one object with a `kind`: `sample` is one row of `samples.parquet`, under the same
names and in the same units, `event` one line of `events.jsonl`. Keys of a row that say nothing of
it are left out: the name of no workload, counts of what is a level.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from plimsoll.documents.event import Event
from plimsoll.documents.plan import Plan
from plimsoll.files.parquet import Columns
from plimsoll.live.sample_names import names_of_codes


class JsonLines:
    """Writes the samples of one plan.

    Args:
        plan: whose names stand for the codes of its samples.
        metrics: the names of all metrics, in the order of their codes.
    """

    def __init__(self, plan: Plan, metrics: Sequence[str]) -> None:
        self._names: Mapping[str, Sequence[str]] = names_of_codes(plan.run, metrics)

    def of_samples(self, table: Columns) -> Iterator[str]:
        """A line for each row of a batch."""
        columns = {
            name: [self._names[name][code] for code in column]
            if name in self._names
            else column.tolist()
            for name, column in table.items()
        }
        for row in zip(*columns.values(), strict=True):
            said = {
                name: value for name, value in zip(columns, row, strict=True) if _says(name, value)
            }
            yield json.dumps({"kind": "sample", **said})


def json_line_of_event(event: Event) -> str:
    """The line of an event; what kind it is stands under `event`.

    >>> json_line_of_event(Event(time_ns=5, utc_ns=7, level="info", kind="frozen", phase="p", text="t"))
    '{"kind": "event", "time_ns": 5, "utc_ns": 7, "level": "info", "event": "frozen", "phase": "p", "text": "t"}'
    """  # noqa: E501
    said = {("event" if key == "kind" else key): value for key, value in event.plain().items()}
    return json.dumps({"kind": "event", **said})


def _says(name: str, value: object) -> bool:
    """Whether a value says anything: times always, all else where it is not empty and no number
    that is not.
    """
    if name in ("end_ns", "interval_ns", "database"):
        return True
    return value not in ("", 0) and value == value
