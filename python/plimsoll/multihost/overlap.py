"""When all hosts measured: their windows on one clock, and the part of them that is common to all.

Every run notes pairs of its own clock and UTC (`anchors` in `outcome.json`). A time of a run
becomes UTC by the last anchor before it, so that a wall clock that was set during a run shows.
Nothing here can know how far the wall clocks of two hosts are apart: who measures together keeps
them in step, and is told that the window is only as true as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypedDict

from plimsoll import settings
from plimsoll.files.folder import Content
from plimsoll.units import NS_PER_S

#: From until, in UTC nanoseconds.
Span = tuple[int, int]


@dataclass(frozen=True)
class Overlap:
    """The time in which all hosts measured.

    Attributes:
        span: from until, in UTC.
        windows: the measured time of each host.
    """

    span: Span
    windows: list[Span]

    @property
    def seconds(self) -> float:
        """How long; zero where there is no such time."""
        return max(0, self.span[1] - self.span[0]) / NS_PER_S

    @property
    def share(self) -> float:
        """How much of the longest window it is."""
        longest = max(end - start for start, end in self.windows)
        return self.seconds * NS_PER_S / longest if longest else 0.0

    def share_of(self, index: int) -> float:
        """How much of one host's window it is."""
        start, end = self.windows[index]
        return self.seconds * NS_PER_S / (end - start) if end > start else 0.0


def overlap_of(windows: Sequence[Span]) -> Overlap:
    """What several windows have in common.

    >>> overlap_of([(0, 100), (20, 110)]).span, round(overlap_of([(0, 100), (20, 110)]).share_of(1), 3)
    ((20, 100), 0.889)
    >>> overlap_of([(0, 100), (200, 300)]).seconds
    0.0
    """  # noqa: E501
    span = (max(start for start, _ in windows), min(end for _, end in windows))
    return Overlap(span, list(windows))


class Anchor(TypedDict):
    """A moment on the run's clock and in UTC."""

    monotonic_ns: int
    utc_ns: int


def window_of(outcome: Content) -> Span | None:
    """The measured time of a run in UTC; None where nothing was measured or nobody knows when."""
    measured = [
        phase for phase in outcome.get("phases", []) if phase["kind"] in settings.MEASURED_KINDS
    ]
    anchors = outcome.get("anchors") or []
    if not measured or not anchors:
        return None
    return utc_ns_of(measured[0]["start_ns"], anchors), utc_ns_of(measured[-1]["end_ns"], anchors)


def utc_ns_of(monotonic_ns: int, anchors: Sequence[Anchor]) -> int:
    """A time of the run's clock as UTC.

    >>> utc_ns_of(7, [{"monotonic_ns": 0, "utc_ns": 100}, {"monotonic_ns": 5, "utc_ns": 106}])
    108
    """
    before = [anchor for anchor in anchors if anchor["monotonic_ns"] <= monotonic_ns] or anchors[:1]
    return int(before[-1]["utc_ns"]) + monotonic_ns - int(before[-1]["monotonic_ns"])


def monotonic_ns_of(utc_ns: int, anchors: Sequence[Anchor]) -> int:
    """A time in UTC on the run's clock, never before its beginning.

    >>> monotonic_ns_of(108, [{"monotonic_ns": 0, "utc_ns": 100}, {"monotonic_ns": 5, "utc_ns": 106}])
    7
    """  # noqa: E501
    before = [anchor for anchor in anchors if anchor["utc_ns"] <= utc_ns] or anchors[:1]
    return max(0, int(before[-1]["monotonic_ns"]) + utc_ns - int(before[-1]["utc_ns"]))


def utc_text(utc_ns: int) -> str:
    """A time as other files have it.

    >>> utc_text(0)
    '1970-01-01T00:00:00.000+00:00'
    """
    return datetime.fromtimestamp(utc_ns / NS_PER_S, UTC).isoformat(timespec="milliseconds")
