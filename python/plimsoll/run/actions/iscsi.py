"""`iscsi logout`: the session with an iSCSI target ends, and begins again later.

The node stays known to the initiator, so that the login needs no discovery.
"""

from __future__ import annotations

from plimsoll.documents.ready_actions import ReadyAction, Step
from plimsoll.run.actions.disks import printed
from plimsoll.run.actions.surroundings import ActionError, Prepared, Surroundings

#: How iscsiadm ends where there is none at all: ISCSI_ERR_NO_OBJS_FOUND of iscsiadm(8).
_NO_SESSION = 21


def iscsi_logout(action: ReadyAction, here: Surroundings) -> Prepared:
    """The steps that end a session and begin it again.

    Raises:
        ActionError: there is no such session.
    """
    here.need_root()
    iscsiadm = here.tool("iscsiadm", "open-iscsi")
    sessions = printed([iscsiadm, "-m", "session"], "there is no iSCSI session")
    iqn, portal = action.iqn or "", action.portal or ""
    own = [shown for line in sessions if (shown := _shown(line, iqn, portal))]
    if not own:
        raise ActionError(f"there is no session with {iqn}{' at ' + portal if portal else ''}")
    # Portals of the target that had no session before get none.
    nodes = [
        [iscsiadm, "-m", "node", "-T", iqn, "-p", address]
        for address in dict.fromkeys(text.partition(",")[0] for text in own)
    ]
    listed = [iscsiadm, "-m", "session"]
    return Prepared(
        apply=[Step(kind="run", argv=[*node, "--logout"]) for node in nodes],
        prove=[Step(kind="hides", argv=listed, text=text, none_code=_NO_SESSION) for text in own],
        # A session that is there already makes the login fail; what counts is that it is there.
        undo=[
            *(Step(kind="run", argv=[*node, "--login"], otherwise=["true"]) for node in nodes),
            *(Step(kind="shows", argv=listed, text=text) for text in own),
        ],
    )


def _shown(line: str, iqn: str, portal: str) -> str:
    """What a line says of a session without its number, if it is one that is asked for.

    >>> line = "tcp: [1] 10.0.0.1:3260,1 iqn.2001-04.org:disk (non-flash)"
    >>> _shown(line, "iqn.2001-04.org:disk", "10.0.0.1")
    '10.0.0.1:3260,1 iqn.2001-04.org:disk (non-flash)'
    >>> _shown(line, "iqn.2001-04.org:dis", "")
    ''
    """
    place, name, *rest = [*line.split(), "", "", "", ""][2:]
    at, without_port = place.partition(",")[0], place.rpartition(":")[0]
    if name != iqn or portal not in ("", place, at, without_port):
        return ""
    return " ".join([place, name, *rest]).strip()
