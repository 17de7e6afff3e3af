"""The run spec and the outcome are the same on both sides of the door, and those of version 0.1 are
read.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest

from plimsoll import _native
from plimsoll.documents.document import Document, DocumentError, hints_of, key_of
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.phase_actions import PhaseAction
from plimsoll.documents.run_spec import LoadSpec, RunSpec

GOLDEN = Path(__file__).parents[1] / "golden" / "run"


def maximal(kind: Any, depth: int = 0) -> Any:
    """Plain data of a type with every key that it can have."""
    if isinstance(kind, type) and issubclass(kind, Document):
        return {key_of(name): maximal(hint, depth + 1) for name, hint in hints_of(kind).items()}
    arguments = get_args(kind)
    if kind in (str, int, float, bool):
        return {str: "x", int: 4, float: 4.0, bool: True}[kind]
    if arguments and all(
        not isinstance(item, (type, type(None))) and isinstance(item, (str, int))
        for item in arguments
    ):
        return arguments[0]
    known = [item for item in arguments if item is not type(None)]
    if get_origin(kind) is Sequence:
        return [maximal(known[0], depth + 1)]
    return maximal(known[0], depth + 1)


def complete_spec(load: type[Document], action: type[Document], directory: Path) -> dict[str, Any]:
    """A run spec with every key, of one kind of load and one kind of phase."""
    spec: dict[str, Any] = maximal(RunSpec)
    spec["hosts"] = [{"name": "local"}]
    spec["io_method"], spec["durable_writes"] = "threads", "fdatasync"
    spec["targets"][0] |= {"name": "disk", "host": "local", "path": str(directory)}
    instance = spec["instances"][0]
    instance |= {
        "name": "one",
        "target": "disk",
        "directory": str(directory),
        "log_directory": str(directory),
    }
    instance |= {"page_bytes": 32768, "log_framing": "sector_512"}
    workload = spec["workloads"][0]
    workload |= {"name": "mix", "instances": ["one"], "load": maximal(load)}
    workload["mix"] = {
        f"{kind}_percent": 25 for kind in ("insert", "delete", "replace", "read")
    } | {"lazy_commit_percent": 50}
    if "criteria" in workload["load"]:
        workload["load"]["criteria"][0]["metric"] = "database_read"
    spec["phases"] = [
        {
            "name": "phase",
            "action": maximal(action),
            "workloads": ["mix"] if "search" in workload["load"] else [],
        }
    ]
    return spec


def refusal(spec: dict[str, Any]) -> str:
    """What the door says of the form of a spec; empty where it takes it.

    What it is asked to do may still be impossible.
    """
    try:
        run = _native.Run(json.dumps(spec))
    except _native.ConfigError as error:
        return str(error)
    run.stop()
    while run.next_samples(0.1) is not None:
        run.next_events()
    found = json.loads(run.outcome())["error"]
    return found["text"] if found and found["family"] == "config" else ""


FORM = (
    "unknown field",
    "missing field",
    "invalid type",
    "did not match any variant",
    "unknown variant",
)


@pytest.mark.parametrize("load", get_args(LoadSpec), ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("action", get_args(PhaseAction), ids=lambda cls: cls.__name__)
def test_rust_takes_every_key_that_the_document_has(load, action, tmp_path):
    spec = complete_spec(load, action, tmp_path / "missing")
    assert RunSpec.from_plain(spec).plain() == spec
    assert not any(word in refusal(spec) for word in FORM)


def objects(value: Any, path: str = "") -> Any:
    """Every object in plain data, with its path."""
    if isinstance(value, dict):
        yield path, value
        for key, item in value.items():
            yield from objects(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from objects(item, path)


def test_both_sides_refuse_the_same_unknown_keys(tmp_path):
    spec = complete_spec(get_args(LoadSpec)[0], get_args(PhaseAction)[1], tmp_path / "missing")
    for path, item in list(objects(spec)):
        item["further"] = 1
        text = refusal(spec)
        assert "described wrongly" in text, f"{path}: {text}"
        with pytest.raises(DocumentError, match="further"):
            RunSpec.from_plain(spec)
        del item["further"]


def test_a_run_spec_of_version_0_1_is_read_and_keeps_its_keys():
    written = json.loads((GOLDEN / "plan.json").read_text())["run"]
    assert RunSpec.from_plain(written).plain() == written


def test_an_outcome_of_version_0_1_is_read_and_keeps_its_keys():
    written = json.loads((GOLDEN / "outcome.json").read_text())
    assert Outcome.read(GOLDEN / "outcome.json").plain() == written
