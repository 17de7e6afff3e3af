"""From requirements to a whole sizing.

Figures in sections, placement, volumes, comparisons and findings.

`size` is the one way through: the main figures (`core.py`, or a paper's own reading of them), then
what they mean for servers, paths, backup and tests, then what a reader must be told. It is a pure
function; writing it as text, JSON, workbook, report or run plan is other modules' work.
"""

from collections.abc import Iterator
from math import prod

from plimsoll.errors import InvalidValueError, RefusedError
from plimsoll.inputs.records import dataclass
from plimsoll.sizing.backup import backup_hours, backup_window, replay_hours
from plimsoll.sizing.capacity import UsersRow, binary_gb, users_by_mailbox_size
from plimsoll.sizing.database_copies import Failover, HostFit, Placement, failover, place_copies
from plimsoll.sizing.formulas import Core, core_figures, stated, with_guidance
from plimsoll.sizing.guidance import editions
from plimsoll.sizing.logs import replication_per_day
from plimsoll.sizing.memory import cache_per_user, processor_demand, server_memory, system_disk
from plimsoll.sizing.network import (
    Interfaces,
    PathBandwidth,
    Rule,
    network_rules,
    path_bandwidth,
    single_points_of_failure,
)
from plimsoll.sizing.notes import (
    Finding,
    count_findings,
    host_fits,
    machine_findings,
    network_findings,
    source_findings,
    storage_findings,
)
from plimsoll.sizing.qualifying_load import outstanding_io, sessions_per_database
from plimsoll.sizing.requirements import Requirements
from plimsoll.sizing.storage import (
    Formatting,
    Proposal,
    Volume,
    physical_capacity,
    propose_drives,
    volume_paths,
    volume_plan,
)
from plimsoll.sizing.traced import Step, by_name, ceil, chain, derive, given, maximum, minimum
from plimsoll.sizing.worked_example import PAPERS, Difference, differences

MAILBOX_SIZES_GB = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
# Fifty full servers of an edition; beyond that the plan is of no use to anybody.
DATABASES_MAX = 5000
# Limits are compared with what binary fractions add left aside.
ROUNDING = 1e-9
COMPARED_EDITIONS = ("exchange_2010", "exchange_2013", "exchange_2016", "exchange_2019")


class OversizedDesignError(InvalidValueError):
    """So many databases that the answers must be mistaken."""

    def __init__(self, database_count: float) -> None:
        super().__init__(
            f"needs {database_count:,.0f} databases, at most {DATABASES_MAX:,} are planned at once"
        )


@dataclass(frozen=True)
class Section:
    """Figures that belong together."""

    title: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class UsersTable:
    """Users for each mailbox size.

    Attributes:
        basis: What the table holds for.
        measured: True where it rests on a measured array, False where on the design itself.
        design_mailbox_gb: The mailbox size of the design, one of the rows.
        mailbox_space_gb: Space for mailboxes.
        available_iops: IOPS for them.
        rows: By mailbox size.
    """

    basis: str
    measured: bool
    design_mailbox_gb: float
    mailbox_space_gb: float
    available_iops: float
    rows: tuple[UsersRow, ...]


@dataclass(frozen=True)
class EditionRow:
    """The main figures of the same requirements under one edition."""

    edition: str
    title: str
    iops_per_user: float
    database_iops: float
    total_database_size_gb: float
    database_count: int
    database_volume_size_gb: float
    log_volume_size_gb: float
    total_capacity_gb: float
    cache_mb_per_user: float
    bases: tuple[str, ...]


@dataclass(frozen=True)
class Sizing:
    """Everything that follows from requirements.

    Attributes:
        reading: "formulas", or the paper whose own reading was asked for.
        sections: All figures, in reading order.
    """

    requirements: Requirements
    reading: str
    sections: tuple[Section, ...]
    placements: tuple[Placement, ...]
    failover: Failover
    proposal: Proposal
    volumes: tuple[Volume, ...]
    users_table: UsersTable | None
    editions: tuple[EditionRow, ...]
    differences: tuple[Difference, ...]
    network_rules: tuple[Rule, ...]
    hosts: tuple[HostFit, ...]
    findings: tuple[Finding, ...]

    @property
    def results(self) -> dict[str, Step]:
        """All figures of all sections by name."""
        return by_name(step for section in self.sections for step in section.steps)

    @property
    def steps(self) -> list[Step]:
        """Every step behind the results, sources before what is derived from them."""
        return chain(*self.results.values())


def size(requirements: Requirements, reading: str = "formulas") -> Sizing:
    """Size storage for the requirements.

    Args:
        requirements: Checked requirements.
        reading: "formulas", or the name of a paper in `PAPERS` for its own rounding and omissions.

    Returns:
        The sizing.

    Raises:
        RefusedError: What was given is no requirements.
        OversizedDesignError: The answers lead to more databases than anybody runs.
        InvalidValueError: No paper of that name, or it cannot be applied to these requirements.
    """
    if not isinstance(requirements, Requirements):
        raise RefusedError(
            [
                f"a {type(requirements).__name__} is no requirements; make them with "
                f"stated_requirements"
            ]
        )
    if reading != "formulas" and reading not in PAPERS:
        raise InvalidValueError(
            f'reading "{reading}" is not a known paper; known here: {", ".join(PAPERS)}'
        )
    core = core_figures(requirements) if reading == "formulas" else PAPERS[reading](requirements)
    copies = requirements.copies
    if core.database_count.value > DATABASES_MAX:
        raise OversizedDesignError(core.database_count.value)
    placements = place_copies(
        int(core.database_count.value), copies.servers, copies.count, copies.layout
    )
    load = ServerLoad.of(requirements, core)
    bandwidth = _bandwidth(requirements, load)
    proposal = propose_drives(core.database_iops.value, core.capacity.total.value)
    formatting = _formatting(requirements, proposal)
    rules = network_rules(_interfaces(requirements))
    users_table = _users_table(requirements, core)
    sections = tuple(_sections(requirements, core, load, bandwidth))
    shared = single_points_of_failure(volume_paths(0, formatting))
    figures = chain(*(step for section in sections for step in section.steps))
    findings = [
        *_load_findings(requirements, core, load, bandwidth),
        *_array_findings(users_table, core.user_count),
        *count_findings(requirements, core.database_count, load.databases_hosted.value),
        *storage_findings(requirements),
        *machine_findings(requirements),
        *network_findings(rules, shared),
        *source_findings(figures),
    ]
    volumes = volume_plan(
        placements, core.database_volume_size.value, core.log_volume_size.value, formatting
    )
    return Sizing(
        requirements=requirements,
        reading=reading,
        sections=sections,
        placements=tuple(placements),
        failover=failover(placements, copies.servers),
        proposal=proposal,
        volumes=tuple(volumes),
        users_table=users_table,
        editions=tuple(_edition_rows(requirements)),
        differences=tuple(_differences(requirements)),
        network_rules=tuple(rules),
        hosts=tuple(host_fits(requirements)),
        findings=tuple(sorted(findings, key=lambda finding: finding.level != "warning")),
    )


@dataclass(frozen=True)
class ServerLoad:
    """What one server carries in the worst single failure planned for.

    The figures are formulas of the number of databases and servers and never less than what failing
    each server in turn over the placement gives, so that they can live in a workbook.
    """

    databases_active: Step
    databases_worst: Step
    databases_hosted: Step
    users_worst: Step | None
    database_iops: Step
    log_iops: Step

    @classmethod
    def of(cls, requirements: Requirements, core: Core) -> "ServerLoad":
        """Work the figures out for a design."""
        servers, copies = core.shared.server_count, core.shared.copy_count
        count, guidance = core.database_count, requirements.guidance
        together = (
            requirements.copies.layout == "active/passive" and not requirements.copies.standalone
        )
        active = derive(
            "databases_per_server_count",
            count if together else ceil(count / servers),
            "Active databases on one server",
            "dell_eql, section 4.4",
        )
        moving = requirements.copies.count > 1 and not together
        worst = derive(
            "databases_per_server_worst_count",
            minimum(count, active + ceil(active / maximum(servers - 1, 1))) if moving else active,
            "Active databases, worst case",
            "dell_eql, section 4.4.1: each server carries the failover load",
        )
        hosted = derive(
            "database_copies_per_server_count",
            ceil(count * copies / servers),
            "Database copies on one server",
            "dell_eql, section 4.4",
        )
        users = None
        if core.user_count:
            users = derive(
                "users_per_server_worst_count",
                core.user_count * worst / count,
                "Users on a server, worst case",
                "share of the databases",
            )
        passive = maximum(hosted - worst, 0) * guidance.step("passive_copy_fraction")
        database = derive(
            "server_database_iops",
            core.database_iops / count * (worst + passive),
            "Database IOPS, worst case",
            "dell_eql, section 4.3: passive copies cost I/O too",
        )
        log = derive(
            "server_log_iops",
            core.log_iops / count * worst,
            "Log IOPS, worst case",
            "share of the databases",
        )
        return cls(active, worst, hosted, users, database, log)


def _bandwidth(requirements: Requirements, load: ServerLoad) -> PathBandwidth:
    network, backup = requirements.network, requirements.backup

    def answer(name: str, value: float, title: str, key: str) -> Step:
        return given(name, value, title, stated(requirements, f"network.{key}"))

    reading, source = 0.0, "default: no backup while users work"
    if backup.during_work:
        rate = backup.read_rate_mb_per_s or requirements.guidance.number("backup_mb_per_s")
        reading, source = (
            rate * backup.parallel_count,
            "read rate and number of parallel reads stated",
        )
    return path_bandwidth(
        load.database_iops,
        load.log_iops,
        load.databases_hosted,
        answer(
            "storage_port_count", network.port_count, "Storage ports of one server", "port_count"
        ),
        answer(
            "port_mbit_per_s",
            network.port_speed_mbit_per_s,
            "Speed of one storage port",
            "port_speed",
        ),
        requirements.guidance,
        given("server_backup_mb_per_s", reading, "Backup reads of one server at work", source),
        answer(
            "protocol_overhead_fraction",
            network.protocol_overhead_fraction,
            "Protocol overhead of a link",
            "protocol",
        ),
    )


def _sections(
    requirements: Requirements, core: Core, load: ServerLoad, bandwidth: PathBandwidth
) -> Iterator[Section]:
    capacity = core.capacity
    yield Section("Users and mailboxes" if core.user_count else "Transactions", core.load)
    yield Section(
        "Databases",
        (
            core.total_database_size,
            core.database_count,
            core.database_size,
            core.database_volume_size,
        ),
    )
    logs = (*core.log_details, core.log_growth, core.log_space_days, core.log_volume_size)
    yield Section("Transaction logs", logs)
    named = [rule for rule in core.log_rules.values() if rule is not core.log_iops]
    yield Section("I/O", (*core.iops, core.database_iops, core.log_iops, *named))
    yield Section(
        "Capacity",
        (*capacity.parts, capacity.total, capacity.all_copies, *_physical(requirements, core)),
    )
    yield Section("Servers", tuple(_server_steps(requirements, core, load)))
    more_than_one = requirements.network.port_count > 1
    yield Section(
        "Storage paths of one server",
        (
            bandwidth.transactional,
            bandwidth.maintenance,
            bandwidth.backup,
            bandwidth.demand,
            bandwidth.available,
            bandwidth.utilisation,
            *(
                (bandwidth.available_one_down, bandwidth.utilisation_one_down)
                if more_than_one
                else ()
            ),
        ),
    )
    yield Section("Backup and replay", tuple(_backup_steps(requirements, core)))
    sessions = sessions_per_database(core.database_iops, core.database_count, requirements.guidance)
    yield Section("Load of a test", (sessions, outstanding_io(core.database_iops)))


def _physical(requirements: Requirements, core: Core) -> Iterator[Step]:
    storage = requirements.storage

    def answer(name: str, value: float, title: str) -> Step:
        return given(name, value, title, stated(requirements, f"storage.{name}"))

    if (
        storage.thin_provisioning
        or storage.compression_ratio > 1
        or storage.deduplication_ratio > 1
    ):
        yield physical_capacity(
            core.capacity,
            core.database_count,
            core.database_size,
            core.database_volume_size,
            requirements.guidance,
            thin=storage.thin_provisioning,
            compression_ratio=answer(
                "compression_ratio", storage.compression_ratio, "Compression counted on"
            ),
            deduplication_ratio=answer(
                "deduplication_ratio", storage.deduplication_ratio, "Deduplication counted on"
            ),
        )


def _server_steps(requirements: Requirements, core: Core, load: ServerLoad) -> Iterator[Step]:
    guidance = requirements.guidance
    yield from (load.databases_active, load.databases_worst, load.databases_hosted)
    yield from (load.database_iops, load.log_iops)
    if not requirements.copies.standalone:
        yield replication_per_day(core.log_growth, core.database_count, core.shared.copy_count)
    if load.users_worst is None or core.cache_per_user is None:
        return
    yield from (load.users_worst, core.cache_per_user)
    planned = server_memory(load.users_worst, core.cache_per_user, guidance)
    yield planned
    if requirements.server.memory_gb is not None:
        fitted = given(
            "server_memory_mb",
            requirements.server.memory_gb * 1024,
            "Memory of one server",
            requirements.name,
        )
        yield cache_per_user(fitted, load.users_worst, guidance)
    demand = processor_demand(load.users_worst, guidance)
    if demand is not None:
        yield demand
    yield system_disk(planned)


def _backup_steps(requirements: Requirements, core: Core) -> Iterator[Step]:
    backup = requirements.backup
    parallel = given(
        "backup_parallel_count",
        backup.parallel_count,
        "Databases read at once",
        stated(requirements, "backup.parallel"),
    )
    one = backup_hours(core.database_size, core.shared.backup_rate)
    yield one
    yield backup_window(core.database_count, one, parallel, core.shared.server_count)
    yield replay_hours(core.log_growth, core.log_space_days, core.shared.replay_per_log)


def _formatting(requirements: Requirements, proposal: Proposal) -> Formatting:
    storage, network = requirements.storage, requirements.network
    return Formatting(
        raid=storage.raid or proposal.raid,
        file_system=storage.file_system,
        allocation_unit_kb=storage.allocation_unit_kb,
        partition_offset_kb=storage.partition_offset_kb,
        controller_count=storage.controller_count,
        port_count=network.port_count,
        switch_count=network.switch_count or 2,
        log_apart=requirements.copies.standalone,
    )


def _interfaces(requirements: Requirements) -> Interfaces:
    network = requirements.network
    return Interfaces(
        storage_port_count=network.port_count
        if "network.port_count" in requirements.stated
        else None,
        client_port_count=network.client_port_count,
        replication_network=None if requirements.copies.standalone else network.replication_network,
        switch_count=network.switch_count,
        uplink_aggregated=network.uplink_aggregated,
        flow_control=network.flow_control,
        port_fast=network.port_fast,
        server_frame_bytes=network.server_frame_bytes,
        switch_frame_bytes=network.switch_frame_bytes,
        storage_frame_bytes=network.storage_frame_bytes,
        vlan_per_class=network.vlan_per_class,
        virtual=requirements.server.virtual,
        virtual_nic_type=network.virtual_nic_type,
        virtual_nic_count=network.virtual_nic_count,
        offload=network.offload,
    )


def _load_findings(
    requirements: Requirements, core: Core, load: ServerLoad, bandwidth: PathBandwidth
) -> Iterator[Finding]:
    states = [
        (bandwidth.utilisation, "in service"),
        (bandwidth.utilisation_one_down, "with one port down"),
    ]
    for use, when in states[: requirements.network.port_count]:
        if use.value > 100 * (1 + ROUNDING):
            yield Finding(
                "warning",
                "storage paths",
                f"a server needs {bandwidth.demand.value:,.0f} Mbit/s, {use.value:,.0f} % of its "
                f"ports {when}",
                "add ports or use faster ones",
                "emc_esrp, Table 2; dell_eql, section 5.2",
            )
            break
    measured = requirements.storage.measured_iops
    if measured is not None and load.database_iops.value > measured * (1 + ROUNDING):
        yield Finding(
            "warning",
            "failover load",
            f"a survivor carries {load.database_iops.value:,.0f} IOPS, its array was measured at "
            f"{measured:,.0f}",
            "use a faster array, more servers, or fewer users for each",
            "dell_eql, section 4.4.1",
        )
    window = requirements.backup.window_h
    full = next(
        step for step in _backup_steps(requirements, core) if step.name == "backup_window_h"
    )
    if window is not None and full.value > window * (1 + ROUNDING):
        yield Finding(
            "warning",
            "backup window",
            f"a full backup takes {full.value:,.1f} h of the {window:,.1f} h allowed",
            "read more databases at once, use a faster path, or more and smaller databases on more "
            "servers",
            "dell_eql, section 3.3.3; emc_esrp, Table 7",
        )
    if "storage.raid" in requirements.stated and requirements.storage.raid == "RAID 5":
        yield Finding(
            "note", "RAID", "RAID 5 is asked for", "prefer RAID 50", "dell_eql, section 3.1.3"
        )


def _array_findings(table: UsersTable | None, users: Step | None) -> Iterator[Finding]:
    """How many of the measured arrays one copy of the design fills."""
    if table is None or users is None or not table.measured:
        return
    row = next(row for row in table.rows if row.mailbox_size_gb == table.design_mailbox_gb)
    if row.users < users.value:
        arrays = ceil(users / row.users).value if row.users else 0
        yield Finding(
            "note",
            "measured array",
            f"one carries {row.users:,} users of this mailbox size ({row.limit} is the limit), the "
            f"design has "
            f"{users.value:,.0f}",
            f"plan {arrays:,.0f} of them for each copy" if arrays else "not even one user fits",
            "emc_esrp, Table 9",
        )


def _users_table(requirements: Requirements, core: Core) -> UsersTable | None:
    """Users for each mailbox size on the array measured, or on the design itself where none is."""
    if not core.user_count or not core.iops:
        return None
    storage, guidance = requirements.storage, requirements.guidance
    mailbox_gb = next(step.value for step in core.load if step.name == "mailbox_size_mb") / 1024
    sizes = sorted({*MAILBOX_SIZES_GB, mailbox_gb})
    measured = bool(storage.measured_iops and storage.measured_capacity_gb)
    if storage.measured_iops and storage.measured_capacity_gb:
        names = ("database_overhead_factor", "content_index_factor", "volume_overhead_factor")
        space_for_one_gb = prod(guidance.number(name) for name in names)
        iops, space = (
            storage.measured_iops,
            binary_gb(storage.measured_capacity_gb) / space_for_one_gb,
        )
    else:
        iops, space = core.database_iops.value, mailbox_gb * core.user_count.value
    rows = users_by_mailbox_size(sizes, space, iops, core.iops[1].value)
    where = "the measured array" if measured else "the space and I/O of this design"
    return UsersTable(
        f"on {where}, mailbox with white space and dumpster",
        measured,
        mailbox_gb,
        space,
        iops,
        tuple(rows),
    )


def _edition_rows(requirements: Requirements) -> Iterator[EditionRow]:
    if not requirements.users:
        return
    known = editions()
    for name in COMPARED_EDITIONS:
        guidance = requirements.guidance if name == requirements.edition else known[name]
        core = core_figures(with_guidance(requirements, guidance))
        assert core.cache_per_user, "a design for users has a cache by profile"
        used = [
            step.name
            for step in chain(core.capacity.total, core.database_iops, core.cache_per_user)
        ]
        yield EditionRow(
            name,
            guidance.title,
            core.iops[0].value,
            core.database_iops.value,
            core.total_database_size.value,
            int(core.database_count.value),
            core.database_volume_size.value,
            core.log_volume_size.value,
            core.capacity.total.value,
            core.cache_per_user.value,
            tuple(
                sorted(
                    {
                        guidance.figures[figure].basis
                        for figure in used
                        if figure in guidance.figures
                    }
                )
            ),
        )


def _differences(requirements: Requirements) -> list[Difference]:
    return (
        differences(requirements)
        if requirements.users and requirements.edition == "exchange_2010"
        else []
    )
