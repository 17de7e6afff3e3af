"""Every default of Plimsoll lives here or in the data files read here; Rust has none.

Editions and limits are data with a source for each row. What is merely a choice of ours is a
constant below.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, Required, TypedDict, cast

SCHEMA_VERSION: Literal[1] = 1


class Edition(TypedDict):
    """The habits of one Exchange generation; sizes in the unit that their name ends with."""

    page_bytes: int
    insert_percent: int
    delete_percent: int
    replace_percent: int
    read_percent: int
    lazy_commit_percent: int
    record_bytes: int
    cache_mib_min: int
    cache_mib_max: int
    cache_scope: str
    sessions: int
    sessions_shared: bool
    sluggish: float
    log_framing: str
    maintenance: bool
    maintenance_throttle_ms: int
    folder_records: int
    batch_operations: int
    replies: bool
    vacancy_percent: int
    sources: list[str]


class RuleText(TypedDict, total=False):
    """What `explain` says of a rule; some have a title, some a share that is allowed."""

    name: str
    title: str
    source: str
    explanation: str
    if_it_fails: str
    percent: float
    percent_range: list[float]


class LimitRule(RuleText, total=False):
    """A check and its limit in each set of limits that has it."""

    metric: str
    scope: str
    statistic: str
    unit: str
    limit: dict[str, float]
    backend: str
    search_limit: float
    fault: bool
    fails_by: str
    #: Whether the limit is the least that passes.
    least: bool


class Limits(TypedDict):
    """`limits.toml`: the sets of limits with what each is for, and the checks."""

    sample_interval_s: int
    sets: dict[str, str]
    check: list[LimitRule]
    mail_check: list[LimitRule]


class CounterRow(TypedDict, total=False):
    """A counter of the published reports and its source on Linux."""

    object: str
    counter: str
    scope: str
    metrics: list[str]
    how: str
    unit: str
    source: str
    nearness: str
    published: str
    per: str
    factor: float


class Counters(TypedDict):
    """`counters.toml`: counters, and seconds of an interval by kind of phase."""

    intervals_s: dict[str, int]
    counter: list[CounterRow]


class StorageClassRule(TypedDict, total=False):
    """What gives a class of storage away: patterns by the name of a fact."""

    name: str
    title: str
    decides: bool
    match: dict[str, str]
    meaning: str
    source: str


class DayCurve(TypedDict):
    """A load over a day: for each hour a share of the busiest hour's rate, in percent."""

    title: str
    source: str
    percent: list[float]


class DoubtRule(TypedDict):
    """When a failed check may be the load generator's doing."""

    name: str
    limit: float
    text: str
    explanation: str
    if_it_fails: str


class HomesDefaults(TypedDict):
    """Home folders where nothing is said."""

    homes: int
    sessions: int
    spacing: Literal["regular", "poisson"]
    limits: str


class FilesDefaults(TypedDict):
    """Files under access specifications where nothing is said."""

    file_mib: int
    data_pattern: int
    spacing: Literal["regular", "poisson"]
    limits: str
    window_s: int
    rate_share: float


class MailDefaults(TypedDict):
    """Mail users where nothing is said."""

    limits: str
    entropy_percent: int
    page_rows: int
    read_max: int
    probes_per_minute: float
    probe_poll_ms: int
    probe_timeout_s: float
    unfinished_max_per_user: float
    connect_timeout_s: float
    command_timeout_s: float
    lost_after_s: float
    literal_max_bytes: int
    results_min: int
    weight_share_min: float
    move_log_per_byte: float


class PublishedRow(TypedDict, total=False):
    """A result that a paper prints: figures by name, and for how many users."""

    id: Required[str]
    title: Required[str]
    paper: Required[str]
    where: Required[str]
    test: str
    users: int
    note: str
    figures: dict[str, float]


class ShopThreads(TypedDict):
    """What a session of a published store stands for."""

    source: str
    users_200: int
    users_500: int
    users_per_thread: int
    think_time_s: float
    orders_per_user_per_min_max: float


class Contradiction(TypedDict):
    """What a paper says against itself."""

    id: str
    paper: str
    text: str


class PublishedResults(TypedDict):
    """`published_results.toml`; `mail_weights` by task, with their source."""

    result: list[PublishedRow]
    mail_weights: dict[str, str | float]
    file_access: list[dict[str, str | float]]
    shop_threads: ShopThreads
    contradiction: list[Contradiction]


class MailRelation(TypedDict, total=False):
    """Published I/O of mail users."""

    title: Required[str]
    users: Required[int]
    source: Required[str]
    basis: str
    iops_per_user: float
    reads_to_writes: float


class MailRelations(TypedDict):
    """`mail_relations.toml`."""

    row: list[MailRelation]


class PublishedRatio(TypedDict):
    """A ratio as several runs published it, as the engine makes it, and its bounds here."""

    name: str
    title: str
    published: list[float]
    simulated: float
    least: float
    most: float


class PublishedRatios(TypedDict):
    """`published_ratios.toml`."""

    edition: str
    source: str
    condition: str
    runs: list[str]
    ratio: list[PublishedRatio]


class InstanceDefaults(TypedDict):
    """What an instance gets for a key that a plan leaves out."""

    edition: str
    backend: str
    databases: int
    database_size_mib: int
    compressible_percent: int
    duplicate_percent: int
    copies: int
    maintenance_read_kib: int
    circular_log: bool
    page_images: bool
    checkpoint_depth_mib: int


class ArrivalDefaults(TypedDict):
    """Loads that arrive by a schedule."""

    spacing: str
    sessions_max: int
    io_per_transaction_assumed: float
    calibrate_s: float


class SearchDefaults(TypedDict):
    """A search for the highest rate."""

    step_s: float
    settle_s: float
    tolerance_percent: float
    duration_s: float


class DemoDefaults(TypedDict):
    """The demo."""

    edition: str
    instances: int
    database_size_mib: int
    cache_mib_max: int
    duration_s: float


#: Kinds of test, each with the seconds of the published one; anything shorter is a rehearsal. The
#: published reliability test ran for a day. Tests that run until they are done have none.
QUALIFYING_S: dict[str, int] = {
    "performance": 2 * 3600,
    "stress": 24 * 3600,
    "maximum": 2 * 3600,
    "backup": 0,
    "recovery": 0,
    "checksum": 0,
    # The published file servers ran for half an hour.
    "files": 1800,
    # As did the published online stores.
    "store": 1800,
    # As did the published mail users.
    "mail": 1800,
}
#: What a plan measures for that says nothing else.
QUALIFYING_DURATION_S = QUALIFYING_S["performance"]
#: Kinds of phases under whose load latencies are judged. The published recovery test reports on its
#: generation of logs as on any other load.
MEASURED_KINDS = ("measure", "generate_logs")
#: The phase of what was under way when the time of a phase was over, until it ended.
BETWEEN_PHASES = "between phases"
#: A database this many times larger than the cache is taken not to fit it.
QUALIFYING_CACHE_MULTIPLE = 16
#: Databases that fill less of the storage than this are far below what it is designed for: short
#: strokes, empty flash. The published tests filled 46 to 80 % of theirs.
QUALIFYING_CAPACITY_SHARE = 0.4
#: Where a plan says how full the design is, a test may stay this far below: what databases grow by
#: in years is not there yet.
QUALIFYING_DESIGN_SHARE = 0.8

#: What the engine writes; `docs/file-format.md` says who else reads it.
ENGINE_FORMAT = "ESE 0x620, update 0x14"
#: A thread of the load generator that is busier may itself be the limit, as `data/doubts.toml`
#: says; with more threads each is to have some time left.
THREAD_BUSY_MAX = 0.9
THREAD_BUSY_WANTED = 0.7

#: What a plan gets for a key that it leaves out.
RUN_DEFAULTS: dict[str, str | int] = {
    "seed": 1,
    "sample_interval_ms": 1000,
    "hung_after_ms": 30_000,
    "io_method": "auto",
    # One, so that figures stay comparable with those of runs before there was a choice.
    "threads": 1,
    "durable_writes": "faster",
    "limits": "strict",
    "test": "performance",
}

INSTANCE_DEFAULTS: InstanceDefaults = {
    "edition": "2010",
    "backend": "engine",
    "databases": 1,
    "database_size_mib": 1024,
    "compressible_percent": 0,
    "duplicate_percent": 0,
    "copies": 1,
    "maintenance_read_kib": 256,
    "circular_log": True,
    "page_images": False,
    "checkpoint_depth_mib": 20,
}

#: Files under access specifications. Evenly spaced, so that every window of ten seconds holds what
#: was asked for; random content that is new at every write, because storage that reduces data is as
#: fast as its data lets it be. A rate that was asked for is required but for half a percent: the
#: last transactions of a run end after it.
FILES: FilesDefaults = {
    "file_mib": 1024,
    "data_pattern": 2,
    "spacing": "regular",
    "limits": "files",
    "window_s": 10,
    "rate_share": 0.995,
}

#: Home folders where nothing is said: evenly spaced, so that users keep their pace; a search makes
#: so many homes and warms up with a few sessions.
HOMES: HomesDefaults = {
    "homes": 100,
    "sessions": 8,
    "spacing": "regular",
    "limits": "files",
}

#: An online store as DVD Store has it where nothing is said: its small size, no think time, a fifth
#: new customers, three searches of five rows, five lines.
STORE: dict[str, float] = {
    "timeout_s": 60.0,
    "lost_after_s": 60.0,
    "megabytes": 10,
    "think_s": 0.0,
    "new_customers_percent": 20.0,
    "searches_mean": 3,
    "search_rows_mean": 5,
    "lines_mean": 5,
    "reviews_per_product": 20,
    "window_s": 10,
}

#: Mail users where nothing is said. Letters of base64 carry six of eight bits: an entropy of 60 %
#: is text and documents, half of it packed. A screen of 25 rows, 20 unread messages at a visit. A
#: task that is due and not done for half a user more than there are users is LoadGen's "too much
#: load".
MAIL: MailDefaults = {
    "limits": "s4",
    "entropy_percent": 60,
    "page_rows": 25,
    "read_max": 20,
    "probes_per_minute": 6.0,
    "probe_poll_ms": 100,
    "probe_timeout_s": 60.0,
    "unfinished_max_per_user": 1.5,
    "connect_timeout_s": 10.0,
    "command_timeout_s": 60.0,
    "lost_after_s": 60.0,
    "literal_max_bytes": 64 * 1024 * 1024,
    # A percentile of fewer results says nothing of a task; a score of less than nine tenths of the
    # weights says nothing of a server.
    "results_min": 20,
    "weight_share_min": 0.9,
    # Measured on 2026-11-27 with mailboxes of 0.35 MB, edition 2010 and page images; only for the
    # forecast of a run that moves mailboxes. `plimsoll test mail PATH --moves-percent 200`.
    "move_log_per_byte": 2.2,
}

#: Sizes inside the engine that no edition published and no plan changes.
ENGINE_SIZES: dict[str, int] = {
    "log_buffer_bytes": 1024 * 1024,
    # 8192 version pages of 16 KiB, as in the published configuration files.
    "version_store_bytes_max": 8192 * 16 * 1024,
    # 8 MiB steps of 32 KiB pages: the growth seen in the published runs.
    "extension_pages": 256,
    "waypoint_generations": 0,
    "writes_outstanding_max": 32,
}

#: From where on the disk's own counters and the engine's disagree: shares of bytes, share and
#: milliseconds of a mean latency. A tenth is more than metadata and journals of a file system make
#: beside pages of 32 KiB; less than 64 MiB moved, or less than a hundred transfers, says nothing.
DEVICE_VIEW: dict[str, float] = {
    "bytes_share": 0.10,
    "latency_share": 0.25,
    "latency_ms": 0.5,
    "bytes_min": 64 * 1024 * 1024,
    "count_min": 100,
}

#: When a drive counts as steady: the rule of the SNIA Solid State Storage Performance Test
#: Specification 2.0 (steady state: a window of five rounds of one minute, range within 20 % and
#: slope within 10 % of their mean, 25 rounds at most).
PRECONDITION: dict[str, float] = {
    "round_s": 60.0,
    "rounds_max": 25,
    "window_rounds": 5,
    "range_percent": 20.0,
    "slope_percent": 10.0,
}

#: Far more than one host can hold open; a hundred thousand kept the planner busy for minutes before
#: anything was said.
INSTANCES_MAX = 10_000
#: The published warm-up ends when the cache holds nine tenths of its limit.
CACHE_WARM_PERCENT = 90
WARM_UP_TIMEOUT_S = 1800.0
CHECKSUM_READ_KIB = 64
CHECKSUM_READS_IN_FLIGHT = 64
#: The published backup read 256 KiB with 1.67 reads in flight for each database.
BACKUP_READ_KIB = 256
BACKUP_READS_IN_FLIGHT = 2
#: Logs that the published recovery test replays, and its pace on fifteen-thousand-a-minute drives:
#: 7.73 s to generate and 2.23 s to replay 2 MiB of log. The pace only serves the forecast.
RECOVERY_LOGS = 500
GENERATE_TIMEOUT_S = 6 * 3600.0
GENERATE_S_PER_LOG, REPLAY_S_PER_LOG = 3.9, 1.1

#: Loads that arrive by a schedule.
ARRIVALS: ArrivalDefaults = {
    # What many independent users make.
    "spacing": "poisson",
    # Far more than any limit allows at the rates one thread makes: 512 at 20 ms are 25,000 a
    # second.
    "sessions_max": 512,
    # About what the published mix makes with a small cache; only the first seconds of a warm-up
    # depend on it.
    "io_per_transaction_assumed": 1.0,
    "calibrate_s": 20.0,
}

#: A search for the highest rate: a dozen steps of 25 s find it within 2 %.
SEARCH: SearchDefaults = {
    "step_s": 20.0,
    "settle_s": 5.0,
    "tolerance_percent": 2.0,
    "duration_s": 3600.0,
}

#: Whoever asks for a capacity within so many minutes has agreed to them.
CAPACITY_MINUTES_AGREED = 20.0

#: Transactions of one batch of the published test tool, as its reports count them: fits four EMC
#: runs.
BATCH_TRANSACTIONS = 32

#: The demo: small enough for two minutes, large enough that most reads miss the cache.
DEMO: DemoDefaults = {
    "edition": "2010",
    "instances": 2,
    "database_size_mib": 1024,
    "cache_mib_max": 64,
    "duration_s": 60.0,
}


def _data(name: str) -> Any:
    return tomllib.loads(files("plimsoll.data").joinpath(name).read_text(encoding="utf-8"))


@cache
def editions() -> dict[str, Edition]:
    """The editions by name, each with its values and their sources.

    >>> editions()["2010"]["page_bytes"]
    32768
    """
    found: dict[str, Edition] = _data("editions.toml")["editions"]
    return found


@cache
def published_results() -> PublishedResults:
    """Results that papers print, and the loads behind them.

    >>> published_results()["result"][0]["id"]
    'emc-2011'
    """
    return cast(PublishedResults, _data("published_results.toml"))


@cache
def mail_relations() -> MailRelations:
    """Published I/O of mail users.

    >>> mail_relations()["row"][0]["users"]
    4000
    """
    return cast(MailRelations, _data("mail_relations.toml"))


@cache
def published_ratios() -> PublishedRatios:
    """Ratios of published runs, with their source.

    >>> published_ratios()["ratio"][0]["name"]
    'reads_per_write'
    """
    return cast(PublishedRatios, _data("published_ratios.toml"))


@cache
def limits() -> Limits:
    """The limit sets and checks, each with its source.

    >>> sorted(limits()["sets"])
    ['files', 'lenient', 's1', 's4', 'spec-like', 'strict', 'vmware']
    """
    return cast(Limits, _data("limits.toml"))


def single_rule(name: str) -> RuleText:
    """A rule of `limits.toml` that is no limit of a set.

    >>> single_rule("required_iops")["title"]
    'Database IOPS that the plan requires'
    """
    found: RuleText = dict[str, object](limits())[name]  # type: ignore[assignment]
    return found


@cache
def counters() -> Counters:
    """The counters of the published reports with their Linux sources.

    >>> counters()["intervals_s"]["checksum"]
    30
    """
    return cast(Counters, _data("counters.toml"))


@cache
def storage_classes() -> Sequence[StorageClassRule]:
    """What gives a class of storage away, each with its source.

    >>> storage_classes()[0]["name"]
    'memory'
    """
    found: list[StorageClassRule] = _data("storage_classes.toml")["class"]
    return found


@cache
def day_curves() -> Mapping[str, DayCurve]:
    """Days of a load, by name.

    >>> len(day_curves()["office"]["percent"])
    24
    """
    found: dict[str, DayCurve] = _data("day_curves.toml")
    return found


@cache
def doubts() -> Sequence[DoubtRule]:
    """When a failed check may be the load generator's own doing.

    >>> doubts()[0]["name"]
    'executor_busy'
    """
    found: list[DoubtRule] = _data("doubts.toml")["doubt"]
    return found
