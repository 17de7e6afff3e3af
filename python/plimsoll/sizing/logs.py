"""Transaction logs: how many a day, how many days are kept, and the volume they need.

Source: Dell EqualLogic Exchange 2010 sizing paper, Table 15 and section 3.3.4. Logs are kept until
they are backed up and, with copies, replayed everywhere; space is planned for a number of days in
which that does not happen. Mailbox moves write logs of their own, a lagged copy keeps its lag on
top.

Limit: the message-size factor is the paper's step function (75 KB, 150 KB, above); it does not grow
past the last step.
"""

from plimsoll.inputs.records import dataclass
from plimsoll.sizing.guidance import Guidance
from plimsoll.sizing.traced import Amount, Step, amount, derive, if_at_most, maximum
from plimsoll.units import BYTES_PER_KB


@dataclass(frozen=True)
class LogVolume:
    """The log stream of one database."""

    users_per_database: Step
    logs_per_user: Step
    message_size_factor: Step
    daily_growth: Step
    space_days: Step
    log_volume_size: Step


def message_size_factor(message_kb: Amount) -> Step:
    """How much more log a larger message writes (Table 15, MSF).

    Args:
        message_kb: Mean message size, KB.

    Returns:
        1.0 up to 75 KB, 1.9 up to 150 KB, 3.8 above.

    Example:
        >>> [message_size_factor(size).value for size in (75, 76, 150, 151)]
        [1.0, 1.9, 1.9, 3.8]
    """
    message = amount(message_kb, "message_kb", "Mean message size")
    return derive(
        "message_size_factor",
        if_at_most(message, 75, 1.0, if_at_most(message, 150, 1.9, 3.8)),
        "Message size factor",
        "dell_eql, Table 15, MSF",
    )


def log_space_days(
    retention_days: Amount, backup_interval_days: Amount = 1, replay_lag_days: Amount = 0
) -> Step:
    """Days of logs the volume must hold (section 3.3.4).

    A log may be removed once it is backed up (or copied, without backups) and every copy has
    replayed it. Space is kept for `retention_days` without truncation, or for the time between full
    backups where that is longer, plus the lag.

    Args:
        retention_days: Days without truncation to survive.
        backup_interval_days: Days between backups that truncate logs.
        replay_lag_days: Lag of the most lagged copy.

    Returns:
        Days of logs.
    """
    retention = amount(
        retention_days, "log_retention_days", "Days without log truncation to survive"
    )
    interval = amount(
        backup_interval_days, "backup_interval_days", "Days between backups that truncate logs"
    )
    lag = amount(replay_lag_days, "replay_lag_days", "Replay lag of a lagged copy")
    return derive(
        "log_space_days",
        maximum(retention, interval) + lag,
        "Days of logs to hold",
        "dell_eql, section 3.3.4",
    )


def replication_per_day(
    log_growth_mb_per_day: Amount, number_of_databases: Amount, copy_count: Amount
) -> Step:
    """Log data sent between servers in a day.

    Every closed log goes to each further copy (section 3.3.2).

    Args:
        log_growth_mb_per_day: Logs of one database in a day, MB.
        number_of_databases: Databases.
        copy_count: Copies of each, the active one included.

    Returns:
        GB of 1024^3 bytes a day, over all servers.
    """
    growth = amount(log_growth_mb_per_day, "log_growth_mb_per_day", "Logs of one database in a day")
    count = amount(number_of_databases, "database_count", "Databases")
    copies = amount(copy_count, "copy_count", "Copies of each database")
    return derive(
        "replication_gb_per_day",
        growth * count * (copies - 1) / BYTES_PER_KB,
        "Log replication between servers",
        "dell_eql, section 3.3.2",
    )


def log_volume(
    user_count: Amount,
    number_of_databases: Amount,
    messages_per_day: Amount,
    message_kb: Amount,
    space_days: Amount,
    guidance: Guidance,
    moved_fraction: Amount = 0,
) -> LogVolume:
    """Size the log volume of one database (Table 15).

    Args:
        user_count: Users.
        number_of_databases: Databases that share them; at least 1.
        messages_per_day: Messages sent and received by one user in a day.
        message_kb: Mean message size, KB.
        space_days: Days of logs to hold.
        guidance: The edition's logs per message, log size and overhead.
        moved_fraction: Share of mailboxes moved within the days held, 0 to 1. The paper's worked
            example uses 0.1, its Table 15 has no such factor.

    Returns:
        Every step of the table; the log volume size in GB, unrounded.
    """
    users = amount(user_count, "user_count", "Users")
    count = amount(number_of_databases, "database_count", "Databases")
    messages = amount(
        messages_per_day, "messages_per_day", "Messages sent and received by a user in a day"
    )
    days = amount(space_days, "log_space_days", "Days of logs to hold")
    moved = amount(
        moved_fraction, "mailboxes_moved_fraction", "Mailboxes moved while logs are held"
    )
    per_user = derive(
        "logs_per_user_per_day",
        messages * guidance.step("logs_per_message_ratio"),
        "Logs of one user in a day",
        "dell_eql, Table 15, NL",
    )
    factor = message_size_factor(message_kb)
    per_database = derive(
        "users_per_database_count", users / count, "Users per database", "dell_eql, Table 15, NDB"
    )
    growth = derive(
        "log_growth_mb_per_day",
        per_database * per_user * factor * guidance.step("log_file_mb"),
        "Logs of one database in a day",
        "dell_eql, Table 15, TLC",
    )
    size = derive(
        "log_volume_size_gb",
        growth * (1 + moved) * days * guidance.step("log_overhead_factor") / BYTES_PER_KB,
        "Log volume size",
        "dell_eql, Table 15, LVS",
    )
    return LogVolume(per_database, per_user, factor, growth, days, size)
