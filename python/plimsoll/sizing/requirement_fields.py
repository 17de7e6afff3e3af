"""The keys of a requirements file: what each may be, and what it means.

One table for reading, for the reference page and for the hints. Ranges are what is sane, not what
is wise; what is unwise is said as a finding of the sizing, not refused here.
"""

from plimsoll.inputs.quantity import Quantity
from plimsoll.inputs.schema import Field, Flag, Number, Table, Tables, Text
from plimsoll.sizing.iops import LOG_RULES
from plimsoll.units import Dimension

KIND = "requirements"
SCHEMA_VERSION = 1
RAID_LEVELS = ("RAID 1", "RAID 5", "RAID 6", "RAID 10", "RAID 50")
EDITIONS = ("exchange_2010", "exchange_2013", "exchange_2016", "exchange_2019", "transactional")

_SIZE, _TIME, _SHARE = Dimension.SIZE, Dimension.DURATION, Dimension.FRACTION


def _share(maximum: str = "1000 %") -> Quantity:
    return Quantity(_SHARE, "fraction", "0 %", maximum)


QUANTITIES: dict[str, dict[str, Quantity]] = {
    "users": {
        "mailbox_quota": Quantity(_SIZE, "mb", "1 MB", "10 TB"),
        "message_size": Quantity(_SIZE, "kb", "0.1 KB", "1 GB"),
        "growth": _share(),
    },
    "transactions": {
        "data_size": Quantity(_SIZE, "gb", "1 MB", "10 PB"),
        "log_size_each": Quantity(_SIZE, "kb", "1 B", "1 GB"),
        "busy_time": Quantity(_TIME, "h", "1 s", "24 h"),
        "growth": _share(),
    },
    "copies": {"replay_lag": Quantity(_TIME, "days", "0 s", "14 days")},
    "databases": {"max_size": Quantity(_SIZE, "gb", "1 GB", "64 TB")},
    "logs": {
        "retention": Quantity(_TIME, "days", "1 h", "365 days"),
        "mailboxes_moved": _share("100 %"),
    },
    "backup": {
        "interval": Quantity(_TIME, "days", "1 h", "365 days"),
        "window": Quantity(_TIME, "h", "1 min", "168 h"),
        "read_rate": Quantity(Dimension.THROUGHPUT, "mb_per_s", "0.1 MB/s", "1 TB/s"),
        "replay_time_per_log": Quantity(_TIME, "s", "0.1 ms", "1 h"),
    },
    "storage": {
        "snapshot_reserve": _share(),
        "replication_reserve": _share(),
        "allocation_unit": Quantity(_SIZE, "kb", "0.5 KB", "2 MB"),
        "partition_offset": Quantity(_SIZE, "kb", "0 KB", "1 GB"),
        "measured_capacity": Quantity(Dimension.CAPACITY, "gb", "1 GB", "10 PB"),
    },
    "network": {
        "port_speed": Quantity(Dimension.BIT_RATE, "mbit_per_s", "1 Mbit/s", "10 Tbit/s"),
        "protocol_overhead": _share("90 %"),
    },
    "server": {"memory": Quantity(_SIZE, "gb", "0.5 GB", "64 TB")},
    "machine": {"memory": Quantity(_SIZE, "gb", "0.1 GB", "64 TB")},
}


def _count(maximum: float, minimum: float = 0) -> Number:
    return Number(minimum, maximum, whole=True)


_FREE = Number(-1e300, 1e300)  # the range was checked with the unit, in the words of the file

USERS = {
    "count": Field(_count(10_000_000, 1), required=True, meaning="how many users there are"),
    "mailbox_quota_mb": Field(
        _FREE, required=True, meaning='what one mailbox may hold: mailbox_quota = "2 GB"'
    ),
    "messages_per_day": Field(
        Number(0.1, 100_000),
        meaning="messages sent and received by one user in a day; or a profile",
    ),
    "profile": Field(
        Text(),
        meaning="a named profile in place of messages_per_day: light, average, heavy, very heavy, "
        "vnxe",
    ),
    "message_size_kb": Field(_FREE, default=75.0, meaning="mean size of a message"),
    "client_mode": Field(
        Text(("cached", "online")), default="cached", meaning="whether clients keep a local copy"
    ),
    "extra_iops_per_user": Field(
        Number(0, 100), default=0.0, meaning="mobile, desktop search, third-party clients"
    ),
    "growth_fraction": Field(_FREE, default=0.0, meaning="users to be added"),
}
TRANSACTIONS = {
    "per_second": Field(
        Number(0.001, 1e9), required=True, meaning="transactions a second at the busiest time"
    ),
    "database_ios_each": Field(
        Number(0, 10_000), required=True, meaning="database I/O of one transaction"
    ),
    "data_size_gb": Field(_FREE, required=True, meaning='all data: data_size = "500 GB"'),
    "log_size_each_kb": Field(
        _FREE, required=True, meaning="log bytes that one transaction writes"
    ),
    "busy_time_h": Field(_FREE, default=8.0, meaning="hours a day at that rate"),
    "growth_fraction": Field(_FREE, default=0.0, meaning="growth of data and rate"),
}
COPIES = {
    "mode": Field(
        Text(("dag", "standalone")),
        meaning="a database availability group, or one server by itself; a group where there are "
        "several copies",
    ),
    "count": Field(
        _count(16, 1),
        meaning="copies of each database, the active one included; 2 in a group, 1 standalone",
    ),
    "servers": Field(_count(1000, 1), meaning="mailbox servers; as many as copies when left out"),
    "layout": Field(
        Text(("active/active", "active/passive")),
        default="active/active",
        meaning="where active copies run",
    ),
    "lagged_count": Field(
        _count(15), default=0, meaning="copies that replay late, among the copies"
    ),
    "replay_lag_days": Field(_FREE, default=0.0, meaning="how late they replay"),
}
DATABASES = {
    "max_size_gb": Field(
        _FREE, meaning="largest database wanted; the limit of the mode when left out"
    ),
    "users_max": Field(_count(1_000_000, 1), meaning="most users in one database"),
    "count_min": Field(_count(10_000, 1), default=1, meaning="fewest databases"),
    "recovery_count": Field(_count(100), default=0, meaning="databases restored at the same time"),
    "offline_maintenance_count": Field(
        _count(100), default=0, meaning="databases maintained offline at once"
    ),
}
LOGS = {
    "retention_days": Field(
        _FREE, meaning="days without truncation to survive; from the edition when left out"
    ),
    "mailboxes_moved_fraction": Field(_FREE, meaning="mailboxes moved while logs are held"),
    "iops_rule": Field(
        Text(tuple(LOG_RULES)), default="table_17", meaning="which published rule log_iops follows"
    ),
}
BACKUP = {
    "interval_days": Field(_FREE, default=1.0, meaning="time between backups that truncate logs"),
    "window_h": Field(_FREE, meaning="time a full backup may take"),
    "read_rate_mb_per_s": Field(
        _FREE, meaning="measured read rate for one database; a published one when left out"
    ),
    "parallel_count": Field(
        _count(1000, 1), default=1, meaning="databases read at once on a server"
    ),
    "during_work": Field(Flag(), default=False, meaning="whether backups run while users work"),
    "replay_time_per_log_s": Field(
        _FREE, meaning="measured replay of one log; a published one when left out"
    ),
}
STORAGE = {
    "raid": Field(
        Text(RAID_LEVELS), meaning="RAID level of database and log volumes; proposed when left out"
    ),
    "snapshot_reserve_fraction": Field(_FREE, default=0.0, meaning="snapshot reserve"),
    "replication_reserve_fraction": Field(
        _FREE, default=0.0, meaning="reserve for replication by the array"
    ),
    "clone_count": Field(_count(100), default=0, meaning="full clones of all volumes"),
    "thin_provisioning": Field(
        Flag(), default=False, meaning="volumes take space only as they fill"
    ),
    "compression_ratio": Field(
        Number(1, 100), default=1.0, meaning="how much the array compresses, 1 for not"
    ),
    "deduplication_ratio": Field(
        Number(1, 100), default=1.0, meaning="how much the array deduplicates, 1 for not"
    ),
    "file_retention": Field(
        Flag(), default=False, meaning="write-once retention of files is used on the array"
    ),
    "shared_with_other_workloads": Field(
        Flag(), default=False, meaning="whether others use the same drives"
    ),
    "system_disk_on_data_drives": Field(
        Flag(), default=False, meaning="whether system disks share the data drives"
    ),
    "file_system": Field(
        Text(("ntfs", "refs", "xfs", "ext4")), default="ntfs", meaning="file system of the volumes"
    ),
    "allocation_unit_kb": Field(
        _FREE, default=64.0, meaning="allocation unit or stripe unit of the file system"
    ),
    "partition_offset_kb": Field(_FREE, default=1024.0, meaning="where the partition begins"),
    "controller_count": Field(
        _count(64, 1), default=2, meaning="controllers that volumes are spread over"
    ),
    "measured_iops": Field(
        Number(1, 1e9), meaning="IOPS measured at the latency limit, for the users table"
    ),
    "measured_capacity_gb": Field(
        _FREE, meaning="space for mailboxes, decimal, for the users table"
    ),
}
NETWORK = {
    "port_count": Field(_count(64, 1), default=2, meaning="storage ports of one server"),
    "port_speed_mbit_per_s": Field(_FREE, default=1000.0, meaning="speed of one storage port"),
    "protocol_overhead_fraction": Field(
        _FREE, default=0.1, meaning="share of a link that the protocol takes"
    ),
    "switch_count": Field(_count(64, 1), meaning="storage switches"),
    "client_port_count": Field(_count(64), meaning="ports for clients"),
    "replication_network": Field(Flag(), meaning="whether replication has ports of its own"),
    "uplink_aggregated": Field(Flag(), meaning="whether switch uplinks are aggregated"),
    "flow_control": Field(Flag(), meaning="whether flow control is on"),
    "port_fast": Field(Flag(), meaning="whether edge ports skip spanning tree"),
    "vlan_per_class": Field(
        Flag(), meaning="whether client, private and storage traffic are separate"
    ),
    "server_frame_bytes": Field(_count(65_535, 576), meaning="largest frame of the server"),
    "switch_frame_bytes": Field(_count(65_535, 576), meaning="largest frame of the switches"),
    "storage_frame_bytes": Field(_count(65_535, 576), meaning="largest frame of the storage"),
    "virtual_nic_type": Field(Text(), meaning="kind of virtual NIC, such as vmxnet3"),
    "virtual_nic_count": Field(_count(64, 1), meaning="virtual NICs for storage"),
    "offload": Field(Flag(), meaning="whether TSO and LRO are on"),
}
SERVER = {
    "memory_gb": Field(_FREE, meaning="memory of one server"),
    "thread_count": Field(
        _count(4096, 1), meaning="hardware threads of one host, for the machines below"
    ),
    "virtual": Field(Flag(), default=False, meaning="whether mailbox servers are virtual machines"),
}
MACHINE = {
    "name": Field(Text(), required=True, meaning="name of the machine"),
    "host": Field(Text(), required=True, meaning="host it runs on"),
    "memory_gb": Field(_FREE, required=True, meaning='its memory: memory = "48 GB"'),
    "vcpu_count": Field(_count(1024, 1), required=True, meaning="its virtual processors"),
    "mailbox_role": Field(Flag(), default=False, meaning="whether it is a mailbox server"),
    "hypervisor_failover": Field(
        Flag(), default=False, meaning="whether the hypervisor moves or restarts it"
    ),
}
FIELDS = {
    "schema_version": Field(
        _count(SCHEMA_VERSION, SCHEMA_VERSION),
        default=SCHEMA_VERSION,
        meaning="version of this form",
    ),
    "title": Field(Text(), default="", meaning="a name for the reports"),
    "edition": Field(
        Text(),
        default="",
        meaning="whose published figures are used; exchange_2010, or transactional for a load that "
        "is not mail",
    ),
    "guidance_file": Field(
        Text(), default="", meaning="figures of your own, in the form of the shipped guidance"
    ),
    "users": Field(Table(USERS), meaning="mailbox users"),
    "transactions": Field(Table(TRANSACTIONS), meaning="a transactional load in place of users"),
    "copies": Field(Table(COPIES), default={}, meaning="copies and servers"),
    "databases": Field(Table(DATABASES), default={}, meaning="limits of databases"),
    "logs": Field(Table(LOGS), default={}, meaning="transaction logs"),
    "backup": Field(Table(BACKUP), default={}, meaning="backup and replay"),
    "storage": Field(Table(STORAGE), default={}, meaning="the array and its volumes"),
    "network": Field(Table(NETWORK), default={}, meaning="the storage network"),
    "server": Field(Table(SERVER), default={}, meaning="mailbox servers"),
    "machine": Field(
        Tables(MACHINE, unique="name"), default=[], meaning="virtual machines and their hosts"
    ),
}
