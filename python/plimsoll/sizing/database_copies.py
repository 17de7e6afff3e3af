"""Copies: which server holds which, what fails over where, and what the survivors must carry.

Sources: EMC VNXe3300 report (at most 16 servers in a group); Dell EqualLogic paper, sections 3.4,
4.3, 4.4 and 5.1; PowerVault MD3000i testing (inventory of virtual machines). One server holds at
most one copy of a database. Active copies are dealt out in turn; the further copies of a database
are dealt to varying neighbours, so that the databases of a lost server are shared by all survivors
and not by one.

Limit: failures of single servers are examined one by one; two at a time are not.
"""

from collections.abc import Sequence
from typing import Literal

from plimsoll.inputs.records import dataclass

Layout = Literal["active/active", "active/passive"]


@dataclass(frozen=True)
class Placement:
    """Where the copies of one database live, the active one first, then by activation
    preference.
    """

    database: int
    servers: tuple[int, ...]


@dataclass(frozen=True)
class Failover:
    """What one server carries in normal service and in the worst single failure.

    Attributes:
        active_count: Active databases on each server in normal service.
        passive_count: Passive copies on each server in normal service.
        worst_active_count: Most active databases on any survivor of any single failure.
        worst_failed_server: The failure that leads there; None with a single server.
    """

    active_count: tuple[int, ...]
    passive_count: tuple[int, ...]
    worst_active_count: int
    worst_failed_server: int | None


@dataclass(frozen=True)
class Machine:
    """A virtual machine and where it runs.

    Attributes:
        name: For messages.
        host: The host it runs on in normal service.
        memory_gb: Its memory.
        vcpu_count: Its virtual processors.
        mailbox_role: True for a mailbox server.
        hypervisor_failover: True where the hypervisor moves or restarts it by itself.
    """

    name: str
    host: str
    memory_gb: float
    vcpu_count: int
    mailbox_role: bool = False
    hypervisor_failover: bool = False


@dataclass(frozen=True)
class HostFit:
    """How the machines of a failed host fit on the survivors together with their own."""

    failed_host: str
    memory_need_gb: float
    memory_available_gb: float
    vcpu_count: int
    thread_count: int

    @property
    def memory_fits(self) -> bool:
        """Memory cannot be overcommitted without swapping, so this must hold."""
        return self.memory_need_gb <= self.memory_available_gb

    @property
    def processors_overcommitted(self) -> bool:
        """More virtual processors than hardware threads: allowed, worth a warning."""
        return self.vcpu_count > self.thread_count


def place_copies(
    database_count: int, server_count: int, copy_count: int, layout: Layout
) -> list[Placement]:
    """Deal the copies of all databases out to the servers.

    Args:
        database_count: Databases.
        server_count: Servers in the group.
        copy_count: Copies of each database, the active one included.
        layout: Active copies on all servers in turn, or all on the first.

    Returns:
        One placement for each database.

    Raises:
        ValueError: More copies than servers: two copies of a database would share a server.

    Example:
        >>> [placement.servers for placement in place_copies(3, 3, 2, "active/active")]
        [(0, 1), (1, 2), (2, 0)]
    """
    if copy_count > server_count:
        raise ValueError(f"{copy_count} copies need {copy_count} servers, there are {server_count}")
    neighbours = max(server_count - 1, 1)
    placements = []
    for database in range(database_count):
        spread = layout == "active/active"
        active, turn = (
            (database % server_count, database // server_count) if spread else (0, database)
        )
        others = [
            (active + 1 + (turn + step) % neighbours) % server_count
            for step in range(copy_count - 1)
        ]
        placements.append(Placement(database, (active, *others)))
    return placements


def failover(placements: Sequence[Placement], server_count: int) -> Failover:
    """Fail each server in turn and find the heaviest survivor.

    Each database of the lost server is activated on the holder of a copy that carries the fewest
    active databases, and by activation preference where several carry as few.

    Args:
        placements: Where the copies live.
        server_count: Servers in the group.

    Returns:
        The counts in normal service and the worst case. A database without another copy is down,
        not moved.
    """
    active, passive = [0] * server_count, [0] * server_count
    for placement in placements:
        active[placement.servers[0]] += 1
        for server in placement.servers[1:]:
            passive[server] += 1
    worst, worst_failed = max(active, default=0), None
    for failed in range(server_count if server_count > 1 else 0):
        counts = list(active)
        counts[failed] = 0
        for placement in placements:
            holders = placement.servers[1:]
            if placement.servers[0] == failed and holders:
                counts[
                    min(holders, key=lambda server: (counts[server], holders.index(server)))
                ] += 1
        if max(counts) > worst:
            worst, worst_failed = max(counts), failed
    return Failover(tuple(active), tuple(passive), worst, worst_failed)


def balanced_server_iops(active_iops: float, passive_iops: float, server_count: int) -> float:
    """I/O of each server when active and passive copies are spread evenly (Dell EqualLogic paper,
    section 4.3).

    Example:
        >>> balanced_server_iops(449, 322, 2)
        385.5
    """
    return (active_iops + passive_iops) / server_count


def fit_after_host_loss(
    machines: Sequence[Machine], host_memory_gb: float, host_thread_count: int, failed_host: str
) -> HostFit:
    """Move the machines of a lost host to the survivors and add up (MD3000i testing, degraded
    state).

    Args:
        machines: All machines with their hosts.
        host_memory_gb: Memory of one host.
        host_thread_count: Hardware threads of one host.
        failed_host: The host that is lost.

    Returns:
        Need and supply over all surviving hosts.

    Raises:
        ValueError: No machine runs on another host, so there is no known survivor.
    """
    survivors = {machine.host for machine in machines} - {failed_host}
    if not survivors:
        raise ValueError(f"no host survives the loss of {failed_host}")
    return HostFit(
        failed_host,
        sum(machine.memory_gb for machine in machines),
        host_memory_gb * len(survivors),
        sum(machine.vcpu_count for machine in machines),
        host_thread_count * len(survivors),
    )
