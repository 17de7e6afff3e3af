"""Typed documents: a JSON object as a frozen class, read with every mistake reported, written with
the keys it has.

A document class states its keys as annotated attributes. Reading refuses unknown keys, missing keys
and values of a wrong type, and reports all of them with their paths. An attribute with a default
may be left out of a file, as files of earlier versions do; what was not given is not written
either, so a file that is read and written keeps its keys.

Why not a library: `docs/decisions/typed-documents.md`. Limits: no methods that change a document,
and only the types that JSON has (see `_checker`). A document that inherits from another has its
keys too.
"""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

from plimsoll.files import folder
from plimsoll.files.paths import StrPath

#: So many mistakes of one file are shown; who wrote a file of another kind sees as much from them
#: as from all.
MISTAKES_SHOWN_MAX = 20


class DocumentError(folder.FolderError):
    """A document that is not what it should be; `mistakes` holds every one, each with its path."""

    def __init__(self, name: str, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        shown = "; ".join(mistakes[:MISTAKES_SHOWN_MAX])
        rest = len(mistakes) - MISTAKES_SHOWN_MAX
        super().__init__(
            f"{name} is not valid: {shown}{f'; and {rest} more mistakes' if rest > 0 else ''}"
        )


class _Absent:
    """The value of an attribute that is left out."""

    def __repr__(self) -> str:
        return "ABSENT"


#: What a document keeps in a form of its own.
_COPIED: dict[type, Callable[[Any], object]] = {list: tuple, types.MappingProxyType: dict}
#: Given in the place of a value, it leaves the key out of the document.
ABSENT: Any = _Absent()


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Document:
    """The base of all documents.

    >>> class Place(Document):
    ...     name: str
    ...     size_bytes: int | None = None
    >>> place = Place.from_plain({"name": "one"})
    >>> place.size_bytes, place.plain(), place.replace(size_bytes=3).plain()
    (None, {'name': 'one'}, {'name': 'one', 'size_bytes': 3})
    >>> try:
    ...     Place.from_plain({"nam": "one", "size_bytes": "3"})
    ... except DocumentError as error:
    ...     len(error.mistakes), error.mistakes[-1]
    (3, '`size_bytes` is "3", but must be a whole number or null')
    """

    _names: ClassVar[tuple[str, ...]] = ()
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        known = set(cls._names)
        own = [
            name
            for name in inspect.get_annotations(cls)
            if not name.startswith("_") and name not in known
        ]
        cls._names = (*cls._names, *own)
        cls._required = cls._required | frozenset(name for name in own if name not in cls.__dict__)
        for name in own:
            if type(default := cls.__dict__.get(name)) is dict:
                # All documents of the class share it: who wrote into one would write into all.
                setattr(cls, name, types.MappingProxyType(default))

    def __init__(self, **values: Any) -> None:
        known = self.__dict__
        for name, value in values.items():
            if name not in self._names:
                raise TypeError(f"{type(self).__name__} has no attribute {name}")
            if value is not ABSENT:
                copied = _COPIED.get(type(value))
                known[name] = copied(value) if copied else value
        missing = self._required - known.keys()
        if missing:
            raise TypeError(f"{type(self).__name__} lacks {', '.join(sorted(missing))}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__} is never changed; make another one with replace({name}=...)"
        )

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.__dict__.items())})"  # noqa: E501

    def replace(self, **changes: Any) -> Self:
        """The same document with some attributes changed; ABSENT leaves one out.

        Raises:
            DocumentError: with every attribute that would be of a wrong type. Documents in the
                values are taken as they are: whoever made those has checked them.
        """
        mistakes: list[str] = []
        for name, value in changes.items():
            if name in self._names and value is not ABSENT:
                _checker(hints_of(type(self))[name])(value, key_of(name), mistakes)
        if mistakes:
            raise DocumentError(type(self).__name__, mistakes)
        return type(self)(**{**self.__dict__, **changes})

    def plain(self) -> folder.Content:
        """The document as plain data, with the keys that it was given, in their order."""
        return {key_of(name): plain(value) for name, value in self.__dict__.items()}

    def given(self) -> folder.Content:
        """What was given, by key, with documents in it as they are."""
        return dict(self.__dict__)

    @classmethod
    def required(cls) -> frozenset[str]:
        """The attributes that must be given."""
        return cls._required

    @classmethod
    def from_plain(cls, value: object, name: str = "") -> Self:
        """A document from plain data.

        Raises:
            DocumentError: with every mistake.
        """
        mistakes: list[str] = []
        found = _checker(cls)(value, "", mistakes)
        if mistakes:
            if isinstance(value, dict) and isinstance(value.get("schema_version"), int):
                mistakes = [
                    f"{mistake} (another version of Plimsoll wrote it: use that)"
                    if mistake.startswith("`schema_version`")
                    else mistake
                    for mistake in mistakes
                ]
            raise DocumentError(name or cls.__name__, mistakes)
        document: Self = found
        return document

    def write(self, path: StrPath) -> None:
        """Write the document as a JSON file."""
        folder.write_json(Path(path), self.plain())

    def write_durably(self, path: StrPath) -> None:
        """The same, on stable storage when this returns."""
        folder.write_json_durably(Path(path), self.plain())

    @classmethod
    def read(cls, path: StrPath) -> Self:
        """A document from a JSON file.

        Raises:
            FolderError: the file is missing or damaged.
            DocumentError: it holds something else; the message names every mistake.
        """
        return cls.from_plain(folder.read_json(Path(path)), str(path))


def plain(value: Any) -> Any:
    """Documents, and what holds them, as plain data."""
    if isinstance(value, Document):
        return value.plain()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return value


Check = Callable[[Any, str, list[str]], Any]
_NONE = type(None)
_SCALARS: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    str: ("a text", lambda value: isinstance(value, str)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    float: (
        "a number",
        lambda value: (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            # JSON has no others; Python's reader takes them.
            and -math.inf < value < math.inf
        ),
    ),
    _NONE: ("null", lambda value: value is None),
}


def hints_of(cls: Any) -> dict[str, object]:
    """The types of a document's attributes, by name."""
    return _hints(cls)


@cache
def _hints(cls: Any) -> dict[str, object]:
    found = typing.get_type_hints(cls)
    return {name: found[name] for name in cls._names}


def _checker(kind: Any) -> Check:
    """What checks a value of a type, notes its mistakes and answers the value as it is kept."""
    return _made_checker(kind)


@cache
def _made_checker(kind: Any) -> Check:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any or kind is object:
        return lambda value, path, mistakes: value
    if isinstance(kind, type) and issubclass(kind, Document):
        return _document_checker(kind)
    if origin is Literal or kind in _SCALARS:
        return _alternatives((kind,))
    if origin in (Union, types.UnionType):
        return _alternatives(arguments)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _tuple_checker(arguments)
    if origin is list:
        as_tuple = _sequence_checker(arguments[0])
        return lambda value, path, mistakes: list(as_tuple(value, path, mistakes))
    if origin in (Sequence, tuple):
        return _sequence_checker(arguments[0])
    if origin in (Mapping, dict):
        return _mapping_checker(arguments[1])
    if typing.is_typeddict(kind):
        return _keys_checker(typing.get_type_hints(kind), kind.__required_keys__, dict)
    raise TypeError(f"no document has attributes of type {kind}")


def _document_checker(cls: type[Document]) -> Check:
    check_keys: Check | None = None

    def check(value: Any, path: str, mistakes: list[str]) -> Any:
        nonlocal check_keys
        if type(value) is cls:
            return value
        if check_keys is None:
            # Looked up when the first one is read: a document may hold itself.
            check_keys = _keys_checker(hints_of(cls), cls.required(), cls)
        return check_keys(value, path, mistakes)

    return check


def _keys_checker(
    hints: Mapping[str, object], required: frozenset[str], make: Callable[..., object]
) -> Check:
    names = {key_of(name): name for name in hints}
    required_keys = [key_of(name) for name in hints if name in required]

    def check(value: Any, path: str, mistakes: list[str]) -> Any:
        if not isinstance(value, dict):
            mistakes.append(f"{_at(path)} is {_shown(value)}, but must be an object")
            return None
        noted = len(mistakes)
        mistakes += [
            f"{_at(_below(path, str(key)))} is not a known key" for key in value if key not in names
        ]
        mistakes += [
            f"{_at(_below(path, key))} is missing" for key in required_keys if key not in value
        ]
        found = {
            names[key]: _checker(hints[names[key]])(item, _below(path, key), mistakes)
            for key, item in value.items()
            if key in names
        }
        return make(**found) if len(mistakes) == noted else None

    return check


def _sequence_checker(item: Any) -> Check:
    check_item = _checker(item)

    def check(value: Any, path: str, mistakes: list[str]) -> Any:
        if not isinstance(value, (list, tuple)):
            mistakes.append(f"{_at(path)} is {_shown(value)}, but must be a list")
            return ()
        return tuple(
            check_item(each, f"{path}[{number}]", mistakes) for number, each in enumerate(value)
        )

    return check


def _tuple_checker(items: tuple[Any, ...]) -> Check:
    check_items = [_checker(item) for item in items]

    def check(value: Any, path: str, mistakes: list[str]) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) != len(items):
            mistakes.append(f"{_at(path)} is {_shown(value)}, but must be a list of {len(items)}")
            return ()
        each = enumerate(zip(value, check_items, strict=True))
        return tuple(
            check_item(part, f"{path}[{number}]", mistakes) for number, (part, check_item) in each
        )

    return check


def _mapping_checker(item: Any) -> Check:
    check_item = _checker(item)

    def check(value: Any, path: str, mistakes: list[str]) -> Any:
        if not isinstance(value, (dict, types.MappingProxyType)):
            mistakes.append(f"{_at(path)} is {_shown(value)}, but must be an object")
            return {}
        return {
            key: check_item(each, _below(path, str(key)), mistakes) for key, each in value.items()
        }

    return check


def _alternatives(kinds: tuple[Any, ...]) -> Check:
    """A value of one of several types.

    Scalars by what they are, documents by the keys they share with the value.
    """
    scalars = [_SCALARS[kind] for kind in kinds if kind in _SCALARS]
    choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    documents = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Document)]
    others: list[tuple[Any, Any]] = [(kind, dict) for kind in kinds if _is_object(kind)]
    others += [
        (kind, (list, tuple)) for kind in kinds if get_origin(kind) in (Sequence, tuple, list)
    ]
    words = [f'"{choice}"' if isinstance(choice, str) else str(choice) for choice in choices]
    words += [word for word, _ in scalars] + ["an object"] * bool(documents)
    words += ["an object" if form is dict else "a list" for _, form in others]
    expected = " or ".join(dict.fromkeys(words))

    has_whole = int in kinds or any(type(choice) is int for choice in choices)
    # Most values are of these types, of which every value fits.
    plain_kinds = {kind for kind in kinds if kind in (str, bool, int, _NONE)}

    def check(value: Any, path: str, mistakes: list[str]) -> Any:
        if type(value) in plain_kinds:
            return value
        if has_whole and isinstance(value, float) and value.is_integer():
            # JSON does not tell 1.0 from 1.
            value = int(value)
        if any(value == choice and type(value) is type(choice) for choice in choices):
            return value
        if any(fits(value) for _, fits in scalars) or type(value) in documents:
            return value
        if documents and isinstance(value, dict):
            best = (
                documents[0]
                if len(documents) == 1
                else max(documents, key=lambda cls: _likeness(cls, value))
            )
            return _checker(best)(value, path, mistakes)
        for kind, form in others:
            if isinstance(value, form):
                return _checker(kind)(value, path, mistakes)
        mistakes.append(f"{_at(path)} is {_shown(value)}, but must be {expected}")
        return None

    return check


def _is_object(kind: Any) -> bool:
    """Whether an object may stand for a type that is no document."""
    return get_origin(kind) in (Mapping, dict) or typing.is_typeddict(kind)


#: Keys whose word says which of several documents an object is.
_TAGS = ("kind", "backend")


def _likeness(cls: type[Document], value: Mapping[str, object]) -> tuple[bool, int]:
    """How well an object fits a document.

    By its word for the kind first, then by keys that are shared and keys that are not.
    """
    tags = [(name, kind) for name, kind in hints_of(cls).items() if get_origin(kind) is Literal]
    named = all(value.get(name) in get_args(kind) for name, kind in tags if name in _TAGS)
    shared = sum(key in cls._names for key in value)
    return named, 2 * shared - len(value) - len(cls._required - value.keys())


def key_of(name: str) -> str:
    """The key of an attribute: words that Python keeps for itself stand with an underscore behind
    them.
    """
    return name.removesuffix("_")


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _at(path: str) -> str:
    return f"`{path}`" if path else "the content"


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list, tuple)):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, Document):
        return f"a {type(value).__name__}"
    words: dict[Any, str] = {None: "null", True: "true", False: "false"}
    shown = (
        words[value]
        if value is None or isinstance(value, bool)
        else f'"{value}"'
        if isinstance(value, str)
        else str(value)
    )
    return shown if len(shown) <= 60 else shown[:57] + "..."


Value = TypeVar("Value")


def checked(kind: type[Value], value: object, name: str) -> Value:
    """Plain data as a typed dictionary, or whatever else has a type.

    Raises:
        DocumentError: with every mistake.
    """
    mistakes: list[str] = []
    found: Value = _checker(kind)(value, "", mistakes)
    if mistakes:
        raise DocumentError(name, mistakes)
    return found
