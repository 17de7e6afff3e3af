"""What each edition asks of its storage, as published.

A wrong figure here would be a wrong test of every array.
"""

from pathlib import Path
from typing import Any

import pytest

from plimsoll import settings
from plimsoll.documents.run_spec import RunSpec
from plimsoll.files import folder
from plimsoll.plan.complete import plan_of_options
from plimsoll.sizing.design import size
from plimsoll.sizing.guidance import editions as guidance_editions
from plimsoll.sizing.run_plan import sizing_plan
from tests.support.places import plimsoll
from tests.support.sizing_designs import make

MIB = 1 << 20
#: Page, insert, delete, replace, read, lazy commits, think time, one pool of sessions, pause of
#: maintenance in ms.
PUBLISHED = {
    "2003": (4096, 17, 5, 68, 10, 90, 0.0, False, None),
    "2007": (8192, 40, 20, 5, 35, 70, 2.0, False, None),
    "2010": (32768, 40, 20, 5, 35, 70, 1.0, False, 20),
    "2013": (32768, 40, 20, 5, 35, 70, 1.0, True, 100),
}
#: Nothing of their own was published: those of 2013, and marked so.
DERIVED = {"2016": PUBLISHED["2013"], "2019": PUBLISHED["2013"]}


def run_of(edition: str, **instance: Any) -> RunSpec:
    return plan_of_options(
        {
            "target": [{"name": "disk", "path": "/data"}],
            "instance": [{"name": "one", "edition": edition, **instance}],
        }
    ).run


@pytest.mark.parametrize("edition", [*PUBLISHED, *DERIVED])
def test_an_edition_is_what_was_published(edition: str) -> None:
    """Mix, lazy commits, think time and maintenance are what makes a result comparable with a
    published one.
    """
    run = run_of(edition)
    instance, workload = run.instances[0], run.workloads[0]
    mix, maintenance = workload.mix, instance.maintenance
    found = (
        instance.page_bytes,
        *(
            getattr(mix, f"{kind}_percent")
            for kind in ("insert", "delete", "replace", "read", "lazy_commit")
        ),
        workload.sluggish,
        workload.load.shared,
        maintenance and maintenance.throttle_ms,
    )
    assert found == (PUBLISHED | DERIVED)[edition]
    if maintenance:
        assert maintenance.read_bytes == 256 * 1024


@pytest.mark.parametrize("edition", DERIVED)
def test_what_was_not_published_is_marked_derived(edition: str) -> None:
    """A value carried over that reads like a published one would be quoted as one. Whoever changes
    it must say where the new one comes from.
    """
    values, of_2013 = settings.editions()[edition], settings.editions()["2013"]
    assert all(source.startswith("[D] ") for source in values["sources"])
    assert all(values[key] == of_2013[key] for key in of_2013 if key != "sources")  # type: ignore[literal-required]


@pytest.mark.parametrize("edition", DERIVED)
def test_users_of_2016_and_2019_make_the_io_that_their_guidance_says(edition: str) -> None:
    """A plan for today's server was refused with "is not published for edition 2016", or sized with
    the rate of 2010.
    """
    plan = plan_of_options(
        {
            "target": [{"name": "disk", "path": "/data"}],
            "instance": [{"name": "one", "edition": edition}],
            "workload": [{"name": "mix", "load": {"users": 1000, "profile": "heavy"}}],
        }
    )
    guidance = guidance_editions()[f"exchange_{edition}"]
    assert plan.judgement.required_iops == pytest.approx(
        1000 * 100 * guidance.number("iops_per_message_ratio")
    )


def test_a_sizing_of_2019_is_tested_with_the_load_of_2019() -> None:
    """The plan that `size` writes named the edition of 2013 for every later product."""
    plan = sizing_plan(size(make(edition="exchange_2019")))
    assert 'edition = "2019"' in plan


@pytest.mark.parametrize(("databases", "least", "most"), [(1, 32, 256), (2, 64, 512)])
def test_the_cache_is_that_of_each_database(databases: int, least: int, most: int) -> None:
    """Published: 32 to 256 MB for one database, 64 to 512 MB for two.

    A smaller cache would make more reads.
    """
    instance = run_of("2010", databases=databases).instances[0]
    assert (instance.cache_bytes_min, instance.cache_bytes_max) == (least * MIB, most * MIB)
    stated = run_of("2010", databases=databases, cache_mib_max=100).instances[0]
    assert stated.cache_bytes_max == 100 * MIB


def test_the_2003_cache_is_one_for_all_databases() -> None:
    """900 MB were the limit of the whole store process of that generation, however many databases
    it had.
    """
    assert run_of("2003", databases=4).instances[0].cache_bytes_max == 900 * MIB


def test_JST_11_the_prerequisite_is_nine_tenths_of_the_cache_and_fails_in_time() -> None:
    """Collection waits for the cache.

    Half an hour of waiting in vain ends the run with a reason.
    """
    warm_up = next(
        phase.action for phase in run_of("2010").phases if phase.action.kind == "warm_up"
    )
    assert warm_up.plain() == {"kind": "warm_up", "cache_percent": 90, "timeout_s": 1800.0}


def test_copies_ask_for_replication() -> None:
    """Each copy beyond the first reads the log back; the default is none."""
    assert run_of("2010").instances[0].copies_count == 1
    assert run_of("2010", copies=3).instances[0].copies_count == 3


@pytest.mark.slow
def test_STU_10_a_larger_share_in_the_cache_lowers_reads_for_each_write(tmp_path: Path) -> None:
    """STU-10: the published ratio of 2007 lies below ours.

    Docs/editions.md says that more memory leads there, so it must.
    """
    ratios = []
    for cache_mib in (10, 40):
        plan = tmp_path / f"{cache_mib}.toml"
        phases = (
            {"kind": "prepare"},
            {"kind": "warm_up"},
            {"kind": "soak", "duration_s": 60},
            {"kind": "measure", "duration_s": 60},
            {"kind": "stop"},
        )
        lines = (
            f"[[phase]]\n{''.join(f'{key} = {value!r}{chr(10)}' for key, value in phase.items())}"
            for phase in phases
        )
        plan.write_text(
            'kind = "plan"\nschema_version = 1\n[[target]]\nname = "array"\nmodelled = '
            '"emc-vnxe3300"\n[[instance]]\nname = "one"\n'
            f'edition = "2007"\ndatabase_size_mib = 2048\ncache_mib_max = '
            f'{cache_mib}\n[[workload]]\nname = "mix"\n'
            f"load = {{ sessions = 12 }}\nsluggish = 0\n{''.join(lines)}"
        )
        result = plimsoll(
            "run", plan, "--yes", "--quiet", "--out", f"run-{cache_mib}", cwd=tmp_path
        )
        assert result.returncode in (0, 1, 3), result.stderr
        total = folder.read_json(tmp_path / f"run-{cache_mib}" / folder.SUMMARY)["total"]
        ratios.append(total["database_read"]["per_s"] / total["database_write"]["per_s"])
    assert 1.55 < ratios[0] < 1.85
    assert 1.3 < ratios[1] < 1.55
