"""Bandwidth on the storage paths, and whether the paths survive what they are meant to survive.

Sources: EMC VNXe3300 report, Table 2 (2 x 1 Gbit/s to a host) and appendix E; Dell EqualLogic
paper, chapters 2 and 5; PowerVault MD3000i testing, appendix F; NetApp TR-3565, section 4.1. Links
count decimal bits, transfers 1024-based bytes; protocol overhead is a stated share.

Limit: traffic is averaged over seconds; a burst shorter than that queues. Latency is not modelled
here.
"""

from collections.abc import Iterable

from plimsoll.inputs.records import dataclass
from plimsoll.sizing.guidance import Guidance
from plimsoll.sizing.traced import Amount, Expression, Step, amount, derive, maximum
from plimsoll.units import BITS_PER_BYTE, BYTES_PER_KB, BYTES_PER_MB

JUMBO_FRAME_BYTES = 9000
MBIT_PER_MB = BITS_PER_BYTE * BYTES_PER_MB / 1e6  # 8.388608: megabits are decimal, MB are not


@dataclass(frozen=True)
class PathBandwidth:
    """Traffic of one server against its storage links."""

    transactional: Step
    maintenance: Step
    backup: Step
    demand: Step
    available: Step
    available_one_down: Step
    utilisation: Step
    utilisation_one_down: Step


@dataclass(frozen=True)
class Rule:
    """A network rule and how a design stands to it.

    Attributes:
        name: What is checked.
        holds: True, False, or None where the design does not say.
        found: What the design says.
        advice: What to do where it does not hold.
        source: Where the rule comes from.
    """

    name: str
    holds: bool | None
    found: str
    advice: str
    source: str


@dataclass(frozen=True)
class Interfaces:
    """What a design says about one server's network, None where it says nothing."""

    storage_port_count: int | None = None
    client_port_count: int | None = None
    replication_network: bool | None = None
    switch_count: int | None = None
    uplink_aggregated: bool | None = None
    flow_control: bool | None = None
    port_fast: bool | None = None
    server_frame_bytes: int | None = None
    switch_frame_bytes: int | None = None
    storage_frame_bytes: int | None = None
    vlan_per_class: bool | None = None
    virtual: bool | None = None
    virtual_nic_type: str | None = None
    virtual_nic_count: int | None = None
    offload: bool | None = None


def path_bandwidth(
    server_database_iops: Amount,
    server_log_iops: Amount,
    databases_per_server_count: Amount,
    port_count: Amount,
    port_mbit_per_s: Amount,
    guidance: Guidance,
    backup_mb_per_s: Amount = 0,
    overhead_fraction: Amount = 0.1,
) -> PathBandwidth:
    """Add up a server's storage traffic and hold it against its links, all of them and with one
    down.

    Args:
        server_database_iops: Database IOPS of one server in the worst case planned for.
        server_log_iops: Log IOPS of the same server.
        databases_per_server_count: Database copies on the server that are scanned in the
            background.
        port_count: Storage ports of the server.
        port_mbit_per_s: Speed of one port, decimal Mbit/s.
        guidance: Page size, log write size and scan rate.
        backup_mb_per_s: Backup reads of the server while users work, MB/s.
        overhead_fraction: Share of the link that the protocol takes.

    Returns:
        Every part in Mbit/s and the utilisation in percent.
    """
    database = amount(server_database_iops, "server_database_iops", "Database IOPS of one server")
    log = amount(server_log_iops, "server_log_iops", "Log IOPS of one server")
    copies = amount(
        databases_per_server_count, "databases_per_server_count", "Database copies on one server"
    )
    ports = amount(port_count, "storage_port_count", "Storage ports of one server")
    speed = amount(port_mbit_per_s, "port_mbit_per_s", "Speed of one storage port")
    reading = amount(backup_mb_per_s, "server_backup_mb_per_s", "Backup reads of one server")
    overhead = amount(
        overhead_fraction, "protocol_overhead_fraction", "Protocol overhead of the links"
    )
    moved = database * guidance.step("page_kb") + log * guidance.step("log_write_kb")
    transactional = derive(
        "transactional_mbit_per_s",
        moved / BYTES_PER_KB * MBIT_PER_MB,
        "Database and log I/O",
        "emc_esrp, Table 2",
    )
    scans = copies * guidance.step("maintenance_mb_per_s")
    maintenance = derive(
        "maintenance_mbit_per_s", scans * MBIT_PER_MB, "Background scans", "dell_sc, section 2.5"
    )
    backup = derive("backup_mbit_per_s", reading * MBIT_PER_MB, "Backup reads", "emc_esrp, Table 7")
    demand = derive(
        "demand_mbit_per_s",
        transactional + maintenance + backup,
        "Storage traffic of one server",
        "sum of the parts",
    )

    def available(name: str, links: Expression, title: str) -> Step:
        return derive(name, links * speed * (1 - overhead), title, "emc_esrp, Table 2")

    everything = available("available_mbit_per_s", ports, "Bandwidth of all storage ports")
    one_down = available(
        "available_one_down_mbit_per_s", maximum(ports - 1, 0), "Bandwidth with one port down"
    )
    use = derive(
        "path_utilisation_pct",
        demand / everything * 100,
        "Use of the storage ports",
        "emc_esrp, Table 2",
    )
    # One port less than one is no path at all; the smallest speed keeps the division meaningful in
    # the workbook.
    use_down = derive(
        "path_utilisation_one_down_pct",
        demand / maximum(one_down, 0.001) * 100,
        "Use with one port down",
        "dell_eql, section 5.2",
    )
    return PathBandwidth(
        transactional, maintenance, backup, demand, everything, one_down, use, use_down
    )


def network_rules(design: Interfaces) -> list[Rule]:
    """Hold a server's network against the published rules.

    What the design leaves open is listed as open.
    """
    settings = (
        (
            "uplinks aggregated",
            design.uplink_aggregated,
            "aggregate the uplinks",
            "dell_eql, Figure 2",
        ),
        (
            "flow control",
            design.flow_control,
            "switch flow control on, ports and NICs",
            "dell_eql, section 5.2",
        ),
        (
            "portfast on edge ports",
            design.port_fast,
            "set portfast on edge ports",
            "dell_eql, section 5.2",
        ),
        (
            "replication network",
            design.replication_network,
            "give replication its own ports",
            "dell_eql, section 5.3",
        ),
        (
            "VLAN for each class",
            design.vlan_per_class,
            "separate the classes of traffic",
            "dell_eql, section 2.1.1",
        ),
    )
    return [
        _at_least("two storage ports", design.storage_port_count, 2, "fit a second storage port"),
        _at_least("two client ports", design.client_port_count, 2, "fit a second client port"),
        _at_least("two switches", design.switch_count, 2, "connect through a second switch"),
        *(
            Rule(name, holds, _found(holds), advice, source)
            for name, holds, advice, source in settings
        ),
        _jumbo_frames(design),
        *(_virtual_rules(design) if design.virtual else []),
    ]


def _jumbo_frames(design: Interfaces) -> Rule:
    """One small frame anywhere breaks the rule.

    The rule holds only where all three are stated and large.
    """
    frames = (design.server_frame_bytes, design.switch_frame_bytes, design.storage_frame_bytes)
    stated = [frame for frame in frames if frame is not None]
    holds = None if len(stated) < len(frames) else True
    if any(frame < JUMBO_FRAME_BYTES for frame in stated):
        holds = False
    return Rule(
        "jumbo frames on the whole path",
        holds,
        "server, switch, storage: " + ", ".join(_found(frame) for frame in frames),
        f"set at least {JUMBO_FRAME_BYTES} bytes on server, switch and storage",
        "dell_eql, section 5.2; md3000i, appendix F; netapp_3565, section 4.1",
    )


def _virtual_rules(design: Interfaces) -> list[Rule]:
    source = "dell_eql, section 5.5"
    kind = None if design.virtual_nic_type is None else design.virtual_nic_type.lower() == "vmxnet3"
    ports, virtual_ports = design.storage_port_count, design.virtual_nic_count
    enough = None if ports is None or virtual_ports is None else virtual_ports >= ports
    found = f"{_found(virtual_ports)} for uplinks {_found(ports)}"
    return [
        Rule(
            "vmxnet3 storage NICs",
            kind,
            design.virtual_nic_type or "not stated",
            "use vmxnet3",
            source,
        ),
        Rule("a virtual NIC for each uplink", enough, found, "add virtual NICs", source),
        Rule(
            "TSO and LRO", design.offload, _found(design.offload), "switch TSO and LRO on", source
        ),
    ]


def _at_least(name: str, value: int | None, least: int, advice: str) -> Rule:
    return Rule(
        name,
        None if value is None else value >= least,
        _found(value),
        advice,
        "dell_eql, sections 5.2 and 5.3",
    )


def _found(value: object) -> str:
    if value is None:
        return "not stated"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def single_points_of_failure(paths: Iterable[Iterable[str]]) -> list[str]:
    """Components that every path from a server to its storage runs through.

    Losing one loses the volume.

    Args:
        paths: For each path, the components on it, server and volume left out.

    Returns:
        The names common to all paths, in the order of the first path.

    Example:
        >>> single_points_of_failure([["port 1", "switch 1", "controller A"], ["port 2", "switch 1", "controller B"]])
        ['switch 1']
    """  # noqa: E501
    listed = [list(path) for path in paths]
    if not listed:
        return []
    shared = set(listed[0]).intersection(*map(set, listed[1:]))
    return [name for name in listed[0] if name in shared]
