"""Drawings of a topology as SVG: what is cabled to what, what lies on which disks, and where
virtual machines run before and after the loss of a host.

Drawn from the checked topology alone; a drawing shows what the file says and nothing that was not
said. Where machines go after a loss is the placement that the rules judge (`failover.py`).

Limits: columns of boxes and straight links. A topology of hundreds of components becomes a drawing
that nobody reads; beyond `BOXES_MAX` boxes a drawing is left out, with the reason in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from plimsoll.advice.failover import HostLoss, host_losses
from plimsoll.advice.topology import Entry, Topology, read_topology
from plimsoll.inputs.mistakes import InputError
from plimsoll.inputs.schema import Collector
from plimsoll.pages.svg import (
    ALARM,
    ARRAY,
    DISK,
    HOST,
    MACHINE,
    PAPER,
    SPARE,
    SWITCH,
    fitting,
    group,
    line,
    picture,
    rectangle,
    text,
)

BOXES_MAX = 150
GAP, BOX_WIDTH, TITLE_HEIGHT, PORT_HEIGHT, COLUMN = 24.0, 230.0, 44.0, 22.0, 380.0
DISK_SIZE, DISK_GAP, DISKS_IN_ROW = 30.0, 6.0, 16
MACHINES_IN_ROW, MACHINE_WIDTH, MACHINE_HEIGHT = 4, 150.0, 40.0
NICS_SHOWN = 3


@dataclass(frozen=True)
class TopologyDrawing:
    """One drawing.

    Attributes:
        name: of a file, without its ending.
        caption: what it shows, in a sentence.
        svg: the picture; empty where it was left out, which the caption then says.
    """

    name: str
    caption: str
    svg: str


class Box(NamedTuple):
    """A host, a switch or an array; each port with its name and what is said of it."""

    name: str
    detail: str
    ports: list[tuple[str, str]]


def topology_drawings(topology: Topology) -> list[TopologyDrawing]:
    """Every drawing that a topology has something for."""
    found = [_wiring(topology)]
    if topology.entries("machines"):
        found.append(_machines(topology))
        found += [_after_loss(topology, loss) for loss in host_losses(topology)]
    if topology.entries("disk_groups"):
        found.append(_storage(topology))
    return found


def drawings_of_file(
    beside: Path, name: str | None, collector: Collector
) -> tuple[TopologyDrawing, ...]:
    """The drawings of the topology file that another file names by its key `topology`.

    Args:
        beside: the file that names it.
        name: as it is written there; None where it is not.
        collector: is told what is wrong in it, as mistakes of that key.
    """
    if name is None:
        return ()
    try:
        return tuple(topology_drawings(read_topology(beside.parent / name)))
    except InputError as error:
        for mistake in error.mistakes:
            text = mistake.render(error.file_name).replace("\n", " ")
            collector.add(("topology",), f"cannot be drawn: {text}")
        return ()


def _left_out(name: str, what: str, count: int) -> TopologyDrawing:
    return TopologyDrawing(
        name, f"{what}: not drawn, because it would have {count} boxes, more than {BOXES_MAX}", ""
    )


def _wiring(topology: Topology) -> TopologyDrawing:
    """Hosts with their ports, switches, arrays with their controllers' ports, and every link."""
    what = f"{topology.content['name']}: hosts, switches and arrays with their ports and cables"
    columns: list[list[Box]] = [
        [_host_box(host) for host in topology.entries("hosts")],
        [
            Box(switch["name"], ", ".join(switch["networks"]), [])
            for switch in topology.entries("switches")
        ],
        [_array_box(array) for array in topology.entries("arrays")],
    ]
    kinds = [("host", HOST), ("switch", SWITCH), ("array", ARRAY)]
    present = [(boxes, kind) for boxes, kind in zip(columns, kinds, strict=True) if boxes]
    count = sum(len(boxes) for boxes, _ in present)
    if count > BOXES_MAX:
        return _left_out("wiring", what, count)
    heights = [sum(_height(ports) + GAP for _, _, ports in boxes) for boxes, _ in present]
    height = max(heights) + GAP
    places: dict[str, tuple[float, float]] = {}
    drawn: list[str] = []
    for number, ((boxes, (kind, fill)), filled) in enumerate(zip(present, heights, strict=True)):
        x, y = GAP + number * COLUMN, (height - filled + GAP) / 2
        for name, detail, ports in boxes:
            places[name] = (x, y + _height(ports) / 2)
            parts = [rectangle(x, y, BOX_WIDTH, _height(ports), fill), *_titled(x, y, name, detail)]
            for index, (port, words) in enumerate(ports):
                top = y + TITLE_HEIGHT + index * PORT_HEIGHT
                places[f"{name}.{port}"] = (x, top + PORT_HEIGHT / 2)
                parts.append(rectangle(x + 8, top, BOX_WIDTH - 16, PORT_HEIGHT - 4, PAPER))
                parts.append(
                    text(x + 14, top + 13, fitting(words, BOX_WIDTH - 30, 10), 10, "start")
                )
            drawn.append(group(kind, parts))
            y += _height(ports) + GAP
    links = [part for link in topology.entries("links") for part in _cables(link, places)]
    width = 2 * GAP + (len(present) - 1) * COLUMN + BOX_WIDTH
    return TopologyDrawing("wiring", what, picture(width, height, what, [*links, *drawn]))


def _height(ports: Sequence[tuple[str, str]]) -> float:
    return TITLE_HEIGHT + len(ports) * PORT_HEIGHT + (6 if ports else 0)


def _titled(x: float, y: float, name: str, detail: str, width: float = BOX_WIDTH) -> Iterator[str]:
    yield text(x + width / 2, y + 18, fitting(name, width - 10, 13), 13, weight="bold")
    if detail:
        yield text(x + width / 2, y + 34, fitting(detail, width - 10, 10), 10)


def _host_box(host: Entry) -> Box:
    words = [
        f"{host['memory_gb']:g} GB" if host["memory_gb"] else "",
        f"{host['threads']} threads" if host["threads"] else "",
        host["hypervisor"] if host["hypervisor"] != "none" else "",
    ]
    ports = [(port["name"], _port(port)) for port in host["ports"]]
    return Box(host["name"], ", ".join(word for word in words if word), ports)


def _array_box(array: Entry) -> Box:
    ports = [
        (port["name"], f"{controller['name']}: {_port(port)}")
        for controller in array["controllers"]
        for port in controller["ports"]
    ]
    detail = array["model"] or f"{len(array['controllers'])} controllers"
    return Box(array["name"], detail, ports)


def _port(port: Entry) -> str:
    speed = f"{port['speed_gbit_per_s']:g} Gbit/s" if port["speed_gbit_per_s"] else ""
    networks = "+".join(port.get("networks") or ())
    return ", ".join(word for word in (port["name"], networks, speed) if word)


def _cables(link: Entry, places: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    (ax, ay), (bx, by) = sorted(places[end] for end in link["between"])
    if ax == bx:
        # Two switches, or two hosts back to back: beside their column.
        yield line((ax + BOX_WIDTH / 2, ay), (bx + BOX_WIDTH / 2, by))
        return
    for number in range(link["count"]):
        shift = (number - (link["count"] - 1) / 2) * 4
        yield line((ax + BOX_WIDTH, ay + shift), (bx, by + shift))


def _machines(topology: Topology) -> TopologyDrawing:
    """Each host with its virtual switches, their uplinks, and its machines with their NICs."""
    what = f"{topology.content['name']}: virtual machines, virtual switches and NICs of each host"
    homes = {machine["name"]: machine["host"] for machine in topology.entries("machines")}
    return _hosts(topology, "machines", what, homes, {}, lost="")


def _after_loss(topology: Topology, loss: HostLoss) -> TopologyDrawing:
    """Where every machine runs once a host is lost."""
    homes = {
        machine["name"]: machine["host"]
        for machine in topology.entries("machines")
        if machine["host"] != loss.host
    }
    moved = dict(loss.moved)
    gone = [
        machine["name"]
        for machine in topology.entries("machines")
        if machine["name"] not in homes and machine["name"] not in moved
    ]
    what = f"After the loss of {loss.host}: {len(moved)} machines moved"
    if gone:
        what += f", {len(gone)} have nowhere to go ({', '.join(gone[:4])}"
        what += f" and {len(gone) - 4} more)" if len(gone) > 4 else ")"
    return _hosts(topology, f"after-{loss.host}", what, homes | moved, moved, lost=loss.host)


def _hosts(
    topology: Topology,
    name: str,
    what: str,
    homes: Mapping[str, str],
    moved: Mapping[str, str],
    lost: str,
) -> TopologyDrawing:
    hosts, machines = topology.entries("hosts"), topology.by_name("machines")
    if len(hosts) + len(machines) > BOXES_MAX:
        return _left_out(name, what, len(hosts) + len(machines))
    width = 2 * GAP + MACHINES_IN_ROW * (MACHINE_WIDTH + 10) + 10
    parts: list[str] = []
    y = GAP
    for host in hosts:
        inside = [machines[key] for key, home in homes.items() if home == host["name"]]
        rows = -(-len(inside) // MACHINES_IN_ROW) if host["name"] != lost else 0
        switches = [] if host["name"] == lost else host["virtual_switches"]
        height = TITLE_HEIGHT + len(switches) * PORT_HEIGHT + rows * (MACHINE_HEIGHT + 8) + 8
        is_lost = host["name"] == lost
        detail = "lost" if is_lost else _load_of(host, inside)
        box = [
            rectangle(GAP, y, width - 2 * GAP, height, ALARM if is_lost else HOST, dashed=is_lost),
            *_titled(GAP, y, host["name"], detail, width - 2 * GAP),
        ]
        top = y + TITLE_HEIGHT
        for switch in switches:
            words = (
                f"{switch['name']}: {'+'.join(switch['networks'])}, uplinks "
                f"{', '.join(switch['uplinks']) or 'none'}"
            )
            box.append(rectangle(GAP + 8, top, width - 2 * GAP - 16, PORT_HEIGHT - 4, SWITCH))
            box.append(text(GAP + 14, top + 13, fitting(words, width - 80, 10), 10, "start"))
            top += PORT_HEIGHT
        for index, machine in enumerate(inside):
            row, column = divmod(index, MACHINES_IN_ROW)
            box.append(
                _machine(
                    machine,
                    GAP + 10 + column * (MACHINE_WIDTH + 10),
                    top + row * (MACHINE_HEIGHT + 8),
                    is_moved=machine["name"] in moved,
                )
            )
        parts.append(group("lost" if is_lost else "host", box))
        y += height + GAP
    return TopologyDrawing(name, what, picture(width, y, what, parts))


def _load_of(host: Entry, inside: Sequence[Entry]) -> str:
    """How full a host is of these machines."""
    memory = sum(machine["memory_gb"] for machine in inside)
    vcpus = sum(machine["vcpus"] for machine in inside)
    of_memory = f" of {host['memory_gb']:g}" if host["memory_gb"] else ""
    of_threads = f" on {host['threads']} threads" if host["threads"] else ""
    return (
        f"{len(inside)} machines, {memory:g}{of_memory} GB of memory, {vcpus} virtual processors"
        f"{of_threads}"
    )


def _machine(machine: Entry, x: float, y: float, *, is_moved: bool) -> str:
    nics = [nic["virtual_switch"] or nic["name"] for nic in machine["nics"]][:NICS_SHOWN]
    words = f"{machine['memory_gb']:g} GB, {machine['vcpus']} vCPU"
    words += f"; {', '.join(nics)}" if nics else ""
    parts = [
        rectangle(x, y, MACHINE_WIDTH, MACHINE_HEIGHT, SPARE if is_moved else MACHINE),
        text(
            x + MACHINE_WIDTH / 2,
            y + 16,
            fitting(machine["name"] + (" (moved)" if is_moved else ""), MACHINE_WIDTH - 8, 11),
            11,
            weight="bold",
        ),
        text(x + MACHINE_WIDTH / 2, y + 31, fitting(words, MACHINE_WIDTH - 8, 9), 9),
    ]
    return group("moved machine" if is_moved else "machine", parts)


def _storage(topology: Topology) -> TopologyDrawing:
    """Every disk of every group, and the volumes on them with who uses them."""
    what = f"{topology.content['name']}: disk groups, their disks, and the volumes on them"
    groups = topology.entries("disk_groups")
    count = sum(int(entry["drives"]) for entry in groups)
    width = 2 * GAP + DISKS_IN_ROW * (DISK_SIZE + DISK_GAP) + 20
    if count > 20 * BOXES_MAX:
        return _left_out("storage", what, count)
    users = _users_of_volumes(topology)
    parts: list[str] = []
    y = GAP
    for entry in groups:
        owner = f", {entry['controller']}" if entry["controller"] else ""
        kind = f", {entry['drive_class']}" if entry["drive_class"] else ""
        title = f"{entry['array']}: {entry['name']}, {entry['raid']}{kind}{owner}"
        parts.append(text(GAP, y + 12, fitting(title, width - 2 * GAP, 13), 13, "start", "bold"))
        y += 20
        for number in range(int(entry["drives"])):
            row, column = divmod(number, DISKS_IN_ROW)
            x, top = GAP + column * (DISK_SIZE + DISK_GAP), y + row * (DISK_SIZE + DISK_GAP)
            shape = rectangle(x, top, DISK_SIZE, DISK_SIZE, DISK)
            label = text(x + DISK_SIZE / 2, top + DISK_SIZE / 2 + 4, str(number + 1), 10)
            parts.append(group("disk", [shape, label]))
        y += -(-int(entry["drives"]) // DISKS_IN_ROW) * (DISK_SIZE + DISK_GAP) + 4
        for volume in topology.entries("volumes"):
            if volume["disk_group"] != entry["name"]:
                continue
            size = f", {volume['size_gb']:g} GB" if volume["size_gb"] else ""
            words = (
                f"{volume['name']} ({volume['use']}{size}): {users.get(volume['name'], 'unused')}"
            )
            box = rectangle(GAP, y, width - 2 * GAP, 24, PAPER)
            label = text(GAP + 8, y + 16, fitting(words, width - 2 * GAP - 16, 11), 11, "start")
            parts.append(group("volume", [box, label]))
            y += 28
        y += GAP / 2
    for array in topology.entries("arrays"):
        if array["hot_spares"]:
            words = f"{array['name']}: {array['hot_spares']} hot spares"
            parts.append(group("spares", [text(GAP, y + 12, words, 12, "start")]))
            y += 22
    return TopologyDrawing("storage", what, picture(width, y + GAP / 2, what, parts))


def _users_of_volumes(topology: Topology) -> dict[str, str]:
    """Who uses each volume: hosts, machines, and databases with their logs."""
    found: dict[str, list[str]] = {
        volume["name"]: list(volume["used_by"]) for volume in topology.entries("volumes")
    }
    for database in topology.entries("databases"):
        for copy in database["copies"]:
            word = "active copy" if copy["active"] else "copy"
            found[copy["database_volume"]].append(f"{database['name']}, {word} on {copy['server']}")
            if copy["log_volume"] != copy["database_volume"]:
                found[copy["log_volume"]].append(f"logs of {database['name']}")
    return {name: "; ".join(users) for name, users in found.items() if users}
