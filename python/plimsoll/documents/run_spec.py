"""The run spec: exactly what the Rust side is given, key by key as in
`crates/plimsoll-run/src/spec.rs`.

It is also the `run` part of `plan.json`. Where a default stands, plans of version 0.1 may lack the
key, and Rust takes it as absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plimsoll.documents.array_spec import ArraySpec, TimedFault
from plimsoll.documents.document import Document
from plimsoll.documents.home_scenarios import HomeFileSize, HomeScenario
from plimsoll.documents.phase_actions import GenerateLogs, PhaseSpec

Spacing = Literal["poisson", "regular"]


class HostSpec(Document):
    """A machine."""

    name: str


class TargetSpec(Document):
    """Storage under test."""

    name: str
    host: str
    path: str


class MaintenanceSpec(Document):
    """Background database maintenance."""

    throttle_ms: int
    read_bytes: int


class SharingSpec(Document):
    """Content that several databases have in common."""

    seed: int
    leaves_per_million: int


class FileSpec(Document):
    """A file in its instance's directory, or a whole block device by its absolute path."""

    file_name: str
    size_bytes: int
    seed: int
    existing_records: int | None = None


class DatabaseSpec(FileSpec):
    """One database."""

    record_bytes: int
    vacancy_percent: int | None = None
    compressible_percent: int
    sharing: SharingSpec | None = None


class InstanceSpec(Document):
    """One or more files, and what stands behind them."""

    name: str
    target: str
    backend: str
    directory: str
    log_directory: str
    unfinished: bool = False
    weight: float | None = None
    databases: Sequence[FileSpec]

    @property
    def is_ours(self) -> bool:
        """Whether what it consists of are files that this program makes, marks and deletes."""
        return True


class LaggedCopy(Document):
    """A passive copy that replays the log later, by a time or by a count of closed logs."""

    name: str
    lag_s: float | None
    lag_logs: int | None


class EngineInstance(InstanceSpec):
    """One log stream, one cache, one or more databases."""

    page_bytes: int
    cache_bytes_min: int
    cache_bytes_max: int
    checkpoint_depth_bytes: int
    circular_log: bool
    hold_checkpoint: bool | None = None
    log_framing: str
    page_images: bool
    copies_count: int
    lagged_copies: Sequence[LaggedCopy] = ()
    maintenance: MaintenanceSpec | None = None
    long_reader_s: int | None = None
    log_buffer_bytes: int
    version_store_bytes_max: int
    extension_pages: int
    waypoint_generations: int
    writes_outstanding_max: int


class RecordsInstance(EngineInstance):
    """Databases of records, on the engine or on raw files."""

    backend: Literal["engine", "raw_files"]
    databases: Sequence[DatabaseSpec]


class StoreDatabase(FileSpec):
    """The database of an online store."""

    store_mb: int
    reviews_per_product: int | None = None


class StoreInstance(EngineInstance):
    """An online store on the engine."""

    backend: Literal["store"]
    databases: Sequence[StoreDatabase]


class DistributionSpec(Document):
    """How clients are distributed over the endpoints of a server."""

    policy: Literal["single affinity", "round robin"]
    client_addresses: int | None = None


class EndpointSpec(Document):
    """Where a server is reached, too."""

    host: str
    port: int


class ServerSpec(Document):
    """Where a server is and who comes."""

    host: str
    port: int
    user: str
    database: str
    password_file: str | None
    ca_file: str | None
    endpoints: Sequence[EndpointSpec] = ()
    distribution: DistributionSpec | None = None


class StoreClientInstance(InstanceSpec):
    """An online store in a database that is not ours.

    A file of SQLite, or a database on a server.
    """

    backend: Literal["sqlite", "postgresql", "mysql"]
    databases: Sequence[StoreDatabase]
    server: ServerSpec | None
    rows: Literal["seed", "dvd_store", "dvd_store_3"]
    timeout_s: float
    lost_after_s: float

    @property
    def is_ours(self) -> bool:
        """Its own program makes its files."""
        return False

    @property
    def place(self) -> str:
        """Where it lies, as an address without a password."""
        if self.server is None:
            return f"sqlite:{self.directory}/{self.databases[0].file_name}"
        host = f"[{self.server.host}]" if ":" in self.server.host else self.server.host
        return (
            f"{self.backend}://{self.server.user}@{host}:{self.server.port}/{self.server.database}"
        )


class FilesInstance(InstanceSpec):
    """Preallocated files, or a block device, without a log or a cache."""

    backend: Literal["files"]
    data_pattern: int
    verify: bool


class HomesInstance(InstanceSpec):
    """Home folders on a file server, made anew by every run."""

    backend: Literal["home_folders"]
    homes: int
    folders: int
    files_per_folder: int
    sizes: Sequence[HomeFileSize]
    piece_bytes: int


class MailEndpoint(FileSpec):
    """One front end of a mail server: where it is read, and where mail for it is handed in."""

    imap: str
    deliver: str


class MailInit(Document):
    """What an account holds at the start."""

    folders: int
    messages_per_folder: int
    inbox: int


class MailSize(Document):
    """One kind of mail."""

    weight: float
    body_bytes: int
    attachment_bytes: int


class MailMessages(Document):
    """What mails are like."""

    sizes: Sequence[MailSize]
    entropy_percent: int
    duplicate_percent: int


class MailInstance(InstanceSpec):
    """A mail server and its accounts; nothing of it lies in a directory of ours."""

    backend: Literal["imap"]
    databases: Sequence[MailEndpoint]
    imap_tls: Literal["none", "starttls", "tls"]
    deliver_protocol: Literal["lmtp", "smtp"]
    deliver_tls: Literal["none", "starttls", "tls"]
    deliver_login: bool
    tls_name: str | None
    ca_file: str | None
    login: str
    address: str
    first_account: int
    accounts: int
    password_file: str
    marker: str
    init: MailInit | None
    messages: MailMessages
    connect_timeout_s: float
    command_timeout_s: float
    lost_after_s: float
    literal_max_bytes: int
    distribution: DistributionSpec | None = None

    @property
    def is_ours(self) -> bool:
        """Its server keeps what is in it."""
        return False


class MailStoreFilling(Document):
    """What a mail store on the engine is filled with."""

    mailboxes: int
    folders: int
    messages_per_folder: int
    inbox: int
    layout: Literal["per_mailbox", "shared"]
    views: int
    indexed: bool
    messages: MailMessages


class MailStoreDatabase(FileSpec):
    """A database of a mail store: the mailboxes; without a filling the transport queue, or the one
    that mailboxes are moved to.
    """

    store: MailStoreFilling | None = None


class MailStoreInstance(EngineInstance):
    """A mail store on the engine with its transport queue, which has a log of its own."""

    backend: Literal["mail_store"]
    databases: Sequence[MailStoreDatabase]

    @property
    def filling(self) -> MailStoreFilling:
        """What its mailboxes are filled with."""
        filling = self.databases[0].store
        if filling is None:
            raise ValueError(f"instance {self.name} does not say what its store is filled with")
        return filling


class MixSpec(Document):
    """Shares of operations."""

    insert_percent: int
    delete_percent: int
    replace_percent: int
    read_percent: int
    lazy_commit_percent: int


class LocalitySpec(Document):
    """Where sessions work and where new records go."""

    folder_records: int
    batch_operations: int
    replies: bool
    hot_percent: int | None = None
    hot_access_percent: int | None = None


class SessionsLoad(Document):
    """Sessions that each do one transaction after the other, for each database or for all."""

    sessions: int
    shared: bool


class LoadStage(Document):
    """A share of a rate for a while."""

    rate_percent: float
    for_s: float


class RateLoad(Document):
    """Arrivals at a stated rate."""

    transactions_per_s: float
    spacing: Spacing
    sessions_max: int
    stages: Sequence[LoadStage] = ()


class TargetIopsLoad(Document):
    """Arrivals at the rate that makes so much database I/O."""

    target_iops: float
    spacing: Spacing
    sessions_max: int
    io_per_transaction_assumed: float
    calibrate_s: float
    stages: Sequence[LoadStage] = ()


class Criterion(Document):
    """A limit on one figure of every place that has it."""

    name: str
    metric: str
    statistic: Literal["mean", "p95", "p99", "per_s"]
    limit: float


class SearchedLoad(Document):
    """The highest rate of arrivals, or the most sessions, as a summary has them.

    The criteria stand in the plan.
    """

    search: Literal["max", "max_sessions"]
    sessions: int
    shared: bool
    spacing: Spacing
    sessions_max: int
    step_s: float
    settle_s: float
    tolerance_percent: float
    throughput_percent: float | None = None
    shortfall_percent: float | None = None


class SearchLoad(SearchedLoad):
    """The highest rate of arrivals, or the most sessions, that keep the criteria."""

    criteria: Sequence[Criterion]


LoadSpec = SessionsLoad | RateLoad | TargetIopsLoad | SearchLoad


class AnyLoad(Document):
    """A load by itself, wherever its plan comes from."""

    load: LoadSpec


class WorkloadSpec(Document):
    """Load on some instances."""

    name: str
    instances: Sequence[str]
    family: str | None = None
    load: LoadSpec


class RecordsWorkload(WorkloadSpec):
    """Operations on records."""

    family: Literal["records"] | None = None
    mix: MixSpec
    locality: LocalitySpec | None = None
    sluggish: float


class AccessLineSpec(Document):
    """One line of an access specification."""

    share_percent: int
    size_bytes: int
    read_percent: int
    random_percent: int
    delay_ms: int
    burst: int
    align_bytes: int
    reply_bytes: int


class FilesWorkload(WorkloadSpec):
    """Reads and writes of files by an access specification."""

    family: Literal["files"]
    access: Sequence[AccessLineSpec]
    workers: int
    below_block: Literal["refuse", "round", "read_modify_write"]


class HomesWorkload(WorkloadSpec):
    """Users of home folders."""

    family: Literal["home_folders"]
    scenarios: Sequence[HomeScenario]


class StoreWorkload(WorkloadSpec):
    """Customers that log in, search and order."""

    family: Literal["store"]
    think_s: float
    new_customers_percent: float
    searches_mean: int
    search_rows_mean: int
    lines_mean: int
    new_members_percent: float | None = None
    reviews_mean: int | None = None
    new_reviews_percent: float | None = None
    new_ratings_percent: float | None = None


class MailTask(Document):
    """How often a user does a task in its day."""

    task: str
    per_day: float


class MailRecipients(Document):
    """How many recipients some of the new mails have."""

    weight: float
    count: int


class MailOnRead(Document):
    """What becomes of a mail that is read: shares of 1."""

    reply: float
    reply_all: float
    forward: float
    move: float
    delete: float
    attachment: float


class MailWorkload(WorkloadSpec):
    """Users of a mail server."""

    family: Literal["mail"]
    tasks: Sequence[MailTask]
    client: Literal["online", "cached"]
    day_h: float
    dispatch: Literal["even", "poisson"]
    recipients: Sequence[MailRecipients]
    on_read: MailOnRead
    inbox_limit: int
    page_rows: int
    read_max: int
    idle: bool
    older_per_visit: int | None = None
    background_reads_per_task: float | None = None
    mailbox_moves_per_h: float | None = None
    probes_per_minute: float
    probe_poll_ms: int
    probe_timeout_s: float
    unfinished_max_per_user: float


class PlaceSpec(Document):
    """Which volume of a modelled array holds a directory."""

    directory: str
    volume: int


class ModelledSpec(Document):
    """A modelled array in the place of real storage."""

    array: ArraySpec
    places: Sequence[PlaceSpec]
    processor_count: int
    transaction_processor_ns: int
    faults_while_measuring: Sequence[TimedFault]


class NodeSpec(Document):
    """A node, and the instances it carries at first."""

    name: str
    processors: int
    instances: Sequence[str]


class TakenSpec(Document):
    """An instance on the survivor."""

    instance: str
    cache_bytes_min: int
    cache_bytes_max: int


class NodeDeathSpec(Document):
    """A node that dies, and what becomes of its instances."""

    event: str
    phase: str
    after_s: float
    node: str
    to: str
    taken: Sequence[TakenSpec]
    quorum_lost: str | None = None


class ClusterSpec(Document):
    """The nodes that the instances of a run live on, and those that die."""

    nodes: Sequence[NodeSpec]
    deaths: Sequence[NodeDeathSpec]


class RunSpec(Document):
    """A whole run."""

    schema_version: Literal[1]
    seed: int
    sample_interval_ms: int
    hung_after_ms: int
    io_method: str
    durable_writes: str | None = None
    max_iops: float | None = None
    max_mib_per_s: float | None = None
    can_hold_writes: bool | None = None
    threads: int | None = None
    pin: bool | None = None
    destroy_serials: Sequence[str] = ()
    modelled: ModelledSpec | None = None
    hosts: Sequence[HostSpec]
    targets: Sequence[TargetSpec]
    instances: Sequence[
        RecordsInstance
        | FilesInstance
        | HomesInstance
        | StoreInstance
        | StoreClientInstance
        | MailInstance
        | MailStoreInstance
    ]
    cluster: ClusterSpec | None = None
    workloads: Sequence[
        RecordsWorkload | FilesWorkload | HomesWorkload | StoreWorkload | MailWorkload
    ]
    phases: Sequence[PhaseSpec]

    @property
    def record_instances(self) -> Sequence[RecordsInstance]:
        """Those instances that hold databases of records."""
        return tuple(item for item in self.instances if isinstance(item, RecordsInstance))

    @property
    def our_instances(self) -> Sequence[InstanceSpec]:
        """Those instances whose files are ours."""
        return tuple(item for item in self.instances if item.is_ours)

    @property
    def engine_instances(self) -> Sequence[EngineInstance]:
        """Those instances that have a log and a cache."""
        return tuple(item for item in self.instances if isinstance(item, EngineInstance))

    @property
    def record_workloads(self) -> Sequence[RecordsWorkload]:
        """Those workloads that work on records."""
        return tuple(item for item in self.workloads if isinstance(item, RecordsWorkload))

    @property
    def mail_instances(self) -> Sequence[MailInstance]:
        """Those instances that are mail servers."""
        return tuple(item for item in self.instances if isinstance(item, MailInstance))

    @property
    def mail_stores(self) -> Sequence[MailStoreInstance]:
        """Those instances that are mail stores on the engine."""
        return tuple(item for item in self.instances if isinstance(item, MailStoreInstance))

    @property
    def thread_count(self) -> int:
        """How many threads carry the instances.

        An instance lives on one, and virtual time knows one only.
        """
        return 1 if self.modelled else max(1, min(self.threads or 1, len(self.instances)))

    def stored_bytes(self) -> int:
        """The size of all databases."""
        return sum(
            database.size_bytes for instance in self.instances for database in instance.databases
        )

    def logs_count(self) -> int:
        """Logs that phases make every instance write."""
        return sum(
            phase.action.logs_count
            for phase in self.phases
            if isinstance(phase.action, GenerateLogs)
        )
