"""What audits of a run found, under the names of the instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan

Audit = TypeVar("Audit")


def audits_of(
    plan: Plan, outcome: Outcome, instances: tuple[type, ...], make: Callable[..., Audit]
) -> list[Audit]:
    """The audits of some kinds of instances, in the order of the phases."""
    return [
        make(
            instance=plan.run.instances[audit.instance].name,
            seconds=audit.seconds,
            counts=audit.counts,
            findings=audit.findings,
        )
        for phase in outcome.phases
        for audit in phase.audits
        if isinstance(plan.run.instances[audit.instance], instances)
    ]
