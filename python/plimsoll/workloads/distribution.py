"""How clients are distributed over the endpoints of one server.

    distribution = "round robin"

Single affinity keeps the clients of one address at one endpoint, as load balancers of clusters do.
Round robin lets connections take endpoints in turn, and go on to the next where one is gone.
"""

from __future__ import annotations

from typing import Any

from plimsoll.documents import run_spec as spec
from plimsoll.documents.document import ABSENT
from plimsoll.inputs.schema import Collector, Field, Given, Number, Text

SINGLE_AFFINITY, ROUND_ROBIN = "single affinity", "round robin"

FIELDS = {
    "distribution": Field(
        Text((SINGLE_AFFINITY, ROUND_ROBIN)),
        meaning="how clients are distributed over endpoints: single affinity, each stays with one, "
        "or round robin, connections take them in turn; single affinity if left out",
    ),
    "client_addresses": Field(
        Number(1, 1_000_000, whole=True),
        meaning="under single affinity: from how many addresses clients come, each address having "
        "one endpoint; each client has its own if left out",
    ),
}


def completed(
    given: Given, count: int, path: tuple[str | int, ...], collector: Collector
) -> spec.DistributionSpec | Any:
    """What an instance says of it; absent where it says nothing.

    Args:
        given: the checked table, absent keys None.
        count: how many endpoints there are.
        path: where the instance stands.
        collector: takes the mistakes.
    """
    stated = [key for key in FIELDS if given[key] is not None]
    if count < 2:
        for key in stated:
            collector.add(
                (*path, key), "means nothing for a server of one endpoint", "write more endpoints"
            )
    if given["distribution"] == ROUND_ROBIN and given["client_addresses"] is not None:
        collector.add(
            (*path, "client_addresses"),
            "means nothing under round robin, which looks at no address",
            f'remove it, or write distribution = "{SINGLE_AFFINITY}"',
        )
    if not stated or count < 2:
        return ABSENT
    return spec.DistributionSpec(
        policy="round robin" if given["distribution"] == ROUND_ROBIN else "single affinity",
        client_addresses=given["client_addresses"] or ABSENT,
    )


def clients_at(clients: int, addresses: int | None, count: int) -> list[int]:
    """How many clients each endpoint has under single affinity.

    >>> clients_at(20, None, 2), clients_at(20, 1, 2), clients_at(20, 3, 2)
    ([10, 10], [20, 0], [13, 7])
    """
    found = [0] * count
    for client in range(clients):
        found[(client % addresses if addresses else client) % count] += 1
    return found
