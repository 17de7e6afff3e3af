"""Single points of failure.

Take each component away in turn and see which services stop and which paths are cut.

The topology becomes a graph of ports, switches and controllers; hosts and arrays are the components
the ports belong to, power feeds the components that others depend on. Two questions are asked for
every component that can fail alone: which *services* stop (a database none of whose copies is left,
a volume none of whose users can reach it, a network no host can reach), and which *accesses* are
cut (one host to one volume or one network) although both ends still stand. Limits: one failure at a
time; software failures, cabling ducts and buildings are not described; a machine that may run
elsewhere counts as surviving the loss of its host if one of those hosts remains; a link with
several cables does not fail as a whole. A port takes one cable and passes nothing on, so its loss
divides nothing else; only where a switch or a cable between switches is lost is the graph walked
again, so that large installations are answered quickly, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plimsoll.advice.topology import Entry, Topology


@dataclass(frozen=True)
class Failure:
    """What the loss of one component does.

    Attributes:
        kind: "switch", "power feed", "adapter", "port", "link", "controller", "host", "array" or
            "disk group".
        name: the component.
        services_lost: services that stop.
        accesses_cut: accesses that are cut while both ends still stand.
        part_of: components that contain this one, whose loss does at least as much: the adapter of
            a port, the port of a link.
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
    """The topology as a graph of ports and switches, with the owners each of them depends on."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.groups = topology.by_name("disk_groups")
        self.volumes = topology.by_name("volumes")
        self.machines = topology.by_name("machines")
        self.edges: dict[str, set[str]] = {}
        self.owners: dict[str, tuple[str, ...]] = {}
        self.networks: dict[str, frozenset[str]] = {}
        self.ports: dict[str, list[str]] = {}
        self.feeds = {
            entry["name"]: tuple(entry["power"] or ())
            for kind in ("hosts", "switches", "arrays")
            for entry in topology.entries(kind)
        }
        self._add_ports()
        for switch in topology.entries("switches"):
            self.owners[switch["name"]] = (switch["name"],)
            self.networks[switch["name"]] = frozenset(switch["networks"])
        for link in topology.entries("links"):
            first, second = link["between"]
            self.edges.setdefault(first, set()).add(second)
            self.edges.setdefault(second, set()).add(first)
        self.accesses = self._accesses()
        self.accesses_by_end: dict[str, list[Access]] = {}
        for access in self.accesses:
            for end in self.ends_of(access):
                self.accesses_by_end.setdefault(end, []).append(access)

    def _add_ports(self) -> None:
        """Every port with its owners: itself, its host or array, and its adapter or controller."""
        for host in self.topology.entries("hosts"):
            for port in host["ports"]:
                adapter = (f"{host['name']}.{port['adapter']}",) if port["adapter"] else ()
                self._add_port(host["name"], port["name"], adapter, frozenset(port["networks"]))
        for array in self.topology.entries("arrays"):
            for controller in array["controllers"]:
                for port in controller["ports"]:
                    card = (f"{array['name']}.{controller['name']}",)
                    self._add_port(array["name"], port["name"], card, frozenset({"storage"}))

    def _add_port(
        self, owner: str, port: str, card: tuple[str, ...], networks: frozenset[str]
    ) -> None:
        name = f"{owner}.{port}"
        self.owners[name] = (name, owner, *card)
        self.networks[name] = networks
        self.ports.setdefault(owner, []).append(name)

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
        switched = {
            network
            for switch in self.topology.entries("switches")
            for network in switch["networks"]
        }
        for host in self.topology.entries("hosts"):
            for network in sorted(
                {network for port in host["ports"] for network in port["networks"]} - {"storage"}
            ):
                if network in switched:
                    found[Access(host["name"], network, False)] = None
        return list(found)

    def array_of(self, volume: str) -> str:
        """The array a volume is on."""
        name: str = self.groups[self.volumes[volume]["disk_group"]]["array"]
        return name

    def ends_of(self, access: Access) -> tuple[str, ...]:
        """What an access needs besides a path.

        Its host and, for a volume, the array and disk group.
        """
        if not access.is_volume:
            return (access.host,)
        return (
            access.host,
            self.array_of(access.target),
            self.volumes[access.target]["disk_group"],
        )

    def dead(self, lost: str) -> frozenset[str]:
        """The components that stop with the loss of one: itself, and what has no other power."""
        unpowered = {name for name, feeds in self.feeds.items() if feeds and set(feeds) <= {lost}}
        return frozenset({lost, *unpowered})

    def islands(
        self, network: str, dead: frozenset[str], cut: frozenset[str] = frozenset()
    ) -> dict[str, int]:
        """Which ports and switches of a network hang together: the number of its island by node."""
        island: dict[str, int] = {}
        for start, networks in self.networks.items():
            if start in island or network not in networks or dead.intersection(self.owners[start]):
                continue
            pending = [start]
            island[start] = number = len(island)
            while pending:
                node = pending.pop()
                for next_node in self.edges.get(node, ()):
                    usable = network in self.networks[next_node] and next_node not in island
                    if (
                        usable
                        and {node, next_node} != cut
                        and not dead.intersection(self.owners[next_node])
                    ):
                        island[next_node] = number
                        pending.append(next_node)
        return island

    def components(self) -> list[tuple[str, str]]:
        """Everything that can fail alone, links aside, as kind and name."""
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


class View:
    """The plant with some components dead, or one cable cut: what can be reached in it."""

    def __init__(
        self, plant: Plant, dead: frozenset[str] = frozenset(), cut: frozenset[str] = frozenset()
    ) -> None:
        self.plant = plant
        self.dead = dead
        self.cut = cut
        self.walked: View = self
        self.islands: dict[str, dict[str, int]] = {}
        self.affected: list[Access] = plant.accesses

    @classmethod
    def after(cls, whole: View, dead: frozenset[str], cut: frozenset[str]) -> View:
        """The view after a loss; where it divides nothing, the islands stay and few accesses are
        affected.
        """
        plant = whole.plant
        view = cls(plant, dead, cut)
        nodes = {
            node
            for name in dead
            for node in (name, *plant.ports.get(name, ()))
            if node in plant.owners
        }
        nodes |= {node for node, owners in plant.owners.items() if dead.intersection(owners[2:])}
        if not cut and all(len(plant.owners[node]) > 1 for node in nodes):
            view.walked = whole
            touched = {*dead, *(owner for node in nodes for owner in plant.owners[node][1:2])}
            found = (
                access for name in sorted(touched) for access in plant.accesses_by_end.get(name, ())
            )
            view.affected = list(dict.fromkeys(found))
        return view

    def reaches(self, access: Access) -> bool:
        """Whether an access works in this view."""
        plant = self.plant
        ends = plant.ends_of(access)
        if self.dead.intersection(ends):
            return False
        network = "storage" if access.is_volume else access.target
        island = self.walked.island_of(network)
        mine = {
            island[port] for port in self._alive(plant.ports.get(access.host, ())) if port in island
        }
        goals = plant.ports.get(ends[1], ()) if access.is_volume else self._switches(network)
        return any(island[goal] in mine for goal in self._alive(goals) if goal in island)

    def island_of(self, network: str) -> dict[str, int]:
        """The islands of a network in this view, walked when first asked for."""
        if network not in self.islands:
            self.islands[network] = self.plant.islands(network, self.dead, self.cut)
        return self.islands[network]

    def _alive(self, nodes: Iterable[str]) -> Iterable[str]:
        return (node for node in nodes if not self.dead.intersection(self.plant.owners[node]))

    def _switches(self, network: str) -> list[str]:
        switches = self.plant.topology.entries("switches")
        return [switch["name"] for switch in switches if network in switch["networks"]]


def failures(topology: Topology) -> list[Failure]:
    """What the loss of each component and each single cable does, in the order of the file.

    Accesses that do not work even with everything in place are left out here; `unreachable` lists
    them.
    """
    plant = Plant(topology)
    whole = View(plant)
    working = {access for access in plant.accesses if whole.reaches(access)}
    services = _services(whole, working)
    found = []
    for kind, name in plant.components():
        part_of = plant.owners[name][2:] if kind == "port" else ()
        view = View.after(whole, plant.dead(name), frozenset())
        found.append(_failure(kind, name, part_of, view, working, services))
    for link in topology.entries("links"):
        ends: list[str] = link["between"]
        ports = tuple(end for end in ends if len(plant.owners[end]) > 1)
        dead, cut = (frozenset(ports[:1]), frozenset()) if ports else (frozenset(), frozenset(ends))
        name = " - ".join(ends)
        if link["count"] > 1:
            found.append(Failure("link", name, (), (), ports))
        else:
            found.append(
                _failure("link", name, ports, View.after(whole, dead, cut), working, services)
            )
    return found


def unreachable(topology: Topology) -> list[str]:
    """Accesses the design needs and the described cabling does not give."""
    whole = View(Plant(topology))
    return [access.title for access in whole.plant.accesses if not whole.reaches(access)]


def _failure(
    kind: str,
    name: str,
    part_of: tuple[str, ...],
    view: View,
    working: set[Access],
    services: set[str],
) -> Failure:
    """Compare a view with the whole."""
    plant = view.plant
    stopped = [access for access in view.affected if access in working and not view.reaches(access)]
    if not stopped:
        return Failure(kind, name, (), (), part_of)
    lost = services - _services(view, working.difference(stopped))
    cut = [access.title for access in stopped if not view.dead.intersection(plant.ends_of(access))]
    return Failure(kind, name, tuple(sorted(lost)), tuple(cut), part_of)


def _services(view: View, working: set[Access]) -> set[str]:
    """The services that run, given the accesses that work."""
    topology = view.plant.topology
    found: set[str] = set()
    for database in topology.entries("databases"):
        for copy in database["copies"]:
            needed = (copy["database_volume"], copy["log_volume"])
            if all(_user_runs(view, copy["server"], volume, working) for volume in needed):
                found.add(f"database {database['name']}")
    for volume in topology.entries("volumes"):
        if any(_user_runs(view, user, volume["name"], working) for user in volume["used_by"]):
            found.add(f"volume {volume['name']}")
    found |= {f"the {access.target} network" for access in working if not access.is_volume}
    return found


def _user_runs(view: View, user: str, volume: str, working: set[Access]) -> bool:
    """Whether a host, or a machine on any host it may run on, reaches a volume."""
    machine: Entry | None = view.plant.machines.get(user)
    hosts = (user,) if machine is None else (machine["host"], *machine["can_run_on"])
    accesses = [Access(host, volume, True) for host in hosts]
    return any(access in working or view.reaches(access) for access in accesses)
