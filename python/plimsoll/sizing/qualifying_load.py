"""The load a test must make for a number of users.

Sessions, outstanding I/O, and the other workloads' threads.

Sources: EMC VNXe3300 report, Table 6 (sessions to IOPS); Little's law (outstanding I/O is rate
times latency); PowerVault MD3000i testing (DVD Store threads, Iometer outstanding I/O).

Limit: IOPS for each session is one array's measurement. A test with a target rate does not need it;
a test with a fixed number of sessions should search around it.
"""

from plimsoll.sizing.guidance import Guidance
from plimsoll.sizing.traced import Amount, Step, amount, ceil, derive, maximum

DATABASE_READ_LIMIT_MS = 20


def sessions_per_database(
    all_database_iops: Amount, number_of_databases: Amount, guidance: Guidance
) -> Step:
    """Sessions of each database that make the rate on an array like the published one.

    Args:
        all_database_iops: Database IOPS to reach.
        number_of_databases: Databases under test.
        guidance: IOPS of one session.

    Returns:
        Sessions for each database, at least 1.
    """
    rate = amount(all_database_iops, "database_iops", "Database IOPS")
    count = amount(number_of_databases, "database_count", "Databases")
    each = guidance.step("iops_per_session")
    return derive(
        "sessions_per_database_count",
        maximum(1, ceil(rate / each / count)),
        "Sessions for each database",
        each.source,
    )


def outstanding_io(all_database_iops: Amount, latency_ms: Amount = DATABASE_READ_LIMIT_MS) -> Step:
    """Mean I/O outstanding at a rate and latency (Little's law).

    At the latency limit, the most a passing run has.

    Example:
        >>> outstanding_io(900).value
        18.0
    """
    rate = amount(all_database_iops, "database_iops", "Database IOPS")
    latency = amount(
        latency_ms,
        "read_latency_limit_ms",
        "Mean database read latency allowed",
        "criteria of Jetstress",
    )
    return derive(
        "outstanding_io_count",
        rate * latency / 1000,
        "Outstanding I/O at the limit",
        "Little's law",
    )


def dvd_store_threads(user_count: Amount) -> Step:
    """DVD Store threads for a number of users: ten users to a thread (PowerVault MD3000i testing).

    Example:
        >>> [dvd_store_threads(users).value for users in (200, 500)]
        [20.0, 50.0]
    """
    users = amount(user_count, "user_count", "Users")
    return derive(
        "dvd_store_thread_count", ceil(users / 10), "DVD Store threads", "md3000i, workload"
    )


def iometer_outstanding(user_count: Amount) -> Step:
    """Iometer's outstanding I/O for a number of file server users.

    1 for 200, 2 for 500 (PowerVault MD3000i testing).

    Between the two published points one more is taken for each 250 users.

    Example:
        >>> [iometer_outstanding(users).value for users in (200, 500)]
        [1.0, 2.0]
    """
    users = amount(user_count, "user_count", "Users")
    return derive(
        "iometer_outstanding_count",
        ceil(users / 250),
        "Iometer outstanding I/O",
        "md3000i, Figure 15, two points",
    )
