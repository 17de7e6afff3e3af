"""The published results: what was tested, on what, and what was printed.

One table of `data/papers.toml` is one point.

A figure is `fitted` when a constant of the model was taken from it; all others are predictions.
Thread counts of the EqualLogic tests were not published, so IOPS are read off at 18.5 ms, the
middle of the stated 17 to 20 ms. The SanDisk tests do not state theirs either: 13 is what the
thread law gives for the flash run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from plimsoll.arrays.sources import DATA_FOLDER
from plimsoll.arrays.streams import BURST_MS, TICK_MS, Mix
from plimsoll.inputs.schema import (
    READERS,
    Field,
    Flag,
    Given,
    ListOf,
    Number,
    Table,
    Tables,
    Text,
    check_file,
)
from plimsoll.inputs.toml_lines import read_located

SHIPPED_PAPERS = DATA_FOLDER / "papers.toml"
STREAMS = ("sessions", "maintenance", "log_copy", "scan", "redo")

_COUNT = Number(1, 1e6, whole=True)
_MIX = {
    "name": Field(Text(), required=True, meaning="its name"),
    "read_bytes": Field(Number(), required=True, meaning="mean size of a read"),
    "writes_per_read": Field(Number(), required=True, meaning="page writes for each read"),
    "write_bytes": Field(Number(), required=True, meaning="mean size of a page write"),
    "logs_per_read": Field(Number(), required=True, meaning="log writes for each read"),
    "log_bytes": Field(Number(), required=True, meaning="mean size of a log write"),
    "write_depth": Field(_COUNT, default=64, meaning="page writes on their way at once"),
    "burst_ms": Field(
        Number(),
        default=BURST_MS,
        meaning="interval of the bursts of page writes; 0: bursts of one size",
    ),
}
_VOLUME = {
    "name": Field(Text(), required=True, meaning="its name"),
    "gb": Field(Number(), required=True, meaning="its size"),
    "on_log_array": Field(
        Flag(), default=False, meaning="whether it lies on the array of the logs"
    ),
}
_DATABASE = {
    "name": Field(Text(), required=True, meaning="its name"),
    "volume": Field(Number(0, 64, whole=True), required=True, meaning="index of its volume"),
    "log_volume": Field(
        Number(0, 64, whole=True), required=True, meaning="index of the volume of its log"
    ),
    "gb": Field(Number(), required=True, meaning="its size"),
    "start_gb": Field(Number(), default=0.0, meaning="where it begins on its volume"),
    "log_start_gb": Field(Number(), default=0.0, meaning="where its log begins"),
}
_LAYOUT = {
    "name": Field(Text(), required=True, meaning="its name"),
    "is_for_each_member": Field(
        Flag(), default=False, meaning="whether sizes grow with the boxes of the array"
    ),
    "volumes": Field(
        Tables(_VOLUME, 1, "name"), required=True, meaning="in their order on the drives"
    ),
    "databases": Field(Tables(_DATABASE, 1, "name"), required=True, meaning="where each lies"),
    "log_array": Field(Text(), meaning="the preset whose drives hold the logs"),
    "log_sets": Field(ListOf(_COUNT), meaning="its drives"),
}
_CHANGES = {
    "level": Field(Text(), meaning="the RAID level"),
    "sets": Field(ListOf(_COUNT), meaning="drives of each RAID set"),
    "member_count": Field(Number(1, 64, whole=True), meaning="boxes"),
    "read_latency_ms": Field(Number(), meaning="the controller's and host's share of a read"),
    "write_latency_ms": Field(Number(), meaning="the same of a write"),
}
_STREAM = {
    "kind": Field(Text(STREAMS), required=True, meaning="what it is"),
    "mix": Field(Text(), meaning="the mix of the sessions"),
    "per_database": Field(_COUNT, meaning="sessions of each database"),
    "class": Field(Text(), meaning="the name of a scan"),
    "request_kib": Field(Number(), meaning="size of a request of a scan"),
    "request_bytes": Field(Number(), meaning="mean size of a request"),
    "depth": Field(_COUNT, default=1, meaning="requests on their way at once"),
    "wait_ms": Field(Number(), meaning="pause behind each"),
    "per_s": Field(Number(), meaning="requests a second"),
    "is_serial": Field(Flag(), default=False, meaning="whether requests wait for each other"),
}
_RUN = {
    "layout": Field(Text(), required=True, meaning="how databases and logs lie"),
    "changes": Field(Table(_CHANGES), meaning="what of the preset is other than shipped"),
    "session_counts": Field(
        ListOf(_COUNT), meaning="sessions on all databases together, one run for each"
    ),
}
_FIGURE = {
    "metric": Field(Text(), required=True, meaning="what is compared"),
    "of": Field(
        Text(), meaning="the modelled figure it is compared with, where that has another name"
    ),
    "reads_per_log": Field(
        Number(), meaning="page reads that a log takes: the figure is seconds for each log"
    ),
    "unit": Field(Text(), required=True, meaning="its unit"),
    "published": Field(Number(), required=True, meaning="as printed"),
    "fitted": Field(
        Flag(), default=False, meaning="whether a constant of the model was taken from it"
    ),
}
_POINT = {
    "id": Field(Text(), required=True, meaning="the name of the point"),
    "array": Field(Text(), required=True, meaning="a preset"),
    "title": Field(Text(), required=True, meaning="what it is"),
    "source": Field(Text(), required=True, meaning="where it was published"),
    **{key: Field(value.kind, meaning=value.meaning) for key, value in _RUN.items()},
    "variants": Field(Tables(_RUN), meaning="runs that are compared with each other"),
    "streams": Field(Tables(_STREAM, 1), required=True, meaning="what works on each database"),
    "warm_up_s": Field(Number(), default=60, meaning="seconds before measuring"),
    "measure_s": Field(Number(), default=600, meaning="seconds measured"),
    "figures": Field(Tables(_FIGURE, 1, "metric"), required=True, meaning="what was published"),
}


@dataclass(frozen=True)
class Figure:
    """One printed figure.

    Attributes:
        metric: what is compared.
        of: the modelled figure it is compared with.
        unit: its unit.
        published: as printed.
        fitted: whether a constant of the model was taken from it.
        reads_per_log: where `metric` is the time for a log, the page reads that one takes; None
            elsewhere.
    """

    metric: str
    of: str
    unit: str
    published: float
    fitted: bool
    reads_per_log: float | None


@dataclass(frozen=True)
class Result:
    """One published figure beside the modelled one."""

    id: str
    metric: str
    unit: str
    published: float
    modelled: float
    error_percent: float
    fitted: bool


@dataclass(frozen=True)
class Run:
    """One way to test: a layout, changes of the preset, and session counts where a curve is
    drawn.
    """

    layout: str
    changes: Given
    session_counts: tuple[int, ...]


@dataclass(frozen=True)
class Point:
    """One published result: what was tested and what was printed.

    Attributes:
        id: its name.
        array: a preset.
        title: what it is.
        source: where it was published.
        runs: one, or several that are compared with each other.
        streams: what works on each database; see `_STREAM` for the keys.
        warm_up_s: seconds before measuring.
        measure_s: seconds measured.
        figures: what was printed.
    """

    id: str
    array: str
    title: str
    source: str
    runs: tuple[Run, ...]
    streams: tuple[Given, ...]
    warm_up_s: int
    measure_s: int
    figures: tuple[Figure, ...]

    def changed(self, key: str) -> Any:
        """What its first run changes of the preset under this key; None where it is as shipped."""
        return self.runs[0].changes.get(key)


@cache
def _papers() -> Given:
    fields = {
        "name": Field(Text(), required=True, meaning="what the file holds"),
        "mixes": Field(
            Tables(_MIX, 1, "name"), required=True, meaning="what databases do for each page read"
        ),
        "layouts": Field(
            Tables(_LAYOUT, 1, "name"), required=True, meaning="how databases and logs lie"
        ),
        "points": Field(Tables(_POINT, 1, "id"), required=True, meaning="one table for each point"),
    }
    return check_file(read_located(SHIPPED_PAPERS), "papers", fields, READERS)


@cache
def read_points() -> dict[str, Point]:
    """The published points by their names, in the order of the file."""
    return {row["id"]: _point(row) for row in _papers()["points"]}


@cache
def mixes() -> dict[str, Mix]:
    """The mixes of operations by their names."""
    return {
        row["name"]: Mix(**{key: value for key, value in row.items() if key != "name"})
        for row in _papers()["mixes"]
    }


@cache
def layouts() -> dict[str, Given]:
    """The layouts by their names; see `_LAYOUT` for the keys."""
    return {row["name"]: row for row in _papers()["layouts"]}


def _point(row: Given) -> Point:
    return Point(
        row["id"],
        row["array"],
        row["title"],
        row["source"],
        tuple(_run(each) for each in row["variants"] or [row]),
        tuple(_stream(each) for each in row["streams"]),
        int(row["warm_up_s"]),
        int(row["measure_s"]),
        tuple(
            Figure(
                each["metric"],
                each["of"] or each["metric"],
                each["unit"],
                float(each["published"]),
                bool(each["fitted"]),
                each["reads_per_log"],
            )
            for each in row["figures"]
        ),
    )


def _run(row: Given) -> Run:
    changes = {key: value for key, value in (row["changes"] or {}).items() if value is not None}
    return Run(row["layout"], changes, tuple(row["session_counts"] or ()))


def _stream(row: Given) -> Given:
    if row["wait_ms"] is not None:
        return row
    return row | {"wait_ms": TICK_MS if row["kind"] == "maintenance" else 0.0}
