"""The reference pages name every key and every rule, so that what the programs accept can be looked
up.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from plimsoll.advice import rules, topology_fields
from plimsoll.inputs.schema import Field, Table, Tables
from plimsoll.sizing import catalogue, cost_study

PAGES = Path(__file__).parents[2] / "docs" / "reference"


def keys_of(fields: Mapping[str, Field]) -> set[str]:
    """Every key of a table and of the tables inside it."""
    found = set(fields)
    for field in fields.values():
        if isinstance(field.kind, (Table, Tables)):
            found |= keys_of(field.kind.fields)
    return found


@pytest.mark.parametrize(
    ("page", "fields"),
    [
        ("selection.md", catalogue._FIELDS),
        ("cost.md", cost_study._FIELDS),
        ("advice.md", topology_fields.TOPOLOGY),
        ("advice.md", rules._RULE_FIELDS),
    ],
)
def test_every_key_is_on_its_page(page: str, fields: Mapping[str, Field]) -> None:
    """A key that is accepted and documented nowhere might as well not exist."""
    text = (PAGES / page).read_text()
    assert [key for key in sorted(keys_of(fields)) if f"`{key}`" not in text] == []


def test_every_rule_and_every_scope_is_on_the_page() -> None:
    """A finding names its rule, and the page is where a reader looks it up."""
    text = (PAGES / "advice.md").read_text()
    assert [rule.id for rule in rules.read_rules() if f"| {rule.id} |" not in text] == []
    assert [scope for scope in rules.SCOPES if f"| `{scope}` |" not in text] == []
