"""Single points of failure: take each component away in turn and see which services stop and which paths are cut.

The topology becomes a graph of ports, switches and controllers; hosts and arrays are the components the ports belong to,
power feeds the components that others depend on. Two questions are asked for every component that can fail alone:
which *services* stop (a database none of whose copies is left, a volume none of whose users can reach it, a network no
host can reach), and which *accesses* are cut (one host to one volume or one network) although both ends still stand.
Limits: one failure at a time; software failures, cabling ducts and buildings are not described; a machine that may run
elsewhere counts as surviving the loss of its host if one of those hosts remains; a link with several cables is one link.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plimsoll.sizing.advice.topology import Entry, Topology


@dataclass(frozen=True)
class Failure:
    """What the loss of one component does.

    Attributes:
        kind: "switch", "power feed", "adapter", "port", "link", "controller", "host", "array" or "disk group".
        name: the component.
        services_lost: services that stop.
        accesses_cut: accesses that are cut while both ends still stand.
        part_of: components that contain this one, whose loss does at least as much: the adapter of a port, the port of a
            link.
    """

    kind: str
    name: str
    services_lost: tuple[str, ...]
    accesses_cut: tuple[str, ...]
    part_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Access:
    """One host that must reach one volume or one network."""

    host: str
    target: str
    is_volume: bool

    @property
    def title(self) -> str:
        """The access in words."""
        return f"{self.host} to {'volume' if self.is_volume else 'the network'} {self.target}"


class Plant:
    """The topology as a graph whose parts can be taken away."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.groups = topology.by_name("disk_groups")
        self.volumes = topology.by_name("volumes")
        self.machines = topology.by_name("machines")
        self._alive: tuple[tuple[str, frozenset[str]], set[str]] = (("", frozenset()), set())
        self.edges: dict[str, set[str]] = {}
        self.owners: dict[str, tuple[str, ...]] = {}
        self.networks: dict[str, frozenset[str]] = {}
        self.feeds = {
            entry["name"]: tuple(entry["power"] or ())
            for kind in ("hosts", "switches", "arrays")
            for entry in topology.entries(kind)
        }
        self._add_hosts()
        self._add_arrays()
        for switch in topology.entries("switches"):
            self.owners[switch["name"]] = (switch["name"],)
            self.networks[switch["name"]] = frozenset(switch["networks"])
        for link in topology.entries("links"):
            first, second = link["between"]
            self.edges.setdefault(first, set()).add(second)
            self.edges.setdefault(second, set()).add(first)
        self.accesses = self._accesses()

    def _add_hosts(self) -> None:
        for host in self.topology.entries("hosts"):
            for port in host["ports"]:
                name = f"{host['name']}.{port['name']}"
                adapter = (f"{host['name']}.{port['adapter']}",) if port["adapter"] else ()
                self.owners[name] = (name, host["name"], *adapter)
                self.networks[name] = frozenset(port["networks"])

    def _add_arrays(self) -> None:
        for array in self.topology.entries("arrays"):
            for controller in array["controllers"]:
                for port in controller["ports"]:
                    name = f"{array['name']}.{port['name']}"
                    self.owners[name] = (name, array["name"], f"{array['name']}.{controller['name']}")
                    self.networks[name] = frozenset({"storage"})

    def _accesses(self) -> list[Access]:
        """Every host-to-volume and host-to-network access the design needs, each once."""
        found: dict[Access, None] = {}
        for volume in self.volumes.values():
            for user in volume["used_by"]:
                found[Access(self.topology.host_of(user), volume["name"], True)] = None
        for database in self.topology.entries("databases"):
            for copy in database["copies"]:
                for volume_name in (copy["database_volume"], copy["log_volume"]):
                    found[Access(self.topology.host_of(copy["server"]), volume_name, True)] = None
        switched = {network for switch in self.topology.entries("switches") for network in switch["networks"]}
        for host in self.topology.entries("hosts"):
            for network in sorted({network for port in host["ports"] for network in port["networks"]} - {"storage"}):
                if network in switched:
                    found[Access(host["name"], network, False)] = None
        return list(found)

    def array_of(self, volume: str) -> str:
        """The array a volume is on."""
        name: str = self.groups[self.volumes[volume]["disk_group"]]["array"]
        return name

    def dead(self, lost: str) -> frozenset[str]:
        """The components that stop with the loss of one: itself, and what has no other power."""
        unpowered = {name for name, feeds in self.feeds.items() if feeds and set(feeds) <= {lost}}
        return frozenset({lost, *unpowered})

    def reaches(self, access: Access, dead: frozenset[str], lost_link: frozenset[str] = frozenset()) -> bool:
        """Whether an access still works; a volume also needs its array and disk group."""
        if access.host in dead:
            return False
        network = "storage" if access.is_volume else access.target
        goal = ""
        if access.is_volume:
            goal = self.array_of(access.target)
            if goal in dead or self.volumes[access.target]["disk_group"] in dead:
                return False
        alive = self._alive_nodes(network, dead)
        pending = [node for node in alive if access.host in self.owners[node]]
        seen = set(pending)
        while pending:
            node = pending.pop()
            if self._arrived(node, goal):
                return True
            for neighbour in self.edges.get(node, ()):
                if neighbour in alive and neighbour not in seen and frozenset({node, neighbour}) != lost_link:
                    seen.add(neighbour)
                    pending.append(neighbour)
        return False

    def _alive_nodes(self, network: str, dead: frozenset[str]) -> set[str]:
        """Ports and switches of a network that still stand; the last answer is kept, as it is asked again and again."""
        if self._alive[0] != (network, dead):
            nodes = {
                node
                for node, owners in self.owners.items()
                if network in self.networks[node] and not dead.intersection(owners)
            }
            self._alive = ((network, dead), nodes)
        return self._alive[1]

    def _arrived(self, node: str, goal: str) -> bool:
        return goal in self.owners[node] if goal else len(self.owners[node]) == 1

    def components(self) -> list[tuple[str, str]]:
        """Everything that can fail alone, as kind and name."""
        topology = self.topology
        found: dict[tuple[str, str], None] = {
            ("power feed", entry["name"]): None for entry in topology.entries("power_feeds")
        }
        found |= {("switch", entry["name"]): None for entry in topology.entries("switches")}
        for host in topology.entries("hosts"):
            found[("host", host["name"])] = None
            for port in host["ports"]:
                if port["adapter"]:
                    found[("adapter", f"{host['name']}.{port['adapter']}")] = None
                found[("port", f"{host['name']}.{port['name']}")] = None
        for array in topology.entries("arrays"):
            found[("array", array["name"])] = None
            for controller in array["controllers"]:
                found[("controller", f"{array['name']}.{controller['name']}")] = None
        found |= {("disk group", entry["name"]): None for entry in topology.entries("disk_groups")}
        return list(found)


def failures(topology: Topology) -> list[Failure]:
    """What the loss of each component does, in the order of the file.

    Accesses that do not work even with everything in place are left out here; `unreachable` lists them.
    """
    plant = Plant(topology)
    whole = {access for access in plant.accesses if plant.reaches(access, frozenset())}
    services = _services(plant, whole, frozenset())
    found = []
    for kind, name in plant.components():
        dead = plant.dead(name)
        working = {access for access in whole if plant.reaches(access, dead)}
        lost = sorted(services - _services(plant, working, dead))
        cut = [
            access.title for access in plant.accesses if access in whole - working and _ends_stand(plant, access, dead)
        ]
        part_of = plant.owners[name][2:] if kind == "port" else ()
        found.append(Failure(kind, name, tuple(lost), tuple(cut), part_of))
    found += [_link_failure(plant, link, whole, services) for link in topology.entries("links")]
    return found


def unreachable(topology: Topology) -> list[str]:
    """Accesses the design needs and the described cabling does not give."""
    plant = Plant(topology)
    return [access.title for access in plant.accesses if not plant.reaches(access, frozenset())]


def _link_failure(plant: Plant, link: Entry, whole: set[Access], services: set[str]) -> Failure:
    ends = frozenset(link["between"])
    name = " - ".join(link["between"])
    part_of = tuple(end for end in link["between"] if len(plant.owners[end]) > 1)
    if link["count"] > 1:
        return Failure("link", name, (), (), part_of)
    working = {access for access in whole if plant.reaches(access, frozenset(), ends)}
    lost = sorted(services - _services(plant, working, frozenset()))
    cut = [access.title for access in plant.accesses if access in whole - working]
    return Failure("link", name, tuple(lost), tuple(cut), part_of)


def _ends_stand(plant: Plant, access: Access, dead: frozenset[str]) -> bool:
    if access.host in dead:
        return False
    if not access.is_volume:
        return True
    return not dead.intersection({plant.array_of(access.target), plant.volumes[access.target]["disk_group"]})


def _services(plant: Plant, working: set[Access], dead: frozenset[str]) -> set[str]:
    """The services that run, given the accesses that work."""
    found: set[str] = set()
    for database in plant.topology.entries("databases"):
        if any(_copy_runs(plant, copy, working, dead) for copy in database["copies"]):
            found.add(f"database {database['name']}")
    for volume in plant.volumes.values():
        for user in volume["used_by"]:
            if _user_runs(plant, user, volume["name"], working, dead):
                found.add(f"volume {volume['name']}")
    for access in working:
        if not access.is_volume:
            found.add(f"the {access.target} network")
    return found


def _copy_runs(plant: Plant, copy: Entry, working: set[Access], dead: frozenset[str]) -> bool:
    needed = (copy["database_volume"], copy["log_volume"])
    return all(_user_runs(plant, copy["server"], volume, working, dead) for volume in needed)


def _user_runs(plant: Plant, user: str, volume: str, working: set[Access], dead: frozenset[str]) -> bool:
    """Whether a host, or a machine on any host it may run on, reaches a volume."""
    machine = plant.machines.get(user)
    hosts: Iterable[str] = (user,) if machine is None else (machine["host"], *machine["can_run_on"])
    return any(
        Access(host, volume, True) in working or plant.reaches(Access(host, volume, True), dead) for host in hosts
    )
