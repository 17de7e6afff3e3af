"""Small questions about entries of a file in which anything may be left out.

What is stated, and for how many.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.advice.topology import Entry
from plimsoll.inputs.expression import Fact

#: Facts by name; None marks one that the file does not tell.
Facts = dict[str, Fact | None]


def known(facts: Facts) -> dict[str, Fact]:
    """The facts that are told."""
    return {name: fact for name, fact in facts.items() if fact is not None}


def listed(name: str, items: Sequence[str]) -> Facts:
    """A list and its length, which rules compare."""
    return {name: list(items), f"{name}_count": len(items)}


def all_stated(entries: list[Entry], key: str) -> bool | None:
    """Whether a flag holds for all entries.

    None while it is not stated for some and none denies it.
    """
    values = [entry[key] for entry in entries]
    if False in values:
        return False
    return None if None in values or not values else True


def lowest(entries: list[Entry], key: str) -> float | None:
    """The smallest stated value of a key."""
    values = [entry[key] for entry in entries if entry[key] is not None]
    return min(values, default=None)


def is_stated(entries: list[Entry], key: str) -> bool:
    """Whether every entry states a key; False for no entries."""
    return bool(entries) and all(entry[key] is not None for entry in entries)
