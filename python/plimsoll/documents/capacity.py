"""The answer of a capacity search, `capacity.json`.

How many users a storage carries, and what was not tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.document import Document


class Capacity(Document):
    """What a search found, in users."""

    schema_version: Literal[1]
    users: int | None
    kind_of_user: str
    at_least: bool
    database_iops: float | None
    iops_per_user: float
    headroom_factor: float
    first_limit: str | None
    failed_iops_above_share: float | None
    confidence_percent: int | None
    confirmed: bool
    result: str
    reasons: Sequence[str]
    not_tested: Sequence[str]
