"""The JSON Schema of a plan, made from the same fields that check one, for editors and for programs
that write plans.

The schema accepts every plan that `plimsoll run` accepts. It cannot say everything: that names
refer to each other, that shares add up to 100 and that a load is stated in one way only is checked
when the plan is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from plimsoll.documents.json_schema import Schema
from plimsoll.inputs.schema import Field, Flag, Kind, ListOf, Number, Numbers, Table, Tables, Text
from plimsoll.plan.fields import PLAN_FIELDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class TableSchema(TypedDict):
    """The schema of a table."""

    type: str
    additionalProperties: bool
    properties: dict[str, Schema]
    required: list[str]


def plan_schema() -> Schema:
    """The schema of a plan file, as TOML or JSON.

    >>> plan_schema()["properties"]["kind"]
    {'const': 'plan', 'description': 'says what the file is'}
    """
    table = _table(PLAN_FIELDS)
    kind: Schema = {"const": "plan", "description": "says what the file is"}
    return {
        "$schema": DIALECT,
        "title": "Plimsoll plan",
        "description": "What to run on which storage: targets, instances, workloads and phases.",
        **table,
        "properties": {"kind": kind, **table["properties"]},
        "required": ["kind", *table["required"]],
    }


def _table(fields: Mapping[str, Field]) -> TableSchema:
    properties: dict[str, Schema] = {}
    for name, field in fields.items():
        properties[name] = _kind(field.kind)
        if field.meaning:
            properties[name]["description"] = field.meaning
        if field.default not in (None, []):
            properties[name]["default"] = field.default
    required = [name for name, field in fields.items() if field.required]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": required,
    }


def _kind(kind: Kind) -> Schema:
    match kind:
        case Number(minimum, maximum, whole, words):
            number: Schema = {
                "type": "integer" if whole else "number",
                "minimum": minimum,
                "maximum": maximum,
            }
            return {"anyOf": [number, {"enum": list(words)}]} if words else number
        case Text(choices):
            return {"enum": list(choices)} if choices else {"type": "string", "minLength": 1}
        case Flag():
            return {"type": "boolean"}
        case ListOf(item, count):
            return {"type": "array", "items": _kind(item), "minItems": count}
        case Table(fields):
            return {**_table(fields)}
        case Tables(fields, count):
            return {"type": "array", "items": _table(fields), "minItems": count}
        case Numbers(value):
            return {"type": "object", "additionalProperties": _kind(value)}
