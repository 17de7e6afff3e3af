"""The facts rules may refer to, drawn from a topology.

One subject per component, failure, network and lost host.

A fact exists only where the file states what it rests on; every key left out of the file leaves its
facts out here. Names ending in `_count` that have a list beside them (without the ending) bring
that list into the evidence.
"""

from __future__ import annotations

from plimsoll.advice.engine import Subject
from plimsoll.advice.failover import HostLoss, host_losses
from plimsoll.advice.failures import Failure, failures, unreachable
from plimsoll.advice.rules import SCOPES
from plimsoll.advice.stated import Facts, all_stated, is_stated, known, listed, lowest
from plimsoll.advice.storage_facts import (
    array_facts,
    data_groups,
    database_facts,
    disk_group_facts,
    volume_facts,
)
from plimsoll.advice.topology import Entry, Topology

#: The scopes a topology describes, also where it has no entry in them.
DESCRIBED = frozenset(scope for scope, inputs in SCOPES.items() if "a topology" in inputs)
JUMBO_MTU_BYTES = 9000

#: The key to write for a fact that is missing, where it has another name.
KEYS_BEHIND = {
    "active_databases_max": "copies of a database with active = true",
    "backup_elsewhere_count": "[[backups]]",
    "backup_stated": "[[backups]]",
    "frame_sizes_agree": "mtu_bytes on every port and switch",
    "groups_per_controller_max": "controller of each disk group",
    "groups_per_controller_min": "controller of each disk group",
    "hypervisor_features_count": "hypervisor_features",
    "memory_fullest_pct": "memory_gb of the hosts",
    "misaligned_bytes": "partition_offset_bytes",
    "overloaded_arrays_count": "iops of the databases and iops_max of the arrays",
    "overloaded_hosts_count": "iops of the databases and iops_max of the hosts",
    "port_count": "ports",
    "power_feed_count": "power",
    "stations_below_jumbo_count": "mtu_bytes on every port and switch",
    "storage_bandwidth_after_port_loss_mb_per_s": "speed_gbit_per_s of the ports",
    "storage_flow_control": "flow_control of the storage ports",
    "storage_nic_offload": "offload of the storage nics",
    "storage_nics_not_vmxnet3_count": "adapter of the storage nics",
    "storage_uplink_count": "virtual_switch of the nics",
    "storage_vlan_separate": "vlan of every port",
    "system_disk_on_data_drives": "system_volume",
    "vcpus_per_thread_max": "threads of the hosts",
    "votes_odd": "witness",
}


def topology_subjects(topology: Topology) -> list[Subject]:
    """Every subject of a topology, in the order of the file."""
    lost = failures(topology)
    found: list[tuple[str, str, Facts]] = [
        ("design", topology.content["name"], _design(topology, lost))
    ]
    for host in topology.entries("hosts"):
        found.append(("host", host["name"], _host(topology, host)))
        found += [
            ("virtual_switch", f"{host['name']}.{virtual['name']}", _virtual_switch(virtual, host))
            for virtual in host["virtual_switches"]
        ]
    found += [
        ("machine", machine["name"], _machine(topology, machine))
        for machine in topology.entries("machines")
    ]
    found += [
        ("switch", switch["name"], _switch(topology, switch))
        for switch in topology.entries("switches")
    ]
    found += [
        ("array", array["name"], array_facts(topology, array))
        for array in topology.entries("arrays")
    ]
    found += [
        ("disk_group", group["name"], disk_group_facts(topology, group))
        for group in topology.entries("disk_groups")
    ]
    found += [
        ("volume", volume["name"], volume_facts(topology, volume))
        for volume in topology.entries("volumes")
    ]
    found += [
        ("database", entry["name"], database_facts(topology, entry))
        for entry in topology.entries("databases")
    ]
    found += [("network", name, facts) for name, facts in _networks(topology)]
    found += [
        ("host_loss", f"loss of {loss.host}", _host_loss(topology, loss))
        for loss in host_losses(topology)
    ]
    found += [
        (
            "component",
            failure.name,
            listed("services_lost", failure.services_lost)
            | listed("accesses_cut", failure.accesses_cut)
            | {"kind": failure.kind, "part_of_count": len(failure.part_of)},
        )
        for failure in lost
    ]
    return [
        Subject(scope, name, known(facts), topology.file_name, _line(topology, name))
        for scope, name, facts in found
    ]


def _line(topology: Topology, name: str) -> int:
    """The line of the component a subject is named after."""
    for candidate in (
        name,
        name.removeprefix("loss of "),
        name.split(".")[0],
        name.split(" - ")[0],
    ):
        if candidate in topology.lines:
            return topology.lines[candidate]
    return 0


def _design(topology: Topology, lost: list[Failure]) -> Facts:
    content = topology.content
    databases, backups = topology.entries("databases"), content["backups"]
    active: dict[str, int] = {
        copy["server"]: 0 for database in databases for copy in database["copies"]
    }
    for database in databases:
        for copy in database["copies"]:
            active[copy["server"]] += copy["active"]
    copies_max = max((len(database["copies"]) for database in databases), default=0)
    members = len(active)
    return {
        "application": content["application"],
        "database_count": len(databases),
        "copies_max": copies_max,
        "server_count": members,
        "active_databases_max": max(active.values(), default=None),
        "active_databases_min": min(active.values(), default=None),
        "active_databases": [f"{server}: {count}" for server, count in active.items()],
        "array_count": len(topology.entries("arrays")),
        "array_port_count": sum(
            len(c["ports"]) for array in topology.entries("arrays") for c in array["controllers"]
        ),
        "backup_stated": None if backups is None else True,
        "backup_elsewhere_count": None
        if backups is None
        else sum(entry["target"] == "elsewhere" for entry in backups),
        "backup_interval_h_min": min(
            (entry["interval_h"] for entry in backups or []), default=None
        ),
        "votes_odd": (members + bool(content["witness"] or content["quorum_disk"])) % 2 == 1
        if members > 1
        else None,
        "storage_host_count": sum(
            bool(_ports(host, "storage")) for host in topology.entries("hosts")
        ),
        **listed("accesses_without_path", unreachable(topology)),
        **listed(
            "single_points_of_failure",
            [f"{f.kind} {f.name}" for f in lost if f.services_lost and not f.part_of],
        ),
        **listed(
            "cut_points", [f"{f.kind} {f.name}" for f in lost if f.accesses_cut and not f.part_of]
        ),
    }


def _ports(host: Entry, network: str) -> list[Entry]:
    return [port for port in host["ports"] if network in port["networks"]]


def _host(topology: Topology, host: Entry) -> Facts:
    storage, client = _ports(host, "storage"), _ports(host, "client")
    shared = [port["name"] for port in storage if len(port["networks"]) > 1]
    adapters = {port["adapter"] for port in storage}
    members = {
        topology.host_of(c["server"]) for d in topology.entries("databases") for c in d["copies"]
    }
    speeds = [port["speed_gbit_per_s"] for port in storage]
    bandwidth = None if None in speeds or not speeds else sum(speeds) * 1000 / 8
    slowest_left = None if bandwidth is None else bandwidth - max(speeds) * 1000 / 8
    replication = _ports(host, "replication")
    return {
        "hypervisor": host["hypervisor"],
        "initiator": host["initiator"],
        "vendor_multipath": host["vendor_multipath"],
        "sessions_per_array_port": host["sessions_per_array_port"],
        "port_count": len(host["ports"]),
        "uses_storage": bool(storage),
        "storage_port_count": len(storage),
        "storage_ports": [port["name"] for port in storage],
        "storage_adapter_count": None if None in adapters else len(adapters),
        "client_port_count": len(client),
        "heartbeat_port_count": len(_ports(host, "heartbeat")),
        "replication_port_count": len(replication),
        "replication_own_port_count": sum(
            set(port["networks"]) <= {"replication", "heartbeat"} for port in replication
        ),
        "holds_copies": host["name"] in members,
        "replicates": any(
            len(d["copies"]) > 1
            and host["name"] in {topology.host_of(c["server"]) for c in d["copies"]}
            for d in topology.entries("databases")
        ),
        "hosts_total": len(topology.entries("hosts")),
        "storage_flow_control": all_stated(storage, "flow_control"),
        "storage_mtu_bytes_min": lowest(storage, "mtu_bytes")
        if is_stated(storage, "mtu_bytes")
        else None,
        "storage_bandwidth_mb_per_s": bandwidth,
        "storage_bandwidth_after_port_loss_mb_per_s": slowest_left,
        "storage_demand_mb_per_s": host["storage_demand_mb_per_s"],
        "storage_vlan_separate": _storage_vlan_separate(host),
        "power_feed_count": None if host["power"] is None else len(set(host["power"])),
        "virtual_switch_count": len(host["virtual_switches"]),
        "jumbo_frames_wanted": topology.content["jumbo_frames_wanted"],
        **listed("shared_storage_ports", shared),
        **listed("mixed_virtual_switches", _mixed_virtual_switches(host)),
    }


def _storage_vlan_separate(host: Entry) -> bool | None:
    """Whether storage has VLANs of its own; None unless every port states its VLAN."""
    if not is_stated(host["ports"], "vlan"):
        return None
    storage = {port["vlan"] for port in host["ports"] if "storage" in port["networks"]}
    others = {port["vlan"] for port in host["ports"] if set(port["networks"]) - {"storage"}}
    return not storage & others


def _mixed_virtual_switches(host: Entry) -> list[str]:
    """Virtual switches that carry storage together with something else, or share an uplink with one
    that does not.
    """
    mixed = [
        v["name"]
        for v in host["virtual_switches"]
        if "storage" in v["networks"] and len(v["networks"]) > 1
    ]
    uplinks: dict[str, list[Entry]] = {}
    for virtual in host["virtual_switches"]:
        for uplink in virtual["uplinks"]:
            uplinks.setdefault(uplink, []).append(virtual)
    for sharing in uplinks.values():
        purposes = {("storage" in virtual["networks"], virtual["initiator"]) for virtual in sharing}
        if len(purposes) > 1:
            mixed += [virtual["name"] for virtual in sharing]
    return sorted(set(mixed))


def _virtual_switch(virtual: Entry, host: Entry) -> Facts:
    return {
        "networks": virtual["networks"],
        "uplink_count": len(set(virtual["uplinks"])),
        "uplinks": virtual["uplinks"],
        "initiator": virtual["initiator"],
        "mtu_bytes": virtual["mtu_bytes"],
        "hypervisor": host["hypervisor"],
    }


def _machine(topology: Topology, machine: Entry) -> Facts:
    host = topology.by_name("hosts")[machine["host"]]
    virtual = {entry["name"]: entry for entry in host["virtual_switches"]}
    storage_nics = [nic for nic in machine["nics"] if "storage" in nic["networks"]]
    uplinks = {
        uplink
        for nic in storage_nics
        if nic["virtual_switch"]
        for uplink in virtual[nic["virtual_switch"]]["uplinks"]
    }
    system = machine["system_volume"]
    groups_used = data_groups(topology, machine["name"])
    volumes = topology.by_name("volumes")
    shared = (
        None
        if system is None
        else system != "local" and volumes[system]["disk_group"] in groups_used
    )
    features = machine["hypervisor_features"]
    adapters = [nic["adapter"] for nic in storage_nics]
    others = [
        f"{nic['name']} ({nic['adapter']})"
        for nic in storage_nics
        if str(nic["adapter"]).lower() != "vmxnet3"
    ]
    return {
        "role": machine["role"],
        "hypervisor": host["hypervisor"],
        "initiator": machine["initiator"],
        "vendor_multipath": machine["vendor_multipath"],
        "needs_array_snapshots": machine["needs_array_snapshots"],
        "memory_gb": machine["memory_gb"],
        "vcpus": machine["vcpus"],
        "system_disk_gb": machine["system_disk_gb"],
        "system_disk_needed_gb": 15 + machine["memory_gb"],
        "system_disk_fixed": machine["system_disk_fixed"],
        "system_volume": system,
        "system_disk_on_data_drives": shared,
        "storage_nic_count": len(storage_nics),
        **(listed("storage_nics_not_vmxnet3", others) if None not in adapters else {}),
        "storage_nic_offload": all_stated(storage_nics, "offload"),
        "storage_uplink_count": len(uplinks) if uplinks else None,
        **({} if features is None else listed("hypervisor_features", features)),
        "holds_copies": bool(groups_used),
    }


def _switch(topology: Topology, switch: Entry) -> Facts:
    used = sum(
        link["count"] * sum(end == switch["name"] for end in link["between"])
        for link in topology.entries("links")
    )
    neighbours = [
        link
        for link in topology.entries("links")
        if switch["name"] in link["between"]
        and set(link["between"]) <= set(topology.by_name("switches"))
    ]
    return {
        "networks": switch["networks"],
        "carries_storage": "storage" in switch["networks"],
        "mtu_bytes": switch["mtu_bytes"],
        "flow_control": switch["flow_control"],
        "portfast": switch["portfast"],
        "spanning_tree": switch["spanning_tree"],
        "iscsi_optimisation": switch["iscsi_optimisation"],
        "port_count": switch["ports"],
        "ports_used": used,
        "uplink_cables_min": min((link["count"] for link in neighbours), default=0),
        "power_feed_count": None if switch["power"] is None else len(set(switch["power"])),
        "jumbo_frames_wanted": topology.content["jumbo_frames_wanted"],
    }


def _networks(topology: Topology) -> list[tuple[str, Facts]]:
    """Frame sizes along each network; a mismatch anywhere breaks or fragments large frames."""
    found = []
    for network in ("storage", "replication"):
        stations: dict[str, float | None] = {}
        for host in topology.entries("hosts"):
            stations |= {
                f"{host['name']}.{port['name']}": port["mtu_bytes"]
                for port in _ports(host, network)
            }
            stations |= {
                f"{host['name']}.{virtual['name']}": virtual["mtu_bytes"]
                for virtual in host["virtual_switches"]
                if network in virtual["networks"]
            }
        for machine in topology.entries("machines"):
            stations |= {
                f"{machine['name']}.{nic['name']}": nic["mtu_bytes"]
                for nic in machine["nics"]
                if network in nic["networks"]
            }
        stations |= {
            s["name"]: s["mtu_bytes"]
            for s in topology.entries("switches")
            if network in s["networks"]
        }
        if network == "storage":
            stations |= {
                f"{array['name']}.{port['name']}": port["mtu_bytes"]
                for array in topology.entries("arrays")
                for c in array["controllers"]
                for port in c["ports"]
            }
        if stations:
            found.append((f"the {network} network", _frame_facts(topology, network, stations)))
    return found


def _frame_facts(topology: Topology, network: str, stations: dict[str, float | None]) -> Facts:
    small = [
        f"{name} ({mtu:g})"
        for name, mtu in stations.items()
        if mtu is not None and mtu < JUMBO_MTU_BYTES
    ]
    stated = [mtu for mtu in stations.values() if mtu is not None]
    silent = [name for name, mtu in stations.items() if mtu is None]
    large = [mtu for mtu in stated if mtu >= JUMBO_MTU_BYTES]
    complete = not silent or bool(small)
    return {
        "network": network,
        "jumbo_frames_wanted": topology.content["jumbo_frames_wanted"],
        "stations_without_mtu": silent,
        **(listed("stations_below_jumbo", small) if complete else {}),
        **({"frame_sizes_agree": not (small and large)} if complete else {}),
    }


def _host_loss(topology: Topology, loss: HostLoss) -> Facts:
    hosts, arrays = topology.by_name("hosts"), topology.by_name("arrays")
    facts: Facts = {
        "memory_fullest_pct": loss.memory_fullest_pct,
        "vcpus_per_thread_max": loss.vcpus_per_thread_max,
        "moved": list(loss.moved),
        "machine_count": len(topology.entries("machines")),
        **listed("stranded_machines", loss.stranded),
    }
    for name, by_name, limits in (
        ("overloaded_hosts", loss.active_iops_by_host, hosts),
        ("overloaded_arrays", loss.active_iops_by_array, arrays),
    ):
        if by_name is not None and any(limits[entry]["iops_max"] is not None for entry in by_name):
            over = [
                f"{entry}: {iops:,.0f} of {limits[entry]['iops_max']:,.0f} IOPS"
                for entry, iops in by_name.items()
                if limits[entry]["iops_max"] is not None and iops > limits[entry]["iops_max"]
            ]
            facts |= listed(name, over)
    return facts
