"""The section "Log space": what the log took over time, what copies with a lag need of it, and what
sizing says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plimsoll.documents.log_space import LogSpaceFigures
from plimsoll.documents.run_spec import LaggedCopy
from plimsoll.pages.chart_spans import curves, step_points, time_unit
from plimsoll.pages.kit import Chart
from plimsoll.pages.tables import Table, shown
from plimsoll.pages.vega import PLACES_MAX, finished, over_time
from plimsoll.report.charts import POINTS_MAX, TABLE_ROWS_MAX
from plimsoll.results.measurements import Measurements
from plimsoll.units import BYTES_PER_MB, SECONDS_PER_HOUR


def log_space_tables(found: Sequence[LogSpaceFigures]) -> list[Table]:
    """A table for each instance whose log was looked at; none where there is none."""
    return [_table(item) for item in found]


def _table(item: LogSpaceFigures) -> Table:
    rows: list[list[Any]] = [
        ["Where", item.log_directory],
        *([f"Lag of copy {copy.name}", lag_in_words(copy)] for copy in item.copies),
        ["Log written, MiB/s", _mib(item.written_bytes_per_s)],
        ["Kept while it was measured, mean MiB", _mib(item.kept_bytes.mean)],
        ["Kept at most, MiB", _mib(item.kept_bytes_max)],
        ["Of it for the most lagged copy at most, MiB", _mib(item.lagged_bytes_max)],
        ["Needed once every lag has passed, MiB", _mib(item.needed_bytes)],
        ["Room of the volume, MiB", _mib(item.room_bytes)],
        ["Sizing: the lag at this rate with its overhead, MiB", _mib(item.sizing_bytes)],
    ]
    if item.sizing_users_bytes is not None:
        title = "Sizing: the lag by the logs expected of the users, MiB"
        rows.append([title, _mib(item.sizing_users_bytes)])
    note = "Sizing is Dell EqualLogic Exchange 2010, Table 15 and section 3.3.4."
    if item.copies and not item.lag_reached:
        note += " The run was shorter than the lag: what is needed follows from its rate of log."
    return Table(f"Log of {item.instance}", [], rows, note)


def lag_in_words(copy: LaggedCopy) -> str:
    """How far a copy is behind.

    >>> lag_in_words(LaggedCopy(name="far", lag_s=86400.0, lag_logs=None))
    '24 h'
    >>> lag_in_words(LaggedCopy(name="near", lag_s=None, lag_logs=200))
    '200 logs'
    """
    if copy.lag_s is None:
        return f"{copy.lag_logs} logs"
    hours = copy.lag_s / SECONDS_PER_HOUR
    return f"{hours:g} h" if hours >= 1 else f"{copy.lag_s:g} s"


def _mib(size: float | None) -> float | None:
    return None if size is None else size / BYTES_PER_MB


def log_space_charts(found: Sequence[LogSpaceFigures], measured: Measurements) -> list[Chart]:
    """The space of the log over the measured time, of at most so many instances as can be told
    apart.
    """
    names = {(item.instance, 0): item.instance for item in found[:PLACES_MAX]}
    drawn = curves(measured.series("log_space", POINTS_MAX), "level", names, 1 / BYTES_PER_MB)
    if not drawn:
        return []
    unit = time_unit(measured.seconds)
    points = step_points(drawn, unit, measured.span_s(POINTS_MAX))
    labels = [curve.where for curve in drawn]
    lines = over_time(labels, "instance", unit, "MiB", {"scale": {"zero": True}}, digits=4)
    title = "Space of the log"
    least, most = (end(point["v"] for point in points) for end in (min, max))
    words = [f"{shown(least)} to {shown(most)} MiB"]
    description = ". ".join([f"{title} over time", *words])
    seen = curves(measured.series("log_space", TABLE_ROWS_MAX), "level", names, 1 / BYTES_PER_MB)
    values = {curve.where: dict(curve.points) for curve in seen}
    times = sorted({second for curve in values.values() for second in curve})
    rows: list[list[Any]] = [
        [f"{second / unit.seconds:.4g}", *(curve.get(second) for curve in values.values())]
        for second in times
    ]
    headings = [f"From ({unit.name})", *(f"{where} (MiB)" for where in values)]
    return [
        Chart(
            "log-space",
            title,
            description,
            finished({"data": {"values": points}, **lines}, f"{title} (MiB)", words, description),
            Table(title, headings, rows),
        )
    ]
