"""Holds the charts of a page to the schema of Vega-Lite, as altair ships it."""

import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator
from jsonschema.exceptions import best_match

SCHEMA = "vegalite/v6/schema/vega-lite-schema.json"


@cache
def _validator() -> Draft7Validator:
    altair = find_spec("altair")
    assert altair and altair.submodule_search_locations
    path = Path(altair.submodule_search_locations[0]) / SCHEMA
    return Draft7Validator(json.loads(path.read_text(encoding="utf-8")))


def hold_charts(page: str) -> set[str]:
    """The names of a page's charts, each of which says only what Vega-Lite knows.

    A word that it does not know would be a chart without a line.
    """
    found = re.search(r"^const specs = (.*);$", page, flags=re.MULTILINE)
    specs = json.loads(found[1]) if found else {}
    for name, spec in specs.items():
        error = best_match(_validator().iter_errors(_shortened(spec)))
        assert error is None, f"{name}: {error}"
    return set(specs)


def _shortened(spec: Any) -> Any:
    """A spec with one row of its data: the schema knows nothing of rows."""
    if isinstance(spec, list):
        return [_shortened(item) for item in spec]
    if not isinstance(spec, dict):
        return spec
    if "data" in spec:
        spec = {**spec, "data": {"values": spec["data"]["values"][:1]}}
    return {key: _shortened(value) for key, value in spec.items()}
