"""A plan is completed to plain data that says by itself what will be run, and every mistake in it
is reported at once.
"""

import json
import time
from pathlib import Path

import pytest

from plimsoll import settings
from plimsoll.documents.plan import Plan
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options, read_plan

SMALL = """\
kind = "plan"
schema_version = 1
name = "small"

[[target]]
name = "disk"
path = "/data"

[[instance]]
name = "one"
backend = "engine"

[[instance]]
name = "two"
backend = "engine"
edition = "2013"
cache_mib_max = 64

[[phase]]
kind = "prepare"

[[phase]]
kind = "measure"
duration_s = 60
"""


def read(tmp_path: Path, text: str) -> Plan:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    return read_plan(path)


def mistakes(tmp_path: Path, text: str) -> list[tuple[int, str]]:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    return [
        (mistake.line, f"{mistake.where} {mistake.message}; {mistake.hint}")
        for mistake in caught.value.mistakes
    ]


def test_what_is_left_out_comes_from_the_edition(tmp_path: Path) -> None:
    """ENG-22: nobody can compare two runs if values hide in the code.

    The completed plan holds all of them.
    """
    plan = read(tmp_path, SMALL)
    first, second = plan.run.instances
    assert (first.page_bytes, first.cache_bytes_max) == (32768, 256 << 20)
    assert (second.log_framing, second.cache_bytes_max) == ("segment_4096", 64 << 20)
    mix = plan.run.workloads[0].mix
    assert [
        getattr(mix, f"{kind}_percent") for kind in ("insert", "delete", "replace", "read")
    ] == [40, 20, 5, 35]
    assert plan.run.phases[1].workloads == ("mix",)
    assert "null" not in json.dumps(plan.plain()["run"]["workloads"])


def test_every_mistake_is_reported_at_once_with_its_line(tmp_path: Path) -> None:
    """Five slips must cost one round of correction."""
    text = (
        SMALL.replace("cache_mib_max", "cache_mb_max")
        .replace('edition = "2013"', 'edition = "2012"')
        .replace("duration_s = 60", "duration_s = -1")
        .replace('name = "two"', 'name = "one"')
        + 'colour = "red"\n'
    )
    found = mistakes(tmp_path, text)
    assert [line for line, _ in found] == [14, 16, 17, 24, 25]
    text_of_all = "\n".join(text for _, text in found)
    for phrase in ("first used on line 9", "2012", "cache_mib_max", "never negative", "colour"):
        assert phrase in text_of_all, phrase


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (
            ('kind = "prepare"', 'kind = "prepare"\nduration_s = 5'),
            "means nothing in a phase of kind prepare",
        ),
        (("duration_s = 60", ""), "say how long to measure"),
        (('edition = "2013"', 'target = "dsik"'), "did you mean `disk`"),
        (('edition = "2013"', "page_kib = 7"), "write 4, 8, 16 or 32"),
        (('edition = "2013"', "cache_mib_min = 65"), "is above cache_mib_max"),
        (('name = "two"', 'name = "../two"'), "cannot be the name of a directory"),
        (
            ("[[phase]]\nkind", '[[workload]]\nname = "w"\ninsert_percent = 41\n\n[[phase]]\nkind'),
            "add up to 101 %",
        ),
    ],
)
def test_impossible_values_are_refused_with_a_hint(
    tmp_path: Path, change: tuple[str, str], phrase: str
) -> None:
    """A value that cannot be must not reach the storage."""
    found = mistakes(tmp_path, SMALL.replace(*change, 1))
    assert any(phrase in text for _, text in found), found


def test_a_number_out_of_range_is_asked_for_its_unit_only_where_it_has_one() -> None:
    """ "Check the unit of sessions" would send somebody looking for a unit that is not there."""
    wrong = {
        "target": [{"name": "disk", "path": "/data"}],
        "instance": [{"name": "one", "edition": "2010", "database_size_mib": 1}],
        "workload": [{"name": "mix", "load": {"sessions": 0}}],
    }
    with pytest.raises(InputError) as refused:
        plan_of_options(wrong)
    hints = {mistake.where: mistake.hint for mistake in refused.value.mistakes}
    assert "read in MiB" in hints["instance[1].database_size_mib"]
    assert "unit" not in hints["workload[1].load.sessions"]
    with pytest.raises(InputError) as refused:
        plan_of_options(wrong | {"schema_version": 2})
    assert "unit" not in next(
        item.hint for item in refused.value.mistakes if item.where == "schema_version"
    )


def test_whole_numbers_written_with_a_point_stay_whole(tmp_path: Path) -> None:
    """The Rust side counts in whole numbers; 64.0 in a plan must not fail there."""
    plan = read(tmp_path, SMALL.replace("cache_mib_max = 64", "cache_mib_max = 64.0"))
    value = plan.run.instances[1].cache_bytes_max
    assert (value, type(value)) == (64 << 20, int)


def test_options_and_files_make_the_same_plan(tmp_path: Path) -> None:
    """`plimsoll test` must not be a second, slightly different way in."""
    options = {
        "name": "small",
        "target": [{"name": "disk", "path": "/data"}],
        "instance": [
            {"name": "one", "backend": "engine"},
            {"name": "two", "backend": "engine", "edition": "2013", "cache_mib_max": 64},
        ],
        "phase": [{"kind": "prepare"}, {"kind": "measure", "duration_s": 60}],
    }
    assert plan_of_options(options) == read(tmp_path, SMALL)


def test_every_edition_and_limit_names_its_source() -> None:
    """A limit without a source is an opinion."""
    for name, edition in settings.editions().items():
        assert edition["sources"], name
        shares = sum(edition[f"{kind}_percent"] for kind in ("insert", "delete", "replace", "read"))
        assert shares == 100, name
    for check in settings.limits()["check"]:
        assert check["source"], check["name"]
        # Nobody has published latencies of file servers, so only faults are judged there; mail
        # users have checks of their own.
        faults = {"files", "s4", "s1", "vmware", "spec-like"} if check.get("fault") else set()
        faults -= {"s4", "s1", "vmware", "spec-like"} if check["name"] == "bad_pages" else set()
        assert set(check["limit"]) == {"strict", "lenient"} | faults
    assert set(settings.limits()["sets"]) == {
        "strict",
        "lenient",
        "files",
        "s4",
        "s1",
        "vmware",
        "spec-like",
    }
    assert settings.single_rule("load_window")["source"]


def test_page_images_are_off_unless_asked_for_and_the_documents_say_so(tmp_path: Path) -> None:
    """Images multiply the log bytes that published figures contain.

    A default that differs by the way in would hide that.
    """
    for edition in settings.editions():
        plan = read(tmp_path, SMALL.replace('edition = "2013"', f'edition = "{edition}"'))
        assert [instance.page_images for instance in plan.run.instances] == [False, False]
    asked = read(tmp_path, SMALL.replace('edition = "2013"', "page_images = true"))
    assert [instance.page_images for instance in asked.run.instances] == [False, True]
    text = (Path(__file__).parents[2] / "docs/reliability.md").read_text()
    assert (
        f"default is `page_images = {str(settings.INSTANCE_DEFAULTS['page_images']).lower()}`"
        in text
    )


def test_what_bounds_a_run_can_stand_in_its_plan(tmp_path: Path) -> None:
    """A nightly job on a shared array must not depend on somebody typing the options."""
    bounded = SMALL.replace(
        'name = "small"\n',
        'name = "small"\nmax_iops = 500\nmax_mib_per_s = 12.5\nstop_if = ["db_read_errors>0"]\n',
    )
    plan = read(tmp_path, bounded)
    assert (plan.run.max_iops, plan.run.max_mib_per_s) == (500, 12.5)
    assert plan.stop_if == ("db_read_errors>0",)
    assert plan.run.destroy_serials == (), "consent is never read from a file"


def test_more_instances_than_any_host_holds_are_refused_by_their_count() -> None:
    """A hundred thousand kept the planner busy for minutes.

    What is looked at one by one must be few enough.
    """
    names = [{"name": f"i{number}", "no_such_key": 1} for number in range(100_000)]
    started = time.monotonic()
    with pytest.raises(InputError) as caught:
        plan_of_options({"target": [{"name": "disk", "path": "/data"}], "instance": names})
    assert time.monotonic() - started < 5
    assert [str(mistake.message) for mistake in caught.value.mistakes] == [
        "has 100,000 entries, but may have at most 10,000"
    ]
