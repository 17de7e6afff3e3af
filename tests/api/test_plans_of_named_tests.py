"""Plans of the named tests from a program: what the command line makes of the same options, and
every mistake in them at once.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import plimsoll
from plimsoll.cli import load, run_program

OF_DATABASES = {"databases": 3, "size_mib": 64, "cache_mib": 16, "edition": "2013", "seed": 5}
MAILBOXES = {"users": 1, "quota_mb": 3, "profile": "heavy"}
#: Options of each test, none of them at its default.
GIVEN: list[tuple[str, Mapping[str, object]]] = [
    ("performance", {}),
    ("performance", {**OF_DATABASES, "minutes": 10, "limit": ["log_write_latency_ms_p99<5"]}),
    ("performance", {"backend": "raw_files", "size_mib": 64, "limits": "lenient", "sluggish": 2}),
    ("performance", {"modelled": "emc-vnxe3300", "change": ["level='RAID 10'", "sets=[8]"]}),
    ("backup", {**OF_DATABASES, "read_kib": 64, "under_load": True, "to": "kept"}),
    ("recovery", {**OF_DATABASES, "logs": 5, "sessions": 2, "checksum": False}),
    ("stress", {**OF_DATABASES, "hours": 2, "required_iops": 30, "margin_percent": 3}),
    ("max", {**OF_DATABASES, "by": "sessions", "minutes": 2, "search_minutes": 5}),
    ("mailbox", {"users": 100, "quota_mb": 25, "profile": "heavy", "headroom_percent": 20}),
    ("throughput", {"capacity_percent": 1, "throughput_percent": 50, "log_path": "logs"}),
    ("files", {"pattern": "file-server", "iops": 40, "spacing": "poisson", "verify": True}),
    ("files", {"scenario": "home-folders", "max_users": 20, "ramp_s": 4, "minutes": 1}),
    ("files", {"modelled": "emc-vnxe3300", "depth": 8, "size_mib": 64}),
    ("store", {"scale": "20MB", "users": 20, "think_s": 1.5, "checksum": False}),
    ("mail", {"users": 20, "mailbox_mib": 3, "search": "4", "limits": "s1", "seed": 3}),
    ("mail", {"modelled": "emc-vnxe3300", "users": 5, "edition": "2013"}),
]


def words_of(options: Mapping[str, object]) -> list[str]:
    """Options of a program as those of the command line."""
    words = []
    for name, value in options.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            for each in value if isinstance(value, list) else [value]:
                words += [f"--{option}", str(each)]
    return words


def place_of(test: str, options: Mapping[str, object]) -> dict[str, object]:
    """Where a test works that simulates no array."""
    if "modelled" in options:
        return {}
    return {"target": ["disk"]} if test == "mail" else {"path": "disk"}


@pytest.mark.parametrize(("test", "options"), GIVEN)
def test_a_program_plans_what_the_command_line_carries_out(
    test: str,
    options: Mapping[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What was tried by hand is put into a program as it is, and measures the same."""
    monkeypatch.chdir(tmp_path)
    place = place_of(test, options)
    dry = ["--dry-run", "--json", "--create", "--allow-system-disk"]
    condition = "db_read_latency_ms_p99>50 for 30s"
    words = [*(["disk"] if place else []), *words_of(options), "--stop-if", condition]
    assert run_program(["test", test, *words, *dry]) == 0
    told = json.loads(capsys.readouterr().out)
    plan = plimsoll.build_test_plan(test, stop_if=condition, **place, **options)
    found = plimsoll.check(plan, create=True, allow_system_disk=True)
    assert plan.replace(run=found.run).plain() == told
    assert told["stop_if"] == [condition]


def test_every_named_test_is_compared() -> None:
    """A test that is added is added above; what reads only what is there is compared below."""
    assert {test for test, _ in GIVEN} | {"checksum", "io"} == set(plimsoll.named_tests())


@pytest.mark.parametrize("name", plimsoll.named_tests())
def test_the_command_line_has_the_options_that_a_program_reads_of(name: str) -> None:
    """Defaults and texts that stand twice differ some day."""
    named = plimsoll.named_tests()[name]
    parameters = {each.name: each for each in load("test").commands[name].params}
    for option in named.options:
        assert parameters[option.name].default == option.default
        assert parameters[option.name].required == option.required
        assert parameters[option.name].help == option.meaning
    run = set(parameters) - {option.name for option in named.options}
    assert {"out", "dry_run", "yes"} <= run
    assert named.meaning and "\n" not in named.meaning


def test_every_mistake_in_options_is_told_at_once() -> None:
    """Unknown names, wrong values, what does not go together, and what the plan refuses."""
    with pytest.raises(plimsoll.InputError) as raised:
        plimsoll.build_test_plan(
            "performance",
            stop_if=["nonsense"],
            path="/mnt/array",
            datbases=2,
            size=64,
            minutes="ten",
            limits="s4",
            edition="2011",
            databases=1,
        )
    told = {mistake.where: mistake for mistake in raised.value.mistakes}
    assert set(told) == {
        "datbases",
        "size",
        "minutes",
        "limits",
        "instance[1].edition",
        "stop_if[1]",
    }
    assert told["datbases"].hint == "did you mean `databases`?"
    assert told["size"].hint == "the unit belongs in the key: write `size_mib`"
    assert [mistake.where for mistake in told.values() if not mistake.hint] == []


def test_what_does_not_go_together_is_told_at_once() -> None:
    """Whoever mends one would be told of the next."""
    with pytest.raises(plimsoll.InputError) as raised:
        plimsoll.build_test_plan(
            "files", modelled="x", path="/mnt", specification="y", max_users=3, seed="z"
        )
    assert len(raised.value.mistakes) == 4
    for text in ("--modelled", "--specification", "--max-users", "`seed`"):
        assert text in str(raised.value)


@pytest.mark.parametrize(
    ("test", "options", "told"),
    [
        ("stress", {}, "`path` is missing"),
        ("mailbox", {"path": "/mnt", "quota_mb": 3}, "`users` is missing"),
        ("stress", {"path": 3}, "`path` is 3, but must be a text"),
        ("stress", {"path": "/mnt", "hours": 0}, "`hours` is 0, but must lie between 0.001"),
        ("backup", {"path": "/mnt", "under_load": 1}, "must be true or false"),
        ("max", {"path": "/mnt", "by": "users"}, 'write one of "rate", "sessions"'),
        ("performance", {"path": "/mnt", "limit": "x<1"}, "must be a list"),
        ("performance", {"modelled": "x", "change": ["level="]}, "--change cannot be read"),
        ("performance", {"modelled": "emc-vnxe3300", "databases": 0}, "between 1 and 10,000"),
        ("performance", {"path": "/mnt", "databases": 10**9}, "between 1 and 10,000"),
        ("mailbox", {"path": "/mnt", "databases": 10**9, **MAILBOXES}, "10,000"),
        ("io", {}, "plan_curve"),
        ("recovry", {}, "did you mean `recovery`?"),
        (["stress"], {}, "no test with a plan of its own"),
    ],
)
def test_a_wrong_option_is_told_with_what_to_write(
    test: str, options: dict[str, object], told: str
) -> None:
    """One mistake each, and none that follows from it."""
    with pytest.raises(plimsoll.InputError) as raised:
        plimsoll.build_test_plan(test, **options)
    assert told in str(raised.value)
    assert len(raised.value.mistakes) == 1


def test_paths_tuples_and_none_are_as_good_as_text_lists_and_nothing() -> None:
    """Options of a program come from forms and tables."""
    with_none = plimsoll.build_test_plan(
        "performance",
        path=Path("/mnt"),
        sessions=None,
        minutes=None,
        limit=("log_write_latency_ms_p99<5",),
    )
    assert with_none == plimsoll.build_test_plan(
        "performance", path="/mnt", limit=["log_write_latency_ms_p99<5"]
    )


def test_databases_that_should_be_there_and_are_not_are_refused(tmp_path: Path) -> None:
    """A check of what is not there has not passed."""
    for test, options in (("checksum", {}), ("backup", {"source": "existing"})):
        with pytest.raises(plimsoll.FolderError, match="holds no databases"):
            plimsoll.build_test_plan(test, path=tmp_path, **options)


def test_a_curve_has_the_points_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first of them is what a dry run shows."""
    path = tmp_path / "disk"
    options: dict[str, object] = {"block": "4k,32k", "depth": "2,4", "read": 30, "size_mib": 64}
    planned = plimsoll.plan_curve(path=path, **options)
    assert [point[:2] for point in planned.plans] == [
        (size, depth) for size in (4096, 32768) for depth in (2, 4)
    ]
    dry = ["--dry-run", "--json", "--create", "--allow-system-disk"]
    assert run_program(["test", "io", str(path), *words_of(options), *dry]) == 0
    first = planned.plans[0][2]
    found = plimsoll.check(first, create=True, allow_system_disk=True)
    assert json.loads(capsys.readouterr().out) == first.replace(run=found.run).plain()


def test_what_a_program_does_to_the_list_of_tests_changes_no_test() -> None:
    """All threads of a process have the same list: one that lost an option would break the rest."""
    tests = plimsoll.named_tests()
    with pytest.raises(TypeError):
        tests["stress"] = tests["max"]  # type: ignore[index]
    with pytest.raises(TypeError):
        del tests["stress"].options[0]  # type: ignore[attr-defined]


def test_a_point_of_a_curve_is_planned_once() -> None:
    """The second would find the folder of the first, after that was measured."""
    planned = plimsoll.plan_curve(path="/mnt/array", block="4k,4096,1m,1024k", depth="2,2,4")
    assert [(size, depth) for size, depth, _ in planned.plans] == [
        (4096, 2),
        (4096, 4),
        (1 << 20, 2),
        (1 << 20, 4),
    ]


def test_a_test_without_databases_is_refused_by_its_option() -> None:
    """`instance` "has 0 entries" was said to somebody who had written --databases 0."""
    with pytest.raises(plimsoll.InputError) as raised:
        plimsoll.build_test_plan("performance", path="/mnt/array", databases=0)
    assert raised.value.mistakes[0].where == "databases"
