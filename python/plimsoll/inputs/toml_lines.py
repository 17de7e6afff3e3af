"""A TOML file that remembers on which line each of its keys stands.

The standard library's parser gives values without positions, and "a number is negative somewhere in
this file" helps nobody. The scanner below walks the text a second time, after the parser has
accepted it, and only notes where keys begin: it decodes no value, so the two readings cannot
disagree about content. Limit: escapes inside quoted keys are not decoded; such a key has no line of
its own and takes that of its table.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, MutableMapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

from plimsoll.errors.system_errors import system_reason
from plimsoll.files.sanitize import NO_TEXT, unusable_name
from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.inputs.records import dataclass

KeyPath = tuple[str | int, ...]

#: More text than this is no plan or catalogue written by a person; refused before parsing so memory
#: stays bounded.
FILE_BYTES_MAX = 4 * 1024 * 1024

#: Bounds of what a person writes. Beyond them the parser takes minutes for a file of a few hundred
#: kB.
TABLES_MAX = 5_000
KEY_PARTS_MAX = 50
_LONG_KEY = re.compile(
    rf"""(?<![\w"'-])(?:[\w"'-]{{1,200}}+[ \t]{{0,20}}+\.[ \t]{{0,20}}+){{{KEY_PARTS_MAX}}}"""
)

_BLANK = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\n#]*")
_BASIC_STRING = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_LITERAL_STRING = re.compile(r"'''.*?'{3,5}|'[^'\n]*'", re.DOTALL)


#: A table as TOML has it, before anything is checked.
TomlTable = dict[str, Any]


@dataclass(frozen=True)
class LocatedFile:
    """A parsed TOML file and the line of every key in it.

    Attributes:
        name: the file as the user named it.
        data: the parsed content.
        lines: line by key path, for instance `("arrays", 2, "raid")`.
    """

    name: str
    data: TomlTable
    lines: MutableMapping[KeyPath, int] = field(repr=False)

    def line_of(self, path: KeyPath) -> int:
        """Line of a key, or of the nearest table around it; 0 when even that is unknown."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return 0


HINT = 'text goes in "double quotes", a table begins with [name], a list of tables with [[name]]'


def read_located(path: Path) -> LocatedFile:
    """Read and parse one TOML file.

    Raises:
        InputError: the file cannot be read, is too large, is not UTF-8 or is not TOML.
    """
    name = str(path)
    try:
        # Counted while it is read: pipes and devices have no length.
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        reason = system_reason(error)
        raise InputError(
            name, [Mistake(0, "", f"cannot be read: {reason}", "check the path")]
        ) from error
    except ValueError as error:
        shown = unusable_name(name) or name
        raise InputError(shown, [Mistake(0, "", NO_TEXT, "write another name")]) from error
    if len(raw) > FILE_BYTES_MAX:
        raise InputError(
            name, [Mistake(0, "", "is larger than 4 MiB, which no description of this kind needs")]
        )
    try:
        text = raw.decode("utf-8-sig")  # some editors mark the beginning
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(
            name, [Mistake(line, "", "is not UTF-8 text", "save the file as UTF-8")]
        ) from error
    return parse_located(name, text)


def parse_located(name: str, text: str) -> LocatedFile:
    """Parse TOML text, noting the line of each key. A mark of the byte order is left out.

    Raises:
        InputError: the text is not TOML.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if text.count("[[") > TABLES_MAX:
        raise InputError(
            name,
            [Mistake(0, "", f"holds more than {TABLES_MAX:,} tables, which no description needs")],
        )
    if (key := _LONG_KEY.search(text)) is not None:
        line = text.count("\n", 0, key.start()) + 1
        raise InputError(
            name, [Mistake(line, "", f"joins more than {KEY_PARTS_MAX} names with dots")]
        )
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(found.group(1)) if found else text.count("\n") + 1
        what = re.sub(r"\s*\(at .*\)$", "", str(error))
        wrong = Mistake(line, "", f"is not valid TOML: {what}", HINT)
        if text.lstrip().startswith("{"):
            wrong = Mistake(line, "", "is JSON, not TOML", "write it as TOML: `key = value` a line")
        elif "\\" in what:
            wrong = Mistake(line, "", wrong.message, r"write a \ in 'single quotes'")
        raise InputError(name, [wrong]) from error
    except RecursionError as error:
        raise InputError(name, [Mistake(0, "", "is nested too deeply to be read")]) from error
    except ValueError as error:
        # The language refuses numbers of thousands of digits; the parser passes that on as it is.
        raise InputError(
            name, [Mistake(0, "", f"holds a value that cannot be read: {error}")]
        ) from error
    return LocatedFile(name, data, _Lines(text))


class _Lines(MutableMapping[KeyPath, int]):
    """The lines of a text's keys, found when first asked for.

    A file without mistakes is never walked twice.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def found(self) -> dict[KeyPath, int]:
        return _Scanner(self.text).scan()

    def __getitem__(self, path: KeyPath) -> int:
        return self.found[path]

    def __setitem__(self, path: KeyPath, line: int) -> None:
        self.found[path] = line

    def __delitem__(self, path: KeyPath) -> None:
        del self.found[path]

    def __iter__(self) -> Iterator[KeyPath]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


class _Scanner:
    """One walk over text that is known to be valid TOML."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.line_ends = [match.start() for match in re.finditer("\n", text)]
        self.lines: dict[KeyPath, int] = {}
        self.table_counts: dict[KeyPath, int] = {}

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip_blank():
            if self._peek() == "[":
                table = self._header()
            else:
                self._assignment(table)
        return self.lines

    def _peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def _note(self, path: KeyPath) -> None:
        self.lines.setdefault(path, bisect_right(self.line_ends, self.position - 1) + 1)

    def _skip_blank(self) -> bool:
        """Move past white space, line ends and comments; False at the end of the text."""
        match = _BLANK.match(self.text, self.position)
        self.position = match.end() if match else self.position
        return self.position < len(self.text)

    def _header(self) -> KeyPath:
        is_list = self.text.startswith("[[", self.position)
        start = self.position
        self.position += 2 if is_list else 1
        keys = self._keys()
        self.position += 2 if is_list else 1
        path: KeyPath = ()
        for index, key in enumerate(keys):
            path = (*path, key)
            if is_list and index == len(keys) - 1:
                self.table_counts[path] = self.table_counts.get(path, 0) + 1
            if path in self.table_counts:
                path = (*path, self.table_counts[path] - 1)
        end, self.position = self.position, start
        if is_list:
            self._note(path[:-1])  # the list itself stands where its first entry does
        self._note(path)
        self.position = end
        return path

    def _keys(self) -> list[str]:
        """A dotted key; leaves the position after it."""
        keys: list[str] = []
        while True:
            self._skip_spaces()
            if self._peek() in ('"', "'"):
                start = self.position
                self._string()
                keys.append(self.text[start + 1 : self.position - 1])
            else:
                match = _BARE_KEY.match(self.text, self.position)
                assert match, "the parser accepted this text, so a key stands here"
                keys.append(match.group())
                self.position = match.end()
            self._skip_spaces()
            if self._peek() != ".":
                return keys
            self.position += 1

    def _skip_spaces(self) -> None:
        while self._peek() in (" ", "\t"):
            self.position += 1

    def _assignment(self, table: KeyPath) -> None:
        start = self.position
        keys = self._keys()
        after_keys, self.position = self.position, start
        for count in range(1, len(keys) + 1):
            self._note((*table, *keys[:count]))
        self.position = after_keys + 1  # past the equals sign
        self._skip_spaces()
        self._value((*table, *keys))

    def _value(self, path: KeyPath) -> None:
        character = self._peek()
        if character in ('"', "'"):
            self._string()
        elif character == "[":
            self._array(path)
        elif character == "{":
            self._inline_table(path)
        else:
            match = _SCALAR.match(self.text, self.position)
            self.position = match.end() if match else self.position + 1

    def _string(self) -> None:
        pattern = _BASIC_STRING if self._peek() == '"' else _LITERAL_STRING
        match = pattern.match(self.text, self.position)
        self.position = match.end() if match else len(self.text)

    def _array(self, path: KeyPath) -> None:
        self.position += 1
        index = 0
        while self._skip_blank() and self._peek() != "]":
            if self._peek() == ",":
                self.position += 1
                continue
            self._note((*path, index))
            self._value((*path, index))
            index += 1
        self.position += 1

    def _inline_table(self, path: KeyPath) -> None:
        self.position += 1
        while self._skip_blank() and self._peek() != "}":
            if self._peek() == ",":
                self.position += 1
                continue
            self._assignment(path)
        self.position += 1
