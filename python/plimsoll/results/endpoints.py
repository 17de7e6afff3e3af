"""How clients were distributed over the endpoints of servers: sessions, operations, latency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plimsoll.documents.endpoint_figures import DistributionFigures, EndpointFigures
from plimsoll.documents.plan import Plan
from plimsoll.documents.run_spec import (
    MailInstance,
    MailWorkload,
    SessionsLoad,
    StoreClientInstance,
    StoreWorkload,
)
from plimsoll.files.parquet import Query
from plimsoll.results.distributions import quantile_ms
from plimsoll.units import NS_PER_MS
from plimsoll.workloads.distribution import SINGLE_AFFINITY, clients_at
from plimsoll.workloads.mail import fields as mail
from plimsoll.workloads.store import fields as store

Load = MailWorkload | StoreWorkload
Server = MailInstance | StoreClientInstance


def endpoint_figures(plan: Plan, ask: Query) -> list[DistributionFigures]:
    """The figures of every load on every server that has several endpoints."""
    loads = [item for item in plan.run.workloads if isinstance(item, Load)]
    return [
        _figures(load, server, ask)
        for load in loads
        for server in plan.run.instances
        if isinstance(server, Server)
        and server.name in load.instances
        and len(addresses_of(server)) > 1
    ]


def addresses_of(server: Server) -> list[str]:
    """Where the endpoints of a server are, `HOST:PORT` each; none of a file."""
    if isinstance(server, MailInstance):
        return [item.imap for item in server.databases]
    if server.server is None:
        return []
    own = server.server
    places = [(own.host, own.port), *((item.host, item.port) for item in own.endpoints)]
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in places]


def _figures(load: Load, server: Server, ask: Query) -> DistributionFigures:
    stated = (
        server.distribution
        if isinstance(server, MailInstance)
        else server.server and server.server.distribution
    )
    policy = stated.policy if stated else SINGLE_AFFINITY
    addresses = stated.client_addresses if stated else None
    places = addresses_of(server)
    # Arrivals have as many clients as connections were needed, which nobody knows before.
    count = load.load.sessions if isinstance(load.load, SessionsLoad) else None
    clients = None
    if count is not None and len(load.instances) == 1:
        clients = clients_at(count, addresses, len(places))
    operations = list(mail.OPERATIONS if isinstance(load, MailWorkload) else store.OPERATIONS)
    counts = _counts(ask, load.name, server.name, operations)
    buckets = _buckets(ask, load.name, server.name, operations)
    total = sum(item.operations for item in counts.values())
    return DistributionFigures(
        workload=load.name,
        instance=server.name,
        policy=policy,
        addresses=addresses,
        endpoints=[
            _endpoint(
                place,
                clients[number - 1] if clients else None,
                counts.get(number, _Counts()),
                total,
                quantile_ms(buckets.get(number, []), 0.95),
            )
            for number, place in enumerate(places, 1)
        ],
    )


class _Counts(NamedTuple):
    """What the samples hold of an endpoint."""

    operations: int = 0
    total_ns: float = 0.0
    max_ns: int = 0
    sessions: float | None = None
    sessions_max: float | None = None
    connections: int = 0
    refused: int = 0
    moved: int = 0


def _endpoint(
    place: str, clients: int | None, found: _Counts, total: int, ms_p95: float | None
) -> EndpointFigures:
    done = found.operations
    return EndpointFigures(
        endpoint=place,
        clients=clients,
        sessions=None if found.sessions is None else int(found.sessions),
        sessions_max=None if found.sessions_max is None else int(found.sessions_max),
        connections=found.connections,
        refused=found.refused,
        moved=found.moved,
        operations=done,
        share=done / total if total else None,
        ms_mean=found.total_ns / done / NS_PER_MS if done else None,
        ms_p95=ms_p95,
        ms_max=found.max_ns / NS_PER_MS if done else None,
    )


def _counts(
    ask: Query, workload: str, instance: str, operations: Sequence[str]
) -> dict[int, _Counts]:
    """What the samples of the measured phases hold of each endpoint, by its number."""

    def counted(metric: str) -> str:
        only = f"FILTER (WHERE metric = 'endpoint_{metric}')"
        return f"coalesce(sum(count) {only}, 0)::BIGINT AS {metric}"

    is_done = "FILTER (WHERE list_contains($operations, metric))"
    is_level = "FILTER (WHERE metric = 'endpoint_sessions')"
    rows = ask(
        "SELECT database::BIGINT AS number,"
        f" coalesce(sum(count) {is_done}, 0)::BIGINT AS operations,"
        f" coalesce(sum(latency_ns_sum) {is_done}, 0)::DOUBLE AS total_ns,"
        f" coalesce(max(latency_ns_max) {is_done}, 0)::BIGINT AS max_ns,"
        f" arg_max(value, end_ns) {is_level}::DOUBLE AS sessions,"
        f" max(value) {is_level}::DOUBLE AS sessions_max,"
        f" {counted('connections')}, {counted('refused')}, {counted('moved')}"
        " FROM measured WHERE workload = $workload AND instance = $instance GROUP BY database",
        {"workload": workload, "instance": instance, "operations": list(operations)},
    )
    return {row.pop("number"): _Counts(**row) for row in rows}


def _buckets(
    ask: Query, workload: str, instance: str, operations: Sequence[str]
) -> dict[int, list[tuple[int, int]]]:
    """The distribution of what was carried out at each endpoint, by its number."""
    rows = ask(
        "SELECT database::BIGINT AS number, upper_ns::BIGINT AS upper_ns,"
        " sum(count)::BIGINT AS count FROM bucket"
        " WHERE workload = $workload AND instance = $instance"
        " AND list_contains($operations, metric) AND count > 0"
        " AND phase IN (SELECT DISTINCT phase FROM measured)"
        " GROUP BY database, upper_ns ORDER BY upper_ns",
        {"workload": workload, "instance": instance, "operations": list(operations)},
    )
    found: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        found.setdefault(row["number"], []).append((row["upper_ns"], row["count"]))
    return found
