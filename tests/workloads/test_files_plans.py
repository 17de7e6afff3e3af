"""Plans of files: what they become, and that every mistake is reported at once with its place."""

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from plimsoll.workloads.files.patterns import mean_bytes, patterns, read_percent


def plan(instance=None, workload=None, **further):
    """A plan of one instance of files and one workload on them, without storage."""
    completed = plan_of_options(
        {
            "target": [{"name": "disk", "path": "/nowhere"}],
            "instance": [{"name": "share", "backend": "files", **(instance or {})}],
            "workload": [{"name": "users", **(workload or {})}],
            "phase": [{"kind": "prepare"}, {"kind": "measure", "duration_s": 60}, {"kind": "stop"}],
            **further,
        }
    )
    return completed.plain()


def mistakes(*arguments, **further):
    """The places of all mistakes, with their texts."""
    with pytest.raises(InputError) as found:
        plan(*arguments, **further)
    return {mistake.where: mistake.message for mistake in found.value.mistakes}


def test_IO_02_the_file_server_is_the_published_one():
    """Figure 15: eight sizes, 80 % reads; its mean of 11,346 bytes is what 11.08 KB stands for."""
    lines = patterns()["file-server"].lines
    assert [(line.size_bytes, line.share_percent) for line in lines] == [
        (512, 10), (1024, 5), (2048, 5), (4096, 60), (8192, 2), (16384, 4), (32768, 4), (65536, 10),
    ]  # fmt: skip
    assert mean_bytes(lines) == pytest.approx(11345.92)
    assert read_percent(lines) == 80 and {line.random_percent for line in lines} == {100}


@pytest.mark.parametrize("name", list(patterns()))
def test_IO_01_every_pattern_is_whole_and_names_its_source(name):
    pattern = patterns()[name]
    assert sum(line.share_percent for line in pattern.lines) == 100
    assert pattern.source and pattern.meaning


def test_IO_03_without_a_load_the_depth_is_kept_on_every_file():
    found = plan({"files": 3}, {"workers": 2, "outstanding": 4})
    workload = found["run"]["workloads"][0]
    assert workload["load"] == {"sessions": 8, "shared": False} and workload["workers"] == 2
    assert found["judgement"]["files"]["users"]["outstanding"] == 24
    assert (found["judgement"]["limits"], found["judgement"]["test"]) == ("files", "files")
    assert found["judgement"]["required_iops"] is None


def test_IO_06_users_make_a_rate_and_a_window():
    """200 users at 0.70 make 140 I/O per second, which is valid from 0.60 to 0.75."""
    found = plan(workload={"load": {"users": 200, "iops_per_user": 0.70}})
    load = found["run"]["workloads"][0]["load"]
    assert load["transactions_per_s"] == pytest.approx(140) and load["spacing"] == "regular"
    window = found["judgement"]["load_windows"]["users"]
    assert [window["least"], window["most"]] == pytest.approx([0.60, 0.75])


def test_a_rate_counts_transfers_and_requires_them():
    """A request that is answered is two transfers, so half as many transactions arrive."""
    line = {
        "size_bytes": 4096,
        "share_percent": 100,
        "read_percent": 100,
        "random_percent": 100,
        "reply_bytes": 512,
    }
    found = plan(workload={"access": [line], "load": {"target_iops": 500}, "outstanding": 8})
    assert found["run"]["workloads"][0]["load"] == {
        "transactions_per_s": 250,
        "spacing": "regular",
        "sessions_max": 8,
    }
    assert found["judgement"]["required_iops"] == 497.5


def test_every_mistake_is_reported_at_once():
    line = {
        "size_bytes": 4096,
        "share_percent": 60,
        "read_percent": 100,
        "random_percent": 100,
        "delay_ms": 5,
    }
    found = mistakes(
        {"page_kib": 4, "databases": 2},
        {
            "access": [line],
            "pattern": "file-server",
            "sluggish": 1,
            "load": {"users": 5, "sessions": 3},
            "window": {"iops_per_user": [2, 1]},
        },
    )
    assert found["instance[1].page_kib"] == "means nothing for files"
    assert found["instance[1].databases"] == "means nothing for files"
    assert found["workload[1].sluggish"] == "means nothing for files"
    assert found["workload[1].pattern"] == "cannot be combined with `access`"
    assert found["workload[1].access"] == "has shares that add up to 60 %"
    assert found["workload[1].load"] == "says how many users, but not what each makes"
    assert found["workload[1].load.sessions"] == "means nothing for files"
    assert found["workload[1].window.iops_per_user"] == "is no band"
    assert "have delays" in found["workload[1]"]


@pytest.mark.parametrize(
    ("load", "key"),
    [
        ({"transactions_per_s": 5, "throughput_percent": 50}, "throughput_percent"),
        ({"throughput_percent": 50}, "throughput_percent"),
        ({"spacing": "poisson"}, "spacing"),
    ],
)
def test_what_would_be_left_out_of_a_load_is_refused(load: dict[str, object], key: str):
    """Why: half of 5 transactions a second was 5, and a closed load said that it was poisson."""
    found = mistakes(workload={"load": load})
    assert list(found) == [f"workload[1].load.{key}"], found


def test_records_and_files_keep_to_themselves():
    databases = {"name": "mail", "backend": "engine"}
    both = [databases, {"name": "share", "backend": "files"}]
    with pytest.raises(InputError) as found:
        plan_of_options({"target": [{"name": "disk", "path": "/nowhere"}], "instance": both})
    assert "works on files and on databases" in str(found.value)
    with pytest.raises(InputError) as found:
        plan_of_options(
            {
                "target": [{"name": "disk", "path": "/nowhere"}],
                "instance": [{**databases, "file_mib": 5}],
            }
        )
    assert "means something only for files" in str(found.value)
    with pytest.raises(InputError) as found:
        plan(phase=[{"kind": "prepare"}, {"kind": "backup"}])
    assert "backup needs the engine" in str(found.value)


def test_both_families_can_stand_in_one_plan():
    found = plan_of_options(
        {
            "target": [{"name": "disk", "path": "/nowhere"}],
            "instance": [
                {"name": "mail", "backend": "engine"},
                {"name": "share", "backend": "files"},
            ],
            "workload": [
                {"name": "mix", "instances": ["mail"]},
                {"name": "users", "instances": ["share"]},
            ],
        }
    ).plain()
    assert [workload.get("family") for workload in found["run"]["workloads"]] == [None, "files"]
    assert found["judgement"]["limits"] == "strict" and found["judgement"]["editions"] == ["2010"]


@pytest.mark.parametrize(
    ("instances", "hint"),
    [
        ([{"name": "share", "backend": "files"}], "write verify = true in instance share, or"),
        ([{"name": "share", "backend": "files", "verify": True}], None),
        ([{"name": "share", "backend": "files"}, {"name": "mail"}], None),
        (
            [{"name": "share", "backend": "files"}, {"name": "homes", "backend": "home_folders"}],
            "write verify = true in instance share",
        ),
        ([{"name": "shop", "store_address": "sqlite:/nowhere/shop.db"}], "leave the phase out"),
        ([{"name": "shop", "store_address": "sqlite:/nowhere/shop.db"}, {"name": "mail"}], None),
    ],
)
def test_a_checksum_pass_wants_something_that_it_can_judge(
    instances: list[dict[str, object]], hint: str | None
) -> None:
    """It used to end the run after all was measured; now it leaves out what it cannot judge."""
    options = {
        "target": [{"name": f"of {item['name']}", "path": "/nowhere"} for item in instances],
        "instance": [{**item, "target": f"of {item['name']}"} for item in instances],
        "workload": [{"name": item["name"], "instances": [item["name"]]} for item in instances],
        "phase": [{"kind": "prepare"}, {"kind": "stop"}, {"kind": "checksum"}],
    }
    if hint is None:
        plan_of_options(options)
        return
    with pytest.raises(InputError) as found:
        plan_of_options(options)
    (mistake,) = found.value.mistakes
    assert (mistake.where, hint in mistake.hint) == ("phase[3].kind", True), mistake
