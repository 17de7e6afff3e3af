"""The facts rules may refer to about arrays, disk groups, volumes and databases of a topology.

A fact exists only where the file states what it rests on; None marks one that does not and is
dropped by the caller.
"""

from __future__ import annotations

from plimsoll.advice.stated import Facts, is_stated, listed, lowest
from plimsoll.advice.topology import Entry, Topology


def array_facts(topology: Topology, array: Entry) -> Facts:
    """Facts of an array."""
    groups = [group for group in topology.entries("disk_groups") if group["array"] == array["name"]]
    owners = [group["controller"] for group in groups]
    counts = [owners.count(controller["name"]) for controller in array["controllers"]]
    ports = [port for controller in array["controllers"] for port in controller["ports"]]
    volumes = topology.by_name("volumes")
    twice = [
        database["name"]
        for database in topology.entries("databases")
        if sum(
            array_name(topology, volumes[copy["database_volume"]]) == array["name"]
            for copy in database["copies"]
        )
        > 1
    ]
    return {
        "controller_count": len(array["controllers"]),
        "hot_spares": array["hot_spares"],
        "power_feed_count": None if array["power"] is None else len(set(array["power"])),
        "disk_group_count": len(groups),
        "groups_per_controller_max": None if None in owners or not owners else max(counts),
        "groups_per_controller_min": None if None in owners or not owners else min(counts),
        "storage_mtu_bytes_min": lowest(ports, "mtu_bytes")
        if is_stated(ports, "mtu_bytes")
        else None,
        "jumbo_frames_wanted": topology.content["jumbo_frames_wanted"],
        **listed("databases_with_two_copies", twice),
    }


def array_name(topology: Topology, volume: Entry) -> str:
    """The array a volume is on."""
    name: str = topology.by_name("disk_groups")[volume["disk_group"]]["array"]
    return name


def disk_group_facts(topology: Topology, group: Entry) -> Facts:
    """Facts of a disk group and of what lies on it."""
    volumes = [
        volume for volume in topology.entries("volumes") if volume["disk_group"] == group["name"]
    ]
    uses = {volume["use"] for volume in volumes}
    names = {volume["name"] for volume in volumes}
    single = any(
        len(database["copies"]) == 1 and database["copies"][0]["database_volume"] in names
        for database in topology.entries("databases")
    )
    foreign = [
        volume["name"] for volume in volumes if volume["use"] in ("other", "system", "backup")
    ]
    return {
        "raid": group["raid"],
        "drives": group["drives"],
        "drive_class": group["drive_class"],
        "controller": group["controller"],
        "holds_databases": "database" in uses,
        "holds_logs": "log" in uses,
        "holds_system_disks": "system" in uses,
        "holds_single_copies": single,
        **listed("foreign_volumes", foreign),
    }


def volume_facts(topology: Topology, volume: Entry) -> Facts:
    """Facts of a volume and of the copies on it."""
    name = volume["name"]
    copies = [(d["name"], c) for d in topology.entries("databases") for c in d["copies"]]
    databases = [database for database, copy in copies if copy["database_volume"] == name]
    logs = [database for database, copy in copies if copy["log_volume"] == name]
    offset = volume["partition_offset_bytes"]
    return {
        "use": volume["use"],
        "allocation_unit_kb": volume["allocation_unit_kb"],
        "partition_style": volume["partition_style"],
        "partition_offset_bytes": offset,
        "misaligned_bytes": None if offset is None else offset % 65_536,
        "log_count": len(logs),
        "logs": logs,
        **listed("databases", databases),
    }


def database_facts(topology: Topology, database: Entry) -> Facts:
    """Facts of a database and of how its copies lie to each other."""
    volumes, copies = topology.by_name("volumes"), database["copies"]
    groups = [
        {volumes[c["database_volume"]]["disk_group"], volumes[c["log_volume"]]["disk_group"]}
        for c in copies
    ]
    shared = sorted(
        {
            name
            for index, mine in enumerate(groups)
            for other in groups[index + 1 :]
            for name in mine & other
        }
    )
    arrays = [array_name(topology, volumes[copy["database_volume"]]) for copy in copies]
    same_volume = [
        copy["server"] for copy in copies if copy["database_volume"] == copy["log_volume"]
    ]
    same_group = [
        copy["server"]
        for copy in copies
        if volumes[copy["database_volume"]]["disk_group"]
        == volumes[copy["log_volume"]]["disk_group"]
    ]
    return {
        "copy_count": len(copies),
        "size_gb": database["size_gb"],
        "active_copy_count": sum(copy["active"] for copy in copies),
        "arrays": arrays,
        "array_count": len(set(arrays)),
        **listed("disk_groups_shared_by_copies", shared),
        **listed("copies_with_log_on_database_volume", same_volume),
        **listed("copies_with_log_on_database_drives", same_group),
    }


def data_groups(topology: Topology, server: str) -> set[str]:
    """Disk groups that hold a server's database and log volumes."""
    volumes = topology.by_name("volumes")
    return {
        volumes[copy[key]]["disk_group"]
        for database in topology.entries("databases")
        for copy in database["copies"]
        if copy["server"] == server
        for key in ("database_volume", "log_volume")
    }
