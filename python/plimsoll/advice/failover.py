"""What is left after the loss of one host.

Do the machines fit, and do the surviving servers and arrays carry the load?

Machines of the lost host move to hosts they may run on, largest memory first, each to the host with
the most memory left; the rule of the published tests is that memory must fit and that more virtual
processors than hardware threads are worth a warning (36 GB fitted in 48 GB there, with 22 virtual
processors on 16 threads). Databases whose active copy was on the lost host become active on the
surviving server with the least load. Limits: one host at a time; placement is a plain greedy one,
so "does not fit" means that this placement does not, which no cleverer one is likely to change.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.advice.topology import Entry, Topology


@dataclass(frozen=True)
class HostLoss:
    """What remains after the loss of one host.

    Attributes:
        host: the lost host.
        moved: machines that found another host, with that host.
        stranded: machines that may run elsewhere but fit nowhere.
        memory_fullest_pct: memory use of the fullest surviving host; None when memory is not
            stated.
        vcpus_per_thread_max: virtual processors per hardware thread on the busiest survivor; None
            when not stated.
        active_iops_by_host: database IOPS of each surviving host; None when a database states no
            IOPS.
        active_iops_by_array: likewise for arrays.
    """

    host: str
    moved: dict[str, str]
    stranded: tuple[str, ...]
    memory_fullest_pct: float | None
    vcpus_per_thread_max: float | None
    active_iops_by_host: dict[str, float] | None
    active_iops_by_array: dict[str, float] | None


def host_losses(topology: Topology) -> list[HostLoss]:
    """The loss of each host that others could cover for, in the order of the file."""
    return [
        _loss(topology, host)
        for host in topology.entries("hosts")
        if len(topology.entries("hosts")) > 1
    ]


def _loss(topology: Topology, lost: Entry) -> HostLoss:
    survivors = [host for host in topology.entries("hosts") if host["name"] != lost["name"]]
    free_gb = {host["name"]: host["memory_gb"] for host in survivors}
    vcpus = {host["name"]: 0 for host in survivors}
    for machine in topology.entries("machines"):
        if machine["host"] in vcpus:
            vcpus[machine["host"]] += machine["vcpus"]
            if free_gb[machine["host"]] is not None:
                free_gb[machine["host"]] -= machine["memory_gb"]
    moved: dict[str, str] = {}
    stranded: list[str] = []
    homeless = [
        machine for machine in topology.entries("machines") if machine["host"] == lost["name"]
    ]
    for machine in sorted(homeless, key=lambda machine: (-machine["memory_gb"], machine["name"])):
        places = [name for name in machine["can_run_on"] if name in free_gb]
        known = [name for name in places if free_gb[name] is not None]
        if not places:
            continue
        best = max(known, key=lambda name: (free_gb[name], name)) if known else places[0]
        if known and free_gb[best] < machine["memory_gb"]:
            stranded.append(machine["name"])
            continue
        if known:
            free_gb[best] -= machine["memory_gb"]
        vcpus[best] += machine["vcpus"]
        moved[machine["name"]] = best
    by_host, by_array = _active_iops(topology, lost["name"], moved)
    return HostLoss(
        host=lost["name"],
        moved=moved,
        stranded=tuple(stranded),
        memory_fullest_pct=_fullest_pct(survivors, free_gb),
        vcpus_per_thread_max=max(
            (vcpus[h["name"]] / h["threads"] for h in survivors if h["threads"]), default=None
        ),
        active_iops_by_host=by_host,
        active_iops_by_array=by_array,
    )


def _fullest_pct(survivors: list[Entry], free_gb: dict[str, float | None]) -> float | None:
    shares = [
        (1 - free / host["memory_gb"]) * 100
        for host in survivors
        if host["memory_gb"] and (free := free_gb[host["name"]]) is not None
    ]
    return max(shares, default=None)


def _active_iops(
    topology: Topology, lost: str, moved: dict[str, str]
) -> tuple[dict[str, float] | None, dict[str, float] | None]:
    """Database IOPS of each surviving host and array once every database is active again."""
    databases = topology.entries("databases")
    if not databases or any(database["iops"] is None for database in databases):
        return None, None
    groups, volumes = topology.by_name("disk_groups"), topology.by_name("volumes")
    by_host = {host["name"]: 0.0 for host in topology.entries("hosts") if host["name"] != lost}
    by_array = {array["name"]: 0.0 for array in topology.entries("arrays")}

    def place(copy: Entry) -> str:
        host = topology.host_of(copy["server"])
        return moved.get(copy["server"], "") if host == lost else host

    stays = [
        database
        for database in databases
        if any(copy["active"] and place(copy) for copy in database["copies"])
    ]
    moves = [database for database in databases if database not in stays]
    for database in stays + moves:
        able = [copy for copy in database["copies"] if place(copy)]
        if not able:
            continue
        active = next((copy for copy in able if copy["active"]), None)
        copy = active or min(able, key=lambda copy: (by_host[place(copy)], place(copy)))
        by_host[place(copy)] += database["iops"]
        by_array[groups[volumes[copy["database_volume"]]["disk_group"]]["array"]] += database[
            "iops"
        ]
    return by_host, by_array
