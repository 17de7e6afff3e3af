"""What the load of a run was.

The mean I/O outstanding, response times, and how arrivals kept their schedule.

Disk latency is judged elsewhere. Here stands what is needed to make the same load by another tool
(outstanding I/O, by Little's law: rate times latency) and what users felt: response times run from
the intended start of a transaction, so an open load's include the wait for a session. *Arrival lag*
is the generator's own delay, *pool wait* the storage's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

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
from plimsoll.files.parquet import Query, Row
from plimsoll.results.distributions import quantiles_ms
from plimsoll.units import NS_PER_MS, NS_PER_S
from plimsoll.workloads.families import OPERATIONS

OUTSTANDING = ("database_read", "database_write", "log_write")
PERCENTILES = ("p50", "p99", "p999")


def load_figures(
    plan: Plan,
    outcome: Outcome,
    ask: Query,
    stages_of: Callable[[WorkloadSpec], Sequence[StageFigures]],
    seconds_of: Mapping[str, float],
) -> LoadFigures:
    """The `load` part of a summary, from the distributions of the measured phases.

    Args:
        plan: the completed plan.
        outcome: how the phases went.
        ask: asks the table `bucket`.
        stages_of: what came of the stages of a load.
        seconds_of: how long each load was measured, by its name.
    """
    phases = [phase for phase in outcome.phases if phase.kind in settings.MEASURED_KINDS]
    seconds = sum(phase.end_ns - phase.start_ns for phase in phases) / NS_PER_S
    distributions = _Distributions(ask, [phase.name for phase in phases])
    outstanding = {
        name: distributions.total_ms(name) / 1000 / seconds if seconds else None
        for name in OUTSTANDING
    }
    workloads = [
        _workload(
            distributions, workload, seconds_of[workload.name], outcome, plan.run.phases
        ).replace(stages=stages_of(workload) or ABSENT)
        for workload in plan.run.workloads
    ]
    return LoadFigures(
        outstanding_mean=Outstanding(**outstanding),
        workloads=workloads,
        searches=_searches(outcome),
    )


def _workload(
    distributions: _Distributions,
    workload: WorkloadSpec,
    seconds: float,
    outcome: Outcome,
    phases: Sequence[PhaseSpec],
) -> WorkloadFigures:
    name, load = workload.name, workload.load
    response = distributions.timing(OPERATIONS, name)
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
        arrival_lag=distributions.timing(("arrival_lag",), name) if arrives else None,
        pool_wait=distributions.timing(("pool_wait",), name) if arrives else None,
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


class _Distributions:
    """The distributions of the measured phases."""

    def __init__(self, ask: Query, phases: list[str]) -> None:
        self._ask, self._phases = ask, phases

    @cached_property
    def _sums(self) -> list[Row]:
        """One row for each metric of each workload: the sums of all its distributions, which stand
        beside every bucket.
        """
        return self._ask(
            "SELECT workload, metric, sum(latency_ns_sum)::BIGINT AS total_ns,"
            " max(latency_ns_max)::BIGINT AS max_ns FROM"
            " (SELECT DISTINCT phase, instance, database, workload, metric, latency_ns_sum,"
            " latency_ns_max FROM bucket WHERE list_contains($phases, phase))"
            " GROUP BY workload, metric",
            {"phases": self._phases},
        )

    def total_ms(self, metric: str) -> float:
        """How long all events of a metric took together."""
        total_ns = sum(row["total_ns"] for row in self._sums if row["metric"] == metric)
        return float(total_ns) / NS_PER_MS

    def timing(self, metrics: Sequence[str], workload: str) -> Timing:
        """How often and how long some metrics of a workload were."""
        sums = [
            row for row in self._sums if row["workload"] == workload and row["metric"] in metrics
        ]
        rows = self._ask(
            "SELECT upper_ns, sum(count)::BIGINT AS count FROM bucket"
            " WHERE list_contains($phases, phase) AND list_contains($metrics, metric)"
            " AND workload = $workload AND count > 0 GROUP BY upper_ns ORDER BY upper_ns",
            {"phases": self._phases, "metrics": list(metrics), "workload": workload},
        )
        buckets = [(row["upper_ns"], row["count"]) for row in rows]
        count = sum(count for _, count in buckets)
        total_ms = float(sum(row["total_ns"] for row in sums)) / NS_PER_MS
        return Timing(
            count=count,
            ms_mean=total_ms / count if count else None,
            **quantiles_ms(buckets, "ms", PERCENTILES),
            ms_max=max(row["max_ns"] for row in sums) / NS_PER_MS if count else None,
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
        logs, job = (
            (f", {log:.2f} log writes", " next to one synchronous log job") if log else ("", "")
        )
        lines.append(
            f"mean outstanding I/O: {reads:.2f} database reads, {writes:.2f} database writes{logs} "
            f"(for fio: an iodepth of {max(1, round(reads + writes))}{job})"
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
