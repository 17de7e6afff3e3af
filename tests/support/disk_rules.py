"""Rules that spoil what passes through a disk.

Slow, stalled, failed, lost, misdirected, stale or flipped transfers.

A `RuledDisk` stands before any content of `tests.support.fuse_file`. The rules are JSON, so that a
table of plants is data and another process can change them under load. The first rule that applies
to a transfer decides. What is drawn is drawn from a seed, but the order of transfers is the
kernel's: two runs spoil different transfers, at the same rate.

Places are ranges of bytes of the disk. Whoever writes the rules finds where a file lies; file
systems' own data is left alone unless a rule names no place at all.
"""

from __future__ import annotations

import errno
import json
import random
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.support.fuse_file import Content

#: What a hung transfer is held back by: longer than any run, and answered when the rules are taken
#: away.
HANG_S = 3600.0
#: A transfer that is misdirected lands so far behind its place, unless its rule says otherwise.
MISDIRECTED_BY = 1 << 20
DOINGS = (
    "delay",
    "hang",
    "error",
    "flip",
    "forget",
    "lose",
    "late",
    "misdirect",
    "stale",
    "zero",
    "tear",
)


@dataclass(frozen=True)
class Rule:
    """One way to spoil transfers of one kind."""

    #: read, write or flush.
    on: str
    #: One of DOINGS.
    do: str
    #: "database", "second" (that of the second instance), "pages" (a database without its headers),
    #: "log", "elsewhere" (not database) or "crosswise" (into another database) in a table, which
    #: become ranges before the disk hears of it; empty: everywhere.
    where: str = ""
    #: One transfer of so many, by chance; 1 is each.
    one_in: float = 1.0
    #: Held back by so many milliseconds; a late write is carried out within so many.
    ms: float = 0.0
    #: And by so many more for each second since `after_s`.
    ms_per_s: float = 0.0
    #: How far a misdirected transfer lands from its place, in bytes; 0: `MISDIRECTED_BY` behind it.
    by: int = 0
    #: Applies only from so many seconds after the rules were given.
    after_s: float = 0.0
    #: And only until then; 0: without end.
    until_s: float = 0.0
    #: Of every cycle of so many seconds only the last `spoilt_s` are spoilt; 0: always.
    cycle_s: float = 0.0
    spoilt_s: float = 0.0
    #: Name of the error, such as EIO.
    error: str = "EIO"
    #: Applies so many times; 0: without end.
    times: int = 0
    ranges: tuple[tuple[int, int], ...] = field(default=())

    def plain(self, ranges: list[tuple[int, int]]) -> dict[str, Any]:
        """As it is told to the disk, for these places."""
        return {**asdict(self), "ranges": ranges}


class RuledDisk:
    """See the text of this file."""

    def __init__(self, inner: Content, seed: int) -> None:
        self._inner, self._random = inner, random.Random(seed)
        self.size = inner.size
        self._rules: list[Rule] = []
        self._given_at = time.monotonic()
        self._counts: list[int] = []
        self._hold_s = 0.0
        self._old: dict[int, bytes] = {}
        #: What lay where writes will be forgotten, before the first of them.
        self._forgotten: dict[int, bytes] = {}
        #: Writes that were acknowledged and not carried out, with their time.
        self._late: list[tuple[float, int, bytes]] = []

    @property
    def has_rules(self) -> bool:
        """Whether anything is spoilt at all."""
        return bool(self._rules)

    def obey(self, text: str) -> None:
        """Take these rules; the clock and the counts go on where only places have changed."""
        rules = [
            Rule(**{**rule, "ranges": tuple((start, end) for start, end in rule["ranges"])})
            for rule in json.loads(text)
        ]
        if [_kind(rule) for rule in rules] != [_kind(rule) for rule in self._rules]:
            self._given_at, self._counts = time.monotonic(), [0] * len(rules)
        self._rules = rules
        if not rules:
            self._carry_out(float("inf"))
            for offset, content in self._forgotten.items():
                self._inner.write(offset, content)
            self._forgotten.clear()

    def told(self) -> str:
        """How often each rule was applied."""
        return json.dumps(self._counts)

    def hold_s(self) -> float:
        return self._hold_s

    def read(self, offset: int, length: int) -> bytes:
        rule = self._applying("read", offset, length)
        content = self._inner.read(offset, length)
        if rule is None:
            return content
        if rule.do == "flip":
            spoilt = bytearray(content)
            spoilt[self._random.randrange(length)] ^= 1 << self._random.randrange(8)
            return bytes(spoilt)
        if rule.do == "zero":
            return bytes(length)
        if rule.do == "misdirect":
            by = rule.by or MISDIRECTED_BY
            return self._inner.read((offset + by) % (self.size - length), length)
        if rule.do == "stale":
            return self._old.get(offset, content)[:length].ljust(length, b"\0")
        return content

    def write(self, offset: int, data: bytes) -> None:
        rule = self._applying("write", offset, len(data))
        if any(other.do == "stale" for other in self._rules) and offset not in self._old:
            self._old[offset] = self._inner.read(offset, len(data))
        # A later write that arrives for good is not forgotten.
        before = self._forgotten.pop(offset, None)
        if rule is None or rule.do in ("delay", "hang"):
            self._inner.write(offset, data)
        elif rule.do == "forget":
            kept = self._inner.read(offset, len(data)) if before is None else before
            self._forgotten[offset] = kept
            self._inner.write(offset, data)
        elif rule.do == "late":
            self._late.append(
                (time.monotonic() + self._random.random() * rule.ms / 1000, offset, data)
            )
        elif rule.do == "misdirect" and rule.by:
            self._inner.write(offset + rule.by, data)
        elif rule.do == "misdirect":
            start, end = next(((s, e) for s, e in rule.ranges if s <= offset < e), (0, self.size))
            there = (
                offset + len(data)
                if offset + 2 * len(data) <= end
                else max(start, offset - len(data))
            )
            self._inner.write(there, data)
        elif rule.do == "zero":
            self._inner.write(offset, bytes(len(data)))
        elif rule.do == "tear":
            self._inner.write(offset, data[: len(data) // 2])
        elif rule.do == "flip":
            spoilt = bytearray(data)
            spoilt[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
            self._inner.write(offset, bytes(spoilt))

    def flush(self) -> None:
        rule = self._applying("flush", 0, 0)
        if rule is None or rule.do != "lose":
            self._inner.flush()

    def _carry_out(self, until: float) -> None:
        """Late writes whose time has come, in the order of these times."""
        due = sorted(write for write in self._late if write[0] <= until)
        self._late = [write for write in self._late if write[0] > until]
        for _, offset, data in due:
            self._inner.write(offset, data)

    def _applying(self, what: str, offset: int, length: int) -> Rule | None:
        """The rule for this transfer, with its delay set; an error is raised."""
        self._hold_s = 0.0
        self._carry_out(time.monotonic())
        seconds = time.monotonic() - self._given_at
        for index, rule in enumerate(self._rules):
            if (
                rule.on != what
                or not _is_time(rule, seconds)
                or not _is_there(rule, offset, length)
            ):
                continue
            if (
                rule.times and self._counts[index] >= rule.times
            ) or self._random.random() * rule.one_in >= 1:
                continue
            self._counts[index] += 1
            self._hold_s = _hold_s(rule, seconds)
            if rule.do == "error":
                number = getattr(errno, rule.error)
                raise OSError(number, "planted")
            return rule
        return None


def _kind(rule: Rule) -> Rule:
    """A rule without its places."""
    return Rule(**{**asdict(rule), "ranges": ()})


def _is_time(rule: Rule, seconds: float) -> bool:
    if seconds < rule.after_s or (rule.until_s and seconds >= rule.until_s):
        return False
    return (
        not rule.cycle_s or (seconds - rule.after_s) % rule.cycle_s >= rule.cycle_s - rule.spoilt_s
    )


def _is_there(rule: Rule, offset: int, length: int) -> bool:
    """Whether a transfer lies wholly within the places of a rule.

    Half of it may belong to another file.
    """
    if not rule.where or rule.on == "flush":
        return True
    return any(start <= offset and offset + length <= end for start, end in rule.ranges)


def _hold_s(rule: Rule, seconds: float) -> float:
    """A delay in a cycle without milliseconds lasts until the cycle's end: a stall."""
    if rule.do == "hang":
        return HANG_S
    if rule.do == "delay" and rule.cycle_s and not rule.ms:
        return rule.cycle_s - (seconds - rule.after_s) % rule.cycle_s
    if rule.do == "late":
        return 0.0
    return (rule.ms + rule.ms_per_s * (seconds - rule.after_s)) / 1000
