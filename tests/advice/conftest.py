"""Ready-made designs that the tests of advice change in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.advice.engine import Advice, advise
from plimsoll.advice.rules import read_rules
from plimsoll.advice.topology import Topology, check_topology
from plimsoll.advice.topology_facts import DESCRIBED, KEYS_BEHIND, topology_subjects
from plimsoll.inputs.toml_lines import parse_located

EXAMPLES = Path(__file__).parents[2] / "examples"


def topology_of(text: str) -> Topology:
    """A topology from its text."""
    return check_topology(parse_located("design.toml", text))


@pytest.fixture(scope="session")
def two_hosts() -> str:
    """Two hosts, two arrays, everything in order."""
    return (EXAMPLES / "topology_two_hosts.toml").read_text()


@pytest.fixture(scope="session")
def cluster() -> str:
    """The published MD3000i testbed of sixteen virtual machines."""
    return (EXAMPLES / "topology_virtual_cluster.toml").read_text()


@pytest.fixture(scope="session")
def advice_for() -> Callable[[str], Advice]:
    """All shipped rules over a topology's text."""
    rules = read_rules()

    def check(text: str) -> Advice:
        return advise(rules, topology_subjects(topology_of(text)), DESCRIBED, KEYS_BEHIND)

    return check
