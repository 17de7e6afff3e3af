"""Access specifications: lines of which one is drawn for every burst, by name from the shipped data
or as a plan states them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from plimsoll.documents.run_spec import AccessLineSpec

LINES_MAX = 100


@dataclass(frozen=True)
class AccessLine:
    """One line of an access specification; the fields mean what they mean in Iometer.

    Attributes:
        size_bytes: length of a request.
        share_percent: how many of a hundred bursts are of this line.
        read_percent: how many of a hundred requests read.
        random_percent: how many of a hundred transfers go to a random place; the others follow on
            the one before.
        delay_ms: what the worker waits before a burst.
        burst: transactions of a burst.
        align_bytes: transfers begin at multiples of it; 0 for the sectors of the storage.
        reply_bytes: what answers each request in the opposite direction; 0 for none.
    """

    size_bytes: int
    share_percent: int
    read_percent: int
    random_percent: int
    delay_ms: int = 0
    burst: int = 1
    align_bytes: int = 0
    reply_bytes: int = 0


def numbers_of(line: AccessLine | AccessLineSpec) -> tuple[int, ...]:
    """The numbers of a line in the order of Iometer's files."""
    return (
        line.size_bytes,
        line.share_percent,
        line.read_percent,
        line.random_percent,
        line.delay_ms,
        line.burst,
        line.align_bytes,
        line.reply_bytes,
    )


@dataclass(frozen=True)
class Pattern:
    """A named access specification."""

    name: str
    meaning: str
    source: str
    lines: tuple[AccessLine, ...]


@cache
def patterns() -> dict[str, Pattern]:
    """The shipped patterns by name.

    >>> round(mean_bytes(patterns()["file-server"].lines), 2)
    11345.92
    """
    content = tomllib.loads(
        files("plimsoll.data").joinpath("access_patterns.toml").read_text(encoding="utf-8")
    )
    found = {}
    for row in content["pattern"]:
        lines = tuple(AccessLine(*line) for line in row["lines"])
        found[row["name"]] = Pattern(row["name"], row["meaning"], row["source"], lines)
    return found


def mean_bytes(lines: Sequence[AccessLine]) -> float:
    """The mean length of a request; a line holds for a burst."""
    bursts = sum(line.share_percent * line.burst for line in lines)
    return sum(line.share_percent * line.burst * line.size_bytes for line in lines) / bursts


def io_per_transaction(lines: Sequence[AccessLine]) -> float:
    """Transfers that a transaction makes on average: one, and one more where requests are answered.

    >>> io_per_transaction([AccessLine(512, 50, 100, 100), AccessLine(512, 50, 100, 100, reply_bytes=512)])
    1.5
    """  # noqa: E501
    bursts = sum(line.share_percent * line.burst for line in lines)
    return (
        sum(line.share_percent * line.burst * (2 if line.reply_bytes else 1) for line in lines)
        / bursts
    )


def read_percent(lines: Sequence[AccessLine]) -> float:
    """The share of requests that read."""
    bursts = sum(line.share_percent * line.burst for line in lines)
    return sum(line.share_percent * line.burst * line.read_percent for line in lines) / bursts


def in_words(lines: Sequence[AccessLine]) -> list[str]:
    """What a specification asks for, a line each."""
    return [_line_in_words(line) for line in lines]


def _line_in_words(line: AccessLine) -> str:
    words = (
        f"{line.share_percent} % of {line.size_bytes:,} bytes, {line.read_percent} % reads, "
        f"{line.random_percent} % random"
    )
    further = [
        f"a delay of {line.delay_ms} ms" if line.delay_ms else "",
        f"bursts of {line.burst}" if line.burst > 1 else "",
        f"at multiples of {line.align_bytes:,} bytes" if line.align_bytes else "",
        f"answered by {line.reply_bytes:,} bytes" if line.reply_bytes else "",
    ]
    return ", ".join([words, *(word for word in further if word)])
