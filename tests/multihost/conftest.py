"""Runs of several hosts, made from stated rates, without a disk."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.files import folder
from plimsoll.units import NS_PER_S
from tests.support.judged_runs import judged
from tests.support.synthetic import EMC, make_folder

Host = Callable[..., Path]


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of twenty minutes within the limits, and one on a storage whose reads take 25 ms."""
    home = tmp_path_factory.mktemp("originals")
    slow = [{**place, "database_read": (25.0, *place["database_read"][1:])} for place in EMC]
    return {
        "fast": judged(make_folder(home / "fast", seconds=1200)),
        "slow": judged(make_folder(home / "slow", seconds=1200, rates=slow)),
    }


@pytest.fixture
def host(tmp_path: Path, originals: dict[str, Path]) -> Host:
    """Makes the run of a host: what it is called, when it began beside the others, and of which
    storage it tells.
    """

    def make(name: str, later_s: float = 0.0, of: str = "fast", machine: str | None = None) -> Path:
        home = tmp_path / name
        shutil.copytree(originals[of], home)
        plan, environment, outcome = (
            folder.read_json(home / item)
            for item in (folder.PLAN, folder.ENVIRONMENT, folder.OUTCOME)
        )
        plan["run"]["hosts"] = [{"name": name}]
        for instance in plan["run"]["instances"]:
            for database in instance["databases"]:
                database["seed"] += sum(map(ord, name)) * 1_000_000
        environment["machine"]["host_name"] = machine or f"{name}.example.org"
        for anchor in outcome["anchors"]:
            anchor["utc_ns"] += int(later_s * NS_PER_S)
        for item, content in (
            (folder.PLAN, plan),
            (folder.ENVIRONMENT, environment),
            (folder.OUTCOME, outcome),
        ):
            folder.write_json(home / item, content)
        return home

    return make
