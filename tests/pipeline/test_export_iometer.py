"""Iometer's table of a run on files.

The columns that scripts expect, and figures that agree with the run's own.
"""

import csv
import json
from pathlib import Path

import pytest

from plimsoll.files import folder
from plimsoll.pipeline.export_iometer import headings
from tests.support.edb_databases import SHARED
from tests.support.places import plimsoll

GOLDEN = SHARED / "data" / "icf" / "golden" / "worker_rich.golden.txt"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two files on a modelled array."""
    home = tmp_path_factory.mktemp("iometer")
    options = [
        "--modelled",
        "emc-vnxe3300",
        "--files",
        "2",
        "--depth",
        "4",
        "--minutes",
        "0.5",
        "--quiet",
        "--yes",
    ]
    done = plimsoll("test", "files", *options, "--out", home / "run", cwd=home)
    assert done.returncode in (0, 3), done.stderr
    return home / "run"


def table(run: Path, version: str) -> list[dict[str, str]]:
    target = run.parent / f"{version}.csv"
    done = plimsoll("export", run, "--iometer", version, "--csv", target, cwd=run.parent)
    assert done.returncode == 0, done.stderr
    text = target.read_text(encoding="utf-8")
    results = text.partition("'Results\n'")[2].partition("'Time Stamp")[0]
    return list(csv.DictReader(results.splitlines()))


@pytest.mark.skipif(not GOLDEN.exists(), reason=f"{GOLDEN} is not there; set PLIMSOLL_SHARED")
def test_IO_08_the_columns_are_those_of_the_original():
    """Its own heading says 4.7 s where its code parts at 4 s; the bins are named as they count.

    Percentiles follow.
    """
    theirs = next(
        line for line in GOLDEN.read_text().splitlines() if line.startswith("'Target Type")
    )
    corrected = theirs[1:].replace("2 to 4.7 s,4.7 to 5 s", "2 to 4 s,4 to 5 s").split(",")
    assert headings("1.1.0")[:80] == corrected
    assert [name for name in headings("2006")[:56] if "MiBps" in name or " S" in name[-2:]] == []


def test_IO_08_rows_agree_with_the_run(run: Path):
    rows = table(run, "1.1.0")
    assert [row["Target Type"] for row in rows] == ["ALL", "MANAGER", "WORKER", "DISK", "DISK"]
    total = json.loads((run / folder.SUMMARY).read_text())["total"]
    first = rows[0]
    assert float(first["IOps"]) == pytest.approx(total["database_iops"])
    assert int(first["Read I/Os"]) == total["database_read"]["count"]
    assert float(first["Average Read Response Time"]) == pytest.approx(
        total["database_read"]["latency_ms_mean"]
    )
    assert first["Queue Depth"] == "8" and first["Maximum Size"] == str(2 * 1024 * 2048)
    bins = [int(first[name]) for name in headings("1.1.0")[59:80]]
    assert sum(bins) == int(first["Read I/Os"]) + int(first["Write I/Os"])
    assert float(first["p50 (ms)"]) <= float(first["p95 (ms)"]) <= float(first["p99 (ms)"])


def test_rows_of_disks_are_their_own(run: Path):
    """The original repeats the worker's sums in every row of a disk."""
    rows = table(run, "2006")
    worker, disks = rows[2], rows[3:]
    assert sum(int(row["Read I/Os"]) for row in disks) == int(worker["Read I/Os"])
    assert disks[0]["Total Raw Read Response Time"] != worker["Total Raw Read Response Time"]
    assert [row["Queue Depth"] for row in disks] == ["4", "4"]


def test_what_cannot_be_exported_is_refused(run: Path):
    unknown = plimsoll("export", run, "--iometer", "1999", cwd=run.parent)
    assert unknown.returncode == 2 and "write 2006 or 1.1.0" in unknown.stderr
