"""What the keys of an input file may be, stated once, and the check that finds every mistake at
once.

A reader declares its tables as `Field`s: type, range, whether required, and what the key means.
`check_file` walks a located file against them and returns plain dictionaries with defaults filled
in, or raises one `InputError` carrying every unknown key, missing key, wrong type and number out of
range, each with its line. The unit of a quantity is part of its key (`drive_capacity_gb`), so a key
without its unit is an unknown key and gets the hint to add it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from plimsoll.files.sanitize import NO_TEXT, unusable_name
from plimsoll.inputs.mistakes import InputError, Mistake, nearest_names
from plimsoll.inputs.records import dataclass
from plimsoll.inputs.toml_lines import KeyPath, LocatedFile
from plimsoll.units import unit_of_name

#: The form of the files read here; it changes when a file that was right would be read differently.
SCHEMA_VERSION = 1


#: Which command reads a file of each kind.
READERS = {
    "catalogue": "plimsoll select --catalogue",
    "claims": "plimsoll import",
    "cost": "plimsoll cost",
    "papers": "plimsoll papers",
    "plan": "plimsoll run",
    "requirements": "plimsoll size",
    "rules": "plimsoll advise --rules",
    "solution": "plimsoll esrp",
    "study": "plimsoll study",
    "topology": "plimsoll advise",
}


@dataclass(frozen=True)
class Number:
    """A number inside a closed range.

    The range is what is physically or commercially sane, not what is wise.
    """

    minimum: float = 0.0
    maximum: float = 1e15
    whole: bool = False
    #: Words allowed in place of the number, for a value that is stated to be absent.
    words: tuple[str, ...] = ()


#: No path and no name is longer, and descriptions are sentences.
TEXT_CHARACTERS_MAX = 4096


@dataclass(frozen=True)
class Text:
    """A non-empty text, one of `choices` when any are given."""

    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Flag:
    """true or false."""


@dataclass(frozen=True)
class ListOf:
    """A list whose items are all of one kind."""

    item: Number | Text | ListOf
    count_minimum: int = 0


@dataclass(frozen=True)
class Table:
    """A table with its own fields."""

    fields: Mapping[str, Field]


@dataclass(frozen=True)
class Tables:
    """A list of tables with the same fields."""

    fields: Mapping[str, Field]
    count_minimum: int = 0
    #: The key whose value names an item; it must be unique in the list.
    unique: str = ""
    #: More of them are not looked at one by one.
    count_maximum: int | None = None


@dataclass(frozen=True)
class Numbers:
    """A table of free names, each with a number: prices by item, rates by label."""

    value: Number = field(default_factory=Number)


Kind = Number | Text | Flag | ListOf | Table | Tables | Numbers


@dataclass(frozen=True)
class Field:
    """One key: its kind, and whether it must be there.

    Attributes:
        kind: what the value must be.
        required: whether leaving it out is a mistake.
        default: what a reader gets when it is left out; None means absent.
        meaning: one line for the reference page and for hints.
    """

    kind: Kind
    required: bool = False
    default: Any = None
    meaning: str = ""


#: A table that was checked against its fields: every key of them is there, with None where nothing
#: was written.
Given = dict[str, Any]


def check_file(
    document: LocatedFile, kind: str, fields: Mapping[str, Field], readers: Mapping[str, str]
) -> Given:
    """Check a whole file against its fields.

    Args:
        document: the file.
        kind: the `kind` the caller reads.
        fields: the top-level keys except `kind`.
        readers: which command reads each other kind, for the hint about a wrong kind.

    Returns:
        The content with defaults filled in and `kind` left out.

    Raises:
        InputError: with every mistake found. A wrong `kind` is reported alone, as the other keys
            then mean nothing.
    """
    require_kind(document, (kind,), readers)
    collector = Collector(document)
    content = collector.top(fields)
    collector.raise_if_any()
    return content


def require_kind(document: LocatedFile, kinds: tuple[str, ...], readers: Mapping[str, str]) -> str:
    """The file's declared kind, which must be one of `kinds`.

    Raises:
        InputError: the kind is missing or another one.
    """
    found = document.data.get("kind")
    wanted = " or ".join(f'"{kind}"' for kind in kinds)
    if isinstance(found, str) and found in kinds:
        return found
    if found is None:
        mistake = Mistake(1, "kind", "is missing", f"begin the file with kind = {wanted}")
    else:
        reader = readers.get(str(found), "")
        hint = (
            f"`{reader}` reads files of this kind"
            if reader
            else f"this command reads kind = {wanted}"
        )
        mistake = Mistake(
            document.line_of(("kind",)), "kind", f'is "{found}", but {wanted} was expected', hint
        )
    raise InputError(document.name, [mistake])


class Collector:
    """Walks values against fields and keeps every mistake it meets."""

    def __init__(self, document: LocatedFile) -> None:
        self.document = document
        self.mistakes: list[Mistake] = []

    def add(self, path: KeyPath, message: str, hint: str = "") -> None:
        """Note a mistake at a key path. What is there and wrong is not also called missing."""
        if not message.startswith("is missing") or not self.is_told(path):
            self.mistakes.append(Mistake(self.document.line_of(path), _shown(path), message, hint))

    def add_unknown(
        self,
        path: KeyPath,
        fields: Mapping[str, Field],
        message: str = "is not a key of this table",
    ) -> None:
        """Note a key that is none of these fields. What may be meant by it is not also missing."""
        *table, key = path
        hint = unknown_key_hint(str(key), fields, tuple(table))
        meant = tuple(_shown((*table, name)) for name in fields if f"`{name}`" in hint)
        line = self.document.line_of(path)
        self.mistakes.append(Mistake(line, _shown(path), message, hint, meant))

    def is_told(self, path: KeyPath) -> bool:
        """Whether the value at a key path is wrong, or stands there under another key."""
        where = _shown(path)
        return any(where == known.where or where in known.meant for known in self.mistakes)

    def raise_if_any(self) -> None:
        """Raise everything noted so far."""
        if self.mistakes:
            raise InputError(self.document.name, self.mistakes)

    def top(self, fields: Mapping[str, Field]) -> Given:
        """The content of the whole file, without the two keys that say what it is.

        `kind` and `schema_version`.
        """
        data = {
            key: value
            for key, value in self.document.data.items()
            if key not in ("kind", "schema_version")
        }
        version = self.document.data.get("schema_version", SCHEMA_VERSION)
        if isinstance(version, bool) or version != SCHEMA_VERSION:
            hint = (
                f"this program reads schema_version = {SCHEMA_VERSION}, which may also be left out"
            )
            self.add(
                ("schema_version",),
                f"is {_quoted(version)}, a form this program does not know",
                hint,
            )
        return self.table(data, fields, ())

    def table(self, value: Any, fields: Mapping[str, Field], path: KeyPath) -> Given:
        """A table's values, defaults filled in.

        Wrong values, and those of what is no table, come back as their default.
        """
        if not self._is_table(value, path):
            return {key: spec.default for key, spec in fields.items()}
        for key in value:
            if key not in fields:
                self.add_unknown((*path, key), fields)
        content: Given = {}
        for key, spec in fields.items():
            if key in value:
                content[key] = self.value(value[key], spec.kind, (*path, key), spec.default)
            else:
                content[key] = spec.default
                if spec.required:
                    self.add((*path, key), "is missing", spec.meaning)
        return content

    def named(self, wanted: str | None, names: Sequence[str], path: KeyPath) -> str:
        """A reference to another list, checked; the first name when left out."""
        if wanted is None:
            return names[0] if names else ""
        if wanted not in names:
            self.add(
                path, f'names "{wanted}", which is not in the plan', nearest_names(wanted, names)
            )
        return wanted

    def value(self, value: Any, kind: Kind, path: KeyPath, default: Any) -> Any:
        """One value checked against its kind."""
        match kind:
            case Number():
                if not self._is_number(value, kind, path):
                    return default
                return int(value) if kind.whole and isinstance(value, float) else value
            case Text():
                return value if self._is_text(value, kind, path) else default
            case Flag():
                if isinstance(value, bool):
                    return value
                self.add(path, f"is {_quoted(value)}, but must be true or false")
                return default
            case ListOf():
                return self._list(value, kind, path)
            case Table(fields):
                return self.table(value, fields, path) if self._is_table(value, path) else default
            case Tables():
                return self._tables(value, kind, path)
            case Numbers(item):
                if not self._is_table(value, path):
                    return default
                return {
                    key: number
                    for key, number in value.items()
                    if self._is_number(number, item, (*path, key))
                }

    def _is_number(self, value: Any, kind: Number, path: KeyPath) -> bool:
        if isinstance(value, str) and value in kind.words:
            return True
        words = "".join(f' or "{word}"' for word in kind.words)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            hint = (
                "write the number without quotes; its unit is in the key"
                if isinstance(value, str)
                else ""
            )
            self.add(path, f"is {_quoted(value)}, but must be a number{words}", hint)
        elif isinstance(value, float) and not math.isfinite(value):
            self.add(path, f"is {value}, but must be a finite number{words}")
        elif kind.whole and value != int(value):
            self.add(path, f"is {value}, but must be a whole number{words}")
        elif not kind.minimum <= value <= kind.maximum:
            self.add(
                path,
                f"is {_quoted(value)}, but must lie between {_bound(kind.minimum)} and "
                f"{_bound(kind.maximum)}",
                _range_hint(value, path),
            )
        else:
            return True
        return False

    def _is_text(self, value: Any, kind: Text, path: KeyPath) -> bool:
        if isinstance(value, str) and not value.strip():
            self.add(path, "is empty, but must be a text", "write something, or leave the key out")
        elif not isinstance(value, str):
            self.add(path, f"is {_quoted(value)}, but must be a text", 'put it in "double quotes"')
        elif kind.choices and value not in kind.choices:
            choices = ", ".join(f'"{choice}"' for choice in kind.choices)
            self.add(
                path,
                f"is {_quoted(value)}, which is not one of the known values",
                f"write one of {choices}",
            )
        elif len(value) > TEXT_CHARACTERS_MAX:
            self.add(
                path, f"has {len(value)} characters, but may have {TEXT_CHARACTERS_MAX} at most"
            )
        elif (shown := unusable_name(value)) is not None:
            self.add(path, f"{shown} {NO_TEXT}", "write another name")
        elif (
            odd := next(
                (mark for mark in value if not mark.isprintable() and mark not in "\n\t"), None
            )
        ) is not None:
            # It would steer the terminal of whoever reads the name.
            self.add(
                path, f"holds the character U+{ord(odd):04X}, which cannot be shown", "leave it out"
            )
        else:
            return True
        return False

    def _is_table(self, value: Any, path: KeyPath) -> bool:
        if isinstance(value, dict):
            return True
        self.add(
            path,
            f"is {_quoted(value)}, but must be a table",
            f"write [{_header(path)}] and its keys below it",
        )
        return False

    def _list(self, value: Any, kind: ListOf, path: KeyPath) -> list[Any]:
        if not isinstance(value, list):
            self.add(path, f"is {_quoted(value)}, but must be a list", "write [first, second]")
            return []
        if len(value) < kind.count_minimum:
            self.add(path, f"has {len(value)} items, but needs at least {kind.count_minimum}")
        checked = [
            self.value(item, kind.item, (*path, index), None) for index, item in enumerate(value)
        ]
        return [item for item in checked if item is not None]

    def _tables(self, value: Any, kind: Tables, path: KeyPath) -> list[Given]:
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.add(path, "must be a list of tables", f"begin each one with [[{_header(path)}]]")
            return []
        if len(value) < kind.count_minimum:
            self.add(path, f"has {len(value)} entries, but needs at least {kind.count_minimum}")
        if kind.count_maximum is not None and len(value) > kind.count_maximum:
            self.add(
                path,
                f"has {len(value):,} entries, but may have at most {kind.count_maximum:,}",
                "take fewer",
            )
            return []
        seen: dict[Any, int] = {}
        for index, item in enumerate(value):
            name = item.get(kind.unique) if kind.unique else None
            if isinstance(name, str) and name in seen:
                line = self.document.line_of((*path, seen[name]))
                first = f"line {line}" if line else f"`{_shown((*path, seen[name]))}`"
                self.add(
                    (*path, index, kind.unique),
                    f'repeats "{name}", first used on {first}',
                    "names must differ",
                )
            elif isinstance(name, str):
                seen[name] = index
        return [self.table(item, kind.fields, (*path, index)) for index, item in enumerate(value)]


def unknown_key_hint(key: str, fields: Mapping[str, Field], path: KeyPath) -> str:
    """What to write in the place of a key that is not one of these fields."""
    inner = next(
        (
            name
            for name, spec in fields.items()
            if isinstance(spec.kind, Table) and key in spec.kind.fields
        ),
        None,
    )
    if inner is not None and path:
        return f"it belongs into `{inner}`: write {inner} = {{ {key} = ... }}"
    with_unit = [
        name for name in fields if name.startswith(f"{key}_") and unit_of_name(name) is not None
    ]
    stem = key.rsplit("_", 1)[0]
    other_unit = [name for name in fields if "_" in key and name.rsplit("_", 1)[0] == stem]
    if with_unit:
        return "the unit belongs in the key: write " + " or ".join(
            f"`{name}`" for name in with_unit
        )
    if other_unit:
        return "this quantity is written as " + " or ".join(f"`{name}`" for name in other_unit)
    return nearest_names(key, fields)


def _bound(value: float) -> str:
    """A limit of a number as people write it."""
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _range_hint(value: float, path: KeyPath) -> str:
    if value < 0:
        return "a quantity of this kind is never negative"
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    unit = unit_of_name(key)
    if unit in (None, "count", "ratio", "number"):
        return "check the number: it is out of what makes sense"
    return f"check the unit: the number is read in {unit}"


def _quoted(value: Any) -> str:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    shown = {"True": "true", "False": "false"}.get(shown, shown)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _header(path: KeyPath) -> str:
    """The names of a key path as a header of TOML has them, which counts no entries."""
    return ".".join(part for part in path if isinstance(part, str))


def _shown(path: KeyPath) -> str:
    """A key path as written in the documentation: `arrays[3].raid`, counting entries from 1."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text
