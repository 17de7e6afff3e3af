"""Orders per minute: as DVD Store counts them, without those that were rolled back, and the most
that think time allows.
"""

from __future__ import annotations

import math

#: Above this share of what think time allows, the storage is hidden behind it.
HIDDEN_SHARE = 0.9
#: The published tests gave every thread ten users.
USERS_PER_SESSION = 10
#: Lines of an order at most.
LINES_MAX = 10
#: Lines that find too little: of the stocks 0 to 500 all three quantities at 0, two at 1, one at 2.
LINE_FAILS = 2 / 501


def opm(orders: int, seconds: float) -> int:
    """Orders per minute as DVD Store prints them: whole, and with those that were rolled back.

    >>> opm(799, 60.0), opm(1, 61.0), opm(5, 0.0)
    (799, 0, 0)
    """
    return math.floor(60 * orders / seconds) if seconds else 0


def ceiling(sessions: int, think_s: float, response_s: float) -> float | None:
    """Orders per minute of sessions that each think so long and wait so long for an order.

    None when they take no time.

    >>> ceiling(20, 1.5, 0.0), round(ceiling(20, 1.5, 0.079))
    (800.0, 760)
    """
    cycle_s = think_s + response_s
    return 60 * sessions / cycle_s if cycle_s else None


def sessions_of(users: int) -> int:
    """The sessions that stand for so many users, as published: 200 are 20 threads.

    >>> sessions_of(200), sessions_of(25)
    (20, 3)
    """
    return -(-users // USERS_PER_SESSION)


def rolled_back_share(lines_mean: int) -> float:
    """The share of orders that a new store rolls back for want of stock, with so many lines each.

    >>> round(rolled_back_share(5), 4), round(rolled_back_share(1), 4), round(rolled_back_share(1000), 4)
    (0.0197, 0.004, 0.0391)
    """  # noqa: E501
    kept = [(1 - LINE_FAILS) ** min(lines, LINES_MAX) for lines in range(1, 2 * lines_mean)]
    return 1 - sum(kept) / len(kept)
