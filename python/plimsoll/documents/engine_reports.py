"""What the native side reports of files and disks that no run is about: verified files, tables of a
database, a repair, a measured point.

Key by key as in `crates/plimsoll-tools/src` and `crates/plimsoll-engine/src/verify/report.rs`.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class DeepFigures(TypedDict):
    """How a database fits together."""

    tables: int
    records: int
    pages_reached: int
    pages_free: int
    findings: list[str]
    findings_unlisted: int
    unchecked: list[str]


DamagedPage = TypedDict(
    "DamagedPage",
    {"page": int, "offset": int, "class": str, "found": NotRequired[int]},
)
"""A damaged page; `found` is the page that lies in its place."""


class VerifiedFile(TypedDict):
    """What was found in a file; pages are whatever it is made of."""

    path: str
    kind: str
    verdict: str
    error: str | None
    file_bytes: int
    page_bytes: int
    pages_seen: int
    bad: int
    correctable: int
    wrong_page_number: int
    uninitialized: int
    unreadable: int
    #: What the header of a database says.
    state: str | None
    #: The map that pages of a clean database were compared with.
    flush_map: str | None
    #: Pages whose last write was lost, and the first of them.
    lost: int
    lost_first: int
    #: Log that was deleted and came back with a power cut: nothing verified with it needs it.
    left_over: bool
    seconds: float
    mib_per_s: float
    findings: list[DamagedPage]
    findings_not_listed: int
    unreadable_ranges: list[dict[str, object]]
    deep: DeepFigures | None
    deep_error: str | None
    reasons: list[str]
    #: What there is to know that is nothing wrong, as of a database that needs its log.
    remarks: list[str]


class VerifyReport(TypedDict):
    """What was found in several files."""

    files: list[VerifiedFile]


class EdbTable(TypedDict):
    """A table of a database: columns as number, name and type; `rows` where they were counted."""

    name: str
    object: int
    root_page: int
    is_system: bool
    template: str | None
    lacks_template: bool
    columns: list[tuple[int, str, str]]
    indexes: list[str]
    has_long_values: bool
    rows: int | None
    damage: str | None


class EdbListing(TypedDict):
    """What is in a database; `format` is version and update."""

    page_bytes: int
    pages: int
    pages_missing: int
    is_more_missing: bool
    is_clean: bool
    format: tuple[int, int]
    pages_corrected: int
    tables: list[EdbTable]


class EdbRepair(TypedDict):
    """What a repair did; pages are listed as far as the native side lists them."""

    pages_seen: int
    pages_mended: int
    mended: list[int]
    pages_beyond_repair: int
    beyond_repair: list[int]
    header_copy_mended: int | None
    pages_missing: int
    #: Whether that is the least there may be missing.
    is_more_missing: bool
    trailing_bytes: int


class MeasuredPoint(TypedDict):
    """A point of a sweep."""

    count: int
    seconds: float
    per_second: float
    latency_ms_mean: float
    latency_ms_p50: float
    latency_ms_p99: float
    per_second_of_tenths: list[float]
