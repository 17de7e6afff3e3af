"""Figures that a load may have to keep, window by window (`plimsoll.plan.windows`).

Each family names its own.
"""

from __future__ import annotations

from typing import Literal

from plimsoll.inputs.records import dataclass

Counted = Literal["operations", "transfers", "database_io"]
Per = Literal["s", "min", "h", "day"]
#: How long a window is where a family says nothing else.
USUAL_S = 60.0


@dataclass(frozen=True)
class WindowFigure:
    """A figure of a load.

    Attributes:
        words: its unit in a sentence.
        meaning: what it is of, for the reference page.
        counted: completed operations of the load, transfers as it asked for them, or reads and
            writes of the databases it works on.
        per: the time it is counted in; a day is that of a mail user, pressed into `day_h`.
        of_user: whether it is that of one user.
    """

    words: str
    meaning: str
    counted: Counted = "operations"
    per: Per = "s"
    of_user: bool = False
