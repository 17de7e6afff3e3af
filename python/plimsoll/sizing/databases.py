"""How many databases, how large, and on what volumes.

The second half of Table 14 and the total of section 3.4.

Source: Dell EqualLogic Exchange 2010 sizing paper, Table 14, sections 3.3.3 and 3.4. The number of
databases is the smallest that respects every stated limit: size, users per database, and the backup
window where one is stated.

Limits: databases are taken as equally large; a design with tiers of users is sized tier by tier.
"""

from plimsoll.inputs.records import dataclass
from plimsoll.sizing.guidance import Guidance
from plimsoll.sizing.traced import Amount, Expression, Step, amount, ceil, derive, maximum
from plimsoll.units import BYTES_PER_KB


@dataclass(frozen=True)
class DatabaseVolumes:
    """One database and the volume it lives on."""

    database_size: Step
    database_volume_size: Step


@dataclass(frozen=True)
class Reserves:
    """Space asked for beyond the volumes themselves.

    Attributes:
        snapshot_fraction: Snapshot reserve as a share of the volumes.
        replication_fraction: Array replication reserve as a share of the volumes.
        clone_count: Full clones of all volumes.
        recovery_database_count: Databases restored at the same time.
        offline_maintenance_count: Databases maintained offline at the same time.
    """

    snapshot_fraction: Amount = 0
    replication_fraction: Amount = 0
    clone_count: Amount = 0
    recovery_database_count: Amount = 0
    offline_maintenance_count: Amount = 0


@dataclass(frozen=True)
class Capacity:
    """The parts of the capacity of one copy, and their sum for one and for all copies."""

    volumes: Step
    snapshot_reserve: Step
    replication_reserve: Step
    clones: Step
    recovery_databases: Step
    offline_maintenance: Step
    total: Step
    all_copies: Step

    @property
    def parts(self) -> tuple[Step, ...]:
        """What the total is the sum of."""
        return (
            self.volumes,
            self.snapshot_reserve,
            self.replication_reserve,
            self.clones,
            self.recovery_databases,
            self.offline_maintenance,
        )


def total_database_size(user_count: Amount, mailbox_size_mb: Amount, guidance: Guidance) -> Step:
    """Size of all databases together (Table 14, DBS).

    Args:
        user_count: Mailbox users including growth.
        mailbox_size_mb: Mailbox size of one user, MB.
        guidance: The edition's database overhead.

    Returns:
        Total database size, GB of 1024^3 bytes, unrounded.
    """
    users = amount(user_count, "user_count", "Users")
    mailbox = amount(mailbox_size_mb, "mailbox_size_mb", "Mailbox size per user")
    return derive(
        "total_database_size_gb",
        users * mailbox * guidance.step("database_overhead_factor") / BYTES_PER_KB,
        "Total database size",
        "dell_eql, Table 14, DBS",
    )


def database_count(
    total_database_size_gb: Amount,
    max_database_size_gb: Amount,
    user_count: Amount | None = None,
    users_per_database_max_count: Amount | None = None,
    backup_window_database_gb: Step | None = None,
    minimum_count: Amount = 1,
) -> Step:
    """The smallest number of databases within every limit (section 3.3.3).

    Args:
        total_database_size_gb: Size of all databases, GB.
        max_database_size_gb: Largest database allowed, GB.
        user_count: Users, needed with the next limit.
        users_per_database_max_count: Most users in one database; None for no limit.
        backup_window_database_gb: Largest database that the backup window allows, GB; None for no
            limit.
        minimum_count: At least so many, for instance one for each server.

    Returns:
        The number of databases.

    Example:
        >>> int(database_count(11504.66, 1024).value)
        12
    """
    total = amount(total_database_size_gb, "total_database_size_gb", "Total database size")
    largest = amount(max_database_size_gb, "max_database_size_gb", "Largest database allowed")
    least = amount(minimum_count, "minimum_database_count", "Fewest databases asked for")
    limits: list[Expression] = [least, ceil(total / largest)]
    if user_count is not None and users_per_database_max_count is not None:
        users = amount(user_count, "user_count", "Users")
        limits.append(
            ceil(
                users
                / amount(users_per_database_max_count, "users_per_database_max_count", "Most users")
            )
        )
    if backup_window_database_gb is not None:
        limits.append(ceil(total / backup_window_database_gb))
    return derive("database_count", maximum(*limits), "Databases", "dell_eql, section 3.3.3")


def database_volumes(
    total_database_size_gb: Amount, number_of_databases: Amount, guidance: Guidance
) -> DatabaseVolumes:
    """Size one database and its volume (Table 14, IDBS and DVS).

    Args:
        total_database_size_gb: Size of all databases, GB.
        number_of_databases: How many databases share it; at least 1.
        guidance: The edition's content index and free space.

    Returns:
        Database size and database volume size, GB, unrounded.
    """
    total = amount(total_database_size_gb, "total_database_size_gb", "Total database size")
    count = amount(number_of_databases, "database_count", "Databases")
    size = derive(
        "database_size_gb", total / count, "Size of one database", "dell_eql, Table 14, IDBS"
    )
    volume = derive(
        "database_volume_size_gb",
        size * guidance.step("content_index_factor") * guidance.step("volume_overhead_factor"),
        "Database volume size",
        "dell_eql, Table 14, DVS",
    )
    return DatabaseVolumes(size, volume)


def total_capacity(
    number_of_databases: Amount,
    database_volume_size_gb: Amount,
    log_volume_size_gb: Amount,
    copy_count: Amount,
    guidance: Guidance,
    reserves: Reserves | None = None,
) -> Capacity:
    """Add up what one copy of everything occupies, and all copies (section 3.4.1, step 2).

    Args:
        number_of_databases: How many databases.
        database_volume_size_gb: One database volume, GB.
        log_volume_size_gb: One log volume, GB.
        copy_count: Copies of each database, the active one included.
        guidance: The edition's factor for offline maintenance.
        reserves: Space beyond the volumes; none by default.

    Returns:
        Every part and the totals, GB.
    """
    count = amount(number_of_databases, "database_count", "Databases")
    database = amount(database_volume_size_gb, "database_volume_size_gb", "Database volume size")
    log = amount(log_volume_size_gb, "log_volume_size_gb", "Log volume size")
    copies = amount(copy_count, "copy_count", "Copies of each database")
    volumes = derive(
        "volume_capacity_gb",
        count * (database + log),
        "Database and log volumes of one copy",
        "dell_eql, section 3.4",
    )

    snapshots, replication, clones, recovery, offline = _reserved(
        volumes, database, guidance, reserves or Reserves()
    )
    total = derive(
        "total_capacity_gb",
        volumes + snapshots + replication + clones + recovery + offline,
        "Capacity of one copy",
        "dell_eql, section 3.4.1, step 2",
    )
    everywhere = derive(
        "total_capacity_all_copies_gb",
        total * copies,
        "Capacity of all copies",
        "emc_esrp, best practices",
    )
    return Capacity(volumes, snapshots, replication, clones, recovery, offline, total, everywhere)


def _reserved(
    volumes: Step, database: Step, guidance: Guidance, reserves: Reserves
) -> tuple[Step, Step, Step, Step, Step]:
    """The terms beyond the volumes.

    Snapshots, replication, clones, recovery databases, offline maintenance.
    """

    def share(name: str, fraction: Amount, title: str) -> Step:
        part = amount(fraction, f"{name}_fraction", f"{title}, share of the volumes")
        return derive(f"{name}_gb", volumes * part, title, "dell_eql, section 3.4.1, step 2")

    clones = amount(reserves.clone_count, "clone_count", "Clones of all volumes")
    recovered = amount(
        reserves.recovery_database_count, "recovery_database_count", "Databases recovered at once"
    )
    maintained = amount(
        reserves.offline_maintenance_count,
        "offline_maintenance_count",
        "Databases maintained offline",
    )
    options = "dell_eql, Table 14 options"
    offline = database * guidance.step("offline_maintenance_factor") * maintained
    return (
        share("snapshot_reserve", reserves.snapshot_fraction, "Snapshot reserve"),
        share("replication_reserve", reserves.replication_fraction, "Array replication reserve"),
        derive("clone_capacity_gb", volumes * clones, "Clones", "dell_eql, section 3.4.1, step 2"),
        derive(
            "recovery_database_capacity_gb", database * recovered, "Recovery databases", options
        ),
        derive("offline_maintenance_capacity_gb", offline, "Offline maintenance", options),
    )
