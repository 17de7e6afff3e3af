"""Mistakes of a plan that are only there because of another one.

An instance whose backend is mistyped is taken for records, and then every key of a store means
nothing. Whoever reads that mends what is right. What a value decides is therefore not looked at
where the value is wrong: its own mistake is told, and the rest once it is corrected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from plimsoll.inputs.mistakes import Mistake

#: Keys that decide what is meant elsewhere in the plan.
_DECIDING = (
    *("name", "backend", "store_address", "modelled"),
    *("target", "instance", "workload", "phase"),
)
#: Keys that decide what is meant in their own workload, and in the phases it runs in.
_OF_WORKLOAD = ("instances", "load")
#: Keys that say what an event does, and so which other keys it wants.
_OF_EVENT = ("action", "do", "command", "manual")
_INDEX = re.compile(r"\[\d+\]$")


def without_follow_ons(mistakes: Sequence[Mistake], of_values: int) -> list[Mistake]:
    """The mistakes that are there by themselves.

    Args:
        mistakes: all of a plan, in the order they were met.
        of_values: how many of the first ones are of values alone; the others are of what the values
            mean together.
    """
    first, rest = mistakes[:of_values], mistakes[of_values:]
    if any(_decides(item) for item in first):
        return list(first)
    unclear = {
        workload
        for item in (*first, *rest)
        if (workload := _workload_that_it_decides(item, is_of_value=item in first))
    }
    told = {where for item in first for where in _places(item)}
    told |= {item.where.split(".")[0] for item in first if _is_of_event(item)}
    is_storage_unclear = any(_key(item.where) == "modelled" for item in rest)
    return [
        *first,
        *(
            item
            for item in rest
            if not _follows(item, unclear)
            and told.isdisjoint((item.where, item.where.split(".")[0]))
            and not (is_storage_unclear and item.where.startswith("event["))
        ),
    ]


def _decides(mistake: Mistake) -> bool:
    """Whether a mistake leaves open what much of the plan means; the name of a workload does
    not.
    """
    return any(
        _key(where) in _DECIDING
        and where.count(".") < 2
        and not (_key(where) == "name" and where.startswith("workload["))
        for where in _places(mistake)
    )


def _is_of_event(mistake: Mistake) -> bool:
    """Whether nothing is known of what an event does, because of a mistake."""
    return any(
        where.startswith("event[") and where.count(".") == 1 and _key(where) in _OF_EVENT
        for where in _places(mistake)
    )


def _places(mistake: Mistake) -> tuple[str, ...]:
    """Where a mistake is, and what a key that is not known may have been."""
    return mistake.where, *mistake.meant


def _workload_that_it_decides(mistake: Mistake, *, is_of_value: bool) -> str | None:
    """The workload of which nothing is known because of a mistake."""
    for where in _places(mistake):
        parts = where.split(".")
        if len(parts) < 2 or not parts[0].startswith("workload["):
            continue
        key = _INDEX.sub("", parts[1])
        is_unknown_name = key == "instances" and mistake.message.startswith("names ")
        if is_unknown_name or (is_of_value and key in _OF_WORKLOAD):
            return parts[0]
    return None


def _follows(mistake: Mistake, unclear: set[str]) -> bool:
    """Whether a mistake is of what is not known."""
    entry = mistake.where.split(".")[0]
    if entry in unclear:
        return not mistake.message.startswith("names ")
    return bool(unclear) and entry.startswith("phase[")


def _key(where: str) -> str:
    """The key at the end of a path."""
    return _INDEX.sub("", where.rpartition(".")[2])
