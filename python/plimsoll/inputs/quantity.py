"""Quantities in an input file: a text with its unit, or a number whose key ends in the unit.

    mailbox_quota = "2 GB"          # the unit is in the text
    mailbox_quota_mb = 2048         # the unit is in the key

Both say the same; a bare `mailbox_quota = 2048` says nothing and is refused, and so are both at
once. This pass runs before the check of fields: it turns every quantity into the one key and unit
that the rest of the program reads, and notes every mistake in the words of whoever wrote the file.
"""

from collections.abc import Mapping
from typing import Any

from plimsoll.inputs.mistakes import Mistake
from plimsoll.inputs.records import dataclass
from plimsoll.inputs.toml_lines import KeyPath, LocatedFile
from plimsoll.units import SCALES, Dimension, UnitError, parse

# The endings that a key may carry for each kind of quantity, and the unit each stands for.
KEY_ENDINGS: dict[Dimension, dict[str, str]] = {
    Dimension.SIZE: {"kb": "KB", "mb": "MB", "gb": "GB", "tb": "TB"},
    Dimension.CAPACITY: {"gb": "GB", "tb": "TB"},
    Dimension.BIT_RATE: {"mbit_per_s": "Mbit/s", "gbit_per_s": "Gbit/s"},
    Dimension.THROUGHPUT: {"mb_per_s": "MB/s"},
    Dimension.DURATION: {"s": "s", "ms": "ms", "h": "h", "days": "days"},
    Dimension.FRACTION: {"pct": "%", "fraction": "fraction"},
}


@dataclass(frozen=True)
class Quantity:
    """A quantity of one table.

    Attributes:
        dimension: What kind of value it is.
        ending: The ending of the key that the program reads, which gives the unit.
        minimum: The least that makes sense, written with its unit.
        maximum: The most that makes sense, written with its unit.
    """

    dimension: Dimension
    ending: str
    minimum: str
    maximum: str

    def worth(self) -> float:
        """What one of the unit that the program reads is worth in the base unit."""
        return SCALES[self.dimension].factors[KEY_ENDINGS[self.dimension][self.ending]]


@dataclass(frozen=True)
class Converted:
    """A file whose quantities all have their one key.

    Attributes:
        document: The file with converted values; a wrong quantity is left out.
        mistakes: Everything wrong with the quantities.
        written: The key as it was written, by the key that the program reads.
        refused: The keys that the program reads whose value was wrong.
    """

    document: LocatedFile
    mistakes: list[Mistake]
    written: dict[str, str]
    refused: set[str]


def convert(document: LocatedFile, quantities: Mapping[str, Mapping[str, Quantity]]) -> Converted:
    """Turn every quantity of a file into the key and unit that the program reads.

    Args:
        document: The file as parsed.
        quantities: By table, then by key without unit. A list of tables is converted entry by
            entry.

    Returns:
        The converted file with all mistakes found on the way.
    """
    result = Converted(
        LocatedFile(document.name, dict(document.data), dict(document.lines)), [], {}, set()
    )
    for table, wanted in quantities.items():
        content = document.data.get(table)
        if isinstance(content, dict):
            result.document.data[table] = _convert_table(content, (table,), wanted, result)
        elif isinstance(content, list):
            result.document.data[table] = [
                _convert_table(entry, (table, index), wanted, result)
                if isinstance(entry, dict)
                else entry
                for index, entry in enumerate(content)
            ]
    return result


def shown(path: KeyPath) -> str:
    """A key path as written in the documentation, counting entries from 1."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def _convert_table(
    content: dict[str, Any], path: KeyPath, wanted: Mapping[str, Quantity], result: Converted
) -> dict[str, Any]:
    converted = dict(content)
    for key, quantity in wanted.items():
        spellings = [key, *(f"{key}_{ending}" for ending in KEY_ENDINGS[quantity.dimension])]
        present = [spelling for spelling in spellings if spelling in content]
        canonical = f"{key}_{quantity.ending}"
        for spelling in present:
            converted.pop(spelling)
        if not present:
            continue
        first = (*path, present[0])
        line = result.document.line_of(first)
        result.document.lines[(*path, canonical)] = line
        result.written[shown((*path, canonical))] = shown(first)
        try:
            if len(present) > 1:
                raise UnitError(f"is also given as `{present[1]}`", "keep one of the two")
            converted[canonical] = _value(content[present[0]], key, present[0], quantity)
        except UnitError as error:
            result.mistakes.append(Mistake(line, shown(first), str(error), error.hint))
            result.refused.add(shown((*path, canonical)))
    return converted


def _value(written: Any, key: str, spelling: str, quantity: Quantity) -> float:
    """Read one quantity in the unit that the program reads.

    Raises:
        UnitError: It has no unit, a wrong one, or makes no sense.
    """
    if spelling == key:
        base, told = _parse_text(written, key, quantity), f'is "{written}"'
    else:
        unit = KEY_ENDINGS[quantity.dimension][spelling[len(key) + 1 :]]
        if isinstance(written, bool) or not isinstance(written, (int, float)):
            raise UnitError(
                f"is {written!r}, but must be a number",
                f'write `{spelling} = 1` or `{key} = "1 {unit}"`',
            )
        base, told = parse(f"{float(written)!r} {unit}", quantity.dimension), f"is {written}"
    least, most = (
        parse(limit, quantity.dimension) for limit in (quantity.minimum, quantity.maximum)
    )
    if not least <= base <= most:
        hint = "it cannot be negative" if base < 0 else "check the number and its unit"
        raise UnitError(
            f"{told}, but must lie between {quantity.minimum} and {quantity.maximum}", hint
        )
    return base / quantity.worth()


def _parse_text(written: Any, key: str, quantity: Quantity) -> float:
    try:
        return parse(written, quantity.dimension)
    except UnitError as error:
        problem = str(error)
        if isinstance(written, (int, float)) and not isinstance(written, bool):
            ending = quantity.ending
            unit = KEY_ENDINGS[quantity.dimension][ending]
            hint = (
                f'write `{key} = "{written} {unit}"` or `{key}_{ending} = {written}`, with the '
                f"unit you mean"
            )
            raise UnitError(f"is {written} without a unit", hint) from error
        quoted = f'"{written}" '
        told = (
            f'is "{written}", which {problem.removeprefix(quoted)}'
            if problem.startswith(quoted)
            else problem
        )
        raise UnitError(told, error.hint) from error
