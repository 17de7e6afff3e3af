"""Configurations of the driver of DVD Store.

Read as its users write them, and made plans that are accepted.
"""

import tomllib
from pathlib import Path

import pytest

from plimsoll.imports.detect import DVDSTORE, PAPER, recognise
from plimsoll.imports.dvdstore.config import plan_of_dvdstore
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import read_plan
from tests.support.places import plimsoll

#: As the published tests ran it: 200 users are 20 threads that think 1.5 s.
PUBLISHED = """target=db1
n_threads=20
ramp_rate=10
run_time=30
db_size=250GB
warmup_time=1
think_time=1.5
pct_newcustomers=20
n_searches=3
search_batch_size=5
n_line_items=5
virt_dir=ds2
page_type=php
windows_perf_host=
linux_perf_host=root:hunter2:db1
detailed_view=N
"""


def plan_of(text: str, address: str | None = None):
    """The plan of a configuration as plain data, and what was said of it."""
    found = plan_of_dvdstore("DriverConfig.txt", text, "/mnt", address)
    return tomllib.loads(found.text), found


def mistakes_of(text: str, address: str | None = None) -> dict[str, tuple[int, str]]:
    with pytest.raises(InputError) as refused:
        plan_of(text, address)
    return {item.where: (item.line, item.message) for item in refused.value.mistakes}


def test_DS_04_the_published_settings_become_the_published_load():
    plan, found = plan_of(PUBLISHED)
    [load], [store] = plan["workload"], plan["instance"]
    assert load["load"] == {"sessions": 20} and load["think_s"] == 1.5
    assert [load[key] for key in ("new_customers_percent", "searches_mean")] == [20, 3]
    assert [load[key] for key in ("search_rows_mean", "lines_mean")] == [5, 5]
    assert store["store_size"] == "250GB" and store["backend"] == "store"
    assert plan["target"] == [{"name": "db1", "path": "/mnt/db1"}]
    lengths = {phase["kind"]: phase.get("duration_s") for phase in plan["phase"]}
    assert lengths["soak"] == 60 and lengths["measure"] == 1800
    assert list(lengths) == ["prepare", "soak", "measure", "audit", "stop", "checksum"]
    assert found.mapped["n_threads"] == "workload.load.sessions"
    assert set(found.kept) == {
        "ramp_rate",
        "virt_dir",
        "page_type",
        "windows_perf_host",
        "linux_perf_host",
        "detailed_view",
    }


def test_the_password_of_another_machine_goes_nowhere():
    _, found = plan_of(PUBLISHED)
    said = [found.text, *found.kept.values(), *found.mapped.values(), *found.remarks]
    assert not [text for text in said if "hunter2" in text]


def test_what_is_not_said_is_as_in_the_driver():
    plan, found = plan_of("n_threads=4\nwarmup_time=0\n")
    [load] = plan["workload"]
    assert load["load"] == {"sessions": 4} and load["think_s"] == 0
    assert plan["instance"][0]["store_size"] == "10MB"
    assert [phase["kind"] for phase in plan["phase"][:2]] == ["prepare", "measure"]
    assert plan["phase"][1]["duration_s"] == 1800, "without an end it measures for half an hour"
    assert any("runs until it is stopped" in remark for remark in found.remarks)


def test_threads_are_for_each_target_and_a_name_that_comes_twice_counts_as_it_stands_last():
    text = "target=a;b;a\nn_threads=5\nn_threads=7\nthink_time=0\n"
    plan, found = plan_of(text, "postgresql://ds2user@{target}/ds2")
    assert [item["store_address"] for item in plan["instance"]] == [
        "postgresql://ds2user@a/ds2",
        "postgresql://ds2user@b/ds2",
    ]
    assert [item["load"]["sessions"] for item in plan["workload"]] == [14, 7]
    assert [item["instances"] for item in plan["workload"]] == [["a"], ["b"]]
    assert "line 3: n_threads stands a second time; the last one counts" in found.remarks
    assert "checksum" not in [phase["kind"] for phase in plan["phase"]]


@pytest.mark.parametrize(
    ("size", "theirs"),
    [("10MB", None), ("S", None), ("1GB", None), ("500MB", "500,000"), ("20gb", "200,000")],
)
def test_sizes_that_mean_other_rows_are_told(size: str, theirs: str | None):
    _, found = plan_of(f"db_size_str={size}\nn_threads=1\n")
    told = [remark for remark in found.remarks if "products" in remark]
    assert len(told) == (theirs is not None)
    assert theirs is None or theirs in told[0]


def test_what_only_version_3_does_is_done_unless_it_is_off():
    text = "n_threads=1\nn_reviews=4\npct_newreviews=7\n"
    plan, found = plan_of(text)
    assert plan["instance"][0]["store_mode"] == "ds3"
    assert (plan["workload"][0]["reviews_mean"], plan["workload"][0]["new_reviews_percent"]) == (
        4,
        7,
    )
    assert found.mapped["n_reviews"] == "workload.reviews_mean"
    for third in ("ds2_mode=N", "search_depth=500", "n_stores=1"):
        plan, _ = plan_of(f"n_threads=1\nthink_time=0\n{third}\n")
        assert plan["instance"][0]["store_mode"] == "ds3", third
    plan, found = plan_of(text + "ds2_mode=Y")
    assert "store_mode" not in plan["instance"][0] and "reviews_mean" not in plan["workload"][0]
    assert "n_reviews" in found.kept


def test_every_mistake_is_reported_at_once_with_its_line():
    wrong = "target=;\nn_threads=0\nthink_time=soon\ndb_size=huge\nn_searches=2.5\nn_stores=2\n"
    found = mistakes_of(wrong)
    assert {where: line for where, (line, _) in found.items()} == {
        "target": 1,
        "n_threads": 2,
        "think_time": 3,
        "db_size": 4,
        "n_searches": 5,
        "n_stores": 6,
    }
    assert found["think_time"][1] == 'is "soon"'
    for number in ("nan", "inf", "-1", "", "1_0", "\u0661", "1.5linux_perf_host=root:hunter2:db1"):
        line, message = mistakes_of(f"n_threads=1\nthink_time={number}\n")["think_time"]
        assert line == 2 and "hunter2" not in message, number


def test_addresses_are_looked_at():
    assert "--store" in mistakes_of("target=a;b\n", "sqlite:/mnt/x.db")
    assert "--store, a" in mistakes_of("target=a\n", "oracle://u@{target}/d")
    assert "password" in mistakes_of("target=a\n", "mysql://u:p@a/d")["--store, a"][1]


def test_strange_lines_are_passed_over_and_told():
    _, found = plan_of("# mine\n\nn_threads=2\nhello\nn_frobs=3\n")
    assert [remark[:7] for remark in found.remarks[:2]] == ["line 4:", "line 5:"]


def test_names_of_targets_that_look_alike_stay_apart():
    plan, _ = plan_of("target=a/b;a b;../..\nn_threads=1\n")
    names = [item["name"] for item in plan["instance"]]
    assert len(set(names)) == 3
    assert all(".." not in item["path"] for item in plan["target"])


def test_the_content_says_what_the_file_is(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text(PUBLISHED, encoding="utf-16")
    assert recognise(path).kind == DVDSTORE
    path.write_text("Our driver had think_time=1.5 and n_threads=20.\n", encoding="utf-8")
    assert recognise(path).kind == PAPER


def test_the_command_writes_a_plan_that_is_accepted_and_overwrites_nothing(tmp_path: Path):
    config = tmp_path / "DriverConfig.txt"
    config.write_text(PUBLISHED.replace("250GB", "S"), encoding="utf-8")
    done = plimsoll("import", config, "--root", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "n_threads -> workload.load.sessions" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr
    plan = read_plan(tmp_path / "DriverConfig.plan.toml")
    assert plan.run.workloads[0].load.sessions == 20
    again = plimsoll("import", config, "--root", tmp_path, cwd=tmp_path)
    assert again.returncode == 2 and "nothing is overwritten" in again.stderr
    server = plimsoll(
        *("import", config, "--store", "mysql://ds2user@{target}:3307/DS2"),
        *("--out", tmp_path / "server.toml"),
        cwd=tmp_path,
    )
    assert server.returncode == 0, server.stderr
    assert read_plan(tmp_path / "server.toml").run.instances[0].place.startswith("mysql://ds2user")
