"""How much of the storage the databases of a plan fill, and whether that is far below what a design
would.

Databases that fill a small part of their storage use the fastest tracks of disks and the emptiest
flash. The published tests filled 46 to 80 % of theirs. Known before a run and the same after it; a
whole block device has no file system and is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll import settings
from plimsoll.documents.environment import StorageFacts
from plimsoll.documents.plan import Plan


def far_below_design(plan: Plan, targets: Sequence[StorageFacts]) -> list[str]:
    """A sentence for each file system that is filled far less than the design or, where none is
    stated, than published tests.

    Args:
        plan: the completed plan.
        targets: what the probe found under each target, in the order of the plan.
    """
    stated = plan.judgement.design_used_percent
    capacities: dict[str, int] = {}
    used: dict[str, int] = {}
    wanted: dict[str, float] = {}
    for target, facts in zip(plan.run.targets, targets, strict=False):
        file_system = facts.get("file_system")
        if not file_system or not file_system.get("size_bytes"):
            continue
        mount = file_system["mount_point"]
        capacities[mount] = file_system["size_bytes"]
        used[mount] = used.get(mount, 0) + _size_on(plan, target.name)
        if target.name in stated:
            # Several targets on one file system fill it together.
            wanted[mount] = wanted.get(mount, 0.0) + stated[target.name] / 100
    return [
        sentence
        for mount, capacity in capacities.items()
        if (sentence := _sentence(mount, used[mount] / capacity, wanted.get(mount)))
    ]


def _size_on(plan: Plan, target: str) -> int:
    instances = (instance for instance in plan.run.instances if instance.target == target)
    return sum(database.size_bytes for instance in instances for database in instance.databases)


def _sentence(mount: str, share: float, design: float | None) -> str | None:
    if design is not None:
        if share >= settings.QUALIFYING_DESIGN_SHARE * design:
            return None
        return (
            f"the databases fill {share:.1%} of the storage at {mount}, far below the {design:.0%} "
            f"of the design; "
            f"a qualification fills at least {settings.QUALIFYING_DESIGN_SHARE:.0%} of what the "
            f"design does"
        )
    if share >= settings.QUALIFYING_CAPACITY_SHARE:
        return None
    return (
        f"the databases fill {share:.1%} of the storage at {mount}, far below what a design uses; "
        f"a qualification fills at least {settings.QUALIFYING_CAPACITY_SHARE:.0%}"
    )
