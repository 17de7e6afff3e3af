"""Passive copies with a lag, and the room of the log.

    [[instance]]
    name = "one"
    lagged_copies = [{ name = "far", lag_h = 24 }, { name = "near", lag_logs = 200 }]
    log_room_gib = 100

No copy is made. Each one is a hold on the log that moves on with the run: the engine keeps what the
most lagged copy still needs, and deletes what is older.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.documents import run_spec as spec
from plimsoll.documents.document import ABSENT
from plimsoll.inputs.schema import Collector, Field, Given, Number, Tables, Text
from plimsoll.units import BYTES_PER_GB, SECONDS_PER_HOUR

#: Two weeks: the longest lag that the product whose load this is allowed.
LAG_H_MAX = 336
#: Their names stand in one block of the log's holds.
COPIES_MAX = 16

COPY_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the copy"),
    "lag_h": Field(
        Number(0.0001, LAG_H_MAX),
        meaning="hours for which it does not replay what was written",
    ),
    "lag_logs": Field(
        Number(1, 1_000_000, whole=True),
        meaning="closed logs of 1 MiB that it does not replay, in the place of lag_h",
    ),
}

INSTANCE_FIELDS = {
    "lagged_copies": Field(
        Tables(COPY_FIELDS, unique="name", count_maximum=COPIES_MAX),
        meaning="passive copies that replay the log later: the log that they need is kept",
    ),
    "log_room_gib": Field(
        Number(0.001, 1e6),
        meaning="room of the volume of its log; where copies lag, what is free when the run "
        "begins if left out",
    ),
}


def completed(
    given: Given, index: int, plan: Given, collector: Collector
) -> Sequence[spec.LaggedCopy]:
    """The copies of an instance on the engine; every mistake is told to the collector."""
    copies = given["lagged_copies"]
    if not copies:
        nothing: Sequence[spec.LaggedCopy] = ABSENT
        return nothing
    where = ("instance", index, "lagged_copies")
    if given["backend"] == "raw_files":
        collector.add(where, "needs the engine, but the instance is raw files", "remove it")
    truncates = any(phase["truncate_log"] for phase in plan["phase"] or [])
    if given["circular_log"] is False and not truncates:
        hint = "write circular_log = true, or truncate_log = true in a phase of kind restore"
        collector.add(where, "has nothing to let go: all log is kept anyway", hint)
    for number, copy in enumerate(copies):
        stated = [key for key in ("lag_h", "lag_logs") if copy[key] is not None]
        if len(stated) != 1:
            text = "states both lag_h and lag_logs" if stated else "does not say how far it lags"
            collector.add((*where, number), text, "write either lag_h or lag_logs")
    return [
        spec.LaggedCopy(
            name=copy["name"] or "unnamed",
            lag_s=None if copy["lag_h"] is None else float(copy["lag_h"] * SECONDS_PER_HOUR),
            lag_logs=copy["lag_logs"],
        )
        for copy in copies
    ]


def rooms(plan: Given) -> dict[str, int]:
    """The stated room of the log of each instance, in bytes."""
    return {
        item["name"]: round(item["log_room_gib"] * BYTES_PER_GB)
        for item in plan["instance"] or []
        if item["log_room_gib"] is not None
    }
