"""The results of stores as scripts for DVD Store expect them."""

import csv
import json
import re
from pathlib import Path

import pytest

from plimsoll.files import folder
from tests.support.places import plimsoll

HEADING = (
    "datetime et, n_overall, opm, rt_tot_lastn_max_msec, rt_tot_avg_msec, rt_tot_sampled, "
    "n_rollbacks_overall, rollback_pct"
)
#: What such scripts look for.
FINAL = re.compile(r"Final \([^)]*\): et= *([0-9.]+) n_overall=(\d+) opm=(\d+) ")
PAIR = re.compile(r"(\w+)= ?(\d+)")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """25 s of a store on a modelled array, after a warm-up."""
    home = tmp_path_factory.mktemp("dvdstore")
    options = ["--modelled", "emc-vnxe3300", "--scale", "1MB", "--sessions", "4", "--ramp-s", "5"]
    more = ["--minutes", str(25 / 60), "--quiet", "--yes", "--out", home / "run"]
    done = plimsoll("test", "store", *options, *more, cwd=home)
    assert done.returncode in (0, 1, 3), done.stderr
    return home / "run"


@pytest.fixture(scope="module")
def printed(run: Path) -> list[str]:
    done = plimsoll("export", run, "--dvdstore", cwd=run.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def figures_of(run: Path):
    return json.loads((run / folder.SUMMARY).read_text(encoding="utf-8"))["store"][0]


def test_DS_05_the_final_line_agrees_with_the_run(run: Path, printed: list[str]):
    figures = figures_of(run)
    [line] = [line for line in printed if line.startswith("Final (")]
    found = FINAL.match(line)
    assert found is not None, line
    assert float(found[1]) == pytest.approx(25, abs=0.1)
    assert (int(found[2]), int(found[3])) == (figures["orders_count"], figures["opm"])
    named = {name: int(value) for name, value in PAIR.findall(line)}
    steps = {step["step"]: step for step in figures["steps"]}
    theirs = {
        "login": "login",
        "newcust": "new customer",
        "browse": "search",
        "purchase": "purchase",
    }
    for name, ours in theirs.items():
        assert named[f"n_{name}_overall"] == steps[ours]["count"] > 0
        assert named[f"rt_{name}_avg_msec"] == int(steps[ours]["ms_mean"])
    assert named["rt_tot_avg"] == int(steps["order"]["ms_mean"])
    assert named["n_rollbacks_overall"] == figures["rolled_back_count"]
    assert line.endswith(f"rollback_rate = {figures['rollback_percent']:5.1f}%")


def test_what_began_before_the_warm_up_ended_stands_by_itself(run: Path, printed: list[str]):
    named = dict(PAIR.findall(printed[-1]))
    assert int(named["n_purchase_from_start"]) > figures_of(run)["orders_count"]
    assert int(named["n_rollbacks_from_start"]) >= figures_of(run)["rolled_back_count"]


def test_the_table_has_a_line_for_every_ten_seconds_and_sums_that_rise(run: Path, printed):
    text = (run / "dvdstore.csv").read_text(encoding="utf-8")
    head, *lines = text.splitlines()
    assert head == HEADING
    rows = list(csv.reader(lines))
    stamps = [row[0].split() for row in rows]
    # Samples end at whole seconds of the run, not of the phase.
    assert [float(seconds) for _, seconds in stamps] == pytest.approx([10, 20, 25], abs=1)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", when) for when, _ in stamps)
    orders = [int(row[1]) for row in rows]
    assert orders == sorted(orders) and orders[-1] == figures_of(run)["orders_count"]
    for row, (_, seconds) in zip(rows, stamps, strict=True):
        assert int(row[2]) == pytest.approx(60 * int(row[1]) / float(seconds), rel=0.02)
        assert int(row[3]) >= int(row[4]) and len(row) == 8
    shown = [line for line in printed if line.startswith("et=")]
    assert [int(dict(PAIR.findall(line))["n_overall"]) for line in shown] == orders


def test_what_cannot_be_exported_is_refused(run: Path, tmp_path: Path):
    nowhere = plimsoll("export", run, "--dvdstore", "--csv", "/nowhere/at/all.csv", cwd=tmp_path)
    assert nowhere.returncode == 2 and "name another file" in nowhere.stderr
    both = plimsoll("export", run, "--dvdstore", "--iometer", "2006", cwd=tmp_path)
    assert both.returncode == 2 and "two tables" in both.stderr
    files = ["--modelled", "emc-vnxe3300", "--minutes", "0.1", "--quiet", "--yes"]
    done = plimsoll("test", "files", *files, "--out", tmp_path / "files", cwd=tmp_path)
    assert done.returncode in (0, 1, 3), done.stderr
    other = plimsoll("export", tmp_path / "files", "--dvdstore", cwd=tmp_path)
    assert other.returncode == 2 and "loaded no store" in other.stderr
