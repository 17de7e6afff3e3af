"""The reference of a requirements file, written from the same fields that check it.

`python -m tools.sizing_reference docs/reference/sizing.md` rewrites the part of the page between
its two markers; a test holds the page against the fields, so a key without a line in the
documentation does not pass.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from plimsoll.inputs.quantity import Quantity
from plimsoll.inputs.schema import Field, Flag, Number, Table, Tables, Text
from plimsoll.sizing.requirement_fields import FIELDS, QUANTITIES
from tools.marked_part import with_part

BEGIN, END = "<!-- keys: begin -->\n", "<!-- keys: end -->"


def keys_reference() -> str:
    """Every table of a requirements file with its keys, as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    top = {
        key: field for key, field in FIELDS.items() if not isinstance(field.kind, (Table, Tables))
    }
    yield from _table("At the top", "", top, {})
    for name, field in FIELDS.items():
        if isinstance(field.kind, (Table, Tables)):
            heading = f"`[[{name}]]`" if isinstance(field.kind, Tables) else f"`[{name}]`"
            yield from _table(heading, field.meaning, field.kind.fields, QUANTITIES.get(name, {}))


def _table(
    heading: str, meaning: str, fields: Mapping[str, Field], quantities: Mapping[str, Quantity]
) -> Iterator[str]:
    yield f"\n### {heading}\n"
    if meaning:
        yield f"{meaning[0].upper()}{meaning[1:]}.\n"
    yield "| key | value | when left out | meaning |"
    yield "|---|---|---|---|"
    by_canonical = {
        f"{key}_{quantity.ending}": (key, quantity) for key, quantity in quantities.items()
    }
    for key, field in fields.items():
        written, value = key, _value(field)
        if key in by_canonical:
            written, quantity = by_canonical[key]
            value = f"{quantity.dimension.value}, {quantity.minimum} to {quantity.maximum}"
        yield f"| `{written}` | {value} | {_default(key, field, quantities)} | {field.meaning} |"


def _value(field: Field) -> str:
    match field.kind:
        case Number(minimum, maximum, whole):
            return f"{'whole number' if whole else 'number'}, {minimum:,g} to {maximum:,.10g}"
        case Text(choices):
            return "one of " + ", ".join(f'"{choice}"' for choice in choices) if choices else "text"
        case Flag():
            return "true or false"
    raise TypeError(f"a key holds a {type(field.kind).__name__}")


def _default(key: str, field: Field, quantities: Mapping[str, Quantity]) -> str:
    if field.required:
        return "required"
    if field.default is None or field.default == "":
        return "see meaning"
    if isinstance(field.default, bool):
        return "true" if field.default else "false"
    ending = next(
        (
            quantity.ending
            for name, quantity in quantities.items()
            if f"{name}_{quantity.ending}" == key
        ),
        "",
    )
    if ending == "fraction":
        return f"{field.default * 100:g} %"
    units = {"kb": "KB", "mb": "MB", "gb": "GB", "days": "days", "h": "h", "mbit_per_s": "Mbit/s"}
    return f"{field.default:g} {units[ending]}" if ending in units else str(field.default)


def rewritten(page: str) -> str:
    """The page with the part between its markers written anew.

    Raises:
        ValueError: a mark is missing.
    """
    return with_part(page, BEGIN, END, keys_reference() + "\n")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
