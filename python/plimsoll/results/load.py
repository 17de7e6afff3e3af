"""What the load of a run was.

The mean I/O outstanding, response times, and how arrivals kept their schedule.

Disk latency is judged elsewhere. Here stands what is needed to make the same load by another tool
(outstanding I/O, by Little's law: rate times latency) and what users felt: response times run from
the intended start of a transaction, so an open load's include the wait for a session. *Arrival lag*
is the generator's own delay, *pool wait* the storage's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb

from plimsoll import settings
from plimsoll.documents.document import ABSENT
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.phase_actions import PhaseSpec
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import (
    LoadSpec,
    SearchedLoad,
    SearchLoad,
    SessionsLoad,
    WorkloadSpec,
)
from plimsoll.documents.summary import (
    LoadFigures,
    LoadShown,
    Outstanding,
    SearchFound,
    StageFigures,
    Timing,
    WorkloadFigures,
)
from plimsoll.files import folder, parquet
from plimsoll.results.distributions import quantiles_ms
from plimsoll.units import NS_PER_MS, NS_PER_S
from plimsoll.workloads.families import OPERATIONS

OUTSTANDING = ("database_read", "database_write", "log_write")
PERCENTILES = ("p50", "p99", "p999")


def load_figures(
    run_folder: Path,
    plan: Plan,
    outcome: Outcome,
    stages_of: Callable[[WorkloadSpec], Sequence[StageFigures]],
) -> LoadFigures:
    """The `load` part of a summary, from the distributions of the measured phases.

    Args:
        run_folder: of the run.
        plan: the completed plan.
        outcome: how the phases went.
        stages_of: what came of the stages of a load.
    """
    phases = [phase for phase in outcome.phases if phase.kind in settings.MEASURED_KINDS]
    seconds = sum(phase.end_ns - phase.start_ns for phase in phases) / NS_PER_S
    with parquet.database() as database:
        rows = parquet.rows_of(run_folder / folder.HISTOGRAMS)
        database.execute(f"CREATE TABLE bucket AS SELECT * FROM {rows}")
        names = [phase.name for phase in phases]
        database.execute(
            "CREATE TABLE measured AS SELECT * FROM bucket WHERE list_contains(?, phase)", [names]
        )
        outstanding = {
            name: _total_ms(database, (name,)) / 1000 / seconds if seconds else None
            for name in OUTSTANDING
        }
        workloads = [
            _workload(database, workload, seconds, outcome, plan.run.phases).replace(
                stages=stages_of(workload) or ABSENT
            )
            for workload in plan.run.workloads
        ]
    return LoadFigures(
        outstanding_mean=Outstanding(**outstanding),
        workloads=workloads,
        searches=_searches(outcome),
    )


def _workload(
    database: duckdb.DuckDBPyConnection,
    workload: WorkloadSpec,
    seconds: float,
    outcome: Outcome,
    phases: Sequence[PhaseSpec],
) -> WorkloadFigures:
    name, load = workload.name, workload.load
    response = _timing(database, OPERATIONS, name)
    per_s = response.count / seconds if seconds else 0.0
    arrives = not isinstance(load, SessionsLoad)
    calibrations = [
        found
        for phase in outcome.phases
        for found in phase.calibrations
        if found.workload == name and any(name in other.workloads for other in phases)
    ]
    return WorkloadFigures(
        name=name,
        load=without_criteria(load),
        transactions_per_s=per_s,
        batches_per_s=per_s / settings.BATCH_TRANSACTIONS,
        response=response,
        arrival_lag=_timing(database, ("arrival_lag",), name) if arrives else None,
        pool_wait=_timing(database, ("pool_wait",), name) if arrives else None,
        calibration=calibrations[-1] if calibrations else None,
    )


def without_criteria(load: LoadSpec) -> LoadShown:
    """A load as a summary states it: what a search keeps stands in the plan."""
    if not isinstance(load, SearchLoad):
        return load
    return SearchedLoad(**{key: value for key, value in load.given().items() if key != "criteria"})


def _searches(outcome: Outcome) -> list[SearchFound]:
    """What searches found; the points themselves are in `points.json`."""
    found = [phase.search for phase in outcome.phases if phase.search]
    return [
        SearchFound(
            **{key: value for key, value in search.given().items() if key != "steps"},
            steps_count=len(search.steps),
        )
        for search in found
    ]


def _distinct(metrics: tuple[str, ...], workload: str | None) -> tuple[str, dict[str, object]]:
    """One row for each distribution: its sums stand beside every bucket."""
    where = "list_contains($metrics, metric)" + (
        " AND workload = $workload" if workload is not None else ""
    )
    values: dict[str, object] = {"metrics": list(metrics)}
    if workload is not None:
        values["workload"] = workload
    columns = "phase, instance, database, workload, metric, latency_ns_sum, latency_ns_max"
    return f"(SELECT DISTINCT {columns} FROM measured WHERE {where})", values


def _total_ms(
    database: duckdb.DuckDBPyConnection, metrics: tuple[str, ...], workload: str | None = None
) -> float:
    table, values = _distinct(metrics, workload)
    row = database.execute(
        f"SELECT coalesce(sum(latency_ns_sum), 0)::DOUBLE FROM {table}", values
    ).fetchall()[0]
    return float(row[0]) / NS_PER_MS


def _timing(database: duckdb.DuckDBPyConnection, metrics: tuple[str, ...], workload: str) -> Timing:
    table, values = _distinct(metrics, workload)
    row = database.execute(
        f"SELECT coalesce(max(latency_ns_max), 0)::BIGINT FROM {table}", values
    ).fetchall()[0]
    buckets = database.execute(
        "SELECT upper_ns, sum(count)::BIGINT FROM measured WHERE list_contains($metrics, metric)"
        " AND workload = $workload AND count > 0 GROUP BY upper_ns ORDER BY upper_ns",
        values,
    ).fetchall()
    count = sum(count for _, count in buckets)
    return Timing(
        count=count,
        ms_mean=_total_ms(database, metrics, workload) / count if count else None,
        **quantiles_ms(buckets, "ms", PERCENTILES),
        ms_max=row[0] / NS_PER_MS if count else None,
    )


def in_words(found: LoadFigures) -> list[str]:
    """Lines for the printed result: what to give fio for the same load, and how arrivals did."""
    lines = []
    outstanding = found.outstanding_mean
    reads, writes, log = (
        outstanding.database_read,
        outstanding.database_write,
        outstanding.log_write,
    )
    # Users of a server have no I/O of ours.
    if reads is not None and writes is not None and log is not None and (reads or writes or log):
        lines.append(
            f"mean outstanding I/O: {reads:.2f} database reads, {writes:.2f} database writes, "
            f"{log:.2f} log writes "
            f"(for fio: an iodepth of {max(1, round(reads + writes))} beside one synchronous log "
            f"job)"
        )
    for workload in found.workloads:
        lag, wait, response = workload.arrival_lag, workload.pool_wait, workload.response
        if lag is None or wait is None or not response.count:
            continue
        lines.append(
            f"{workload.name}: {workload.transactions_per_s:.1f} transactions/s arrived; response "
            f"from the intended "
            f"start {response.ms_mean:.2f} ms, p99 {response.ms_p99:.2f} ms"
            + (f"; {wait.count} waited for a session" if wait.count else "")
        )
    return lines
