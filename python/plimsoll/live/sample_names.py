"""What the codes of a sample stand for."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll import settings
from plimsoll.documents.run_spec import RunSpec


def names_of_codes(run: RunSpec, metrics: Sequence[str]) -> dict[str, list[str]]:
    """The names behind the codes of each coded column.

    Two phases beyond the plan: the closing of an unfinished run, and what sessions finish after the
    time of their phase.

    Args:
        run: whose samples they are.
        metrics: the names of all metrics, in the order of their codes.
    """
    return {
        "phase": [phase.name for phase in run.phases]
        + ["stop after early end", settings.BETWEEN_PHASES],
        "host": [host.name for host in run.hosts],
        "instance": [instance.name for instance in run.instances],
        "workload": ["", *(workload.name for workload in run.workloads)],
        "metric": list(metrics),
    }
