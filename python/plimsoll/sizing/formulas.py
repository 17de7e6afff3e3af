"""The figures every design needs, from requirements to volumes and rates, by the formulas as they
are printed.

The chain of the Dell EqualLogic paper (Tables 14 to 17) for users, and the same chain for a
transactional load that is not mail. What a paper's own example did differently is in
`published.py`, never here.
"""

from dataclasses import replace

from plimsoll.inputs.records import dataclass
from plimsoll.sizing.backup import window_database_size
from plimsoll.sizing.databases import (
    Capacity,
    Reserves,
    database_count,
    database_volumes,
    total_capacity,
    total_database_size,
)
from plimsoll.sizing.guidance import Guidance
from plimsoll.sizing.iops import LOG_RULES, DatabaseIops, database_iops, iops_per_user
from plimsoll.sizing.logs import log_space_days, log_volume
from plimsoll.sizing.mailbox import mailbox_size, profile_cache
from plimsoll.sizing.requirements import Requirements, Transactions, Users
from plimsoll.sizing.traced import Step, derive, given
from plimsoll.units import BYTES_PER_KB, SECONDS_PER_HOUR, UNIT_SUFFIXES


@dataclass(frozen=True)
class Givens:
    """The answers of a requirements file as steps, each made once so that a chain names it once."""

    copy_count: Step
    server_count: Step
    max_database_size: Step
    backup_interval: Step
    replay_lag: Step
    retention: Step
    moved: Step
    backup_rate: Step
    replay_per_log: Step


@dataclass(frozen=True)
class Core:
    """The main figures of a design.

    Attributes:
        shared: The answers that several chains begin with.
        load: Steps that describe the load: mailbox and user figures, or transactions.
        log_details: Steps between the load and the log volume.
        log_rules: The log I/O by each published rule, by name of the rule; one entry for
            transactions.
        cache_per_user: Cache by profile; None for transactions.
    """

    shared: Givens
    user_count: Step | None
    load: tuple[Step, ...]
    total_database_size: Step
    max_database_size: Step
    database_count: Step
    database_size: Step
    database_volume_size: Step
    log_details: tuple[Step, ...]
    log_growth: Step
    log_space_days: Step
    log_volume_size: Step
    iops: tuple[Step, ...]
    database_iops: Step
    log_iops: Step
    log_rules: dict[str, Step]
    capacity: Capacity
    cache_per_user: Step | None


def stated(requirements: Requirements, key: str) -> str:
    """The source of an answer: the file that states it, or the default."""
    return (
        requirements.name
        if any(path.startswith(key) for path in requirements.stated)
        else "default"
    )


def givens(
    requirements: Requirements, moved_fraction: float = 0.0, moved_source: str = "default"
) -> Givens:
    """Turn the answers that several chains share into steps.

    Args:
        requirements: Checked requirements.
        moved_fraction: Share of mailboxes moved where the requirements do not say.
        moved_source: Where that share comes from.
    """
    guidance, copies, logs, backup = (
        requirements.guidance,
        requirements.copies,
        requirements.logs,
        requirements.backup,
    )

    def answer(name: str, value: float, title: str, key: str) -> Step:
        return given(name, value, title, stated(requirements, key))

    def or_figure(name: str, value: float | None, title: str, figure: str) -> Step:
        if value is not None:
            return given(name, value, title, requirements.name)
        published = guidance.step(figure)
        return given(name, published.value, title, published.source, published.note)

    moved = logs.mailboxes_moved_fraction
    share, source = (moved_fraction, moved_source) if moved is None else (moved, requirements.name)
    largest, per_log = requirements.databases.max_size_gb, backup.replay_time_per_log_s
    return Givens(
        copy_count=answer("copy_count", copies.count, "Copies of each database", "copies.count"),
        server_count=answer("server_count", copies.servers, "Servers", "copies.servers"),
        max_database_size=or_figure(
            "max_database_size_gb", largest, "Largest database", f"max_database_{copies.mode}_gb"
        ),
        backup_interval=answer(
            "backup_interval_days", backup.interval_days, "Days between backups", "backup.interval"
        ),
        replay_lag=answer(
            "replay_lag_days",
            copies.replay_lag_days,
            "Replay lag of a lagged copy",
            "copies.replay_lag",
        ),
        retention=or_figure(
            "retention_days", logs.retention_days, "Days without truncation", "log_retention_days"
        ),
        moved=given(
            "mailboxes_moved_fraction", share, "Mailboxes moved while logs are held", source
        ),
        backup_rate=or_figure(
            "backup_read_mb_per_s",
            backup.read_rate_mb_per_s,
            "Backup read rate of one database",
            "backup_mb_per_s",
        ),
        replay_per_log=or_figure(
            "replay_per_log_s", per_log, "Replay of one log", "replay_s_per_log"
        ),
    )


def grown(
    requirements: Requirements, name: str, value: float, title: str, key: str, growth: float
) -> Step:
    """An answer with growth added; the bare answer where there is none."""
    if not growth:
        return given(name, value, title, stated(requirements, key))
    ending = next(suffix for suffix in UNIT_SUFFIXES if name.endswith(f"_{suffix}"))
    today = given(
        f"{name.removesuffix(ending)}today_{ending}",
        value,
        f"{title} today",
        stated(requirements, key),
    )
    share = given(
        "growth_fraction", growth, "Growth", stated(requirements, key.split(".")[0] + ".growth")
    )
    return derive(name, today * (1 + share), f"{title} with growth", "growth stated")


def core_figures(requirements: Requirements) -> Core:
    """Size the load, the databases, the logs and the I/O by the formulas as printed.

    Args:
        requirements: Checked requirements.

    Returns:
        Every figure with its chain, unrounded.
    """
    if requirements.users:
        return _for_users(requirements, requirements.users)
    assert requirements.transactions, "checked requirements state users or transactions"
    return _for_transactions(requirements, requirements.transactions)


def capacity_of(
    requirements: Requirements, shared: Givens, count: Step, volume: Step, log: Step
) -> Capacity:
    """The total capacity with the reserves that were asked for."""
    storage, databases = requirements.storage, requirements.databases

    def answer(name: str, value: float, title: str, key: str) -> Step:
        return given(name, value, title, stated(requirements, key))

    reserves = Reserves(
        answer(
            "snapshot_reserve_fraction",
            storage.snapshot_reserve_fraction,
            "Snapshot reserve, share of volumes",
            "storage.snapshot",
        ),
        answer(
            "replication_reserve_fraction",
            storage.replication_reserve_fraction,
            "Array replication reserve, share",
            "storage.replication",
        ),
        answer("clone_count", storage.clone_count, "Clones of all volumes", "storage.clone_count"),
        answer(
            "recovery_database_count",
            databases.recovery_count,
            "Databases recovered at once",
            "databases.recovery",
        ),
        answer(
            "offline_maintenance_count",
            databases.offline_maintenance_count,
            "Databases maintained offline",
            "databases.offline",
        ),
    )
    return total_capacity(count, volume, log, shared.copy_count, requirements.guidance, reserves)


def _count_of(requirements: Requirements, shared: Givens, total: Step, users: Step | None) -> Step:
    window, limits = requirements.backup.window_h, requirements.databases
    by_window = None
    if window is not None:
        allowed = given(
            "backup_window_allowed_h",
            window,
            "Backup window",
            stated(requirements, "backup.window"),
        )
        by_window = window_database_size(allowed, shared.backup_rate)
    least = given(
        "minimum_database_count",
        limits.count_min,
        "Fewest databases",
        stated(requirements, "databases.count_min"),
    )
    most = None
    if users and limits.users_max is not None:
        most = given(
            "users_per_database_max_count",
            limits.users_max,
            "Most users in a database",
            requirements.name,
        )
    return database_count(total, shared.max_database_size, users, most, by_window, least)


@dataclass(frozen=True)
class UserSteps:
    """The answers of a `[users]` table as steps."""

    count: Step
    quota: Step
    messages: Step
    message: Step
    extra: Step

    @classmethod
    def of(cls, requirements: Requirements, users: Users) -> "UserSteps":
        """Name every answer once."""

        def answer(name: str, value: float, title: str, where: str) -> Step:
            return given(name, value, title, stated(requirements, f"users.{where}"))

        rate = "profile" if users.profile else "messages"
        return cls(
            grown(
                requirements,
                "user_count",
                users.count,
                "Users",
                "users.count",
                users.growth_fraction,
            ),
            answer("mailbox_quota_mb", users.mailbox_quota_mb, "Mailbox quota", "mailbox_quota"),
            answer("messages_per_day", users.messages_per_day, "Messages per user in a day", rate),
            answer("message_kb", users.message_size_kb, "Mean message size", "message_size"),
            answer(
                "extra_iops_per_user",
                users.extra_iops_per_user,
                "Further I/O per user",
                "extra_iops",
            ),
        )


@dataclass(frozen=True)
class UserRates:
    """The I/O of all users: database I/O, and log I/O by each published rule and by the one
    chosen.
    """

    database: DatabaseIops
    log_rules: dict[str, Step]
    log_iops: Step


def user_rates(
    requirements: Requirements, users: Users, steps: UserSteps, copies: Step
) -> UserRates:
    """Tables 16 and 17 for the users of a requirements file."""
    guidance, chosen = requirements.guidance, requirements.logs.iops_rule
    one = iops_per_user(
        steps.messages,
        guidance,
        standalone=requirements.copies.standalone,
        online_clients=users.client_mode == "online",
        extra_iops_per_user=steps.extra,
    )
    rates = database_iops(steps.count, one, guidance)
    rules = {name: rule(rates.database_iops, copies, guidance) for name, rule in LOG_RULES.items()}
    log_iops = derive("log_iops", rules[chosen], "Log IOPS", rules[chosen].source, f"rule {chosen}")
    return UserRates(rates, rules, log_iops)


def _for_users(requirements: Requirements, users: Users) -> Core:
    guidance, shared = requirements.guidance, givens(requirements)
    load = UserSteps.of(requirements, users)
    mailbox = mailbox_size(load.quota, load.messages, load.message, guidance)
    total = total_database_size(load.count, mailbox.mailbox_size, guidance)
    databases = _count_of(requirements, shared, total, load.count)
    volumes = database_volumes(total, databases, guidance)
    days = log_space_days(shared.retention, shared.backup_interval, shared.replay_lag)
    logs = log_volume(
        load.count, databases, load.messages, load.message, days, guidance, shared.moved
    )
    rates = user_rates(requirements, users, load, shared.copy_count)
    return Core(
        shared=shared,
        user_count=load.count,
        load=(load.count, mailbox.white_space, mailbox.dumpster, mailbox.mailbox_size),
        total_database_size=total,
        max_database_size=shared.max_database_size,
        database_count=databases,
        database_size=volumes.database_size,
        database_volume_size=volumes.database_volume_size,
        log_details=(logs.users_per_database, logs.logs_per_user, logs.message_size_factor),
        log_growth=logs.daily_growth,
        log_space_days=days,
        log_volume_size=logs.log_volume_size,
        iops=(rates.database.iops_per_user, rates.database.iops_per_user_with_headroom),
        database_iops=rates.database.database_iops,
        log_iops=rates.log_iops,
        log_rules=rates.log_rules,
        capacity=capacity_of(
            requirements, shared, databases, volumes.database_volume_size, logs.log_volume_size
        ),
        cache_per_user=profile_cache(load.messages, guidance),
    )


@dataclass(frozen=True)
class TransactionSteps:
    """The answers of a `[transactions]` table as steps."""

    rate: Step
    ios: Step
    data: Step
    logged: Step
    busy: Step
    growth: Step

    @classmethod
    def of(cls, requirements: Requirements, load: Transactions) -> "TransactionSteps":
        """Name every answer once."""
        more, source = load.growth_fraction, requirements.name
        busy = stated(requirements, "transactions.busy")
        return cls(
            grown(
                requirements,
                "transactions_per_second",
                load.per_second,
                "Transactions",
                "transactions.per",
                more,
            ),
            given(
                "database_ios_per_transaction_count",
                load.database_ios_each,
                "Database I/O of one",
                source,
            ),
            given("data_size_gb", load.data_size_gb, "Data", source),
            given("log_size_each_kb", load.log_size_each_kb, "Log bytes of one", source),
            given("busy_time_h", load.busy_time_h, "Hours a day at that rate", busy),
            given(
                "data_growth_fraction",
                more,
                "Growth of data",
                stated(requirements, "transactions.growth"),
            ),
        )


def _transaction_iops(
    load: TransactionSteps, copies: Step, guidance: Guidance
) -> tuple[Step, Step]:
    """Database I/O as stated for each transaction, and a log write for each, none saved by group
    commit.
    """
    headroom = guidance.step("iops_headroom_factor")
    database = derive(
        "database_iops",
        load.rate * load.ios * headroom,
        "Database IOPS",
        "plimsoll: I/O of each transaction",
    )
    read_back = (copies - 1) * guidance.step("log_read_fraction")
    source = "plimsoll: one log write for each transaction, none saved by group commit"
    return database, derive("log_iops", load.rate * (1 + read_back) * headroom, "Log IOPS", source)


def _for_transactions(requirements: Requirements, transactions: Transactions) -> Core:
    guidance, shared = requirements.guidance, givens(requirements)
    load = TransactionSteps.of(requirements, transactions)
    overhead = guidance.step("database_overhead_factor")
    size = load.data * (1 + load.growth) * overhead
    total = derive("total_database_size_gb", size, "Total database size", overhead.source)
    databases = _count_of(requirements, shared, total, None)
    volumes = database_volumes(total, databases, guidance)
    daily = derive(
        "log_growth_mb_per_day",
        load.rate * load.logged / BYTES_PER_KB * load.busy * SECONDS_PER_HOUR / databases,
        "Logs of one database in a day",
        "plimsoll: bytes logged at the stated rate",
    )
    days = log_space_days(shared.retention, shared.backup_interval, shared.replay_lag)
    log_size = derive(
        "log_volume_size_gb",
        daily * days * guidance.step("log_overhead_factor") / BYTES_PER_KB,
        "Log volume size",
        "dell_eql, Table 15, LVS, with the log bytes stated",
    )
    rate, log_rate = _transaction_iops(load, shared.copy_count, guidance)
    return Core(
        shared=shared,
        user_count=None,
        load=(load.rate, load.data),
        total_database_size=total,
        max_database_size=shared.max_database_size,
        database_count=databases,
        database_size=volumes.database_size,
        database_volume_size=volumes.database_volume_size,
        log_details=(),
        log_growth=daily,
        log_space_days=days,
        log_volume_size=log_size,
        iops=(),
        database_iops=rate,
        log_iops=log_rate,
        log_rules={"one_write_each": log_rate},
        capacity=capacity_of(
            requirements, shared, databases, volumes.database_volume_size, log_size
        ),
        cache_per_user=None,
    )


def with_guidance(requirements: Requirements, guidance: Guidance) -> Requirements:
    """The same requirements under another edition's figures, limits that its mode cannot keep
    dropped.
    """
    limit = guidance.number(f"max_database_{requirements.copies.mode}_gb")
    wanted = requirements.databases.max_size_gb
    databases = replace(
        requirements.databases, max_size_gb=None if wanted and wanted > limit else wanted
    )
    return replace(requirements, edition=guidance.name, guidance=guidance, databases=databases)
