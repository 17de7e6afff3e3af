"""What came of the stages of a load, from its samples.

A sample counts for a stage where it lies in it whole: what was asked for in one stage and completed
in the next counts where it completed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plimsoll import settings
from plimsoll.documents.outcome import LoadStageOutcome, Outcome
from plimsoll.documents.run_spec import WorkloadSpec
from plimsoll.documents.summary import StageFigures
from plimsoll.files.parquet import Query
from plimsoll.units import NS_PER_MS, NS_PER_S
from plimsoll.workloads.families import OPERATIONS

#: What is added up in each sample: a name, whose rows, which metrics.
_SUMS = {
    "operation": ("workload = $workload", list(OPERATIONS)),
    "read": ("list_contains($instances, instance)", ["database_read"]),
    "write": ("list_contains($instances, instance)", ["database_write"]),
    "log": ("list_contains($instances, instance)", ["log_write"]),
}
Sums = dict[str, npt.NDArray[np.float64]]


def stage_figures(workload: WorkloadSpec, outcome: Outcome, ask: Query) -> list[StageFigures]:
    """The stages of one load, in the order in which they came.

    Args:
        workload: the load.
        outcome: how the phases went.
        ask: asks the table `sample`.
    """
    stages = [
        stage
        for phase in outcome.phases
        if phase.kind in settings.MEASURED_KINDS
        for stage in phase.stages
        if stage.workload == workload.name
    ]
    if not stages:
        return []
    sums = _sums(workload, ask)
    return [_figures(stage, sums) for stage in stages]


def _sums(workload: WorkloadSpec, ask: Query) -> Sums:
    """When each sample ended, how long it lasted, and what was counted in it; shapes (n,)."""
    parts = [
        f"coalesce(sum({column}) FILTER (WHERE {whose} AND list_contains(${name}, metric)), 0)"
        f"::DOUBLE AS {name}_{label}"
        for name, (whose, _) in _SUMS.items()
        for label, column in (("count", "count"), ("ns", "latency_ns_sum"))
    ]
    rows = ask(
        "SELECT end_ns::DOUBLE AS end_ns, max(interval_ns)::DOUBLE AS interval_ns, "
        + ", ".join(parts)
        + " FROM sample GROUP BY end_ns ORDER BY end_ns",
        {
            "workload": workload.name,
            "instances": list(workload.instances),
            **{name: metrics for name, (_, metrics) in _SUMS.items()},
        },
    )
    names = rows[0].keys() if rows else ()
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in names}


def _figures(stage: LoadStageOutcome, sums: Sums) -> StageFigures:
    seconds = 0.0
    total: dict[str, float] = {}
    if sums:
        starts = sums["end_ns"] - sums["interval_ns"]
        within = (starts >= stage.start_ns) & (sums["end_ns"] <= stage.end_ns)
        total = {name: float(values[within].sum()) for name, values in sums.items()}
        seconds = total["interval_ns"] / NS_PER_S

    def per_s(*names: str) -> float | None:
        return sum(total[f"{name}_count"] for name in names) / seconds if seconds else None

    def mean_ms(name: str) -> float | None:
        count = total.get(f"{name}_count", 0.0)
        return total[f"{name}_ns"] / count / NS_PER_MS if count else None

    return StageFigures(
        stage=stage.stage,
        rate_percent=stage.rate_percent,
        start_s=stage.start_ns / NS_PER_S,
        scheduled_s=(stage.end_ns - stage.start_ns) / NS_PER_S,
        seconds=seconds,
        offered_per_s=stage.transactions_per_s,
        completed_per_s=per_s("operation"),
        response_ms_mean=mean_ms("operation"),
        database_iops=per_s("read", "write"),
        database_read_ms_mean=mean_ms("read"),
        log_write_ms_mean=mean_ms("log"),
    )
