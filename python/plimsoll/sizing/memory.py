"""Memory of mailbox servers.

Cache for each user, cache by profile, and the system disk that memory implies.

Sources: NetApp TR-3565, section 6.3 (2 GB of a host is not cache); Dell EqualLogic paper, section 2
(cache by profile) and section 5.5 (guest system disk). The NetApp figure prints 1.48 and 3.48 MB
for 8 and 16 GB hosts; with 1024 MB to a GB the same formula gives 1.536 and 3.584, which is what
these functions return.

Processor and further memory figures depend on the server and the product release. They are plugged
in as figures of a guidance file, `cpu_megacycles_per_user` and `server_memory_min_gb` among them;
without, processors are left out.
"""

from plimsoll.sizing.guidance import Guidance
from plimsoll.sizing.traced import Amount, Step, amount, derive, maximum
from plimsoll.units import BYTES_PER_KB


def cache_per_user(memory_mb: Amount, user_count: Amount, guidance: Guidance) -> Step:
    """Database cache left for each user of a host (NetApp TR-3565, Figure 8).

    Args:
        memory_mb: Memory of the host, MB of 1024^2 bytes.
        user_count: Users active on it.
        guidance: Memory that is not cache.

    Returns:
        MB for each user.

    Example:
        >>> from plimsoll.sizing.guidance import editions
        >>> [cache_per_user(gb * 1024, 4000, editions()["exchange_2010"]).value for gb in (8, 16)]
        [1.536, 3.584]
    """
    memory = amount(memory_mb, "server_memory_mb", "Memory of one server")
    users = amount(user_count, "users_per_server_count", "Users active on one server")
    return derive(
        "cache_mb_per_user",
        maximum(memory - guidance.step("system_memory_mb"), 0) / users,
        "Database cache per user",
        "netapp_3565, section 6.3",
    )


def server_memory(
    users_per_server_count: Amount, profile_cache_mb_per_user: Amount, guidance: Guidance
) -> Step:
    """Memory a server needs for the cache its users' profile asks for.

    Args:
        users_per_server_count: Users active on the server in the worst case planned for.
        profile_cache_mb_per_user: Cache of one user, MB.
        guidance: Memory that is not cache, and the product's minimum where it states one.

    Returns:
        GB of 1024^3 bytes.
    """
    users = amount(
        users_per_server_count, "users_per_server_worst_count", "Users on a server, worst case"
    )
    cache = amount(
        profile_cache_mb_per_user,
        "profile_cache_mb_per_user",
        "Database cache by profile, per user",
    )
    need = (users * cache + guidance.step("system_memory_mb")) / BYTES_PER_KB
    if "server_memory_min_gb" in guidance.figures:
        need = maximum(need, guidance.step("server_memory_min_gb"))
    return derive(
        "server_memory_gb",
        need,
        "Memory per server",
        "netapp_3565, section 6.3; dell_eql, section 2",
    )


def processor_demand(users_per_server_count: Amount, guidance: Guidance) -> Step | None:
    """Processor demand of a server, where the guidance states it.

    Args:
        users_per_server_count: Users active on the server in the worst case planned for.
        guidance: May carry `cpu_megacycles_per_user`, from a file of the user's own.

    Returns:
        Megacycles for each second, or None when the guidance states no figure.
    """
    if "cpu_megacycles_per_user" not in guidance.figures:
        return None
    users = amount(
        users_per_server_count, "users_per_server_worst_count", "Users on a server, worst case"
    )
    each = guidance.step("cpu_megacycles_per_user")
    return derive("server_cpu_megacycles", users * each, "Processor demand per server", each.source)


def system_disk(memory_gb: Amount) -> Step:
    """System disk of a guest: 15 GB and as much again as it has memory (Dell EqualLogic paper,
    section 5.5).

    Example:
        >>> system_disk(48).value
        63.0
    """
    memory = amount(memory_gb, "server_memory_planned_gb", "Memory of one server")
    return derive("system_disk_gb", memory + 15, "System disk of a server", "dell_eql, section 5.5")
