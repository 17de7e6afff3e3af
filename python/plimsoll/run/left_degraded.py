"""What earlier runs left degraded, for a run that would measure it.

Only run folders next to that of the new run are looked at, and those of series among them.
"""

from __future__ import annotations

from pathlib import Path

from plimsoll.databases.other_runs import storage_under
from plimsoll.documents.document import ABSENT, DocumentError
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import StoreClientInstance
from plimsoll.files import folder
from plimsoll.plan.overlaps import things_of
from plimsoll.run.pending_undo import PendingUndo, clean_command, pending_undos
from plimsoll.workloads.mail.fields import is_storage


def require_nothing_degraded(plan: Plan, run_folder: Path) -> None:
    """Refuse a run on a device, server or link that an earlier run left degraded.

    Args:
        plan: of the new run.
        run_folder: its folder, which need not be there yet.

    Raises:
        FolderError: something is degraded, or the files that say so are damaged.
    """
    if plan.run.modelled is not None:
        return
    parent = run_folder.absolute().parent
    places = [*parent.glob(f"*/{folder.UNDO_PENDING}")]
    places += parent.glob(f"*/run-*/{folder.UNDO_PENDING}")
    for home in sorted(path.parent for path in places):
        if folder.goes_on(home) or not _may_share(plan, home):
            continue
        left = [item for item in pending_undos(home) if not _has_ended_here(item)]
        if not left:
            continue
        names = ", ".join(f'event "{item.name}" is not undone' for item in left)
        there = next((f"on {item.elsewhere}, " for item in left if item.elsewhere), "")
        raise folder.FolderError(
            f"{home} left something degraded that this run would measure: {names}; undo it "
            f"{there}with `{clean_command(home, left)}`"
        )


def _has_ended_here(item: PendingUndo) -> bool:
    """Whether nothing of it is left that this machine could measure."""
    return item.has_ended or (item.ends_with_boot and item.elsewhere is not None)


def _may_share(plan: Plan, home: Path) -> bool:
    """Whether a run touches what the run of a folder did; also where nobody knows any more."""
    try:
        before = Plan.read(home / folder.PLAN)
    except (folder.FolderError, DocumentError):
        return True
    return bool(_things_of(plan) & _things_of(before))


def _things_of(plan: Plan) -> set[str]:
    """The disks, servers and devices of a plan and of its events."""
    if plan.run.modelled is not None:
        return set()
    found = set[str]()
    for target in plan.run.targets:
        found |= storage_under(Path(target.path)) if is_storage(target.path) else {target.path}
    for instance in plan.run.instances:
        if isinstance(instance, StoreClientInstance):
            found.add(instance.place)
    for event in plan.events:
        # What an event does to a target is known by the disk of the target.
        action = event.action and event.action.replace(target=ABSENT)
        found |= {thing for thing in things_of(action, ()) if "this run" not in thing}
    return found
