"""The rules of the gallery's disk, each on a content in memory.

A rule that does nothing would make every storage sound.
"""

import json
import time

import pytest

from tests.support.disk_rules import HANG_S, Rule, RuledDisk

SIZE = 4 << 20
PAGE = 4096


class Memory:
    """A content that keeps what it is given."""

    def __init__(self) -> None:
        self.size, self.bytes, self.flushes = SIZE, bytearray(SIZE), 0

    def read(self, offset: int, length: int) -> bytes:
        return bytes(self.bytes[offset : offset + length])

    def write(self, offset: int, data: bytes) -> None:
        self.bytes[offset : offset + len(data)] = data

    def flush(self) -> None:
        self.flushes += 1

    def hold_s(self) -> float:
        return 0.0


def disk(*rules: Rule, ranges: list[tuple[int, int]] | None = None) -> tuple[RuledDisk, Memory]:
    memory = Memory()
    memory.write(0, b"old." * (PAGE // 4))
    made = RuledDisk(memory, 1)
    made.obey(json.dumps([rule.plain(ranges or [(0, SIZE)]) for rule in rules]))
    return made, memory


NEW, OLD, ZERO = b"new." * (PAGE // 4), b"old." * (PAGE // 4), bytes(PAGE)


@pytest.mark.parametrize(
    ("do", "here", "behind"),
    [
        ("lose", OLD, ZERO),
        ("zero", ZERO, ZERO),
        ("misdirect", OLD, NEW),
        ("tear", NEW[: PAGE // 2] + OLD[PAGE // 2 :], ZERO),
        ("delay", NEW, ZERO),
        ("late", OLD, ZERO),
        ("forget", NEW, ZERO),
    ],
)
def test_a_write_is_spoilt(do: str, here: bytes, behind: bytes) -> None:
    """What reaches the content is what the rule says."""
    made, memory = disk(Rule("write", do, "database", ms=60_000 if do == "late" else 0))
    made.write(0, NEW)
    assert (memory.read(0, PAGE), memory.read(PAGE, PAGE)) == (here, behind)
    assert made.told() == "[1]"


def test_a_read_is_flipped_by_one_bit_and_the_content_is_not() -> None:
    """The fault is on the way, not on the medium."""
    made, memory = disk(Rule("read", "flip", "database"))
    read = made.read(0, PAGE)
    assert sum((a ^ b).bit_count() for a, b in zip(read, OLD, strict=True)) == 1
    assert memory.read(0, PAGE) == OLD


def test_a_stale_read_returns_what_was_there_before() -> None:
    """The write itself arrived."""
    made, memory = disk(Rule("read", "stale", "database"))
    made.write(0, NEW)
    assert (made.read(0, PAGE), memory.read(0, PAGE)) == (OLD, NEW)


def test_a_late_write_arrives_and_a_forgotten_one_goes_when_the_rules_are_taken_away() -> None:
    """The one was acknowledged too early, the other lay in a cache that is lost."""
    for do, after in (("late", NEW), ("forget", OLD)):
        made, memory = disk(Rule("write", do, "database", ms=60_000))
        made.write(0, NEW)
        made.obey("[]")
        assert memory.read(0, PAGE) == after


def test_late_writes_are_carried_out_when_they_are_due() -> None:
    """Also in another order than they were asked for, which no sound disk does to one place."""
    made, memory = disk(Rule("write", "late", "database", ms=0.001))
    made.write(0, NEW)
    time.sleep(0.01)
    assert made.read(0, PAGE) == NEW
    assert memory.read(0, PAGE) == NEW


def test_a_misdirected_write_lands_as_far_away_as_its_rule_says() -> None:
    """In the same place of another file, say."""
    made, memory = disk(Rule("write", "misdirect", "database", by=3 * PAGE))
    made.write(0, NEW)
    assert (memory.read(0, PAGE), memory.read(3 * PAGE, PAGE)) == (OLD, NEW)


def test_a_delay_grows_and_ends_as_its_rule_says() -> None:
    """A storage that becomes slower, and one that was slow at first."""
    made, _ = disk(Rule("read", "delay", "database", ms=1, ms_per_s=1000))
    time.sleep(0.05)
    made.read(0, PAGE)
    assert 0.05 < made.hold_s() < 1
    made, _ = disk(Rule("read", "delay", "database", ms=5, until_s=0.02))
    made.read(0, PAGE)
    assert made.hold_s() == 0.005
    time.sleep(0.03)
    made.read(0, PAGE)
    assert made.hold_s() == 0


def test_an_error_is_raised_as_often_as_told() -> None:
    """A single error must be single."""
    made, _ = disk(Rule("read", "error", error="ENOSPC", times=1))
    with pytest.raises(OSError, match="planted"):
        made.read(0, PAGE)
    assert made.read(0, PAGE) == OLD


def test_a_transfer_outside_of_the_places_is_left_alone() -> None:
    """Half of it may belong to the file system."""
    made, memory = disk(Rule("write", "lose", "log"), ranges=[(PAGE, 2 * PAGE)])
    made.write(0, NEW + NEW)
    assert memory.read(0, PAGE) == NEW
    made.write(PAGE, OLD)
    assert memory.read(PAGE, PAGE) == NEW


def test_a_lost_flush_and_a_hung_one() -> None:
    """The one answers at once and does nothing, the other does it and never answers."""
    made, memory = disk(Rule("flush", "lose"))
    made.flush()
    assert (memory.flushes, made.hold_s()) == (0, 0.0)
    made, memory = disk(Rule("flush", "hang"))
    made.flush()
    assert (memory.flushes, made.hold_s()) == (1, HANG_S)


def test_a_count_goes_on_where_only_places_have_changed() -> None:
    """Logs come and go under load; a single error stays single."""
    made, _ = disk(Rule("read", "error", "log", times=1))
    with pytest.raises(OSError, match="planted"):
        made.read(0, PAGE)
    made.obey(json.dumps([Rule("read", "error", "log", times=1).plain([(0, PAGE)])]))
    assert made.read(0, PAGE) == OLD
