"""What the sizing tests share: a way to make checked requirements."""

from typing import Any

from hypothesis import settings

from plimsoll.sizing.requirements import Requirements, as_document, check_requirements

# No deadline: on a machine busy with other tests an example takes as long as it takes.
several = settings(max_examples=50, deadline=None)
USERS = {"count": 5000, "mailbox_quota": "2 GB", "messages_per_day": 150, "message_size": "75 KB"}
COPIES = {"mode": "dag", "count": 2, "servers": 2}


def make(**tables: Any) -> Requirements:
    """Requirements for 5,000 users in two copies, with tables given in place of or beside the usual
    ones.
    """
    usual: dict[str, Any] = {"kind": "requirements", "users": USERS, "copies": COPIES}
    return check_requirements(
        as_document(
            "test", {key: value for key, value in (usual | tables).items() if value is not None}
        )
    )
