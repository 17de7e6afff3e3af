"""The JSON Schema of a document, made from the annotations that check it, for programs that read
run folders.

A schema accepts what `Document.from_plain` accepts: unknown keys are refused, and a key that files
of earlier versions lack is not required. Every document that a document holds stands once, under
`$defs`.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from plimsoll.documents.document import Document, hints_of, key_of

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, object]
_SCALARS: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def schema_of(kind: type[Document]) -> Schema:
    """The schema of a document and of all that it holds.

    >>> class Place(Document):
    ...     "Where it is."
    ...     name: str
    ...     number: int | None = None
    >>> schema_of(Place)["properties"], schema_of(Place)["required"]
    ({'name': {'type': 'string'}, 'number': {'type': ['integer', 'null']}}, ['name'])
    """
    held: dict[str, Schema] = {}
    found = _document(kind, held)
    return {
        "$schema": DIALECT,
        "title": kind.__name__,
        **found,
        **({"$defs": dict(sorted(held.items()))} if held else {}),
    }


def _document(kind: type[Document], held: dict[str, Schema]) -> Schema:
    return _object(kind.__doc__, hints_of(kind), kind.required(), held)


def _object(
    text: str | None,
    hints: Mapping[str, object],
    required: frozenset[str],
    held: dict[str, Schema],
) -> Schema:
    return {
        "description": " ".join(inspect.cleandoc(text or "").split("\n\n")[0].split()),
        "type": "object",
        "properties": {key_of(name): _schema(hint, held) for name, hint in hints.items()},
        "required": [key_of(name) for name in hints if name in required],
        "additionalProperties": False,
    }


def _schema(kind: Any, held: dict[str, Schema]) -> Schema:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any or kind is object:
        return {}
    if isinstance(kind, type) and issubclass(kind, Document):
        if kind.__name__ not in held:
            # Noted before it is known, because a document may hold itself.
            held[kind.__name__] = {}
            held[kind.__name__] = _document(kind, held)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if typing.is_typeddict(kind):
        if kind.__name__ not in held:
            held[kind.__name__] = {}
            held[kind.__name__] = _object(
                kind.__doc__, typing.get_type_hints(kind), kind.__required_keys__, held
            )
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        if all(each in _SCALARS for each in arguments):
            return {"type": [_SCALARS[each] for each in arguments]}
        return {"anyOf": [_schema(each, held) for each in arguments]}
    if origin is tuple and arguments[-1] is not Ellipsis:
        return {
            "type": "array",
            "prefixItems": [_schema(each, held) for each in arguments],
            "items": False,
            "minItems": len(arguments),
        }
    if origin in (Sequence, tuple, list):
        return {"type": "array", "items": _schema(arguments[0], held)}
    if origin in (Mapping, dict):
        return {"type": "object", "additionalProperties": _schema(arguments[1], held)}
    raise TypeError(f"no document has attributes of type {kind}")
