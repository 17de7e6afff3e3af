"""What breaks and returns in a modelled array, as people write it and as the native side is told.

    faults = [
        { what = "path fails", number = 2 },                  # from the beginning
        { what = "drive fails", number = 3, after_s = 600 },  # ten minutes after measuring begins
    ]

Drives, paths, controllers and boxes are counted from 1, as the report does. A failed drive is
rebuilt where there is a spare; a failed controller leaves its volumes to its partner after
`failover_s`, and the cache writes through from then on.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.documents import array_spec as spec
from plimsoll.documents.array_sheet import ArraySheet, FaultSheet
from plimsoll.inputs.schema import Field, Number, Text
from plimsoll.inputs.toml_lines import KeyPath
from plimsoll.units import NS_PER_S

#: What may happen, and what its number counts; None where the whole box is meant.
KINDS: dict[str, str | None] = {
    "drive fails": "drive",
    "path fails": "link",
    "path returns": "link",
    "controller fails": "controller",
    "cache unprotected": None,
    "cache protected": None,
}

FAULT = {
    "what": Field(Text(tuple(KINDS)), required=True, meaning="what happens: " + ", ".join(KINDS)),
    "number": Field(
        Number(1, 100_000, whole=True), default=1, meaning="which drive, path or controller, from 1"
    ),
    "box": Field(Number(1, 64, whole=True), default=1, meaning="in which box, from 1"),
    "after_s": Field(
        Number(0, 1e9), meaning="seconds after measuring begins; from the beginning if left out"
    ),
}


def timed_faults(array: ArraySheet, measuring_from_s: float | None = None) -> list[spec.TimedFault]:
    """Faults as the native side is told them.

    Args:
        array: a preset or an array of the same fields.
        measuring_from_s: when measuring begins; None for the faults that are there from the
            beginning.
    """
    if measuring_from_s is None:
        failed = [
            spec.TimedFault(
                at_ns=0, fault=spec.DriveFails(drive_fails=spec.DriveNumber(group=0, drive=drive))
            )
            for drive in range(int(array.get("failed_drive_count") or 0))
        ]
        from_begin = (row for row in _rows(array) if row["after_s"] is None)
        return failed + [spec.TimedFault(at_ns=0, fault=_native(row)) for row in from_begin]
    return [
        spec.TimedFault(
            at_ns=int((measuring_from_s + row["after_s"]) * NS_PER_S), fault=_native(row)
        )
        for row in _rows(array)
        if row["after_s"] is not None
    ]


def fault_words(array: ArraySheet) -> list[str]:
    """Each fault in words.

    >>> fault_words({"faults": [{"what": "path fails", "number": 2, "box": 1, "after_s": 60}]})
    ['path 2 fails 60 s into the measurement']
    """
    words = []
    for row in _rows(array):
        thing, verb = row["what"].split(" ", 1)
        number = "" if KINDS[row["what"]] is None else f" {row['number']}"
        box = (
            f" of box {row['box']}" if thing != "path" and array.get("member_count", 1) > 1 else ""
        )
        when = (
            " from the beginning"
            if row["after_s"] is None
            else f" {row['after_s']:g} s into the measurement"
        )
        words.append(f"{thing}{number}{box} {verb}{when}")
    return words


def impossible_faults(array: ArraySheet) -> Iterator[tuple[KeyPath, str, str]]:
    """Key, message and hint of each fault of something that is not there."""
    there = {
        "drive": (sum(array.get("sets") or []), "drives"),
        "link": (array.get("link_count") or 0, "paths"),
        "controller": (array.get("controller_count") or 0, "controllers"),
    }
    for index, row in enumerate(_rows(array)):
        if row.get("what") not in KINDS:
            continue
        kind = KINDS[row["what"]]
        count, name = there.get(kind or "", (0, ""))
        if kind and count and row["number"] and row["number"] > count:
            yield (
                ("faults", index, "number"),
                f"has `{row['what']}` with number {row['number']}, but there are {count} {name}",
                "count from 1",
            )
        boxes = array.get("member_count")
        if kind != "link" and boxes and row["box"] and row["box"] > boxes:
            yield (
                ("faults", index, "box"),
                f"has `{row['what']}` in box {row['box']}, but there are {boxes}",
                "count from 1",
            )


def _rows(array: ArraySheet) -> list[FaultSheet]:
    return array.get("faults") or []


def _native(row: FaultSheet) -> spec.Fault:
    box, number = int(row["box"]) - 1, int(row["number"]) - 1
    match row["what"]:
        case "drive fails":
            return spec.DriveFails(drive_fails=spec.DriveNumber(group=box, drive=number))
        case "path fails":
            return spec.LinkFails(link_fails=spec.LinkNumber(link=number))
        case "path returns":
            return spec.LinkReturns(link_returns=spec.LinkNumber(link=number))
        case "controller fails":
            return spec.ControllerFails(
                controller_fails=spec.ControllerNumber(member=box, controller=number)
            )
        case "cache unprotected":
            return spec.CacheLost(cache_lost=spec.MemberNumber(member=box))
    return spec.CacheReturns(cache_returns=spec.MemberNumber(member=box))
