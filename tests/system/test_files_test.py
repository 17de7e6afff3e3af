"""`plimsoll test files` as a user runs it, on a real disk for some seconds and on modelled
arrays.
"""

import json
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.support.chart_schema import hold_charts
from tests.support.places import plimsoll

SHORT = ["--size-mib", "32", "--minutes", "0.05", "--yes", "--quiet", "--create"]


def files_test(home: Path, *arguments: str, out: str = "run"):
    return plimsoll(
        "test", "files", home / "disk", *SHORT, *arguments, "--out", home / out, cwd=home
    )


def summary_of(run: Path):
    return json.loads((run / folder.SUMMARY).read_text(encoding="utf-8"))


def test_a_depth_is_kept_and_the_files_are_used_again_and_cleaned(tmp_path: Path):
    """IO-03, IO-05: as many under way as asked for, on files that are there to their last byte.

    The next run finds them.
    """
    done = files_test(tmp_path, "--files", "2", "--depth", "2", "--verify", "--ramp-s", "1")
    assert done.returncode in (0, 1, 3), done.stderr
    found = summary_of(tmp_path / "run")
    figures = found["files"][0]
    # What was under way when the measured time began counts whole.
    assert figures["outstanding_asked"] == 4 and 3 < figures["outstanding_mean"] <= 4.1
    assert figures["read_percent"] == pytest.approx(80, abs=5)
    assert found["total"]["pages_damaged"] == 0 and found["total"]["pages_verified"] == 2 * 65536
    paths = sorted((tmp_path / "disk" / "files").glob("*.dat"))
    assert [path.stat().st_size for path in paths] == [32 << 20, 32 << 20]
    assert all(path.stat().st_blocks * 512 >= 32 << 20 for path in paths)
    page = (tmp_path / "run" / folder.REPORT).read_text(encoding="utf-8")
    assert "files-1" in hold_charts(page)
    for text in ("What was asked for: files", "Latency by size: files", "80 % reads, 100 % random"):
        assert text in page, text

    again = files_test(tmp_path, "--files", "2", "--verify", "--dry-run")
    assert "there already" in again.stdout, again.stdout
    other = files_test(tmp_path, "--files", "1", "--verify", out="other")
    assert (
        other.returncode == 2 and "the number of databases (2 there, 1 in the plan)" in other.stderr
    )
    cleaned = plimsoll("clean", tmp_path / "disk", "--yes", cwd=tmp_path)
    assert cleaned.returncode == 0 and not list((tmp_path / "disk").iterdir())


def test_a_load_that_was_not_as_planned_is_inconclusive(tmp_path: Path):
    """S004 overshot its own window by tuning the depth.

    A load outside of it says nothing of these users.
    """
    modelled = [
        "test",
        "files",
        "--modelled",
        "emc-vnxe3300",
        "--minutes",
        "0.5",
        "--yes",
        "--quiet",
        "--json",
    ]
    users = ["--users", "200", "--iops-per-user", "0.7"]
    good = plimsoll(*modelled, *users, "--out", tmp_path / "good", cwd=tmp_path)
    assert good.returncode == 0, good.stderr
    assert summary_of(tmp_path / "good")["load_windows"][0]["count"] == 3
    # Two drives for whom seven were enough.
    many = ["--users", "6000", "--iops-per-user", "0.7"]
    many += ["--change", "level='RAID 1'", "--change", "sets=[2]"]
    bad = plimsoll(*modelled, *many, "--out", tmp_path / "bad", cwd=tmp_path)
    assert bad.returncode == 3, bad.stdout
    assert "the load was not as planned" in bad.stdout
    found = summary_of(tmp_path / "bad")
    assert found["files"][0]["waited_for_slot_count"] > 0
    assert found["load_windows"][0]["outside_count"] == 3


def test_foreign_files_are_never_touched(tmp_path: Path):
    (tmp_path / "disk" / "files").mkdir(parents=True)
    (tmp_path / "disk" / "files" / "file001.dat").write_text("mine")
    done = files_test(tmp_path)
    assert done.returncode == 2 and "was not made by Plimsoll" in done.stderr
    assert (tmp_path / "disk" / "files" / "file001.dat").read_text() == "mine"


def test_the_options_name_one_storage(tmp_path: Path):
    done = plimsoll("test", "files", cwd=tmp_path)
    assert done.returncode == 2 and "name either a directory or device" in done.stderr
    wrong = plimsoll("test", "files", tmp_path, "--pattern", "fileserver", cwd=tmp_path)
    assert wrong.returncode == 2 and '"file-server"' in wrong.stderr


def test_a_configuration_of_iometer_lends_its_specification(tmp_path: Path):
    """Another target than its own, the same lines and depth; which one is meant must be clear."""
    icf = tmp_path / "x.icf"
    lines = [
        "'Access specification name,default assignment",
        "\tOne,NONE",
        "'size,% of size,",
        "\t8192,100,67,100,0,1,0,0",
    ]
    icf.write_text("\n".join(["Version 1.1.0", "'ACCESS SPECIFICATIONS", *lines]) + "\n")
    dry = ["test", "files", "--modelled", "emc-vnxe3300", "--dry-run", "--json", "--icf"]
    done = plimsoll(*dry, icf, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    access = json.loads(done.stdout)["run"]["workloads"][0]["access"]
    assert [(line["size_bytes"], line["read_percent"]) for line in access] == [(8192, 67)]
    icf.write_text(icf.read_text() + "\n".join(lines).replace("One", "Two") + "\n")
    unclear = plimsoll(*dry, icf, cwd=tmp_path)
    assert unclear.returncode == 2 and 'name one of "One", "Two"' in unclear.stderr
    clear = plimsoll(*dry, icf, "--specification", "Two", cwd=tmp_path)
    assert clear.returncode == 0, clear.stderr
