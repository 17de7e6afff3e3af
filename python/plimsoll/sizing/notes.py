"""What a reader of a sizing must be told beyond its figures.

Warnings, notes, and how well the sources are known.

A finding never changes a figure. Rules over whole topologies and finished runs are `plimsoll
advise`; here stand the ones that follow from the requirements and the figures themselves.
"""

from collections.abc import Iterator
from typing import Literal

from plimsoll.inputs.records import dataclass
from plimsoll.sizing.database_copies import HostFit, fit_after_host_loss
from plimsoll.sizing.network import Rule
from plimsoll.sizing.requirements import Requirements
from plimsoll.sizing.storage import is_aligned
from plimsoll.sizing.traced import Step

DATABASES_MEASURED = 4


@dataclass(frozen=True)
class Finding:
    """Something to know or to mend.

    Attributes:
        level: "warning" where the design should change, "note" where the reader should know.
        subject: What it is about, in a word or two.
        message: What was found, with the figures.
        advice: What to do; empty for a note that needs nothing.
        source: Where the rule comes from.
    """

    level: Literal["warning", "note"]
    subject: str
    message: str
    advice: str
    source: str


def host_fits(requirements: Requirements) -> list[HostFit]:
    """How the virtual machines fit after the loss of each host in turn."""
    hosts = sorted({machine.host for machine in requirements.machines})
    server = requirements.server
    if len(hosts) < 2 or server.memory_gb is None or server.thread_count is None:
        return []
    return [
        fit_after_host_loss(requirements.machines, server.memory_gb, server.thread_count, host)
        for host in hosts
    ]


def machine_findings(requirements: Requirements) -> Iterator[Finding]:
    """Virtual machines after the loss of a host, and hypervisor features that mailbox servers must
    not use.
    """
    if len({machine.host for machine in requirements.machines}) == 1:
        host = requirements.machines[0].host
        yield Finding(
            "warning",
            "hosts",
            f"all machines run on {host}",
            "add a second host",
            "md3000i, degraded state",
        )
    for fit in host_fits(requirements):
        if not fit.memory_fits:
            yield Finding(
                "warning",
                "host memory",
                f"without {fit.failed_host}, machines need {fit.memory_need_gb:g} GB of "
                f"{fit.memory_available_gb:g} GB",
                "add memory or a host, or plan which machines stay down",
                "md3000i, degraded state",
            )
        if fit.processors_overcommitted:
            yield Finding(
                "warning",
                "host processors",
                f"without {fit.failed_host}, {fit.vcpu_count} virtual processors share "
                f"{fit.thread_count} threads",
                "accept slower machines in that state, or add processors",
                "md3000i, degraded state",
            )
    for machine in requirements.machines:
        if machine.mailbox_role and machine.hypervisor_failover:
            yield Finding(
                "warning",
                "hypervisor",
                f"{machine.name} is a mailbox server that the hypervisor may move or restart",
                "switch hypervisor availability, live migration and load balancing off for it; "
                "copies do that work",
                "dell_eql, section 5.4",
            )


def storage_findings(requirements: Requirements) -> Iterator[Finding]:
    """Formatting, shared drives and declared array features."""
    storage = requirements.storage
    if not is_aligned(storage.partition_offset_kb, max(storage.allocation_unit_kb, 1)):
        offset, unit = storage.partition_offset_kb, storage.allocation_unit_kb
        yield Finding(
            "warning",
            "alignment",
            f"partitions begin at {offset:g} KB, which is no multiple of {unit:g} KB",
            "begin partitions at 1024 KB",
            "emc_esrp, core storage practice 1",
        )
    if storage.allocation_unit_kb != 64:
        yield Finding(
            "warning",
            "allocation unit",
            f"volumes are formatted with {storage.allocation_unit_kb:g} KB",
            "format database and log volumes with 64 KB",
            "dell_eql, section 5.1; ms_storage",
        )
    if storage.shared_with_other_workloads:
        yield Finding(
            "warning",
            "shared drives",
            "other workloads use the same drives",
            "keep this load apart, or test with the others running",
            "emc_esrp, core storage practice 2",
        )
    if storage.system_disk_on_data_drives:
        yield Finding(
            "warning",
            "system disks",
            "system disks share the drives of the data",
            "put system disks on drives of their own",
            "dell_eql, section 5.4",
        )
    if storage.compression_ratio > 1 or storage.deduplication_ratio > 1:
        yield Finding(
            "note",
            "data reduction",
            f"the array is counted on to reduce data by "
            f"{storage.compression_ratio * storage.deduplication_ratio:g}",
            "test with content that reduces like yours; mailbox databases are already compressed "
            "in part",
            "emc_esrp, platform features; ms_storage",
        )
    if storage.file_retention:
        yield Finding(
            "note",
            "retention",
            "file retention cannot hold databases, which change",
            "use it for copies",
            "emc_esrp",
        )


def count_findings(
    requirements: Requirements, database_count: Step, mounted_count: float
) -> Iterator[Finding]:
    """Numbers of databases and copies."""
    copies, guidance = requirements.copies, requirements.guidance
    most = guidance.number("databases_per_server_max_count")
    if mounted_count > most:
        yield Finding(
            "warning",
            "databases per server",
            f"a server mounts {mounted_count:g} databases, its edition allows {most:g}",
            "use larger databases or more servers",
            guidance.figures["databases_per_server_max_count"].source,
        )
    if database_count.value > DATABASES_MEASURED and requirements.edition == "exchange_2010":
        yield Finding(
            "note",
            "background maintenance",
            f"{database_count.value:g} databases are scanned, published array rates hold for "
            f"{DATABASES_MEASURED}",
            "test with all databases before trusting a published rate",
            "dell_eql, Table 12",
        )
    if not copies.standalone and copies.count == copies.lagged_count + 1:
        yield Finding(
            "note",
            "copies",
            "one copy replays at once",
            "a second one keeps service without a gap",
            "ms_preferred_2019",
        )
    if copies.layout == "active/passive" and copies.servers > 1:
        yield Finding(
            "note",
            "layout",
            "all active copies run on one server",
            'layout = "active/active" uses every server; each must carry the failover load anyway',
            "dell_eql, section 4.4.1",
        )


def network_findings(rules: list[Rule], shared_components: list[str]) -> Iterator[Finding]:
    """Broken network rules, and components whose loss cuts every path."""
    for rule in rules:
        if rule.holds is False:
            yield Finding(
                "warning", "network", f"{rule.name}: {rule.found}", rule.advice, rule.source
            )
    for component in shared_components:
        yield Finding(
            "warning",
            "single point of failure",
            f"every path of a volume runs through {component}",
            "add a second one",
            "dell_eql, section 5.2",
        )


def source_findings(steps: list[Step]) -> Iterator[Finding]:
    """Figures that were not read from their source."""
    unsure = {step.name: step for step in steps if step.note.startswith(("recalled", "assumed"))}
    for step in unsure.values():
        basis = step.note.split(":")[0]
        yield Finding(
            "note",
            "source",
            f"{step.name} = {step.value:g} is {basis}",
            "check before quoting",
            step.source,
        )
