"""Values with units: reading them from text, converting them, and refusing what is missing or
ambiguous.

Two bases are kept apart because the field keeps them apart. A *size* (mailbox, database, volume,
memory) counts in steps of 1024: KB, MB, GB and TB mean 1024, 1024^2 and so on, as the published
sizing formulas use them, and KiB, MiB, GiB and TiB say the same explicitly. A *capacity* (a drive
as sold) counts in steps of 1000 for KB to PB. A *bit rate* (a link) counts in steps of 1000.

Text that does not say what it means is refused with a hint: a bare number, "2 G", "2 Gb" for a
size, "1 GB/s" for a link. Names of numbers end in their unit; `UNIT_SUFFIXES` lists the endings and
`unit_of_name` reads them.

Limits: no compound units, no currencies, no locale-dependent separators ("1,500" is refused).
"""

import re
from dataclasses import dataclass
from enum import Enum

from plimsoll.errors import InvalidValueError

BYTES_PER_KB = 1024
BYTES_PER_MB = 1024**2
BYTES_PER_GB = 1024**3
DECIMAL_GB = 1000**3
BITS_PER_BYTE = 8
NS_PER_US, NS_PER_MS, NS_PER_S = 1_000, 1_000_000, 1_000_000_000
SECONDS_PER_HOUR = 3600

SIZE_NOTE = (
    "Sizes are 1024-based: 1 KB = 1024 bytes, 1 MB = 1024 KB, 1 GB = 1024 MB. Drive capacities are "
    "decimal."
)


class UnitError(InvalidValueError):
    """Text that does not name a value of the wanted kind.

    Attributes:
        hint: What to write instead.
    """

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


class Dimension(Enum):
    """The kinds of value that text can name, with a word for messages."""

    SIZE = "size"
    CAPACITY = "drive capacity"
    BIT_RATE = "link speed"
    THROUGHPUT = "throughput"
    DURATION = "duration"
    FRACTION = "percentage"


@dataclass(frozen=True)
class Scale:
    """The units of one dimension.

    Attributes:
        base_unit: What the parsed number counts.
        factors: Unit symbol to its worth in the base unit; symbols are compared with their case.
        example: A correct value, for hints.
    """

    base_unit: str
    factors: dict[str, float]
    example: str


def _powers(step: int, symbols: tuple[str, ...]) -> dict[str, float]:
    return {symbol: float(step**power) for power, symbol in enumerate(symbols)}


_BINARY = _powers(1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))
_SIZE = _powers(1024, ("B", "KB", "MB", "GB", "TB", "PB")) | _BINARY
_BIT_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}

SCALES: dict[Dimension, Scale] = {
    Dimension.SIZE: Scale("bytes", _SIZE | {"kB": 1024.0}, "2 GB"),
    Dimension.CAPACITY: Scale(
        "bytes",
        _powers(1000, ("B", "KB", "MB", "GB", "TB", "PB")) | {"kB": 1e3} | _BINARY,
        "600 GB",
    ),
    Dimension.BIT_RATE: Scale(
        "bit/s",
        {
            prefix + unit: factor
            for prefix, factor in _BIT_PREFIXES.items()
            for unit in ("bit/s", "bps", "b/s")
        },
        "10 Gbit/s",
    ),
    Dimension.THROUGHPUT: Scale(
        "bytes/s", {unit + "/s": worth for unit, worth in _SIZE.items()}, "58.4 MB/s"
    ),
    Dimension.DURATION: Scale(
        "seconds",
        {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
        | dict.fromkeys(("second", "seconds"), 1.0)
        | dict.fromkeys(("minute", "minutes"), 60.0)
        | dict.fromkeys(("hour", "hours"), 3600.0)
        | dict.fromkeys(("d", "day", "days"), 86400.0)
        | dict.fromkeys(("week", "weeks"), 604800.0),
        "3 days",
    ),
    Dimension.FRACTION: Scale("1", {"%": 0.01, "percent": 0.01, "fraction": 1.0}, "20 %"),
}

# Spellings that could mean two things, and what the writer should decide.
_AMBIGUOUS = {
    **dict.fromkeys(
        ("K", "M", "G", "T", "k", "m", "g", "t"), "the letter alone does not say bytes or bits"
    ),
    **dict.fromkeys(("Kb", "kb", "Mb", "Gb", "Tb"), "a small b means bits, a capital B bytes"),
    **dict.fromkeys(
        ("mb", "gb", "tb", "mB", "gB", "tB"), "units are written with capitals: MB, GB, TB"
    ),
    **dict.fromkeys(("Kib", "Mib", "Gib", "Tib"), "a small b means bits, a capital B bytes"),
}
_NUMBER = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.ASCII)


def parse(text: object, dimension: Dimension) -> float:
    """Read a number with its unit.

    Args:
        text: What was written, such as `"2 GB"`.
        dimension: The kind of value wanted.

    Returns:
        The value in the base unit of the dimension (bytes, bit/s, bytes/s, seconds, or a fraction
        of 1).

    Raises:
        UnitError: The unit is missing, unknown or ambiguous, or there is no number.

    Example:
        >>> parse("2 GB", Dimension.SIZE), parse("2 GB", Dimension.CAPACITY)
        (2147483648.0, 2000000000.0)
    """
    scale = SCALES[dimension]
    example = f'write it with its unit, such as "{scale.example}"'
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise UnitError(f"{text!r} is not a {dimension.value}", example)
    if not isinstance(text, str):
        raise UnitError(
            f"{text} has no unit; a {dimension.value} needs one",
            f'write "{text} {_unit_hint(dimension)}"',
        )
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise UnitError(f'"{text}" does not start with a number', example)
    number, unit = float(match[1]), match[2].strip()
    if not unit:
        raise UnitError(
            f'"{text}" has no unit; a {dimension.value} needs one',
            f'write "{text.strip()} {_unit_hint(dimension)}"',
        )
    if unit in scale.factors:
        return number * scale.factors[unit]
    if unit in _AMBIGUOUS and dimension in (Dimension.SIZE, Dimension.CAPACITY):
        raise UnitError(f'"{text}" is ambiguous: {_AMBIGUOUS[unit]}', example)
    raise UnitError(
        f'"{text}" is not a {dimension.value}: "{unit}" is none of its units',
        _unknown_unit_hint(unit, dimension),
    )


def _unit_hint(dimension: Dimension) -> str:
    return SCALES[dimension].example.split(maxsplit=1)[1]


def _unknown_unit_hint(unit: str, dimension: Dimension) -> str:
    if dimension is Dimension.BIT_RATE and unit.endswith("B/s"):
        return 'a link speed is in bits: write "10 Gbit/s"'
    if dimension is Dimension.THROUGHPUT and unit.endswith(("bit/s", "bps", "b/s")):
        return 'a throughput is in bytes: write "58.4 MB/s"'
    kinds = [name for name in SCALES[dimension].factors if name[0] != "B"]
    return f"use one of {', '.join(kinds)}"


def format_value(value: float, unit: str, dimension: Dimension) -> str:
    """Write a base-unit value in the given unit, so that `parse` reads the same value back.

    Raises:
        KeyError: The unit does not belong to the dimension.

    Example:
        >>> format_value(2147483648.0, "GB", Dimension.SIZE)
        '2 GB'
    """
    number = value / SCALES[dimension].factors[unit]
    return f"{number:.17g} {unit}" if number != int(number) else f"{int(number)} {unit}"


# The endings of names that hold a number, longest first where one ends in another.
UNIT_SUFFIXES: dict[str, str] = {
    "mb_per_s": "MB/s",
    "mib_per_s": "MiB/s",
    "mbit_per_s": "Mbit/s",
    "gbit_per_s": "Gbit/s",
    "iops_per_user": "IOPS per user",
    "iops_per_tb": "IOPS per TB",
    "mb_per_day": "MB per day",
    "gb_per_day": "GB per day",
    "mb_per_user": "MB per user",
    "gb_per_hour": "GB per hour",
    "s_per_log": "s per log",
    "megacycles": "megacycles/s",
    "per_day": "per day",
    "per_second": "per second",
    "per_user": "per user",
    "iops_per_session": "IOPS per session",
    "mb_per_message": "MB per message",
    "iops": "IOPS",
    "bytes": "bytes",
    "kb": "KB",
    "mb": "MB",
    "gb": "GB",
    "tb": "TB",
    "kib": "KiB",
    "mib": "MiB",
    "ms": "ms",
    "s": "s",
    "h": "h",
    "days": "days",
    "pct": "%",
    "factor": "ratio",
    "fraction": "ratio",
    "ratio": "ratio",
    "count": "count",
    "version": "number",
}


def unit_of_name(name: str) -> str | None:
    """Return the unit that a name ends in, or None when it names no unit.

    Example:
        >>> unit_of_name("mailbox_size_mb"), unit_of_name("mailbox")
        ('MB', None)
    """
    for suffix, unit in UNIT_SUFFIXES.items():
        if name == suffix or name.endswith("_" + suffix):
            return unit
    return None
