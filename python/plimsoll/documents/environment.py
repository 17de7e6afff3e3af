"""The circumstances of a run, `environment.json`: machine, operating system, storage and software.

Facts about the storage come from the native side, key by key as in
`crates/plimsoll-io/src/probe/mod.rs`. What the operating system does not say is null, and files of
earlier versions and of imported runs lack keys. The dictionary grows while it is collected, so its
parts are dictionaries whose keys and values have types.
"""

# Annotations are not kept as text here: which keys are required is read from them.

from pathlib import Path
from typing import Literal, TypedDict

from plimsoll.documents.document import checked
from plimsoll.documents.figures import Origin
from plimsoll.files import folder


class FileSystemFacts(TypedDict, total=False):
    """A mounted file system; `free_bytes` is what an unprivileged user may still write."""

    kind: str
    mount_point: str
    source: str
    options: list[str]
    size_bytes: int
    free_bytes: int
    is_network: bool
    is_copy_on_write: bool
    is_memory: bool


class DeviceFacts(TypedDict, total=False):
    """A block device; `consent_token` must be typed to let it be overwritten."""

    kernel_name: str
    by_id: str | None
    consent_token: str
    serial: str | None
    model: str | None
    size_bytes: int | None
    is_rotational: bool | None
    write_cache: str | None
    logical_block_bytes: int | None
    physical_block_bytes: int | None
    bottom_disks: list[str]
    shares_system_disk: bool | None
    obstacles: list[str]


class DirectIoFacts(TypedDict, total=False):
    """Whether direct I/O works, and on which file that was tried."""

    tried_on: str | None
    reads_work: bool | None
    errno: int | None
    alignment_bytes: int | None


class MethodFacts(TypedDict, total=False):
    """A way of doing I/O; `refusal` says why it cannot be had."""

    name: str
    refusal: str | None
    remarks: list[str]


class StorageLayer(TypedDict, total=False):
    """A layer of the storage, and the facts that it was told by."""

    name: str
    title: str
    meaning: str
    source: str
    evidence: str


#: The key `class` is a word of the language.
StorageClass = TypedDict(
    "StorageClass",
    {"class": str, "title": str, "meaning": str, "layers": list[StorageLayer]},
    total=False,
)


class StorageIdentity(TypedDict, total=False):
    """What a storage is known by when its names have changed."""

    file_system_uuid: str | None
    device_serial: str | None
    source: str | None
    mount_point: str | None


class ShareTrial(TypedDict):
    """A call that was tried on a share, and what it said."""

    name: str
    honoured: bool
    said: str
    means: str


class StorageFacts(TypedDict, total=False):
    """The storage under a path."""

    path: str
    looked_at: str
    exists: bool
    writable: bool
    file_system: FileSystemFacts | None
    device: DeviceFacts | None
    direct_io: DirectIoFacts
    methods: list[MethodFacts]
    lockable_memory_bytes: int | None
    warnings: list[str]
    identity: StorageIdentity
    storage_class: StorageClass
    share: list[ShareTrial]


class MachineFacts(TypedDict, total=False):
    """The host."""

    host_name: str | None
    architecture: str
    cpu_model: str | None
    cpus_usable: int | None
    cpus_present: int | None
    memory_kib: int | None
    memory_available_kib: int | None
    product: str | None
    vendor: str | None
    firmware: str | None
    cpu_packages: int | None
    frequency_governor: str | None
    virtual: bool


class SystemFacts(TypedDict, total=False):
    """The operating system and its limits."""

    kernel: str | None
    build: str
    distribution: str | None
    io_uring_disabled: str | None
    locked_memory_limit_kib: int | None
    open_files_limit: int | None
    load_average: list[float]
    command: str


class WallClock(TypedDict, total=False):
    """Whether the clock is synchronised, and its largest error."""

    synchronised: bool | None
    error_ms_max: float | None


class NetworkAdapter(TypedDict, total=False):
    """A network adapter with hardware behind it."""

    name: str
    driver: str | None
    speed_mbit_per_s: int | None
    frame_bytes_max: int | None
    state: str | None


class DiskFacts(TypedDict, total=False):
    """A disk of the host."""

    name: str
    model: str | None
    size_bytes: int
    rotational: bool | None
    scheduler: str | None
    numa_node: int | None


class StorageAdapter(TypedDict, total=False):
    """An adapter of the SCSI layer that has disks; depths are those of its disks."""

    name: str
    driver: str | None
    driver_version: str | None
    model: str | None
    firmware: str | None
    transport: str | None
    speed: str | None
    commands_max: int | None
    queue_depth_min: int | None
    queue_depth_max: int | None
    disks: list[str]


class IscsiSession(TypedDict, total=False):
    """A session of this host with a target."""

    name: str
    target: str | None
    state: str | None
    portal: str | None
    connections_count: int
    interface: str | None
    interface_mtu_bytes: int | None
    first_burst_bytes: int | None
    max_burst_bytes: int | None
    receive_segment_bytes: int | None
    outstanding_r2t_max: int | None
    recovery_timeout_s: int | None
    header_digest: bool | None
    data_digest: bool | None
    queue_depth_min: int | None
    disks: list[str]


class MultipathFacts(TypedDict, total=False):
    """A multipath device; its policy is null where device mapper was not asked, without root."""

    name: str
    title: str
    paths: list[str]
    paths_count: int
    paths_running_count: int
    policy: str | None
    groups_count: int | None


class NvmeFacts(TypedDict, total=False):
    """An NVMe namespace of the host, and its controller.

    `volatile_write_cache` is whether it needs a flush to keep what it has taken; `power_state` is 0
    for the highest. Null is what is not known, most of it without root.
    """

    name: str
    model: str | None
    firmware: str | None
    transport: str | None
    namespaces_count: int
    block_bytes: int | None
    block_bytes_physical: int | None
    metadata_bytes: int | None
    queues_count: int | None
    volatile_write_cache: bool | None
    power_state: int | None
    temperature_c: float | None
    temperature_warning_c: float | None
    temperature_critical_c: float | None


class DiskHealth(TypedDict, total=False):
    """What a disk says of its own health; `reason` says why it could not be read."""

    disk: str
    read: bool
    reason: str | None
    healthy: bool | None
    life_used_percent: int | None
    counters: dict[str, int]
    nvme: dict[str, int]


class KernelLogMark(TypedDict):
    """Where in the kernel log a run began: the start of the machine, and the next record."""

    boot_id: str | None
    next_record: int


class Environment(TypedDict, total=False):
    """The whole file."""

    schema_version: Literal[1]
    imported: Origin
    collected_utc: str
    plimsoll: str
    python: str
    machine: MachineFacts
    operating_system: SystemFacts
    clock: WallClock
    network: list[NetworkAdapter]
    disks: list[DiskFacts]
    nvme: list[NvmeFacts]
    adapters: list[StorageAdapter]
    iscsi: list[IscsiSession]
    multipath: list[MultipathFacts]
    targets: list[StorageFacts]
    warnings: list[str]
    release_build: bool
    smart: list[DiskHealth]
    error_counters: dict[str, int]
    kernel_log_mark: KernelLogMark


def read_environment(path: Path) -> Environment:
    """The circumstances of a run from their file.

    Raises:
        FolderError: it is missing, damaged, or something else; with every mistake.
    """
    found: Environment = checked(Environment, folder.read_json(path), str(path))
    return found
