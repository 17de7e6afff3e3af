"""Drives to usable space, utilisation, and how many users fit.

By I/O, by space, by the smaller of the two.

Sources: Dell EqualLogic paper, Table 13 (usable space is drive size times data drives); EMC
VNXe3300 report, Tables 1, 4 and 9. Drive capacities are decimal GB as sold, sizes are 1024-based;
`decimal_gb` and `binary_gb` convert.

The EMC report stops its Table 9 at 1,800 users and says 1,900 in its text; its measured 462.483
IOPS at 0.24 for each user carry 1,927, which is what these functions return.
"""

from plimsoll.inputs.records import dataclass
from plimsoll.sizing.traced import Amount, Step, amount, derive, floor, minimum
from plimsoll.units import BYTES_PER_GB, DECIMAL_GB


@dataclass(frozen=True)
class UsersRow:
    """One line of the users-versus-mailbox-size table."""

    mailbox_size_gb: float
    users_by_capacity: int
    users_by_iops: int
    users: int
    limit: str


def usable_capacity(drive_gb: Amount, data_drive_count: Amount) -> Step:
    """Usable space of an array, decimal GB (Dell EqualLogic paper, Table 13).

    Example:
        >>> [usable_capacity(500, drives).value for drives in (12, 7, 39, 23)]
        [6000.0, 3500.0, 19500.0, 11500.0]
    """
    drive = amount(drive_gb, "drive_capacity_gb", "Capacity of one drive, decimal")
    drives = amount(data_drive_count, "data_drive_count", "Drives that hold data")
    return derive(
        "usable_capacity_gb", drive * drives, "Usable capacity, decimal", "dell_eql, Table 13"
    )


def utilisation(used_gb: Amount, available_gb: Amount) -> Step:
    """Share of a capacity in use, in percent (EMC report, Tables 1 and 4).

    Both sides in the same GB.

    Example:
        >>> round(utilisation(3211.26, 4200).value, 3), round(utilisation(1955, 2 * 1.186 * 1024).value, 2)
        (76.459, 80.49)
    """  # noqa: E501
    used = amount(used_gb, "used_gb", "Space in use")
    available = amount(available_gb, "available_gb", "Space available")
    return derive(
        "utilisation_pct", used / available * 100, "Utilisation", "emc_esrp, Tables 1 and 4"
    )


def users_by_iops(available_iops: Amount, headroom_iops_per_user: Amount) -> Step:
    """Users that a measured rate carries (EMC report, appendix A).

    Example:
        >>> users_by_iops(462.483, 0.24).value
        1927.0
    """
    available = amount(available_iops, "available_iops", "IOPS measured at the latency limit")
    each = amount(
        headroom_iops_per_user, "headroom_iops_per_user", "Database IOPS per user with headroom"
    )
    return derive(
        "users_by_iops_count",
        floor(available / each),
        "Users the I/O carries",
        "emc_esrp, appendix A",
    )


def users_by_capacity(available_gb: Amount, space_gb_for_one: Amount) -> Step:
    """Users whose mailboxes fit (EMC report, Table 9).

    Example:
        >>> [users_by_capacity(1500, size).value for size in (3, 2, 1.5, 1)]
        [500.0, 750.0, 1000.0, 1500.0]
    """
    available = amount(available_gb, "mailbox_space_gb", "Space for mailboxes")
    each = amount(space_gb_for_one, "mailbox_space_for_one_gb", "Space for one mailbox")
    return derive(
        "users_by_capacity_count", floor(available / each), "Users that fit", "emc_esrp, Table 9"
    )


def users_by_mailbox_size(
    mailbox_sizes_gb: list[float],
    mailbox_space_gb: Amount,
    available_iops: Amount,
    headroom_iops_per_user: Amount,
) -> list[UsersRow]:
    """The trade-off between users and mailbox size.

    The smaller of what fits and what the I/O carries (Table 9).

    Args:
        mailbox_sizes_gb: Sizes to tabulate, GB for one mailbox with everything that grows with it.
        mailbox_space_gb: Space for mailboxes, in the same GB.
        available_iops: IOPS at the latency limit.
        headroom_iops_per_user: IOPS of one user with headroom.

    Returns:
        One row for each size, with what limits it.
    """
    by_iops = users_by_iops(available_iops, headroom_iops_per_user)
    rows = []
    for size in mailbox_sizes_gb:
        by_capacity = users_by_capacity(mailbox_space_gb, size)
        users = int(minimum(by_iops, by_capacity).value)
        limit = "capacity" if by_capacity.value < by_iops.value else "IOPS"
        rows.append(UsersRow(size, int(by_capacity.value), int(by_iops.value), users, limit))
    return rows


def decimal_gb(size_gb: float) -> float:
    """Turn GB of 1024^3 bytes into decimal GB, to compare a size with drives as sold.

    Example:
        >>> round(decimal_gb(1.0), 6)
        1.073742
    """
    return size_gb * BYTES_PER_GB / DECIMAL_GB


def binary_gb(capacity_gb: float) -> float:
    """Turn decimal GB of a drive as sold into GB of 1024^3 bytes."""
    return capacity_gb * DECIMAL_GB / BYTES_PER_GB
