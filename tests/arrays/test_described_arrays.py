"""Arrays as people describe them.

By their difference from a known one, with links by name, and with what breaks and when.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plimsoll.arrays.description import array_description
from plimsoll.arrays.faults import fault_words, timed_faults
from plimsoll.arrays.links import shipped_links
from plimsoll.arrays.mail_streams import run_light
from plimsoll.arrays.papers.error_band import nearest_point
from plimsoll.arrays.presets import array_preset, changed_array, described_array, wanted_array
from plimsoll.cli import app
from plimsoll.documents.document import plain
from plimsoll.inputs.mistakes import InputError

OWN = """
kind = "modelled_arrays"
name = "mine"

[[hard_drives]]
name = "large"
like = "nearline-7k2-6tb"
capacity_gb = 20000
[hard_drives.sources]
capacity_gb = "its data sheet"

[[arrays]]
name = "mine"
like = "nearline-raid6"
drive = "large"
link = "fc-16g"

[[arrays]]
name = "smaller"
like = "mine"
sets = [8]
"""


def written(home: Path, text: str = OWN) -> Path:
    path = home / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_array_like_another_takes_its_figures_and_their_sources(tmp_path: Path) -> None:
    """Forty figures for one other drive would be written by nobody, and copied ones would lose
    where they are from.
    """
    path = written(tmp_path)
    array = wanted_array(f"{path}#smaller")
    preset = array_preset("nearline-raid6")
    assert (array["sets"], array["dirty_mib"], array["drive_sheet"]["capacity_gb"]) == (
        [8],
        preset["dirty_mib"],
        20000,
    )
    assert array["link_mb_per_s"] == shipped_links()["fc-16g"]["link_mb_per_s"]
    assert array["sources"]["sets"] == "stated in mine.toml"
    assert array["sources"]["dirty_mib"].startswith("assumed")
    assert array["sources"]["link_mb_per_s"].startswith("Fibre Channel roadmap")
    assert array["drive_sheet"]["sources"]["capacity_gb"] == "its data sheet"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('like = "nearline-raid6"', 'like = "nearline-raid"'), "did you mean `nearline-raid6`"),
        (
            ('like = "nearline-raid6"', 'title = "no like"\nlevel = "RAID 6"'),
            'write like = "emc-vnxe3300"',
        ),
        (('link = "fc-16g"', 'link = "fc-16"'), "did you mean `fc-16g`"),
        (("sets = [8]", "sets = [3]"), "no RAID 6 can be made"),
        (("capacity_gb = 20000", "capacity = 20000"), "write `capacity_gb`"),
    ],
)
def test_a_wrong_description_is_one_mistake_with_its_line(
    tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    """Whoever misspells one name is not told of forty missing figures."""
    text = OWN.replace(*change)
    with pytest.raises(InputError) as refusal:
        wanted_array(f"{written(tmp_path, text)}#mine")
    told = [mistake for mistake in refusal.value.mistakes if words in mistake.render("mine.toml")]
    assert told and all(mistake.line > 0 for mistake in told), str(refusal.value)
    assert len(refusal.value.mistakes) <= 2, str(refusal.value)


def test_SIM_08_a_link_is_chosen_by_its_name() -> None:
    """Four gigabit links or two of Fibre Channel is a question of one word in a plan.

    What is written beside it stands.
    """
    array, found = described_array("emc-vnxe3300", {"link": "fc-8g", "link_latency_ms": 0.5})
    assert not found
    assert (array["link_mb_per_s"], array["link_latency_ms"]) == (800, 0.5)
    assert all(row["sources"]["link_mb_per_s"] for row in shipped_links().values())


def test_policies_and_limits_of_the_path_reach_the_model() -> None:
    """A policy that a file names and the model does not hear of would answer another question."""
    array = changed_array(
        array_preset("emc-vnxe3300"),
        {"path_policy": "least busy", "path_timeout_s": 30, "host_mb_per_s": 90},
    )
    path = array_description(array, [("one", 10.0)]).plain()["path"]
    assert (path["policy"], path["path_timeout_ns"], path["host_bytes_per_second"]) == (
        "least_busy",
        30 * 10**9,
        90e6,
    )
    plain = array_description(array_preset("emc-vnxe3300"), [("one", 10.0)]).plain()["path"]
    assert (plain["policy"], plain["path_timeout_ns"], plain["host_bytes_per_second"]) == (
        "round_robin",
        10**9,
        None,
    )


def faulty(*faults: dict[str, Any]) -> dict[str, Any]:
    array, found = described_array(
        "emc-vnxe3300", {"faults": [{"number": 1, "box": 1, "after_s": None} | f for f in faults]}
    )
    assert not found, found
    return array


def test_faults_are_told_to_the_model_with_their_time() -> None:
    """From the beginning, or so long after measuring begins.

    A fault at the wrong time would hide in the warm-up.
    """
    array = faulty(
        {"what": "drive fails", "number": 3}, {"what": "path fails", "number": 2, "after_s": 60}
    )
    assert plain(timed_faults(array)) == [
        {"at_ns": 0, "fault": {"drive_fails": {"group": 0, "drive": 2}}}
    ]
    assert plain(timed_faults(array, 20.0)) == [
        {"at_ns": 80 * 10**9, "fault": {"link_fails": {"link": 1}}}
    ]
    assert fault_words(array) == [
        "drive 3 fails from the beginning",
        "path 2 fails 60 s into the measurement",
    ]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("{what='drive fails', number=8}", "there are 7 drives"),
        ("{what='path fails', number=3}", "there are 2 paths"),
        ("{what='controller fails', number=3}", "there are 2 controllers"),
        ("{what='cache unprotected', box=2}", "in box 2, but there are 1"),
        ("{what='disk fails'}", 'write one of "drive fails"'),
        ("{what='path fails', after=3}", "write `after_s`"),
    ],
)
def test_a_fault_of_what_is_not_there_is_refused(fault: str, words: str) -> None:
    """A fault that never comes would show an array that stands everything."""
    done = CliRunner().invoke(app, ["model", "emc-vnxe3300", "--change", f"faults=[{fault}]"])
    assert done.exit_code == 2
    assert words in done.stderr


def test_SIM_13_and_SIM_14_losses_are_asked_for_by_a_file() -> None:
    """Half the paths lost and everything goes on.

    A lost cache protection lets writes wait for the drives.
    """
    whole, path_lost = (
        run_light(array, 2, 3) for array in (faulty(), faulty({"what": "path fails", "number": 2}))
    )
    assert path_lost.iops == pytest.approx(whole.iops, rel=0.05)
    through = run_light(faulty({"what": "cache unprotected"}), 2, 3)
    assert through.write_ms > 5 * whole.write_ms
    after_controller = run_light(faulty({"what": "controller fails", "number": 2}), 2, 3)
    assert after_controller.write_ms == pytest.approx(through.write_ms, rel=0.25)


def test_the_nearest_point_has_the_level_and_the_boxes_of_the_array() -> None:
    """The error of RAID 50 beside a mirrored array would be another array's error."""
    array = array_preset("equallogic-ps6000xv")
    assert nearest_point(array).id == "ps6000xv-raid50"
    assert (
        nearest_point(changed_array(array, {"level": "RAID 10", "sets": [14]})).id
        == "ps6000xv-raid10"
    )
    assert nearest_point(changed_array(array, {"member_count": 3})).id == "ps6000xv-3-members"
    other = nearest_point(array_preset("nearline-raid6"))
    assert "RAID 10" in other.how and other.id == "ps6500e-raid10"


def test_a_burst_is_never_quoted_as_the_rate_of_a_volume() -> None:
    """A cloud volume that carries 3,000 requests a second for an hour and 1,500 from then on is one
    of 1,500.
    """
    found = json.loads(CliRunner().invoke(app, ["model", "cloud-volume", "--json"]).stdout)
    burst = max(point["iops"] for point in found["burst"]["points"])
    lasting = max(point["iops"] for point in found["points"])
    assert lasting < 1_500 < burst
    assert found["iops_at_20_ms"] < 1_500
    assert found["burst"]["lasts_s"] == 3_600
    assert found["points"][-1]["busiest"] == "cap"
    text = CliRunner().invoke(app, ["model", "cloud-volume"]).stdout
    assert "when the burst credits are used up" in text and "60 minutes at the highest rate" in text


LOG_DRIVES = {"log_sets": [2], "log_level": "RAID 1", "log_drive": "sas-10k-600gb"}


def test_STO_03_logs_have_drives_of_their_own_where_an_array_gives_them() -> None:
    """Disk groups keep apart: with logs elsewhere the drives of the databases see no log write, and
    reads get faster.
    """
    array, found = described_array("emc-vnxe3300", LOG_DRIVES)
    assert not found, found
    description = array_description(
        array, [("one data", 900.0), ("one log", 80.0)], log_volumes={"one log"}
    ).plain()
    assert [volume["pool"] for volume in description["volumes"]] == [0, 1]
    assert [(group["level"], group["sets"]) for group in description["groups"]] == [
        ("raid5", [7]),
        ("raid1", [2]),
    ]
    assert [drive["name"] for drive in description["drives"]] == [
        "cheetah-15k7-600gb",
        "sas-10k-600gb",
    ]
    # A write-through cache lets the spindles be felt: with logs apart commits no longer wait behind
    # page reads.
    together, apart = (
        run_light(
            changed_array(array_preset("emc-vnxe3300"), {"write_back": False} | changes), 2, 6
        )
        for changes in ({}, LOG_DRIVES)
    )
    assert apart.log_write_ms < 0.6 * together.log_write_ms
    assert apart.iops > together.iops


def test_STO_03_full_drives_of_the_logs_are_the_bottleneck_whatever_the_others_do() -> None:
    """One slow drive takes every log write beside four of flash that rest.

    A mean over the five would name another stage, or none.
    """
    changes = {
        "write_back": False,
        "log_sets": [1],
        "log_level": "RAID 0",
        "log_drive": "nearline-7k2-6tb",
    }
    point = run_light(changed_array(array_preset("sandisk-server-ssd"), changes), 2, 16)
    assert point.busiest == "drives of the pool logs"
    assert point.utilisation > 0.9


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["log_sets=[3]", "log_level='RAID 10'"], "has 3 drives, of which no RAID 10 can be made"),
        (["log_level='RAID 1'"], "means nothing without log_sets"),
        (["log_sets=[7]", "log_drive='sas-10k'"], "did you mean `sas-10k-600gb`"),
        (["log_sets=[200]"], "is 120, but 207 drives"),
    ],
)
def test_impossible_drives_for_the_logs_are_refused(changes: list[str], words: str) -> None:
    """What holds for the drives of the databases holds for those of the logs."""
    arguments = [word for change in changes for word in ("--change", change)]
    done = CliRunner().invoke(app, ["model", "emc-vnxe3300", *arguments])
    assert done.exit_code == 2
    assert words in done.stderr
