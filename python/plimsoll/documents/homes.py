"""What users of home folders did: scenarios, operations, and the audit of what they left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.documents.document import Document


class HomeStep(Document):
    """A scenario of home folders, or one operation of them."""

    step: str
    count: int
    share: float
    ms_mean: float | None
    ms_p50: float | None
    ms_p95: float | None
    ms_p99: float | None
    ms_max: float | None


class HomesFigures(Document):
    """What users of home folders did.

    `users_found_is_least` where the search for them ended before it met a limit of the storage, or
    did not try them for longer.
    """

    workload: str
    users: int | None
    users_found: float | None
    homes: int
    scenarios_count: int
    scenarios_per_s: float
    planned_per_s: float | None
    achieved_percent: float | None
    response_ms_mean: float | None
    response_ms_p95: float | None
    user_waits_count: int
    is_overloaded: bool | None
    scenarios: Sequence[HomeStep]
    operations: Sequence[HomeStep]
    users_found_is_least: bool = False


class HomesAudit(Document):
    """Whether homes hold what was made in them: counts by name, and what differs."""

    instance: str
    seconds: float
    counts: Mapping[str, int]
    findings: Sequence[str]
