"""Every default of Plimsoll lives here or in the data files read here; Rust has none.

Editions and limits are data with a source for each row. What is merely a choice of ours is a constant below.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

SCHEMA_VERSION: Literal[1] = 1
#: A row of shipped data, as its TOML file has it.
Row = dict[str, Any]

#: Kinds of test, each with the seconds of the published one; anything shorter is a rehearsal. The published reliability test ran
#: for a day. Tests that run until they are done have none.
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
#: Kinds of phases under whose load latencies are judged. The published recovery test reports on its generation of logs as on
#: any other load.
MEASURED_KINDS = ("measure", "generate_logs")
#: A database this many times larger than the cache is taken not to fit it.
QUALIFYING_CACHE_MULTIPLE = 16
#: Databases that fill less of the storage than this are far below what it is designed for: short strokes, empty flash.
#: The published tests filled 46 to 80 % of theirs.
QUALIFYING_CAPACITY_SHARE = 0.4
#: Where a plan says how full the design is, a test may stay this far below: what databases grow by in years is not there yet.
QUALIFYING_DESIGN_SHARE = 0.8

#: A thread of the load generator that is busier may itself be the limit, as `data/doubts.toml` says; with more threads each is to
#: have some time left.
THREAD_BUSY_MAX = 0.9
THREAD_BUSY_WANTED = 0.7

#: What a plan gets for a key that it leaves out.
RUN_DEFAULTS: dict[str, Any] = {
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

INSTANCE_DEFAULTS: dict[str, Any] = {
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

#: Files under access specifications. Evenly spaced, so that every window of ten seconds holds what was asked for; random content
#: that is new at every write, because storage that reduces data is as fast as its data lets it be. A rate that was asked for is
#: required but for half a percent: the last transactions of a run end after it.
FILES: Row = {
    "file_mib": 1024,
    "data_pattern": 2,
    "spacing": "regular",
    "limits": "files",
    "window_s": 10,
    "rate_share": 0.995,
}

#: An online store as DVD Store has it where nothing is said: its small size, no think time, a fifth new customers, three searches of five rows,
#: five lines.
STORE: Row = {
    "timeout_s": 60.0,
    "lost_after_s": 60.0,
    "megabytes": 10,
    "think_s": 0.0,
    "new_customers_percent": 20.0,
    "searches_mean": 3,
    "search_rows_mean": 5,
    "lines_mean": 5,
    "window_s": 10,
}

#: Mail users where nothing is said. Letters of base64 carry six of eight bits: an entropy of 60 % is text and documents, half of it packed. A screen of 25
#: rows, 20 unread messages at a visit. A task that is due and not done for half a user more than there are users is LoadGen's "too much load".
MAIL: Row = {
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
    # A percentile of fewer results says nothing of a task; a score of less than nine tenths of the weights says nothing of a server.
    "results_min": 20,
    "weight_share_min": 0.9,
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

#: From where on the disk's own counters and the engine's disagree: shares of bytes, share and milliseconds of a mean
#: latency. A tenth is more than metadata and journals of a file system make beside pages of 32 KiB; less than 64 MiB moved, or
#: less than a hundred transfers, says nothing.
DEVICE_VIEW: dict[str, float] = {
    "bytes_share": 0.10,
    "latency_share": 0.25,
    "latency_ms": 0.5,
    "bytes_min": 64 * 1024 * 1024,
    "count_min": 100,
}

#: When a drive counts as steady: the rule of the SNIA Solid State Storage Performance Test Specification 2.0 (steady state: a window of
#: five rounds of one minute, range within 20 % and slope within 10 % of their mean, 25 rounds at most).
PRECONDITION: dict[str, float] = {
    "round_s": 60.0,
    "rounds_max": 25,
    "window_rounds": 5,
    "range_percent": 20.0,
    "slope_percent": 10.0,
}

#: The published warm-up ends when the cache holds nine tenths of its limit.
CACHE_WARM_PERCENT = 90
WARM_UP_TIMEOUT_S = 1800.0
CHECKSUM_READ_KIB = 64
CHECKSUM_READS_IN_FLIGHT = 64
#: The published backup read 256 KiB with 1.67 reads in flight for each database.
BACKUP_READ_KIB = 256
BACKUP_READS_IN_FLIGHT = 2
#: Logs that the published recovery test replays, and its pace on fifteen-thousand-a-minute drives: 7.73 s to generate and 2.23 s to
#: replay 2 MiB of log. The pace only serves the forecast.
RECOVERY_LOGS = 500
GENERATE_TIMEOUT_S = 6 * 3600.0
GENERATE_S_PER_LOG, REPLAY_S_PER_LOG = 3.9, 1.1

#: Loads that arrive by a schedule.
ARRIVALS: dict[str, Any] = {
    # What many independent users make.
    "spacing": "poisson",
    # Far more than any limit allows at the rates one thread makes: 512 at 20 ms are 25,000 a second.
    "sessions_max": 512,
    # About what the published mix makes with a small cache; only the first seconds of a warm-up depend on it.
    "io_per_transaction_assumed": 1.0,
    "calibrate_s": 20.0,
}

#: A search for the highest rate: a dozen steps of 25 s find it within 2 %.
SEARCH: dict[str, Any] = {"step_s": 20.0, "settle_s": 5.0, "tolerance_percent": 2.0, "duration_s": 3600.0}

#: Whoever asks for a capacity within so many minutes has agreed to them.
CAPACITY_MINUTES_AGREED = 20.0

#: Transactions of one batch of the published test tool, as its reports count them: fits four EMC runs.
BATCH_TRANSACTIONS = 32

#: The demo: small enough for two minutes, large enough that most reads miss the cache.
DEMO: dict[str, Any] = {
    "edition": "2010",
    "instances": 2,
    "database_size_mib": 1024,
    "cache_mib_max": 64,
    "duration_s": 60.0,
}


def _data(name: str) -> dict[str, Any]:
    return tomllib.loads(files("plimsoll.data").joinpath(name).read_text(encoding="utf-8"))


@cache
def editions() -> dict[str, dict[str, Any]]:
    """The editions by name, each with its values and their sources.

    >>> editions()["2010"]["page_bytes"]
    32768
    """
    found: dict[str, dict[str, Any]] = _data("editions.toml")["editions"]
    return found


@cache
def published_results() -> Row:
    """Results that papers print, and the loads behind them.

    >>> published_results()["result"][0]["id"]
    'emc-2011'
    """
    return _data("published_results.toml")


@cache
def published_ratios() -> dict[str, Any]:
    """Ratios of published runs, with their source.

    >>> published_ratios()["ratio"][0]["name"]
    'reads_per_write'
    """
    return _data("published_ratios.toml")


@cache
def limits() -> dict[str, Any]:
    """The limit sets and checks, each with its source.

    >>> sorted(limits()["sets"])
    ['files', 'lenient', 's1', 's4', 'spec-like', 'strict', 'vmware']
    """
    return _data("limits.toml")


@cache
def counters() -> dict[str, Any]:
    """The counters of the published reports with their Linux sources.

    >>> counters()["intervals_s"]["checksum"]
    30
    """
    return _data("counters.toml")


@cache
def storage_classes() -> dict[str, Any]:
    """What gives a class of storage away, each with its source.

    >>> storage_classes()["class"][0]["name"]
    'memory'
    """
    return _data("storage_classes.toml")


@cache
def doubts() -> dict[str, Any]:
    """When a failed check may be the load generator's own doing.

    >>> doubts()["doubt"][0]["name"]
    'executor_busy'
    """
    return _data("doubts.toml")
