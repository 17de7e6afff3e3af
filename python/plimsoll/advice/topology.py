"""A topology file, read and checked.

Every component by name, and every reference between them resolved.

Names are unique across the file, because links and findings refer to components by name alone; a
port is named `owner.port` (`esx1.nic2`, `array-a.controller-0.port-1` as `array-a.port-1`). Plain
dictionaries keep the content; this module guarantees that each reference leads somewhere, so that
nothing later needs to check.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from plimsoll.advice.topology_fields import TOPOLOGY
from plimsoll.inputs.mistakes import nearest_names
from plimsoll.inputs.schema import READERS, Collector, Given, require_kind
from plimsoll.inputs.toml_lines import KeyPath, LocatedFile, read_located
from plimsoll.sizing.raid import data_drive_count

#: A checked entry of the file: every key that its fields name, as `topology_fields.py` lists them.
Entry = Given

LISTS = (
    "power_feeds",
    "hosts",
    "machines",
    "switches",
    "arrays",
    "disk_groups",
    "volumes",
    "databases",
)

#: Servers of one database availability group; EMC VNXe3300 ESRP report and Dell EqualLogic sizing
#: paper.
SERVERS_PER_GROUP_MAX = 16

#: More than this is no installation one file describes; the analysis of single failures grows with
#: its square.
COMPONENTS_MAX = 5_000


@dataclass(frozen=True)
class Topology:
    """The content of a checked topology file.

    Attributes:
        file_name: the file as the user named it.
        content: every key with its default filled in.
        lines: line of each named component.
    """

    file_name: str
    content: Entry
    lines: dict[str, int]

    def entries(self, kind: str) -> list[Entry]:
        """The entries of one list, such as "hosts"."""
        found: list[Entry] = self.content[kind]
        return found

    def by_name(self, kind: str) -> dict[str, Entry]:
        """The entries of one list by name."""
        return self._indexes[kind]

    @cached_property
    def _indexes(self) -> dict[str, dict[str, Entry]]:
        return {kind: {entry["name"]: entry for entry in self.entries(kind)} for kind in LISTS}

    def host_of(self, server: str) -> str:
        """The host behind a server name: the host itself, or the host a machine runs on."""
        machines = self.by_name("machines")
        return machines[server]["host"] if server in machines else server


def read_topology(path: Path) -> Topology:
    """Read a topology file.

    Raises:
        InputError: with every mistake in it.
    """
    document = read_located(path)
    require_kind(document, ("topology",), READERS)
    return check_topology(document)


def check_topology(document: LocatedFile) -> Topology:
    """Check a parsed topology.

    Raises:
        InputError: with every mistake in it, dangling references included.
    """
    collector = Collector(document)
    content = collector.top(TOPOLOGY)
    for key in (*LISTS, "links"):
        content[key] = content[key] or []
    lines = _unique_names(content, collector)
    _check_references(content, collector)
    collector.raise_if_any()
    return Topology(document.name, content, lines)


def port_names(content: Entry) -> Iterator[tuple[str, KeyPath]]:
    """Every port as `owner.port`, with its key path."""
    for index, host in enumerate(content["hosts"]):
        for number, port in enumerate(host["ports"]):
            yield f"{host['name']}.{port['name']}", ("hosts", index, "ports", number)
    for index, array in enumerate(content["arrays"]):
        for number, controller in enumerate(array["controllers"] or []):
            for place, port in enumerate(controller["ports"] or []):
                yield (
                    f"{array['name']}.{port['name']}",
                    ("arrays", index, "controllers", number, "ports", place),
                )


def _unique_names(content: Entry, collector: Collector) -> dict[str, int]:
    """Note repeated names; return the line of every component."""
    lines: dict[str, int] = {}
    named: list[tuple[str, KeyPath]] = [
        (entry["name"], (kind, index))
        for kind in LISTS
        for index, entry in enumerate(content[kind])
        if entry["name"]
    ]
    named += list(port_names(content))
    for name, path in named:
        line = collector.document.line_of((*path, "name"))
        if name in lines:
            collector.add(
                (*path, "name"),
                f'repeats "{name}", first used on line {lines[name]}',
                "names must differ",
            )
        lines.setdefault(name, line)
    if len(lines) > COMPONENTS_MAX:
        collector.add(
            (), f"describes {len(lines)} components, more than {COMPONENTS_MAX}", "split the design"
        )
    return lines


def _check_references(content: Entry, collector: Collector) -> None:
    """Every name that refers to another component must be one."""
    names = {kind: [entry["name"] for entry in content[kind] if entry["name"]] for kind in LISTS}
    servers = names["hosts"] + names["machines"]

    def check(value: str | None, known: list[str], path: KeyPath, what: str) -> None:
        if value is not None and value not in known:
            hint = nearest_names(value, known) if known else f"the file describes no {what}"
            collector.add(path, f'is "{value}", which is no {what} of this file', hint)

    for kind in ("hosts", "switches", "arrays"):
        for index, entry in enumerate(content[kind]):
            for number, feed in enumerate(entry["power"] or []):
                check(feed, names["power_feeds"], (kind, index, "power", number), "power feed")
    for index, host in enumerate(content["hosts"]):
        ports = [port["name"] for port in host["ports"] if port["name"]]
        for number, virtual in enumerate(host["virtual_switches"]):
            for place, uplink in enumerate(virtual["uplinks"] or []):
                check(
                    uplink,
                    ports,
                    ("hosts", index, "virtual_switches", number, "uplinks", place),
                    "port of the host",
                )
    for index, machine in enumerate(content["machines"]):
        path: KeyPath = ("machines", index)
        check(machine["host"], names["hosts"], (*path, "host"), "host")
        for number, host_name in enumerate(machine["can_run_on"] or []):
            check(host_name, names["hosts"], (*path, "can_run_on", number), "host")
        check(
            machine["system_volume"],
            [*names["volumes"], "local"],
            (*path, "system_volume"),
            "volume",
        )
        host = next((host for host in content["hosts"] if host["name"] == machine["host"]), None)
        virtual_names = (
            [entry["name"] for entry in host["virtual_switches"] if entry["name"]] if host else []
        )
        for number, nic in enumerate(machine["nics"]):
            if host:
                check(
                    nic["virtual_switch"],
                    virtual_names,
                    (*path, "nics", number, "virtual_switch"),
                    "virtual switch of the host",
                )
    _check_storage_references(content, collector, names, servers, check)
    cabled: dict[str, int] = {}
    ends = [name for name, _ in port_names(content)] + names["switches"]
    for index, link in enumerate(content["links"]):
        given = link["between"] or []
        if len(given) > 2:
            collector.add(
                ("links", index, "between"), f"names {len(given)} ends, but a link has two"
            )
        for number, end in enumerate(given):
            cable_path: KeyPath = ("links", index, "between", number)
            check(end, ends, cable_path, "port or switch")
            line = collector.document.line_of(cable_path)
            if end in cabled and end not in names["switches"]:
                collector.add(
                    cable_path,
                    f'is "{end}", which has a cable already on line {cabled[end]}',
                    "a port takes one cable",
                )
            cabled.setdefault(end, line)
    check(content["witness"], servers, ("witness",), "host or machine")


def _check_storage_references(
    content: Entry,
    collector: Collector,
    names: dict[str, list[str]],
    servers: list[str],
    check: Any,
) -> None:
    for index, group in enumerate(content["disk_groups"]):
        path: KeyPath = ("disk_groups", index)
        check(group["array"], names["arrays"], (*path, "array"), "array")
        array = next(
            (array for array in content["arrays"] if array["name"] == group["array"]), None
        )
        if array:
            controllers = [entry["name"] for entry in array["controllers"] or [] if entry["name"]]
            check(
                group["controller"], controllers, (*path, "controller"), "controller of the array"
            )
        if group["raid"] and group["drives"]:
            try:
                data_drive_count(group["raid"], int(group["drives"]))
            except ValueError as error:
                collector.add((*path, "raid"), f"is impossible: {error}")
    for index, volume in enumerate(content["volumes"]):
        check(
            volume["disk_group"],
            names["disk_groups"],
            ("volumes", index, "disk_group"),
            "disk group",
        )
        for number, user in enumerate(volume["used_by"] or []):
            check(user, servers, ("volumes", index, "used_by", number), "host or machine")
    for index, database in enumerate(content["databases"]):
        holders: list[str] = []
        database["copies"] = database["copies"] or []
        for number, copy in enumerate(database["copies"]):
            place: KeyPath = ("databases", index, "copies", number)
            check(copy["server"], servers, (*place, "server"), "host or machine")
            check(copy["database_volume"], names["volumes"], (*place, "database_volume"), "volume")
            check(copy["log_volume"], names["volumes"], (*place, "log_volume"), "volume")
            if copy["server"] in holders:
                collector.add(
                    (*place, "server"),
                    f'is "{copy["server"]}", which already holds a copy',
                    "one copy of a database per server",
                )
            holders.append(copy["server"])
        if sum(copy["active"] for copy in database["copies"]) > 1:
            collector.add(
                ("databases", index, "copies"),
                "has more than one active copy",
                "one copy serves users at a time",
            )
    for group in _server_groups(content):
        if len(group) > SERVERS_PER_GROUP_MAX:
            message = (
                f"tie {len(group)} servers together by shared copies, but a group has at most "
                f"{SERVERS_PER_GROUP_MAX}"
            )
            collector.add(("databases",), message, "make several groups that share no database")


def _server_groups(content: Entry) -> list[set[str]]:
    """Servers that must be in one group, because copies of one database tie them together."""
    groups: list[set[str]] = []
    for database in content["databases"]:
        servers = {copy["server"] for copy in database["copies"]}
        touched = [group for group in groups if group & servers]
        groups = [group for group in groups if not group & servers] + [servers.union(*touched)]
    return groups
