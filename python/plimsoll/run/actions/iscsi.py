"""`iscsi logout`: the session with an iSCSI target ends, and begins again later.

The node stays known to the initiator, so that the login needs no discovery.
"""

from __future__ import annotations

from plimsoll.documents.ready_actions import ReadyAction, Step
from plimsoll.run.actions.disks import printed
from plimsoll.run.actions.surroundings import ActionError, Prepared, Surroundings


def iscsi_logout(action: ReadyAction, here: Surroundings) -> Prepared:
    """The steps that end a session and begin it again.

    Raises:
        ActionError: there is no such session.
    """
    here.need_root()
    iscsiadm = here.tool("iscsiadm", "open-iscsi")
    sessions = printed([iscsiadm, "-m", "session"], "there is no iSCSI session")
    iqn, portal = action.iqn or "", action.portal or ""
    own = [line for line in sessions if iqn in line.split() and (not portal or portal in line)]
    if not own:
        raise ActionError(f"there is no session with {iqn}{' at ' + portal if portal else ''}")
    node = [iscsiadm, "-m", "node", "-T", iqn, *(["-p", portal] if portal else [])]
    # As it prints a session: tcp: [1] 10.0.0.1:3260,1 iqn.2001-04.org:disk (non-flash)
    shown = f"{portal}," if portal else iqn
    return Prepared(
        apply=[Step(kind="run", argv=[*node, "--logout"])],
        prove=[Step(kind="hides", argv=[iscsiadm, "-m", "session"], text=shown)],
        # A session that is there already makes the login fail; what counts is that it is there.
        undo=[
            Step(kind="run", argv=[*node, "--login"], otherwise=["true"]),
            Step(kind="shows", argv=[iscsiadm, "-m", "session"], text=shown),
        ],
    )
