"""The two scenarios of the published tool.

Sizes and load follow from users, or from shares of the volume.
"""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.documents.plan import Plan
from plimsoll.host.probe import describe
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from tests.support.places import plimsoll

MIB = 1 << 20


def plan(path: Path | str = "/data", instances: int = 2, **more: Any) -> Plan:
    names = [{"name": f"i{number}"} for number in range(instances)]
    return plan_of_options(
        {"target": [{"name": "disk", "path": str(path)}], "instance": names, **more}
    )


def test_JST_10_mailboxes_become_databases_a_target_and_a_requirement() -> None:
    """The published run: 1000 users of 0.24 IOPS are 240; two databases hold their quotas."""
    found = plan(
        mailbox_profile={
            "users": 1000,
            "quota_mb": 2048,
            "iops_per_user": 0.2,
            "headroom_percent": 20,
        }
    )
    sizes = [item.databases[0].size_bytes for item in found.run.instances]
    assert sizes == [1000 * 2048 * MIB // 2] * 2
    assert found.run.workloads[0].load.target_iops == pytest.approx(1.03 * 240)
    assert found.judgement.required_iops == 240


def test_a_margin_needs_a_rate_that_is_required() -> None:
    """It would stand nowhere, and its author would believe that it counts."""
    with pytest.raises(InputError, match="means nothing without a required rate"):
        plan(margin_percent=5)
    assert plan(margin_percent=5, required_iops=240).judgement.margin_percent == 5
    users = {"users": 1000, "quota_mb": 64, "iops_per_user": 0.2}
    assert plan(margin_percent=5, mailbox_profile=users).judgement.margin_percent == 5


def test_JST_09_databases_fill_four_fifths_of_the_share_of_the_volume(tmp_path: Path) -> None:
    """100 GB are 80 of databases and 20 of growth.

    Half of the throughput is a search and half of what it finds.
    """
    volume = describe(tmp_path).facts["file_system"]["size_bytes"]
    found = plan(
        tmp_path, disk_throughput={"capacity_percent": 50, "throughput_percent": 50, "sessions": 4}
    )
    total = sum(item.databases[0].size_bytes for item in found.run.instances)
    assert total == pytest.approx(volume * 0.5 * 0.8, rel=0.001)
    load = found.run.workloads[0].load
    assert (load.search, load.throughput_percent, load.sessions) == ("max", 50, 4)
    assert "search" in [phase.action.kind for phase in found.run.phases]
    whole = plan(tmp_path, disk_throughput={"sessions": 4})
    assert whole.run.workloads[0].load.plain() == {"sessions": 4, "shared": False}


def test_what_a_plan_says_itself_stands() -> None:
    """A size of its own, and a weight: instances need not be alike."""
    found = plan_of_options(
        {
            "target": [{"name": "fast", "path": "/fast"}, {"name": "slow", "path": "/slow"}],
            "instance": [
                {"name": "one", "target": "fast", "weight": 3, "database_size_mib": 100},
                {"name": "two", "target": "slow"},
            ],
            "mailbox_profile": {"users": 100, "quota_mb": 100, "iops_per_user": 0.1},
        }
    )
    one, two = found.run.instances
    assert (one.databases[0].size_bytes, one.weight) == (100 * MIB, 3.0)
    assert (two.databases[0].size_bytes, two.weight) == (5000 * MIB, None)
    assert two.directory == "/slow/two"


@pytest.mark.parametrize(
    ("wrong", "phrase"),
    [
        (
            {"mailbox_profile": {"users": 10, "quota_mb": 10}},
            "says how many users, but not what each makes",
        ),
        ({"mailbox_profile": {"users": 10}}, "quota_mb"),
        (
            {
                "mailbox_profile": {"users": 10, "quota_mb": 5, "iops_per_user": 1},
                "disk_throughput": {},
            },
            "together with mailbox_profile",
        ),
        ({"disk_throughput": {"capacity_percent": 200}}, "must lie between 1 and 100"),
        (
            {
                "disk_throughput": {"sessions": 2},
                "workload": [{"name": "w", "load": {"sessions": 1}}],
            },
            "0 have none",
        ),
        ({"disk_throughput": {"surprise": 2}}, "surprise"),
    ],
)
def test_scenarios_that_say_too_little_or_too_much_are_refused(
    wrong: dict[str, Any], phrase: str
) -> None:
    """Half a scenario would quietly be another test."""
    with pytest.raises(InputError) as caught:
        plan(**wrong)
    assert phrase in str(caught.value)


def test_UI_01_a_scenario_without_a_plan_file(tmp_path: Path) -> None:
    """One command, looked at before anything is written."""
    command = [
        "test",
        "mailbox",
        tmp_path / "disk",
        "--users",
        "100",
        "--quota-mb",
        "4",
        "--databases",
        "2",
        "--dry-run",
    ]
    result = plimsoll(*command, "--profile", "heavy", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "database001.edb  200 MiB, to be prepared" in result.stdout
    wrong = plimsoll(*command, "--profile", "havy", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "heavy" in wrong.stderr
    assert list(tmp_path.iterdir()) == []
