"""Damaged files of every kind end in the list of mistakes or in a result, never in a traceback."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plimsoll.advice.engine import advise
from plimsoll.advice.rules import SHIPPED_RULES, read_rules
from plimsoll.advice.topology import read_topology
from plimsoll.advice.topology_facts import DESCRIBED, topology_subjects
from plimsoll.inputs.mistakes import InputError
from plimsoll.sizing.catalogue import SHIPPED_CATALOGUE, read_catalogue
from plimsoll.sizing.cost_study import SHIPPED_STUDY, read_cost_study
from plimsoll.sizing.selection import Need, select_arrays

EXAMPLES = Path(__file__).parents[2] / "examples"
RULES = read_rules()


def choose(path: Path) -> None:
    """Read a catalogue and choose from it."""
    select_arrays(Need(volumes_gb=1_000, database_iops=500), read_catalogue(path).rows)


def look_at(path: Path) -> None:
    """Read a topology and apply every rule to it."""
    advise(RULES, topology_subjects(read_topology(path)), DESCRIBED)


READERS: list[tuple[Path, Callable[[Path], Any]]] = [
    (SHIPPED_CATALOGUE, choose),
    (SHIPPED_STUDY, read_cost_study),
    (EXAMPLES / "topology_virtual_cluster.toml", look_at),
    (EXAMPLES / "topology_two_hosts.toml", look_at),
    (SHIPPED_RULES, read_rules),
]
DAMAGES = [
    "",
    "-1",
    "0",
    "1e300",
    "nan",
    "inf",
    '""',
    '"x"',
    "true",
    "[]",
    "{}",
    "[[]]",
    "1979-05-27",
    "[1, 2]",
    '"[[]]"',
]


@pytest.mark.parametrize(
    ("path", "read"),
    READERS,
    ids=lambda value: getattr(value, "stem", getattr(value, "__name__", "")),
)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_damage_ends_in_a_traceback(
    tmp_path: Path, path: Path, read: Callable[[Path], Any], data: st.DataObject
) -> None:
    """Lines are lost, values become something else, keys are renamed.

    The reader says what is wrong or copes.
    """
    lines = path.read_text().splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(lines) - 1))
        damage = data.draw(st.sampled_from([*DAMAGES, "delete", "rename", "double"]))
        line = lines[index]
        if damage == "delete":
            lines[index] = ""
        elif damage == "rename":
            lines[index] = re.sub(r"(\w+) =", r"\1x =", line, count=1)
        elif damage == "double":
            lines.insert(index, line)
        else:
            values = list(re.finditer(r"= (\"[^\"]*\"|[^,}\]\s]+)", line))
            if values:
                match = data.draw(st.sampled_from(values))
                lines[index] = f"{line[: match.start(1)]}{damage}{line[match.end(1) :]}"
    damaged = tmp_path / "damaged.toml"
    damaged.write_text("\n".join(lines))
    try:
        read(damaged)
    except InputError as error:
        assert all(mistake.message for mistake in error.mistakes)
        assert all(0 <= mistake.line <= len(lines) + 1 for mistake in error.mistakes)
