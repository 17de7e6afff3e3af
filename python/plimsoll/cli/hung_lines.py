"""Hung I/Os as few lines.

Where storage stops, hundreds of I/Os hang at once, each an event of its own. The first on each
storage is shown as it is; those that follow are counted, and told at most every few seconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import plimsoll

HUNG = "hung_io"
TOLD_EVERY_NS = 10_000_000_000
_PATH = re.compile(r" of (/.*) at offset \d+ ")


@dataclass
class Hanging:
    """What hangs on one storage."""

    first_ns: int
    told_ns: int
    count: int = 1
    #: Those that no line has told of yet.
    untold: int = 0


@dataclass
class HungLines:
    """Counts the hung I/Os of a run by its storage.

    Attributes:
        places: the paths of the targets.
        wait_s: after how many seconds an I/O counts as hung.
    """

    places: Sequence[str]
    wait_s: float
    _by_place: dict[str, Hanging] = field(default_factory=dict)

    def line(self, event: plimsoll.Event) -> str | None:
        """What to show of one more hung I/O; None where its storage was told of a moment ago."""
        place = self._place_of(event.text)
        known = self._by_place.get(place)
        if known is None:
            self._by_place[place] = Hanging(event.time_ns, event.time_ns)
            return plimsoll.event_line(event)
        known.count, known.untold = known.count + 1, known.untold + 1
        if event.time_ns - known.told_ns < TOLD_EVERY_NS:
            return None
        return self._told(place, known, event.time_ns)

    def rest(self, now_ns: int) -> list[str]:
        """A line for each storage of which not all has been told."""
        return [
            self._told(place, known, max(now_ns, known.told_ns))
            for place, known in self._by_place.items()
            if known.untold
        ]

    def _told(self, place: str, known: Hanging, now_ns: int) -> str:
        known.told_ns, known.untold = now_ns, 0
        for_s = (now_ns - known.first_ns) / 1e9 + self.wait_s
        return (
            f"  {now_ns / 1e9:8.1f} s  error: {known.count:,} I/Os on {place} have not completed "
            f"for more than {self.wait_s:g} s, the first since {for_s:.0f} s; each is in "
            f"events.log"
        )

    def _place_of(self, text: str) -> str:
        found = _PATH.search(text)
        path = Path(found[1]) if found else None
        inside = [place for place in self.places if path and path.is_relative_to(place)]
        return max(inside, key=len, default=str(path.parent) if path else "the storage")
