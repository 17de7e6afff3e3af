"""The keys of a topology file.

Hosts, virtual machines, switches, arrays, links, volumes, databases and power.

One table serves the reader, the hints and the reference page. What a file leaves out stays unknown:
a rule that needs it is then listed as not evaluated, never taken as met.
"""

from __future__ import annotations

from plimsoll.inputs.schema import Field, Flag, ListOf, Number, Tables, Text
from plimsoll.sizing.raid import RAID_LEVELS

NETWORKS = ("client", "replication", "storage", "management", "heartbeat")
VOLUME_USES = ("database", "log", "system", "backup", "other")

_NAME = Field(Text(), required=True, meaning="a name no other component of the file has")
_POWER = Field(ListOf(Text()), default=None, meaning="the [[power_feeds]] it is connected to")
_MTU = Field(
    Number(576, 65_536, whole=True), meaning="largest frame in bytes; 9000 with jumbo frames"
)
_NETWORKS = Field(
    ListOf(Text(NETWORKS), 1), required=True, meaning="one or more of " + ", ".join(NETWORKS)
)
_GBPS = Field(Number(0.001, 10_000), meaning="speed in Gbit/s")
_VLAN = Field(Number(1, 4094, whole=True), meaning="VLAN number")
_GB = Number(1e-3, 1e9)
_COUNT = Number(0, 1e6, whole=True)

HOST_PORT = {
    "name": _NAME,
    "networks": _NETWORKS,
    "adapter": Field(Text(), meaning="the card the port is on; ports of one card fail together"),
    "speed_gbit_per_s": _GBPS,
    "mtu_bytes": _MTU,
    "flow_control": Field(Flag(), meaning="whether flow control is on"),
    "vlan": _VLAN,
}
VIRTUAL_SWITCH = {
    "name": _NAME,
    "networks": _NETWORKS,
    "uplinks": Field(ListOf(Text()), required=True, meaning="host ports it uses"),
    "mtu_bytes": _MTU,
    "initiator": Field(Text(("guest", "host")), meaning="whose iSCSI sessions use it"),
}
HOST = {
    "name": _NAME,
    "power": _POWER,
    "memory_gb": Field(Number(0.1, 1e6), meaning="memory"),
    "threads": Field(Number(1, 1e5, whole=True), meaning="hardware threads"),
    "hypervisor": Field(
        Text(("none", "esx", "hyper-v", "kvm")), default="none", meaning="the hypervisor, if any"
    ),
    "initiator": Field(
        Text(("host", "guest", "both", "hardware")), meaning="where iSCSI sessions are made"
    ),
    "vendor_multipath": Field(
        Flag(), meaning="whether the array vendor's multipath module is installed"
    ),
    "sessions_per_array_port": Field(
        Number(0, 64, whole=True), meaning="iSCSI sessions to each port of an array"
    ),
    "storage_demand_mb_per_s": Field(Number(0, 1e6), meaning="storage traffic at the busiest time"),
    "iops_max": Field(Number(0, 1e9), meaning="database IOPS it can serve, for the failover check"),
    "ports": Field(Tables(HOST_PORT), default=[], meaning="network ports"),
    "virtual_switches": Field(Tables(VIRTUAL_SWITCH), default=[], meaning="virtual switches"),
}
NIC = {
    "name": Field(Text(), required=True, meaning="name of the virtual NIC"),
    "networks": _NETWORKS,
    "virtual_switch": Field(Text(), meaning="virtual switch it is connected to"),
    "adapter": Field(Text(), meaning="kind, such as vmxnet3 or e1000"),
    "offload": Field(Flag(), meaning="whether TSO and LRO are on"),
    "mtu_bytes": _MTU,
}
MACHINE = {
    "name": _NAME,
    "host": Field(Text(), required=True, meaning="the host it runs on"),
    "can_run_on": Field(ListOf(Text()), default=[], meaning="hosts that may take it over"),
    "role": Field(
        Text(("mailbox", "hub", "database", "file", "directory", "other")),
        default="other",
        meaning="its work",
    ),
    "memory_gb": Field(Number(0.01, 1e5), required=True, meaning="memory"),
    "vcpus": Field(Number(1, 1024, whole=True), required=True, meaning="virtual processors"),
    "system_disk_gb": Field(_GB, meaning="size of the system disk"),
    "system_disk_fixed": Field(Flag(), meaning="whether the system disk has a fixed size"),
    "system_volume": Field(Text(), meaning='the volume with its system disk, or "local"'),
    "hypervisor_features": Field(
        ListOf(Text()), meaning='features that move or copy it: "ha", "drs", "ft", "live_migration"'
    ),
    "initiator": Field(Text(("guest", "host")), meaning="who makes its iSCSI sessions"),
    "vendor_multipath": Field(Flag(), meaning="whether the vendor's DSM is installed in the guest"),
    "needs_array_snapshots": Field(
        Flag(), default=False, meaning="whether array-consistent snapshots are wanted"
    ),
    "nics": Field(Tables(NIC), default=[], meaning="virtual NICs"),
}
SWITCH = {
    "name": _NAME,
    "networks": _NETWORKS,
    "power": _POWER,
    "ports": Field(_COUNT, meaning="ports it has"),
    "mtu_bytes": _MTU,
    "flow_control": Field(Flag(), meaning="whether flow control is on"),
    "portfast": Field(Flag(), meaning="whether edge ports skip the spanning tree"),
    "spanning_tree": Field(Text(("off", "stp", "rstp")), meaning="spanning tree on its ports"),
    "iscsi_optimisation": Field(
        Flag(), meaning="whether the switch's own iSCSI optimisation is on"
    ),
}
ARRAY_PORT = {"name": _NAME, "speed_gbit_per_s": _GBPS, "mtu_bytes": _MTU}
CONTROLLER = {
    "name": _NAME,
    "write_cache_mb": Field(Number(0, 1e7), meaning="write cache"),
    "ports": Field(Tables(ARRAY_PORT, 1), required=True, meaning="storage ports"),
}
ARRAY = {
    "name": _NAME,
    "model": Field(Text(), meaning="model"),
    "power": _POWER,
    "hot_spares": Field(_COUNT, meaning="spare drives"),
    "iops_max": Field(
        Number(0, 1e9), meaning="IOPS it carries within limits, for the failover check"
    ),
    "controllers": Field(Tables(CONTROLLER, 1), required=True, meaning="controllers"),
}
DISK_GROUP = {
    "name": _NAME,
    "array": Field(Text(), required=True, meaning="the array it is in"),
    "raid": Field(Text(RAID_LEVELS), required=True, meaning="RAID level"),
    "drives": Field(Number(1, 1e5, whole=True), required=True, meaning="active drives"),
    "drive_class": Field(Text(), meaning="kind of drives"),
    "controller": Field(Text(), meaning="the controller that owns it"),
}
VOLUME = {
    "name": _NAME,
    "disk_group": Field(Text(), required=True, meaning="the disk group it is on"),
    "use": Field(Text(VOLUME_USES), required=True, meaning="one of " + ", ".join(VOLUME_USES)),
    "size_gb": Field(_GB, meaning="size"),
    "used_by": Field(
        ListOf(Text()), default=[], meaning="hosts or machines that use it besides database copies"
    ),
    "allocation_unit_kb": Field(Number(0.5, 65_536), meaning="file system allocation unit"),
    "partition_offset_bytes": Field(Number(0, 1e12, whole=True), meaning="start of the partition"),
    "partition_style": Field(Text(("gpt", "mbr")), meaning="partition table"),
}
COPY = {
    "server": Field(Text(), required=True, meaning="host or machine that holds the copy"),
    "database_volume": Field(Text(), required=True, meaning="volume of the database file"),
    "log_volume": Field(Text(), required=True, meaning="volume of its logs"),
    "active": Field(Flag(), default=False, meaning="whether this copy serves users"),
}
DATABASE = {
    "name": _NAME,
    "size_gb": Field(_GB, meaning="size, 1024-based"),
    "iops": Field(Number(0, 1e9), meaning="database IOPS its users make"),
    "copies": Field(Tables(COPY, 1), required=True, meaning="where its copies are"),
}
LINK = {
    "between": Field(
        ListOf(Text(), 2), required=True, meaning='two ends, such as ["esx1.nic2", "switch-a"]'
    ),
    "count": Field(Number(1, 1000, whole=True), default=1, meaning="cables in the link"),
    "speed_gbit_per_s": _GBPS,
}
BACKUP = {
    "interval_h": Field(Number(0.01, 1e5), required=True, meaning="hours between backups"),
    "target": Field(Text(("array", "elsewhere")), required=True, meaning="where they go"),
    "method": Field(Text(("snapshot", "clone", "copy")), meaning="how they are made"),
    "application_consistent": Field(Flag(), meaning="whether the application is told"),
}
TOPOLOGY = {
    "name": Field(Text(), required=True, meaning="what to call the design"),
    "application": Field(Text(), default="exchange", meaning="what runs on it"),
    "jumbo_frames_wanted": Field(
        Flag(), default=True, meaning="whether storage frames should be large"
    ),
    "power_feeds": Field(Tables({"name": _NAME}), default=[], meaning="independent power feeds"),
    "hosts": Field(Tables(HOST, 1), required=True, meaning="servers"),
    "machines": Field(Tables(MACHINE), default=[], meaning="virtual machines"),
    "switches": Field(Tables(SWITCH), default=[], meaning="network switches"),
    "arrays": Field(Tables(ARRAY), default=[], meaning="storage arrays"),
    "disk_groups": Field(Tables(DISK_GROUP), default=[], meaning="RAID groups of the arrays"),
    "volumes": Field(Tables(VOLUME), default=[], meaning="volumes on the disk groups"),
    "databases": Field(Tables(DATABASE), default=[], meaning="databases and their copies"),
    "links": Field(Tables(LINK), default=[], meaning="cables"),
    "backups": Field(Tables(BACKUP), default=None, meaning="backup schedules"),
    "witness": Field(Text(), meaning="host or machine that holds the witness of the group"),
    "quorum_disk": Field(Flag(), meaning="whether a quorum disk takes the witness's place"),
}
