"""XML from strangers: a tree with line numbers, or an error that names file and line.

Nothing is ever fetched or expanded: a document type is refused as a whole, and with it every
entity, so that a bomb of nested entities costs nothing. Size, depth and the number of elements are
bounded before memory is. Source of the reasons: `docs/decisions/untrusted-files.md`. Limit:
processing instructions and comments are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from plimsoll.errors.system_errors import system_reason
from plimsoll.inputs.mistakes import InputError, Mistake

#: Result files of day-long tests with dozens of databases stay far below.
FILE_BYTES_MAX = 64 * 1024 * 1024
DEPTH_MAX = 50
ELEMENTS_MAX = 1_000_000


@dataclass
class Element:
    """An element: its name without prefix, its own text, its line."""

    name: str
    line: int
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def find(self, name: str) -> Element | None:
        """The first child of that name."""
        return next((child for child in self.children if child.name == name), None)

    def all(self, name: str) -> list[Element]:
        """Every child of that name."""
        return [child for child in self.children if child.name == name]


def read_bytes(path: Path, bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """A file's content.

    Raises:
        InputError: it cannot be read or is larger than any file of its kind.
    """
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= bytes_max else b""
    except OSError as error:
        reason = system_reason(error)
        raise InputError(
            str(path), [Mistake(0, "", f"cannot be read: {reason}", "check the path")]
        ) from error
    if size > bytes_max:
        raise InputError(
            str(path),
            [
                Mistake(
                    0, "", f"is larger than {bytes_max >> 20} MiB, which no report of this kind is"
                )
            ],
        )
    if not content:
        raise InputError(str(path), [Mistake(0, "", "is empty", "export or copy the file again")])
    return content


def parse_xml(name: str, content: bytes) -> Element:
    """The root element of a document.

    Args:
        name: the file as the user named it.
        content: its bytes, in any encoding that the XML declaration may name.

    Raises:
        InputError: with the line, what stands there and what was expected.
    """
    return _Tree(name).read(content)


class _Tree:
    """Collects what the parser calls out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._doctype

    def read(self, content: bytes) -> Element:
        try:
            self.parser.Parse(content, True)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code).lower()
            self._refuse(
                error.lineno,
                f"is not well-formed XML: {what}",
                "the file is damaged or cut off; copy it again",
            )
        except (LookupError, ValueError, UnicodeError) as error:
            self._refuse(1, f"cannot be decoded: {error}", "save the file as UTF-8")
        if self.root is None:
            self._refuse(1, "holds no element", "copy the file again")
        return self.root

    def _refuse(self, line: int, message: str, hint: str) -> NoReturn:
        raise InputError(self.name, [Mistake(line, "", message, hint)])

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.count += 1
        line = self.parser.CurrentLineNumber
        if len(self.open) >= DEPTH_MAX:
            self._refuse(
                line,
                f"nests elements more than {DEPTH_MAX} deep",
                "this is no file of the test tool",
            )
        if self.count > ELEMENTS_MAX:
            self._refuse(
                line, f"has more than {ELEMENTS_MAX:,} elements", "this is no file of the test tool"
            )
        element = Element(name.rpartition(":")[2], line, dict(attributes))
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def _end(self, _name: str) -> None:
        self.open.pop()

    def _text(self, text: str) -> None:
        if self.open:
            self.open[-1].text += text

    def _doctype(self, *_: object) -> NoReturn:
        line = self.parser.CurrentLineNumber
        self._refuse(
            line,
            "declares a document type or an entity",
            "files of the test tool have none; remove it",
        )
