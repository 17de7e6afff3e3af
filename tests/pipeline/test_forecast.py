"""What a dry run says of time is what a run takes."""

from pathlib import Path
from typing import Any

import pytest

import plimsoll
from plimsoll import check
from plimsoll.pipeline.forecast import Forecast, deletions_in_words, reasons_to_ask
from plimsoll.plan.complete import plan_of_options
from plimsoll.run.staging import commands_in_words

USERS = {"users": 500, "iops_per_user": 0.18}


def told(tmp_path: Path, *loads: dict[str, Any], **plan: Any) -> Forecast:
    """The forecast of one instance for each load, with 600 s to warm up and 1800 s measured."""
    names = [f"load {number}" for number, _ in enumerate(loads)]
    found = plan_of_options(
        {
            "target": [{"name": "disk", "path": str(tmp_path / "disk")}],
            "instance": [{"name": name, "database_size_mib": 150} for name in names],
            "workload": [
                {"name": name, "instances": [name], "load": load}
                for name, load in zip(names, loads, strict=True)
            ],
            "phase": [
                {"kind": "prepare"},
                {"kind": "warm_up", "timeout_s": 600},
                {"kind": "measure", "duration_s": 1800},
                {"kind": "stop"},
            ],
            **plan,
        }
    )
    return Forecast(found, check(found, create=True, allow_system_disk=True, allow_commands=True))


@pytest.mark.parametrize(
    ("loads", "line", "seconds"),
    [
        ([{"transactions_per_s": 5}], "at most 10 min 0 s", 1 + 1800 + 5),
        (
            [USERS],
            "at most 10 min 0 s, then about 40 s to measure the I/O of a transaction",
            1 + 40 + 1800 + 5,
        ),
        # One after the other.
        (
            [USERS, {"target_iops": 50}, {"sessions": 1}],
            "at most 10 min 0 s, then about 1 min 20 s to measure the I/O of a transaction",
            3 + 80 + 1800 + 5,
        ),
    ],
)
def test_a_warm_up_takes_what_the_plan_allows_it_and_the_windows_of_loads_that_aim(
    tmp_path: Path, loads: list[dict[str, Any]], line: str, seconds: float
) -> None:
    """It was told as 800 s where the plan says 600, and windows of one load for all of them."""
    found = told(tmp_path, *loads)
    (warm_up,) = (text for text in found.lines() if text.startswith("  warm_up"))
    assert warm_up.split(maxsplit=1)[1] == line
    assert found.seconds == pytest.approx(seconds)


def test_a_series_takes_the_time_of_its_runs_and_of_what_comes_before_each(tmp_path: Path) -> None:
    """Three runs of half an hour were told as half an hour."""
    once = told(tmp_path, {"transactions_per_s": 5})
    series = told(tmp_path, {"transactions_per_s": 5}, repeat={"runs": 3, "settle_s": 600})
    last = series.lines()[-1].split(maxsplit=2)
    assert last == ["3", "runs", "about 2 h 0 min, waiting for warm caches not counted"]
    assert series.series_s() == pytest.approx(3 * (600 + 1800 + 5) + 1)
    assert "it takes about 2 h 0 min in 3 runs" in series.reasons_to_ask(3)
    assert once.series_s(2) == pytest.approx(2 * (1800 + 5) + 1)
    assert once.lines(2)[-1].split(maxsplit=2)[2].startswith("about 1 h 0 min")


def test_what_a_plan_starts_is_one_reason_to_refuse_and_its_steps_are_no_errors():
    plan = plimsoll.parse_plan(
        """kind = "plan"
schema_version = 1
target = [{ name = "disk", path = "/srv" }]
instance = [{ name = "one", backend = "files", files = 1, file_mib = 8 }]
workload = [{ name = "load", pattern = "file-server", outstanding = 1 }]
phase = [{ kind = "prepare" }, { kind = "measure", duration_s = 9 }]
[[event]]
name = "path"
after_s = 2
command = ["true"]
undo = ["false"]
[[event]]
name = "drive"
after_s = 3
undo_after_s = 6
manual = "pull it"
manual_undo = "put it back"
confirm_file = "/srv/done"
"""
    )
    with pytest.raises(plimsoll.PreflightError) as refused:
        plimsoll.check(plan)
    (problem,) = refused.value.problems
    assert problem.splitlines() == [
        "the plan starts commands; look at them, then give --allow-commands",
        '  event "path", 2 s into measure: runs `true`, at most 60 s',
        '  event "path", at the end of measure: undoes with `false`, at most 60 s',
    ]
    assert commands_in_words(plan.events)[-2:] == [
        '  event "drive", 3 s into measure: by hand: pull it, at most 600 s',
        '  event "drive", 6 s into measure: undone by hand: put it back, at most 600 s',
    ]


def test_a_modelled_array_wears_out_no_drives(tmp_path: Path) -> None:
    """It advised to state the rated endurance of drives that are not there."""
    load = {"transactions_per_s": 5}
    real = told(tmp_path, load)
    modelled = told(tmp_path, load, target=[{"name": "disk", "modelled": "nearline-raid6"}])
    assert "share of the rated endurance" in real.lines()
    assert not any("endurance" in line for line in modelled.lines())


def test_a_search_takes_at_most_what_the_plan_allows_it(tmp_path: Path) -> None:
    """It ends where it has found its rate, and was told as an hour exactly. All of it counts: no
    one knows how soon that is.
    """
    phases = [
        {"kind": "prepare"},
        {"kind": "search", "duration_s": 600},
        {"kind": "measure", "duration_s": 60},
        {"kind": "stop"},
    ]
    load = {"search": "max", "sessions": 2}
    text = "\n".join(told(tmp_path, load, phase=phases).lines())
    assert "search      at most 10 min 0 s" in text
    assert "measure     exactly 1 min 0 s" in text
    assert "total       about 11 min 6 s in all" in text


def test_homes_that_are_made_again_are_not_called_databases(tmp_path: Path) -> None:
    """Whoever shares files has no databases, and "the source is any" was not what deletes them."""
    plan = plan_of_options(
        {
            "target": [{"name": "share", "path": str(tmp_path)}],
            "instance": [{"name": "homes", "backend": "home_folders", "homes": 2}],
            "workload": [{"name": "users", "load": {"users": 2}}],
            "phase": [{"kind": "prepare"}, {"kind": "measure", "duration_s": 10}],
        }
    )
    found = check(plan, create=True, allow_system_disk=True)
    found.deleted.append(str(tmp_path / "homes"))
    assert reasons_to_ask(plan, found) == [f"it deletes the homes in {tmp_path / 'homes'}"]
    assert deletions_in_words(plan, found) == [
        f"the homes in {tmp_path / 'homes'} will be deleted first: every run makes its own"
    ]
