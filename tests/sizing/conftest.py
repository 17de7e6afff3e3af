"""What the sizing tests share: the 2010 figures and a way to make checked requirements."""

from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.sizing.guidance import Guidance, editions
from plimsoll.sizing.requirements import Requirements, as_document, check_requirements

Make = Callable[..., Requirements]
USERS = {"count": 5000, "mailbox_quota": "2 GB", "messages_per_day": 150, "message_size": "75 KB"}


@pytest.fixture
def exchange_2010() -> Guidance:
    return editions()["exchange_2010"]


@pytest.fixture
def make() -> Make:
    """Requirements for 5,000 users in two copies, with tables given in place of or beside the usual ones."""

    def requirements(**tables: Any) -> Requirements:
        usual: dict[str, Any] = {
            "kind": "requirements",
            "users": USERS,
            "copies": {"mode": "dag", "count": 2, "servers": 2},
        }
        document = {key: value for key, value in (usual | tables).items() if value is not None}
        return check_requirements(as_document("test", document))

    return requirements
