"""What each endpoint of a server had of the clients of a load."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.documents.document import Document


class EndpointFigures(Document):
    """One endpoint over the measured time.

    Attributes:
        endpoint: where it is, `HOST:PORT`.
        clients: how many the policy gives it; None where that cannot be told.
        sessions: connections that were open at the end.
        sessions_max: the most that were open at any sample.
        connections: connections that came about.
        refused: attempts at connecting that came to nothing.
        moved: connections of clients that were at another endpoint before.
        operations: operations that were carried out there.
        share: of all operations of the load.
    """

    endpoint: str
    clients: int | None
    sessions: int | None
    sessions_max: int | None
    connections: int
    refused: int
    moved: int
    operations: int
    share: float | None
    ms_mean: float | None
    ms_p95: float | None
    ms_max: float | None


class DistributionFigures(Document):
    """How the clients of a load were distributed over the endpoints of a server."""

    workload: str
    instance: str
    policy: str
    addresses: int | None
    endpoints: Sequence[EndpointFigures]
