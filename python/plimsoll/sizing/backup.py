"""How long a backup takes, how large a database a window allows, and how long replay takes.

Source: EMC VNXe3300 report, Tables 7 and 8 and appendix E: 994,882.09 MB read in 4:41:38 at 58.87
MB/s for each database, two in parallel; 2.23 s to replay one log. A shipped rate is one array's;
state your own measured rates.

Limit: databases backed up in parallel are taken to reach the stated rate each; measure with as many
as will run.
"""

from plimsoll.sizing.traced import Amount, Step, amount, ceil, derive
from plimsoll.units import BYTES_PER_KB, SECONDS_PER_HOUR


def backup_hours(database_size_gb: Amount, read_mb_per_s: Amount) -> Step:
    """Time to read one database (Table 7).

    Args:
        database_size_gb: Size of the database, GB of 1024^3 bytes.
        read_mb_per_s: Measured read rate for one database, MB of 1024^2 bytes a second.

    Returns:
        Hours.

    Example:
        >>> round(backup_hours(994882.09 / 1024, 58.87).value * 3600)
        16900
    """
    size = amount(database_size_gb, "database_size_gb", "Size of one database")
    rate = amount(read_mb_per_s, "backup_read_mb_per_s", "Backup read rate of one database")
    return derive(
        "database_backup_h",
        size * BYTES_PER_KB / rate / SECONDS_PER_HOUR,
        "Backup of one database",
        "emc_esrp, Table 7",
    )


def backup_window(
    number_of_databases: Amount,
    one_database_h: Amount,
    parallel_count: Amount,
    server_count: Amount,
) -> Step:
    """Time to back up everything, a few databases at a time on each server.

    Args:
        number_of_databases: Databases in all; only active copies are backed up.
        one_database_h: Hours for one of them.
        parallel_count: Databases read at the same time on one server, each at the measured rate.
        server_count: Servers that share the databases.

    Returns:
        Hours.
    """
    count = amount(number_of_databases, "database_count", "Databases")
    one = amount(one_database_h, "database_backup_h", "Backup of one database")
    parallel = amount(
        parallel_count, "backup_parallel_count", "Databases backed up in parallel on a server"
    )
    servers = amount(server_count, "server_count", "Servers")
    rounds = ceil(ceil(count / servers) / parallel)
    return derive(
        "backup_window_h", rounds * one, "Full backup of everything", "emc_esrp, appendix E"
    )


def window_database_size(window_h: Amount, read_mb_per_s: Amount) -> Step:
    """The largest database that can be read within a window.

    Args:
        window_h: The window allowed, hours.
        read_mb_per_s: Measured read rate for one database, MB/s.

    Returns:
        GB of 1024^3 bytes.
    """
    window = amount(window_h, "backup_window_allowed_h", "Backup window allowed")
    rate = amount(read_mb_per_s, "backup_read_mb_per_s", "Backup read rate of one database")
    return derive(
        "backup_window_database_gb",
        window * SECONDS_PER_HOUR * rate / BYTES_PER_KB,
        "Largest database the backup window allows",
        "dell_eql, section 3.3.3",
    )


def replay_hours(log_growth_mb_per_day: Amount, days: Amount, s_per_log: Amount) -> Step:
    """Time to replay the logs of so many days into one database (Table 8).

    Args:
        log_growth_mb_per_day: Logs of one database in a day; a log is 1 MB.
        days: Days of logs.
        s_per_log: Measured seconds for one log.

    Returns:
        Hours.

    Example:
        >>> round(replay_hours(500, 1, 2.23).value * 3600)
        1115
    """
    growth = amount(log_growth_mb_per_day, "log_growth_mb_per_day", "Logs of one database in a day")
    span = amount(days, "replay_days", "Days of logs to replay")
    each = amount(s_per_log, "replay_s_per_log", "Replay of one log")
    return derive(
        "replay_h",
        growth * span * each / SECONDS_PER_HOUR,
        "Replay of those logs",
        "emc_esrp, Table 8",
    )
