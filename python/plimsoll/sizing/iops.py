"""I/O rates: Tables 16 and 17, the two published log rules, headroom, and what measured rates say
about users.

Sources: Dell EqualLogic Exchange 2010 sizing paper, Tables 16 and 17 and section 3.3.2; NetApp
TR-3565, Table 2; EMC VNXe3300 report. Database I/O and log I/O are stated apart and never added:
the published array capabilities already contain the log I/O of their test.
"""

from collections.abc import Callable

from plimsoll.inputs.records import dataclass
from plimsoll.sizing.guidance import Guidance
from plimsoll.sizing.traced import Amount, Step, amount, derive


@dataclass(frozen=True)
class DatabaseIops:
    """The database I/O of all users together."""

    iops_per_user: Step
    iops_per_user_with_headroom: Step
    database_iops: Step


def iops_per_user(
    messages_per_day: Amount,
    guidance: Guidance,
    *,
    standalone: bool,
    online_clients: bool = False,
    extra_iops_per_user: Amount = 0,
) -> Step:
    """Database I/O of one user without headroom (Table 16, IOPU).

    Args:
        messages_per_day: Messages sent and received by one user in a day.
        guidance: The edition's I/O for each message and its factor for standalone servers.
        standalone: True without copies; the smaller checkpoint depth then writes more.
        online_clients: True where clients keep no local cache.
        extra_iops_per_user: Mobile devices, desktop search and third-party clients.

    Returns:
        IOPS of one user.

    Example:
        >>> from plimsoll.sizing.guidance import editions
        >>> iops_per_user(150, editions()["exchange_2010"], standalone=True).value
        0.18
    """
    messages = amount(
        messages_per_day, "messages_per_day", "Messages sent and received by a user in a day"
    )
    extra = amount(extra_iops_per_user, "extra_iops_per_user", "Further I/O of one user")
    per_message = guidance.step("iops_per_message_ratio")
    rate = messages * per_message
    if standalone:
        rate = rate * guidance.step("standalone_iops_factor")
    if online_clients:
        rate = rate * guidance.step("online_mode_factor")
    return derive("iops_per_user", rate + extra, "Database IOPS per user", per_message.source)


def database_iops(user_count: Amount, one_user_iops: Amount, guidance: Guidance) -> DatabaseIops:
    """Database I/O of all users with headroom (Table 16, DBIOP).

    Args:
        user_count: Users.
        one_user_iops: IOPS of one user without headroom.
        guidance: The edition's headroom.

    Returns:
        The rate of one user, with headroom, and of all users.

    Example:
        >>> from plimsoll.sizing.guidance import editions
        >>> database_iops(5000, 0.15, editions()["exchange_2010"]).database_iops.value
        900.0
    """
    users = amount(user_count, "user_count", "Users")
    one = amount(one_user_iops, "iops_per_user", "Database IOPS per user")
    headroom = guidance.step("iops_headroom_factor")
    with_headroom = derive(
        "headroom_iops_per_user",
        one * headroom,
        "Database IOPS per user, with headroom",
        "emc_esrp, profile",
    )
    total = derive(
        "database_iops", users * one * headroom, "Database IOPS", "dell_eql, Table 16, DBIOP"
    )
    return DatabaseIops(one, with_headroom, total)


def log_iops_table_17(all_database_iops: Amount, copy_count: Amount, guidance: Guidance) -> Step:
    """Log I/O by the formula of Table 17: reads for each copy are 10 % of *database* I/O.

    Args:
        all_database_iops: Database IOPS of all users with headroom.
        copy_count: Copies of each database, the active one included; 1 when standalone.
        guidance: The edition's fractions and headroom.

    Returns:
        Log IOPS. For capacity planning of paths only: never add it to the requirement on an array.
    """
    database = amount(all_database_iops, "database_iops", "Database IOPS")
    copies = amount(copy_count, "copy_count", "Copies of each database")
    writes = (
        database * guidance.step("database_write_fraction") * guidance.step("log_write_fraction")
    )
    reads = database * (copies - 1) * guidance.step("log_read_fraction")
    return derive(
        "table_17_log_iops",
        (writes + reads) * guidance.step("iops_headroom_factor"),
        "Log IOPS by Table 17",
        "dell_eql, Table 17, LIOPS",
    )


def log_iops_prose(all_database_iops: Amount, copy_count: Amount, guidance: Guidance) -> Step:
    """Log I/O by the prose of section 3.3.2: reads for each copy are 10 % of *log writes*.

    Args:
        all_database_iops: Database IOPS of all users with headroom.
        copy_count: Copies of each database, the active one included; 1 when standalone.
        guidance: The edition's fractions and headroom.

    Returns:
        Log IOPS; smaller than by Table 17, because a tenth is taken of a smaller rate.
    """
    database = amount(all_database_iops, "database_iops", "Database IOPS")
    copies = amount(copy_count, "copy_count", "Copies of each database")
    writes = (
        database * guidance.step("database_write_fraction") * guidance.step("log_write_fraction")
    )
    return derive(
        "section_3_3_2_log_iops",
        writes
        * (1 + (copies - 1) * guidance.step("log_read_fraction"))
        * guidance.step("iops_headroom_factor"),
        "Log IOPS by section 3.3.2",
        "dell_eql, section 3.3.2",
    )


LOG_RULES: dict[str, Callable[[Amount, Amount, Guidance], Step]] = {
    "table_17": log_iops_table_17,
    "section_3_3_2": log_iops_prose,
}


def read_write_ratio(reads_iops: Amount, writes_iops: Amount) -> Step:
    """Reads for each write, from measured rates (NetApp TR-3565, Table 2, recomputed).

    Example:
        >>> round(read_write_ratio(477.74, 144.682).value, 3)
        3.302
    """
    reads = amount(reads_iops, "reads_iops", "Reads")
    writes = amount(writes_iops, "writes_iops", "Writes")
    return derive(
        "read_write_ratio", reads / writes, "Reads for each write", "netapp_3565, Table 2"
    )


def measured_iops_per_user(total_iops: Amount, user_count: Amount) -> Step:
    """I/O of one user, from a measured rate (NetApp TR-3565, Table 2).

    Example:
        >>> round(measured_iops_per_user(622.422, 4000).value, 4)
        0.1556
    """
    total = amount(total_iops, "total_iops", "Measured IOPS")
    users = amount(user_count, "user_count", "Users")
    return derive(
        "measured_iops_per_user", total / users, "Measured IOPS per user", "netapp_3565, Table 2"
    )


def required_iops(user_count: Amount, one_user_iops: Amount) -> Step:
    """The rate a test of so many users must reach (Dell EqualLogic paper, section 2.6).

    Example:
        >>> [required_iops(users, 0.35).value for users in (5000, 10000, 15000)]
        [1750.0, 3500.0, 5250.0]
    """
    users = amount(user_count, "user_count", "Users")
    one = amount(one_user_iops, "iops_per_user", "Database IOPS per user")
    return derive("required_iops", users * one, "Required IOPS", "dell_eql, section 2.6")
