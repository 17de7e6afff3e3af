"""Reading values with units.

The two bases, and everything that must be refused rather than guessed.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.units import (
    SCALES,
    UNIT_SUFFIXES,
    Dimension,
    UnitError,
    format_value,
    parse,
    unit_of_name,
)
from tests.support.sizing_designs import several

SIZE, CAPACITY, RATE = Dimension.SIZE, Dimension.CAPACITY, Dimension.BIT_RATE


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("2 GB", SIZE, 2 * 1024**3),
        ("2GB", SIZE, 2 * 1024**3),
        ("2 GiB", SIZE, 2 * 1024**3),
        ("600 GB", CAPACITY, 600e9),
        ("600 GiB", CAPACITY, 600 * 1024**3),
        ("1 Gbit/s", RATE, 1e9),
        ("10 Gbps", RATE, 1e10),
        ("58.4 MB/s", Dimension.THROUGHPUT, 58.4 * 1024**2),
        ("3 days", Dimension.DURATION, 259_200),
        ("20 %", Dimension.FRACTION, 0.2),
    ],
)
def test_sizes_are_1024_based_and_drives_decimal(
    text: str, dimension: Dimension, value: float
) -> None:
    """Mixing the bases up costs 7 % at GB and 10 % at TB, enough to run out of space."""
    assert parse(text, dimension) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "dimension", "problem"),
    [
        ("2048", SIZE, "no unit"),
        (2048, SIZE, "no unit"),
        ("2 G", SIZE, "ambiguous"),
        ("2 Gb", SIZE, "bits"),
        ("2 gb", SIZE, "capitals"),
        ("2 Gib", SIZE, "bits"),
        ("1 GB/s", RATE, "not a link speed"),
        ("1 Gbit/s", Dimension.THROUGHPUT, "not a throughput"),
        ("two GB", SIZE, "does not start with a number"),
        ("1,500 MB", SIZE, "not a size"),
        ("", SIZE, "does not start with a number"),
        ("5 parsecs", SIZE, "none of its units"),
        (True, SIZE, "is not a size"),
        (None, SIZE, "is not a size"),
    ],
)
def test_missing_and_ambiguous_units_are_refused_with_a_hint(
    text: object, dimension: Dimension, problem: str
) -> None:
    """A guess would be right most of the time, and the other time nobody would notice."""
    with pytest.raises(UnitError, match=problem) as caught:
        parse(text, dimension)
    assert caught.value.hint


@several
@given(
    st.sampled_from(
        [(dimension, unit) for dimension in Dimension for unit in SCALES[dimension].factors]
    ),
    st.floats(min_value=1e-6, max_value=1e12),
)
def test_what_is_written_reads_back(where: tuple[Dimension, str], value: float) -> None:
    """A run plan and a report write values that must mean the same when they are read again."""
    dimension, unit = where
    assert parse(format_value(value, unit, dimension), dimension) == pytest.approx(value, rel=1e-12)


@several
@given(st.integers(1, 10**6), st.sampled_from(["KB", "MB", "GB", "TB"]))
def test_each_unit_is_1024_of_the_one_below(count: int, unit: str) -> None:
    below = {"KB": "B", "MB": "KB", "GB": "MB", "TB": "GB"}[unit]
    assert parse(f"{count} {unit}", SIZE) == parse(f"{count * 1024} {below}", SIZE)


def test_a_name_tells_its_unit() -> None:
    """DAT-03: Names carry units, so a wrong suffix is a wrong unit everywhere the name is shown."""
    assert unit_of_name("mailbox_size_mb") == "MB"
    assert unit_of_name("replay_s_per_log") == "s per log"
    assert unit_of_name("log_growth_mb_per_day") == "MB per day"
    assert unit_of_name("headroom_iops_per_user") == "IOPS per user"
    assert unit_of_name("mailbox") is None
    # A longer ending must come before a shorter one it ends in, or it would never be found.
    endings = list(UNIT_SUFFIXES)
    for index, ending in enumerate(endings):
        assert not any(ending.endswith("_" + earlier) for earlier in endings[:index]), ending
