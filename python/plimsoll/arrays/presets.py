"""Drives and arrays with the source of every figure.

The shipped files are read with the same checks as a user's own: every unknown key, missing key,
wrong type, number out of range and figure without a source is reported at once, with its line. A
name that is not known gets the nearest ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from plimsoll.arrays.faults import FAULT
from plimsoll.arrays.inheritance import by_figure
from plimsoll.arrays.links import shipped_links
from plimsoll.arrays.neighbours import NEIGHBOUR
from plimsoll.arrays.pools import GROUP, LEVELS, VOLUME, with_group_sheets
from plimsoll.arrays.sources import DATA_FOLDER, Shipped, collect_sourced, read_sourced
from plimsoll.arrays.validation import Impossible, impossibilities, overfilled
from plimsoll.documents.array_sheet import ArraySheet, Drives, DriveSheet, sheet_of
from plimsoll.documents.array_spec import Policy
from plimsoll.inputs.mistakes import InputError, Mistake, nearest_names
from plimsoll.inputs.schema import Collector, Field, Flag, ListOf, Number, Tables, Text
from plimsoll.inputs.toml_lines import LocatedFile, read_located

SHIPPED_DRIVES = DATA_FOLDER / "modelled_drives.toml"
SHIPPED_ARRAYS = DATA_FOLDER / "modelled_arrays.toml"

POLICIES: dict[str, Policy] = {
    "round robin": "round_robin",
    "least busy": "least_busy",
    "one at a time": "failover",
}


def _need(minimum: float, maximum: float, meaning: str, whole: bool = False) -> Field:
    return Field(Number(minimum, maximum, whole), required=True, meaning=meaning)


_HARD_DRIVE = {
    "name": Field(Text(), required=True, meaning="the name arrays use"),
    "capacity_gb": _need(1, 1e6, "decimal GB"),
    "rotation_rpm": _need(1000, 30000, "revolutions per minute"),
    "read_seek_ms": _need(0.1, 50, "average seek before a read"),
    "write_seek_ms": _need(0.1, 50, "average seek before a write"),
    "outer_mb_per_s": _need(1, 2000, "sustained rate at the outer rim"),
    "inner_mb_per_s": _need(1, 2000, "sustained rate at the inner rim"),
    "interface_mb_per_s": _need(1, 10000, "rate between drive and controller"),
    "overhead_ms": _need(0, 10, "time to take in a command"),
    "buffer_mib": _need(0, 4096, "what reading ahead may fill"),
    "queue_count": _need(1, 1024, "commands the drive chooses among", whole=True),
}
_FLASH_DRIVE = {
    "name": Field(Text(), required=True, meaning="the name arrays use"),
    "capacity_gb": _need(1, 1e6, "decimal GB"),
    "die_count": _need(1, 65535, "independent dies", whole=True),
    "unit_kib": _need(1, 1024, "what a die reads or programs at once", whole=True),
    "units_per_block": _need(1, 65536, "units erased together", whole=True),
    "read_us": _need(1, 10000, "sensing a unit"),
    "program_us": _need(1, 100000, "programming a unit"),
    "erase_us": _need(1, 1000000, "erasing a block"),
    "channel_mb_per_s": _need(1, 100000, "rate between a die and the drive's controller"),
    "bus_mb_per_s": _need(1, 100000, "rate between drive and host or array controller"),
    "overhead_us": _need(0, 10000, "time to take in a command"),
    "write_amplification": _need(1, 100, "units programmed for each unit written, in steady state"),
    "buffer_mib": _need(1, 65536, "protected write buffer"),
}
_ARRAY = {
    "name": Field(Text(), required=True, meaning="the name of the preset"),
    "title": Field(Text(), required=True, meaning="what it is"),
    "drive": Field(Text(), required=True, meaning="the name of a drive"),
    "level": Field(Text(tuple(LEVELS)), required=True, meaning="one of " + ", ".join(LEVELS)),
    "sets": Field(
        ListOf(Number(1, 1000, whole=True), 1), required=True, meaning="drives of each set"
    ),
    "spare_count": _need(0, 100, "drives that wait to replace a failed one", whole=True),
    "slot_count": _need(1, 10000, "slots for drives in one box", whole=True),
    "member_count": _need(1, 64, "boxes in the pool", whole=True),
    "controller_count": _need(1, 64, "controllers of a box", whole=True),
    "processor_count": _need(1, 256, "processors of a controller", whole=True),
    "processor_us": _need(0, 100000, "processor time for each request"),
    "failover_s": _need(0, 3600, "pause when a controller fails"),
    "read_latency_ms": _need(0, 1000, "latency of a read on top of the work below"),
    "write_latency_ms": _need(0, 1000, "latency of a write on top of the work below"),
    "us_per_kib": _need(0, 10000, "latency for each KiB, for boxes that store and forward"),
    "write_back": Field(
        Flag(), required=True, meaning="whether a write is done when it is in the cache"
    ),
    "dirty_mib": _need(1, 1e6, "dirty data the cache holds"),
    "destage_start": _need(0, 1, "dirty share below which nothing is destaged"),
    "destage_full": _need(0, 1, "dirty share at which most is destaged"),
    "destage_rows_per_drive": _need(0.1, 100, "rows destaged at once for each drive, at most"),
    "read_preference_ms": _need(0, 1000, "how much sooner reads are served than destages"),
    "old_data_share": _need(0, 1, "share of small writes whose old data is still in the cache"),
    "recent_mib": _need(0, 1e6, "freshly written data that can be read back from the cache"),
    "chunk_kib": _need(0, 1e6, "what is read ahead at once; 0 for no reading ahead"),
    "ahead_count": _need(0, 64, "chunks read beyond the one asked for", whole=True),
    "run_count": _need(1, 1000, "reads in sequence before reading ahead begins", whole=True),
    "pause_ms": _need(0, 60000, "pause that ends a run of reads"),
    "element_kib": _need(1, 1e6, "consecutive KiB on one drive"),
    "shift_kib": _need(0, 1e6, "granularity by which volumes are off the elements; 0 for aligned"),
    "page_mib": _need(1, 1e6, "what is put on one member before the next"),
    "spread_volumes": Field(
        Flag(),
        default=False,
        meaning="whether volumes share what is in use page by page, not one after the other",
    ),
    "rebuild_mb_per_s": _need(0, 10000, "how fast a spare is filled; 0 for no rebuild"),
    "seek_scale": _need(0.1, 10, "multiplies the seek times: the constant fitted for this array"),
    "link_count": _need(1, 1024, "links between host and array", whole=True),
    "link_mb_per_s": _need(0.001, 1e6, "payload of a link in each direction"),
    "link_latency_ms": _need(0, 10000, "latency one way"),
    "host_latency_ms": _need(0, 10000, "latency of the host's own storage stack"),
    "log_sets": Field(
        ListOf(Number(1, 1000, whole=True), 1),
        meaning="drives of each set for the logs alone; logs share the others if left out",
    ),
    "log_drive": Field(Text(), meaning="the drive of these sets, if it is another"),
    "log_level": Field(Text(tuple(LEVELS)), meaning="their RAID level, if it is another"),
    "link": Field(
        Text(),
        meaning="a link by its name, which states rate and latency where they are not written",
    ),
    "path_policy": Field(
        Text(tuple(POLICIES)),
        default="round robin",
        meaning="how the host chooses among links: " + ", ".join(POLICIES),
    ),
    "path_timeout_s": Field(
        Number(0, 3600),
        default=1,
        meaning="how long a request on a lost path waits before another is tried",
    ),
    "host_mb_per_s": Field(
        Number(0.001, 1e6),
        meaning="rate at which the host itself takes data in, over all links; no limit if left out",
    ),
    "queue_request_us": Field(
        Number(0, 1e5),
        meaning="virtual disk: work of its one queue for each request; requests do not queue there "
        "if left out",
    ),
    "queue_notice_us": Field(
        Number(0, 1e6),
        default=0,
        meaning="until an idle queue is looked at, and until its end is noticed",
    ),
    "queue_read_us_per_kib": Field(
        Number(0, 1e4), default=0, meaning="work of the queue for each KiB that is read"
    ),
    "queue_write_us_per_kib": Field(
        Number(0, 1e4), default=0, meaning="work of the queue for each KiB that is written"
    ),
    "queue_flush_us": Field(
        Number(0, 1e6), default=0, meaning="work of the queue for the flush behind a durable write"
    ),
    "queue_durable_us": Field(
        Number(0, 1e6),
        default=0,
        meaning="what a durable write waits for besides, in the host's kernel",
    ),
    "host_processor_count": Field(
        Number(1, 4096, whole=True),
        meaning="processors of the host, of which each instance uses one; 4 for all if left out",
    ),
    "host_io_us": Field(
        Number(0, 1e5),
        default=0,
        meaning="processor time of the host for each request, on top of the engine's own",
    ),
    "cap_iops": Field(
        Number(1, 1e9), meaning="requests per second in the long run, for a capped volume"
    ),
    "cap_burst_iops": Field(Number(1, 1e9), meaning="requests per second while there are credits"),
    "cap_credits": Field(Number(0, 1e12), meaning="credits saved up at most"),
    "cap_mb_per_s": Field(Number(0.001, 1e9), meaning="bytes per second of a capped volume"),
    "reserve_share": Field(
        Number(0, 0.95),
        default=0,
        meaning="share of the usable capacity kept for snapshots, clones and replicas",
    ),
    "failed_drive_count": Field(
        Number(0, 100, whole=True),
        default=0,
        meaning="drives of the first group that have failed from the start",
    ),
    "own_error_percent": Field(
        Number(0, 1e9),
        meaning="mean error on points held out, where it was fitted to measured storage: its band "
        "is never less",
    ),
    "faults": Field(Tables(FAULT), default=[], meaning="what else breaks or returns, and when"),
    "groups": Field(
        Tables(GROUP),
        default=[],
        meaning="further drives in each box, for a pool that is there or one of their own",
    ),
    "volumes": Field(
        Tables(VOLUME, unique="name"), default=[], meaning="volumes of other applications"
    ),
    "neighbours": Field(
        Tables(NEIGHBOUR, unique="name"), default=[], meaning="what other applications do on theirs"
    ),
}
#: What a plan may change of an array: every figure but its name, none of them required.
CHANGES = {
    key: replace(field, required=False, default=None)
    for key, field in _ARRAY.items()
    if key != "name"
}


_DRIVES = {"hard_drives": _HARD_DRIVE, "flash_drives": _FLASH_DRIVE}


def read_drives(path: Path) -> dict[str, DriveSheet]:
    """The drives of a file, by name; `like` names one above it in the file.

    Raises:
        InputError: every mistake of the file.
    """
    content = read_sourced(path, "modelled_drives", _DRIVES, dict.fromkeys(_DRIVES, dict))
    return {row["name"]: row for key in _DRIVES for row in content[key]}


def read_arrays(path: Path) -> dict[str, ArraySheet]:
    """The arrays of a file, by name; each has its drive's figures under `drive_sheet`.

    A file may hold drives of its own, and say of an array or drive only what is other than in one
    that is known.

    Raises:
        InputError: every mistake of the file.
    """
    document = _with_links(read_located(path))
    collector = Collector(document)
    lists = {"arrays": _ARRAY, **_DRIVES}
    shipped: Shipped = {
        "arrays": shipped_arrays,
        "hard_drives": lambda: {
            name: row for name, row in shipped_drives().items() if "rotation_rpm" in row
        },
        "flash_drives": lambda: {
            name: row for name, row in shipped_drives().items() if "die_count" in row
        },
    }
    if path == SHIPPED_ARRAYS:
        # Its rows can be like those above them only: it is these that all others may name.
        shipped = dict.fromkeys(lists, dict)
    content = collect_sourced(document, collector, "modelled_arrays", lists, shipped)
    drives = shipped_drives() | {row["name"]: row for key in _DRIVES for row in content[key]}
    _check_possible(content["arrays"], document.data.get("arrays"), drives, collector)
    collector.raise_if_any()
    return {row["name"]: _with_sheets(row, drives) for row in content["arrays"]}


def _check_possible(
    rows: list[ArraySheet], written: Any, drives: Drives, collector: Collector
) -> None:
    """Tell what each array cannot be, as far as it is known.

    Args:
        rows: the arrays, with what `like` gave them.
        written: the same as written in the file; of an array with an unknown `like` nothing else is
            known.
        drives: the drives that are known, by name.
        collector: takes the mistakes.
    """
    wrong = {mistake.where for mistake in collector.mistakes}
    told: set[tuple[Any, ...]] = set()
    for index, row in enumerate(rows):
        place, own = f"arrays[{index + 1}]", written[index]
        is_stranger = bool({place, f"{place}.like"} & wrong)
        found = list(
            impossibilities(
                sheet_of({key: value for key, value in row.items() if key in own})
                if is_stranger
                else row,
                drives,
            )
        )
        if not found and not any(where.startswith(place) for where in wrong):
            found = list(overfilled(_with_sheets(row, drives)))
        for path, message, hint in found:
            # What an array takes from one above it was told there.
            if path[0] in own or (path, message) not in told:
                collector.add(("arrays", index, *path), message, hint)
            told.add((path, message))


def _with_sheets(row: ArraySheet, drives: Drives) -> ArraySheet:
    """An array with the sheets of its drives, all of which are known."""
    logs = drives.get(row["log_drive"] or row["drive"])
    sheets = {"drive_sheet": drives[row["drive"]], "log_drive_sheet": logs}
    return with_group_sheets(sheet_of({**row, **sheets}), drives)


def _with_links(document: LocatedFile) -> LocatedFile:
    """The file with the figures of every link that is named, before those of a `like` could stand
    in their place.
    """
    rows = document.data.get("arrays")
    if not isinstance(rows, list) or not any(
        isinstance(row, dict) and "link" in row for row in rows
    ):
        return document
    written = [row | _link_figures(row) if isinstance(row, dict) else row for row in rows]
    return LocatedFile(document.name, document.data | {"arrays": written}, document.lines)


def _link_figures(row: Mapping[str, object]) -> dict[str, object]:
    """Rate and latency of the link that is named, as far as they are not written, with their
    sources.
    """
    name = row.get("link")
    link = shipped_links().get(name) if isinstance(name, str) else None
    if link is None:
        return {}
    stated: dict[str, float] = {
        "link_mb_per_s": link["link_mb_per_s"],
        "link_latency_ms": link["link_latency_ms"],
    }
    figures: dict[str, object] = {
        key: value for key, value in stated.items() if row.get(key) is None
    }
    sources = row.get("sources", {})
    if not figures or not isinstance(sources, dict):
        return figures
    return figures | {"sources": sources | {key: link["sources"][key] for key in figures}}


@cache
def shipped_drives() -> dict[str, DriveSheet]:
    """The shipped drives."""
    return read_drives(SHIPPED_DRIVES)


@cache
def shipped_arrays() -> dict[str, ArraySheet]:
    """The shipped arrays."""
    return read_arrays(SHIPPED_ARRAYS)


def array_preset(name: str, file_name: str = "options", line: int = 0) -> ArraySheet:
    """A shipped array.

    Raises:
        InputError: there is none of this name; the nearest are suggested.
    """
    arrays = shipped_arrays()
    if name not in arrays:
        raise InputError(
            file_name,
            [Mistake(line, "array", f'is "{name}", no preset', nearest_names(name, arrays))],
        )
    return arrays[name]


def wanted_array(text: str) -> ArraySheet:
    """The array a person names.

    A preset, or a file of arrays, `FILE.toml` or `FILE.toml#NAME` where it holds several.

    Raises:
        InputError: every mistake of the file, or the nearest names.
    """
    path, _, name = text.partition("#")
    if not path.endswith(".toml"):
        return array_preset(text)
    arrays = read_arrays(Path(path).expanduser())
    if name or len(arrays) != 1:
        if name in arrays:
            return arrays[name]
        message = f'is "{text}", and the file holds {len(arrays)} arrays'
        raise InputError(
            "options",
            [Mistake(0, "array", message, f"write {path}#NAME; {nearest_names(name, arrays)}")],
        )
    return next(iter(arrays.values()))


def changed_array(array: ArraySheet, changes: Mapping[str, object]) -> ArraySheet:
    """An array with some of its figures replaced.

    Another drive brings its own sheet, None where there is no such drive.
    """
    given = {key: value for key, value in changes.items() if value is not None}
    if not given:
        return array
    known = _known_drives(array)
    drive = str(given.get("drive", array["drive"]))
    log_drive = str(given.get("log_drive") or array.get("log_drive") or drive)
    sheets = {"drive_sheet": known.get(drive), "log_drive_sheet": known.get(log_drive)}
    sources = by_figure(array.get("sources") or {}) | dict.fromkeys(given, "changed by the plan")
    figures = {key: value for key, value in _link_figures(given).items() if key != "sources"}
    sources |= dict.fromkeys(figures, f"that of the link {given.get('link')}")
    changed = {**array, **given, **figures, **sheets, "sources": sources}
    return with_group_sheets(sheet_of(changed), known)


def _known_drives(array: ArraySheet) -> dict[str, DriveSheet]:
    """The drives that an array may be given: the shipped ones and its own."""
    groups = [group["drive_sheet"] for group in array.get("groups") or []]
    sheets = [array["drive_sheet"], array.get("log_drive_sheet"), *groups]
    return shipped_drives() | {sheet["name"]: sheet for sheet in sheets if sheet}


def described_array(
    text: str, changes: Mapping[str, object]
) -> tuple[ArraySheet, list[Impossible]]:
    """The array a person names, changed as they want, and what it cannot be.

    Key path, message and hint of each.

    Nothing may be simulated, nor a capacity asked, while there is something that cannot be.

    Raises:
        InputError: there is no such array.
    """
    array = changed_array(wanted_array(text), changes)
    found = list(impossibilities(array, _known_drives(array)))
    return array, found or list(overfilled(array))
