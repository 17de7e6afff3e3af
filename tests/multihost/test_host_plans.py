"""One plan for several hosts.

Each carries out its own part, nobody's load is counted twice, and all begin at one moment.
"""

import json
import platform
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from plimsoll.cli import run_program
from plimsoll.files import folder
from plimsoll.inputs.mistakes import InputError
from plimsoll.multihost import CombineError, combine
from plimsoll.plan.complete import read_plan
from plimsoll.plan.start_time import MomentError, parse_moment, wait_until

PLAN = """
kind = "plan"
schema_version = 1
name = "two servers"
required_iops = 600
host = [{ name = "alpha" }, { name = "beta" }]
target = [{ name = "here", path = "HOME/a", host = "alpha" }, { name = "there", path = "HOME/b", host = "beta" }]

[[instance]]
name = "one"
target = "here"
databases = 2
database_size_mib = 64
cache_mib_max = 8

[[instance]]
name = "two"
target = "there"
database_size_mib = 64
cache_mib_max = 8
"""  # noqa: E501


def plan_file(home: Path, further: str = "") -> Path:
    path = home / "plan.toml"
    path.write_text(PLAN.replace("HOME", str(home)) + further)
    return path


def refusal(path: Path, host: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read_plan(path, host)
    return str(caught.value)


def test_JST_20_every_host_carries_out_its_part(tmp_path: Path) -> None:
    """Together the parts are the plan.

    No instance twice, none forgotten, and no two hosts hold the same records.
    """
    parts = [read_plan(plan_file(tmp_path), host) for host in ("alpha", "beta")]
    assert [[host.name for host in part.run.hosts] for part in parts] == [["alpha"], ["beta"]]
    assert [[item.name for item in part.run.instances] for part in parts] == [["one"], ["two"]]
    assert [[item.name for item in part.run.targets] for part in parts] == [["here"], ["there"]]
    assert [part.run.workloads[0].instances for part in parts] == [("one",), ("two",)]
    seeds = [
        database.seed
        for part in parts
        for item in part.run.instances
        for database in item.databases
    ]
    assert len(set(seeds)) == 3
    # What all must make together is no limit of one of them.
    assert [part.judgement.required_iops for part in parts] == [None, None]
    assert parts[0].judgement.hosts.plain() == {"all": ["alpha", "beta"], "required_iops": 600}


def test_a_host_is_known_by_its_machine(tmp_path: Path) -> None:
    """The same command on every host is one less thing to get wrong.

    Where no name fits, the hint says what to write.
    """
    path = plan_file(tmp_path)
    words = refusal(path)
    assert "names 2 machines, and none of them is called" in words
    assert "--host alpha" in words
    assert 'does not name "gamma"' in refusal(path, "gamma")
    path.write_text(path.read_text().replace('"beta"', f'"{platform.node()}"'))
    assert [host.name for host in read_plan(path).run.hosts] == [platform.node()]


@pytest.mark.parametrize(
    ("further", "words"),
    [
        (
            '[[workload]]\nname = "mix"\nload = { target_iops = 600 }\n',
            "is one rate for instances of several hosts",
        ),
        (
            '[[workload]]\nname = "mix"\nload = { sessions = 6, shared = true }\n',
            "is one rate for instances",
        ),
        (
            '[[workload]]\nname = "mix"\nload = { search = "max" }\n',
            "is one rate for instances of several hosts",
        ),
    ],
)
def test_a_rate_belongs_to_one_host(tmp_path: Path, further: str, words: str) -> None:
    """600 a second on each of two hosts would be 1,200."""
    assert words in refusal(plan_file(tmp_path, further), "alpha")


def test_a_host_without_work_is_a_mistake(tmp_path: Path) -> None:
    """Whoever names a third host and gives it nothing believes that it was measured."""
    path = plan_file(tmp_path)
    path.write_text(
        path.read_text().replace(
            '{ name = "beta" }]\ntarget', '{ name = "beta" }, { name = "gamma" }]\ntarget'
        )
    )
    assert '"gamma" has no instance' in refusal(path, "alpha")


def test_workloads_of_their_own_may_have_rates(tmp_path: Path) -> None:
    """A rate for each host is what a rate for both has to be written as."""
    loads = "".join(
        f'[[workload]]\nname = "on {name}"\ninstances = ["{name}"]\nload = {{ users = 1000, '
        f"iops_per_user = 0.1 }}\n"
        for name in ("one", "two")
    )
    path = plan_file(tmp_path, loads)
    path.write_text(path.read_text().replace("required_iops = 600\n", ""))
    part = read_plan(path, "beta")
    assert [item.name for item in part.run.workloads] == ["on two"]
    assert part.judgement.required_iops == pytest.approx(100)
    assert all(phase.workloads in ((), ("on two",)) for phase in part.run.phases)


NOW = datetime(2026, 1, 31, 18, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("18:30", NOW + timedelta(minutes=30)),
        ("17:59", NOW + timedelta(hours=23, minutes=59)),
        ("2026-01-31T18:00:10Z", NOW + timedelta(seconds=10)),
        ("2026-01-31 20:00+01:00", NOW + timedelta(hours=1)),
        ("2026-02-01 18:00", NOW + timedelta(days=1)),
    ],
)
def test_a_moment_is_read_as_utc(text: str, expected: datetime) -> None:
    """Hosts in two time zones must mean the same moment."""
    assert parse_moment(text, NOW) == expected


@pytest.mark.parametrize(
    "text", ["", "soon", "25:00", "2026-01-31 17:59", "2025-01-01", "2027-01-01T00:00:00Z"]
)
def test_a_moment_nobody_can_wait_for_is_refused(text: str) -> None:
    """A run that waits for last year would begin at once, and one that waits for next year
    never.
    """
    with pytest.raises(MomentError) as caught:
        parse_moment(text, NOW)
    assert any(word in str(caught.value) for word in ("write", "name"))


def test_the_load_runs_until_the_moment(tmp_path: Path) -> None:
    """The wait stands before what is measured and runs the same workloads, so that caches stay
    warm.
    """
    plan = read_plan(plan_file(tmp_path), "alpha")
    given, plan = plan, wait_until(plan, NOW)
    assert given == read_plan(plan_file(tmp_path), "alpha"), "a plan is never edited once complete"
    kinds = [phase.action.kind for phase in plan.run.phases]
    assert kinds == ["prepare", "warm_up", "soak", "measure", "stop", "checksum"]
    assert plan.run.phases[2].action.until_utc_s == NOW.timestamp()
    assert plan.run.phases[2].workloads == ("mix",)
    reading = [phase for phase in plan.run.phases if phase.action.kind == "checksum"]
    with pytest.raises(MomentError, match="measures nothing under load"):
        wait_until(plan.replace(run=plan.run.replace(phases=reading)), NOW)


@pytest.mark.slow
def test_JST_20_two_hosts_at_one_moment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JST-20, the whole way on a real disk.

    Two parts of one plan start at a moment and are added up against what both must make.
    """
    further = (
        '[[workload]]\nname = "mix"\nload = { sessions = 1 }\nsluggish = 1\n[[phase]]\nkind = '
        '"prepare"\n[[phase]]\nkind = "warm_up"\ntimeout_s = 60\n[[phase]]\nkind = '
        '"measure"\nduration_s = 4\n[[phase]]\nkind = "stop"\n'
    )
    path = plan_file(tmp_path, further)
    path.write_text(path.read_text().replace("required_iops = 600", "required_iops = 1"))
    moment = datetime.now(UTC) + timedelta(seconds=12)
    command = [
        sys.executable,
        "-m",
        "plimsoll.cli",
        "run",
        str(path),
        "--yes",
        "--quiet",
        "--start-at",
        moment.isoformat(),
    ]
    runs = [
        subprocess.Popen(
            [*command, "--host", host, "--out", str(tmp_path / host)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for host in ("alpha", "beta")
    ]
    for process in runs:
        _, said = process.communicate(timeout=240)
        assert process.returncode in (0, 1, 3), said
    out = tmp_path / "both"
    arguments = [f"{host}={tmp_path / host}" for host in ("alpha", "beta")]
    capsys.readouterr()
    code = run_program(
        ["combine", *arguments, "--out", str(out), "--overlap-percent", "20", "--json"]
    )
    verdict: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code in (0, 1, 3)
    summary = folder.read_json(out / folder.SUMMARY)
    if not any(
        "started_late" in (tmp_path / host / folder.EVENTS).read_text()
        for host in ("alpha", "beta")
    ):
        assert summary["overlap"]["share"] > 0.9
    assert summary["total"]["database_iops"] == sum(
        row["database_iops"] for row in summary["hosts"]
    )
    common = next(check for check in verdict["checks"] if check["name"] == "required_iops")
    assert (common["scope"], common["status"], common["measured"]) == (
        "all hosts",
        "pass",
        summary["total"]["database_iops"],
    )
    with pytest.raises(CombineError, match="host beta of the plan is there 2 times"):
        combine([("x", tmp_path / "beta"), ("y", copied(tmp_path / "beta"))], tmp_path / "other")


def copied(home: Path) -> Path:
    """The same run folder as if it were another run."""
    target = home.with_name("copied")
    shutil.copytree(home, target)
    outcome = folder.read_json(target / folder.OUTCOME)
    outcome["anchors"][0]["utc_ns"] += 1
    folder.write_json(target / folder.OUTCOME, outcome)
    return target
