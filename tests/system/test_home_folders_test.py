"""`plimsoll test files --scenario home-folders` as a user runs it, on a real directory for some
seconds and on a modelled array.
"""

import json
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.support.places import plimsoll

HOMES = ["--scenario", "home-folders", "--quiet"]


def homes_test(home: Path, *arguments: str, out: str = "run"):
    where = [home / "disk", "--minutes", "0.1", "--yes", "--create"]
    return plimsoll("test", "files", *where, *HOMES, *arguments, "--out", home / out, cwd=home)


def summary_of(run: Path):
    return json.loads((run / folder.SUMMARY).read_text(encoding="utf-8"))


def checks_of(run: Path):
    verdict = json.loads((run / folder.VERDICT).read_text(encoding="utf-8"))
    return {check["name"]: check["status"] for check in verdict["checks"]}


def test_users_work_in_their_homes_which_are_audited_made_anew_and_cleaned(tmp_path: Path):
    """The tree holds exactly what the users made; the next run begins with new homes, and nothing
    is left where nothing is wanted.
    """
    load = ["--users", "4", "--scenarios-per-h", "18000"]
    done = homes_test(tmp_path, *load)
    assert done.returncode in (0, 1, 3), done.stderr
    found = summary_of(tmp_path / "run")
    figures, audit = found["homes"][0], found["homes_audits"][0]
    assert figures["planned_per_s"] == 20
    assert 110 <= figures["scenarios_count"] <= 121
    # A user has 200 ms for a scenario of some ms: most find it at leisure.
    assert figures["user_waits_count"] < figures["scenarios_count"] / 2
    assert audit["findings"] == [] and audit["counts"]["homes"] == 4
    tree = tmp_path / "disk" / "homes" / "homes"
    files = [path for path in tree.rglob("*") if path.is_file()]
    assert len(files) == audit["counts"]["files"]
    assert sum(path.stat().st_size for path in files) == audit["counts"]["bytes"]
    assert checks_of(tmp_path / "run")["homes_audit"] == "pass"
    page = (tmp_path / "run" / folder.REPORT).read_text(encoding="utf-8")
    assert "names take no time" not in page
    for text in ("Home folders", "Operations: users", "Audit: homes", "open, edit, save"):
        assert text in page, text

    again = homes_test(tmp_path, *load, out="again")
    assert again.returncode in (0, 1, 3), again.stderr
    assert summary_of(tmp_path / "again")["homes_audits"][0]["findings"] == []
    cleaned = plimsoll("clean", tmp_path / "disk", "--yes", cwd=tmp_path)
    assert cleaned.returncode == 0 and not list((tmp_path / "disk").iterdir()), cleaned.stderr


def test_what_somebody_else_puts_into_homes_stays(tmp_path: Path):
    """Nothing of anybody else is deleted, so no run makes its homes over it."""
    load = ["--users", "1", "--scenarios-per-h", "36000"]
    first = homes_test(tmp_path, *load)
    assert first.returncode in (0, 1, 3), first.stderr
    mine = tmp_path / "disk" / "homes" / "homes" / "u000001" / "mine.txt"
    mine.write_text("mine")
    again = homes_test(tmp_path, *load, out="again")
    assert again.returncode == 2 and "no run of Plimsoll has made there" in again.stderr
    assert mine.read_text() == "mine"


def test_home_folders_on_a_modelled_array(tmp_path: Path):
    """The same plan in virtual time; names take none, which is said."""
    arguments = ["--modelled", "emc-vnxe3300", "--users", "10", "--minutes", "2", "--yes"]
    done = plimsoll("test", "files", *HOMES, *arguments, "--out", tmp_path / "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    figures = summary_of(tmp_path / "run")["homes"][0]
    assert 19 <= figures["scenarios_count"] <= 21 and figures["is_overloaded"] is False
    page = (tmp_path / "run" / folder.REPORT).read_text(encoding="utf-8")
    assert "names take no time: not modelled" in page


@pytest.mark.slow
def test_a_crowd_overloads_home_folders_on_a_modelled_array(tmp_path: Path):
    """Scenarios that begin faster than they end are an overload, in virtual time too."""
    crowd = ["--modelled", "emc-vnxe3300", "--users", "20", "--scenarios-per-h", "1000000"]
    crowd += ["--minutes", "0.1", "--yes"]
    over = plimsoll("test", "files", *HOMES, *crowd, "--out", tmp_path / "over", cwd=tmp_path)
    assert over.returncode == 1, over.stdout
    assert summary_of(tmp_path / "over")["homes"][0]["is_overloaded"] is True


def test_options_of_the_two_loads_are_not_mixed(tmp_path: Path):
    """An option that would be left out in silence is refused, all of them at once."""

    def said(*arguments: str) -> str:
        done = plimsoll("test", "files", tmp_path, *arguments, cwd=tmp_path)
        assert done.returncode == 2, done.stdout
        return done.stderr

    mixed = said(*HOMES, "--users", "3", "--depth", "4", "--iops", "7")
    assert "--depth, --iops: means nothing with --scenario home-folders" in mixed
    assert "needs users" in said(*HOMES)
    assert "needs users" in said(*HOMES, "--users", "3", "--max-users", "3")
    assert "which is not known; write home-folders" in said("--scenario", "office")
    assert "only with --scenario home-folders" in said("--scenarios-per-h", "3")


GONE = """
kind = "plan"
schema_version = 1
name = "a home is gone"
target = [{{ name = "disk", path = "{place}/target" }}]
instance = [{{ name = "homes", backend = "home_folders", homes = 2 }}]
workload = [{{ name = "users", scenarios_per_h = 1800, load = {{ users = 2 }} }}]
phase = [{{ kind = "prepare" }}, {{ kind = "measure", duration_s = 20 }}, {{ kind = "stop" }}]
[[event]]
name = "gone"
after_s = 3
command = ["mv", "{homes}/u000001", "{homes}/gone"]
judge = {{ errors_max = 0 }}
"""


def test_an_operation_that_finds_its_file_gone_is_a_failed_one(tmp_path: Path):
    """No transfer fails, and the run ends by it: neither event nor run is without errors.

    Scenarios are rare, so that the command of the event has ended before one of them fails.
    """
    (tmp_path / "plan.toml").write_text(
        GONE.format(place=tmp_path, homes=tmp_path / "target/homes/homes")
    )
    (tmp_path / "target").mkdir()
    consent = ("--yes", "--allow-system-disk", "--allow-commands")
    done = plimsoll(
        "run", tmp_path / "plan.toml", *consent, "--out", tmp_path / "run", cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    found = summary_of(tmp_path / "run")
    assert "no such file" in found["error"]["text"]
    assert found["events"][0]["io_errors"] == 1 and found["total"]["errors_in_run"] == 1
    checks = checks_of(tmp_path / "run")
    assert checks["event_errors"] == checks["io_errors"] == "fail"


def test_the_most_users_of_home_folders_are_looked_for(tmp_path: Path):
    """The search was refused as one whose criterion "names no metric"."""
    arguments = ["--modelled", "emc-vnxe3300", "--max-users", "8", "--minutes", "0.1", "--yes"]
    arguments += ["--scenarios-per-h", "3600", "--out", tmp_path / "run"]
    done = plimsoll("test", "files", *HOMES, *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    figures = summary_of(tmp_path / "run")["homes"][0]
    assert figures["users_found"] >= 8 and figures["is_overloaded"] is False
