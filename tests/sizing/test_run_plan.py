"""The run plan that would qualify a sizing: a plan file that the program itself accepts."""

import tomllib
from pathlib import Path

import pytest

from plimsoll.plan.complete import read_plan
from plimsoll.sizing.design import size
from plimsoll.sizing.run_plan import sizing_plan
from tests.support.sizing_designs import make


def test_the_plan_tests_one_server_in_the_worst_case() -> None:
    sizing = size(make(title='with "quotes" and ä'))
    plan = tomllib.loads(sizing_plan(sizing))
    assert (plan["kind"], plan["schema_version"]) == ("plan", 1)
    databases = int(sizing.results["databases_per_server_worst_count"].value)
    assert len(plan["instance"]) == len(plan["target"]) == databases
    assert plan["required_iops"] == pytest.approx(
        sizing.results["server_database_iops"].value, rel=1e-5
    )
    wanted_mib = sizing.results["database_size_gb"].value * 1024
    assert all(
        wanted_mib <= instance["database_size_mib"] < wanted_mib + 1
        for instance in plan["instance"]
    )
    assert [phase["kind"] for phase in plan["phase"]] == [
        "prepare",
        "warm_up",
        "measure",
        "stop",
        "checksum",
    ]
    assert plan["phase"][2]["duration_s"] == 7200
    assert "quotes" in plan["description"]


@pytest.mark.parametrize("edition", ["exchange_2010", "exchange_2013", "exchange_2019"])
def test_the_program_accepts_the_plan(edition: str, tmp_path: Path) -> None:
    """A plan that `plimsoll run` refuses would be found out only on the day of the test."""
    path = tmp_path / "plan.toml"
    path.write_text(sizing_plan(size(make(edition=edition))))
    completed = read_plan(path)
    assert completed.judgement.required_iops > 0


def test_a_transactional_plan_is_accepted_too(tmp_path: Path) -> None:
    load = {
        "per_second": 800,
        "database_ios_each": 4,
        "data_size": "500 GB",
        "log_size_each": "6 KB",
    }
    path = tmp_path / "plan.toml"
    path.write_text(sizing_plan(size(make(users=None, transactions=load))))
    instance = read_plan(path).run.instances[0]
    assert instance.page_bytes == 8192
    assert instance.maintenance is None


@pytest.mark.parametrize(("mode", "copies"), [("dag", 2), ("standalone", 1)])
def test_the_load_has_the_copies_and_the_scans_of_the_design(
    mode: str, copies: int, tmp_path: Path
) -> None:
    """Reading logs back and scanning databases cost I/O in production, so a test without them
    passes too easily.
    """
    path = tmp_path / "plan.toml"
    path.write_text(sizing_plan(size(make(copies={"mode": mode, "count": copies}))))
    instances = read_plan(path).run.instances
    assert {instance.copies_count for instance in instances} == {copies}
    assert all(instance.maintenance for instance in instances)
