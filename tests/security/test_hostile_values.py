"""Every key of a plan with every kind of value that nobody means.

A mistake with its line, or a plan that keeps to its places.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import read_plan
from plimsoll.plan.fields import (
    HOST_FIELDS,
    INSTANCE_FIELDS,
    PLAN_FIELDS,
    TARGET_FIELDS,
    WORKLOAD_FIELDS,
)
from plimsoll.plan.phases import PHASE_FIELDS

SECONDS_MAX = 5.0
#: As they stand in a file.
VALUES = [
    "-1",
    "0",
    "9" * 400,
    "-" + "9" * 25,
    "1e400",
    "-1e308",
    "nan",
    "-inf",
    "0x7fffffffffffffff",
    "true",
    "1979-05-27T07:32:00Z",
    '""',
    '"\\u0000"',
    '"../../../../tmp/evil"',
    '"/tmp/evil/../../evil"',
    '"/dev/zero"',
    '"/proc/self/environ"',
    '"~root/.ssh"',
    '"$(touch pwned)"',
    '"%s%n{0.__class__}"',
    '"\\u202egpj.exe\\u001b[2J"',
    json.dumps("x" * 100_000),
    json.dumps("x" * 300),
    json.dumps("x/" * 1_500),
    "[]",
    '["a", 1, [[]]]',
    "[" * 60 + "]" * 60,
    "{ a = { b = { c = [{}] } } }",
]
SOUND: dict[str, dict[str, str]] = {
    "": {"kind": '"plan"', "schema_version": "1"},
    "target": {"name": '"disk"', "path": '"{place}"'},
    "instance": {"name": '"one"', "database_size_mib": "64"},
    "workload": {"name": '"mix"', "load": "{ sessions = 2 }"},
    "phase": {"name": '"first"', "kind": '"measure"', "duration_s": "2"},
}
FIELDS = {
    "": [
        key for key in PLAN_FIELDS if key not in ("host", "target", "instance", "workload", "phase")
    ],
    "host": list(HOST_FIELDS),
    "target": list(TARGET_FIELDS),
    "instance": list(INSTANCE_FIELDS),
    "workload": list(WORKLOAD_FIELDS),
    "phase": list(PHASE_FIELDS),
}


def plan_with(table: str, key: str, value: str, place: Path) -> str:
    """A sound plan but for one key."""
    text = ""
    for name in dict.fromkeys([*SOUND, table]):
        keys = SOUND.get(name, {"name": '"here"'}) | ({key: value} if name == table else {})
        text += f"[[{name}]]\n" if name else ""
        text += "".join(f"{key} = {value}\n" for key, value in keys.items())
    return text.replace("{place}", str(place))


def places_in(run: dict[str, Any]) -> Iterator[Path]:
    """Where a plan would write."""
    for instance in run["instances"]:
        yield Path(instance["directory"])
        yield Path(instance["log_directory"])


@pytest.mark.parametrize("table", FIELDS)
def test_no_value_of_any_key_breaks_the_reader_or_leads_elsewhere(
    table: str, tmp_path: Path
) -> None:
    """What is refused is refused in words.

    What is accepted writes below the paths it names, and nowhere else.
    """
    place, plan = tmp_path / "place", tmp_path / "plan.toml"
    accepted = 0
    for key in FIELDS[table]:
        for value in VALUES:
            plan.write_text(plan_with(table, key, value, place))
            began = time.monotonic()
            try:
                run = read_plan(plan).run.plain()
            except InputError as error:
                said = str(error)
                assert len(said) < 2_000, (key, value[:50])
                assert all(character.isprintable() or character == "\n" for character in said), (
                    key,
                    said,
                )
            else:
                accepted += 1
                named = [place, *_paths_of(table, key, value)]
                for path in places_in(run):
                    real = Path(os.path.normpath(path))
                    assert any(real.is_relative_to(root) for root in named), (key, value[:50], path)
            assert time.monotonic() - began < SECONDS_MAX, (key, value[:50])
    assert accepted, (
        "all of it refused: the plan around the values is not sound, and this test shows nothing"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.toml"], (
        "reading a plan writes nothing"
    )


def _paths_of(table: str, key: str, value: str) -> list[Path]:
    """The places that a plan names itself."""
    if table != "target" or key not in ("path", "log_path") or not value.startswith('"'):
        return []
    return [Path(os.path.normpath(Path.cwd() / Path(json.loads(value)).expanduser()))]
