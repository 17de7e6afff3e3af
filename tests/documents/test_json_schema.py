"""The published schemas are those of the code, and files of run folders satisfy them."""

import json
from pathlib import Path

import jsonschema
import pytest

from tools.reference_docs import DOCUMENTS, schema_text

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "docs" / "reference" / "schemas"
GOLDEN = ROOT / "tests" / "golden"


def test_every_schema_is_current():
    """A schema that says other than the reader does is worse than none; `make docs` writes them."""
    written = {path.name: path.read_text(encoding="utf-8") for path in SCHEMAS.iterdir()}
    assert written == {f"{name}.schema.json": schema_text(kind) for name, kind in DOCUMENTS.items()}


@pytest.mark.parametrize("name", ["plan", "outcome", "summary", "verdict"])
def test_golden_files_satisfy_their_schemas(name):
    content = json.loads((GOLDEN / "run" / f"{name}.json").read_text(encoding="utf-8"))
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(content)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate({**content, "further": 1})
