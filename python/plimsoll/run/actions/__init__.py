"""Ready actions: how each of them is applied, proved and undone on this machine, as steps.

`prepared` looks at the machine and writes nothing. What it answers holds for a moment: devices,
processes and groups are looked up again when the event begins. Each action is one module with one
function; nothing else knows what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plimsoll.documents.ready_actions import ReadyAction
from plimsoll.errors.system_errors import system_reason
from plimsoll.run.actions.disks import (
    disk_fails,
    disk_slow,
    disks_harmed,
    md_drive_fails,
    path_fails,
)
from plimsoll.run.actions.iscsi import iscsi_logout
from plimsoll.run.actions.links import link_down
from plimsoll.run.actions.neighbours import neighbour
from plimsoll.run.actions.servers import server_killed
from plimsoll.run.actions.surroundings import ActionError, Prepared, Surroundings
from plimsoll.run.actions.throttle import throttle

_ACTIONS: Mapping[str, Callable[[ReadyAction, Surroundings], Prepared]] = {
    "throttle": throttle,
    "server killed": server_killed,
    "disk slow": disk_slow,
    "disk fails": disk_fails,
    "md drive fails": md_drive_fails,
    "link down": link_down,
    "path fails": path_fails,
    "iscsi logout": iscsi_logout,
    "neighbour": neighbour,
}

__all__ = ["ActionError", "Prepared", "Surroundings", "disks_harmed", "prepared"]


def prepared(action: ReadyAction, here: Surroundings) -> Prepared:
    """The steps of an action on this machine, now.

    Args:
        action: what the plan says.
        here: this machine and this run.

    Raises:
        ActionError: it cannot be carried out here; with what is missing.
    """
    try:
        return _ACTIONS[action.what](action, here)
    except OSError as error:
        raise ActionError(f"{error.filename}: {system_reason(error)}") from error
