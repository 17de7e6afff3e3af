"""Each load and each event of runs of several, next to its like of the other sides.

Loads and events go by their names. Their figures are those of the summary, so of a single run they
are one number without a confidence; of repeated runs it comes from whole runs. Intervals hold
alone, not together with those of the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from plimsoll.compare.blocks import Estimate, of_runs
from plimsoll.compare.compare import figure_row
from plimsoll.compare.figures import LESS, MORE, NEITHER, Figure
from plimsoll.compare.sides import RunRead, Side
from plimsoll.documents.comparison import ComparedPart
from plimsoll.documents.summary import Summary

OPERATIONS = Figure("operations_per_s", "Operations", "1/s", MORE)
RESPONSE = Figure("response_ms_mean", "Response, mean", "ms", LESS)
#: What the first table of loads shows of each.
OVERVIEW = (OPERATIONS.name, RESPONSE.name)
Values = Mapping[Figure, float | None]


def compared_parts(sides: Sequence[Side]) -> list[ComparedPart]:
    """Every load and every event of any side; nothing where no side has several loads or events."""
    summaries = [run.summary for side in sides for run in side.runs]
    own = [summary for summary in summaries if isinstance(summary, Summary)]
    if not any(len(summary.load.workloads) > 1 or summary.events for summary in own):
        return []
    if len(own) < len(summaries):
        return []
    return [*_parts(sides, "Load", _loads), *_parts(sides, "Event", _events)]


def _parts(
    sides: Sequence[Side], what: str, read: Callable[[RunRead], dict[str, Values]]
) -> list[ComparedPart]:
    found = [[read(run) for run in side.runs] for side in sides]
    names = dict.fromkeys(name for runs in found for run in runs for name in run)
    parts = []
    for name in names:
        figures = dict.fromkeys(
            figure for runs in found for run in runs for figure in run.get(name, {})
        )
        rows = []
        for figure in figures:
            estimates = [
                _estimate([run.get(name, {}).get(figure) for run in runs]) for runs in found
            ]
            row = figure_row(figure, estimates, max(1, len(figures)))
            if row is not None:
                rows.append(row)
        missing = [
            side.name
            for side, runs in zip(sides, found, strict=True)
            if not any(name in run for run in runs)
        ]
        parts.append(ComparedPart(title=f"{what} {name}", figures=rows, missing=missing))
    return parts


def _estimate(values: Sequence[float | None]) -> Estimate:
    known = [value for value in values if value is not None]
    if not known:
        return Estimate(None, why_not="not measured")
    if len(known) > 1:
        return of_runs(known)
    return Estimate(known[0], why_not="one run, one number", is_open=True)


def _loads(run: RunRead) -> dict[str, Values]:
    summary = run.summary
    if not isinstance(summary, Summary):
        return {}
    found: dict[str, dict[Figure, float | None]] = {
        load.name: {
            OPERATIONS: load.transactions_per_s,
            RESPONSE: load.response.ms_mean,
            Figure("response_ms_p99", "Response, p99", "ms", LESS): load.response.ms_p99,
        }
        for load in summary.load.workloads
    }
    for store in summary.store:
        found[store.workload][Figure("opm", "Orders", "1/min", MORE)] = float(store.opm)
    for files in summary.files:
        each = Figure("iops_per_user", "I/O of each user", "1/s", MORE)
        found[files.workload][each] = files.iops_per_user
    for mail in summary.mail:
        found[mail.workload][Figure("score", "Score, weighted p95", "ms", LESS)] = mail.score.ms
    for window in summary.load_windows:
        for key, value in (("least", window.min), ("most", window.max)):
            name = f"Window of {window.over_s:g} s, {key}"
            figure = Figure(f"window_{window.figure}_{key}", name, window.unit, NEITHER)
            found[window.workload][figure] = value
        outside = Figure(f"window_{window.figure}_outside", "Windows outside", "", NEITHER)
        found[window.workload][outside] = float(window.outside_count)
    return dict(found)


def _events(run: RunRead) -> dict[str, Values]:
    summary = run.summary
    if not isinstance(summary, Summary):
        return {}
    found: dict[str, Values] = {}
    for event in summary.events:
        values: dict[Figure, float | None] = {}
        for load in event.loads:
            for key, title, unit, better, value in (
                ("baseline_per_s", "before", "1/s", MORE, load.baseline_per_s),
                ("pause_s", "pause", "s", LESS, load.pause_s),
                ("least_per_s", "lowest rate", "1/s", MORE, load.least_per_s),
                ("dip_percent", "dip", "%", LESS, load.dip_percent),
                ("recovered_s", "back after", "s", LESS, load.recovered_s),
                ("lasting_ms_mean", "mean while it lasted", "ms", LESS, load.lasting_ms_mean),
            ):
                name = f"{load.workload}_{key}"
                told = f"{load.workload}, {title}"
                values[Figure(name, told, unit, better, load=load.workload)] = value
        found[event.name] = values
    return found
