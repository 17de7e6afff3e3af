"""Old tables of results of Iometer: read as leniently as they are written, with what does not add
up."""

import json
from pathlib import Path

import pytest

from plimsoll.files.folder import FolderError
from plimsoll.imports.consistency_checks import CONTRADICTION
from plimsoll.imports.detect import ICF, IOMETER_RESULTS, recognise
from plimsoll.imports.files import keep_results, read_imports
from plimsoll.imports.iometer.results_csv import IometerResults, read_results
from plimsoll.inputs.mistakes import InputError
from plimsoll.pipeline.export_iometer import headings

#: A row of version 1.1.0: a worker with two disks that keeps a depth of 4 on each.
WORKER = {
    "Target Type": "WORKER",
    "Target Name": "Worker 1",
    "Access Specification Name": "Mixed",
    "# Disks": "2",
    "IOps": "2000",
    "Read IOps": "1340",
    "Write IOps": "660",
    "MiBps (Binary)": "7.8125",
    "Average Response Time": "4.0",
    "Maximum Response Time": "81.5",
    "Errors": "0",
    "Queue Depth": "4",
}


def table(*rows: dict[str, str], version: str = "1.1.0") -> str:
    """A table of results with these rows, in the columns of a version."""
    names = headings(version)[:-3]
    lines = [
        "'Test Type,Test Description",
        "0,two disks",
        "'Version",
        version,
        "'Time Stamp",
        "2026-11-20 10:00:00:123",
        "'Access specifications",
        "'Access specification name,default assignment",
        "Mixed,2",
        "'size,% of size,% reads,% random,delay,burst,align,reply",
        "4096,100,67,100,0,1,0,0,",
        "'End access specifications",
        "'Results",
        "'" + ",".join(names),
        *(",".join(row.get(name, "") for name in names) for row in rows),
        "'Time Stamp",
        "2026-11-20 10:01:00:123",
        "'End Test",
    ]
    return "\n".join(lines) + "\n"


def others(row: dict[str, str]) -> list[dict[str, str]]:
    """The rows of all and of the manager, as sound tables have them."""
    return [row | {"Target Type": kind, "Queue Depth": "-1"} for kind in ("ALL", "MANAGER")]


def rules(found: IometerResults) -> dict[str, str]:
    return {finding.rule: finding.text for finding in found.findings}


def test_IO_08_a_table_is_read_row_by_row():
    found = read_results("old.csv", table(*others(WORKER), WORKER))
    [one] = found.tables
    assert (one.description, one.version) == ("two disks", "1.1.0")
    assert (one.began, one.ended) == ("2026-11-20 10:00:00:123", "2026-11-20 10:01:00:123")
    assert [line.size_bytes for line in one.specifications["Mixed"]] == [4096]
    assert [row.kind for row in one.rows] == ["ALL", "MANAGER", "WORKER"]
    worker = one.rows[-1]
    assert worker.figures["IOps"] == 2000 and worker.mib_per_s == 7.8125 and worker.line == 17
    assert "# Managers" not in worker.figures, "what is blank is no figure"
    assert found.warnings == []
    assert set(rules(found)) == {"iometer_mixed"}, "a sound table is called sound"
    assert one.in_words() == (
        "Mixed: 2,000 I/O per second, 7.8 MiB per second, mean 4.000 ms, longest 81.5 ms, 0 errors"
    )


def test_the_megabytes_of_2006_are_binary_and_are_said_to_be():
    row = {**WORKER, "MBps": "7.8125"}
    found = read_results("old.csv", table(row, version="2006"))
    assert found.tables[0].rows[0].mib_per_s == 7.8125
    assert "2^20" in rules(found)["iometer_binary"]


@pytest.mark.parametrize(
    ("change", "rule", "said"),
    [
        ({"Write IOps": "600"}, "iometer_directions", "reads and writes make 1940"),
        ({"IOps": "1900", "Read IOps": "1240"}, "iometer_sums", "IOps is 2000"),
        ({"Average Response Time": "1.0"}, "iometer_depth", "2.0 transfers were under way, 8"),
        ({"Errors": "3"}, "iometer_errors", "3 errors"),
    ],
)
def test_what_does_not_add_up_is_told(change: dict[str, str], rule: str, said: str):
    found = read_results("old.csv", table(*others(WORKER), WORKER | change))
    assert said in rules(found)[rule]
    if rule in ("iometer_directions", "iometer_sums"):
        assert found.findings[0].kind == CONTRADICTION


def test_sizes_that_are_not_those_of_the_specification_are_told():
    rows = [row | {"MiBps (Binary)": "62.5"} for row in others(WORKER)]
    assert (
        "32,768 bytes a transfer" in rules(read_results("old.csv", table(*rows)))["iometer_sizes"]
    )


def test_rows_of_disks_that_repeat_their_worker_are_told():
    disk = {"Target Type": "DISK", "Target Name": "E:", "Total Raw Run Time": "5"}
    found = read_results("old.csv", table(disk, disk | {"Target Name": "F:"}))
    assert "those of its worker" in rules(found)["iometer_disks"]


def test_the_bin_that_is_headed_wrongly_is_told():
    text = table(WORKER | {"2 to 4 s": "1"}).replace(",2 to 4 s,", ",2 to 4.7 s,")
    assert "ends at 4 s" in rules(read_results("old.csv", text))["iometer_bin"]


def test_unusual_lines_are_warned_of_with_their_line():
    text = table(WORKER, WORKER | {"IOps": "fast"})
    text = text.replace(
        "'Time Stamp\n2026-11-20 10:01", "DISK\nwhatever\n'Time Stamp\n2026-11-20 10:01"
    )
    found = read_results("old.csv", text)
    assert {item.line: item.message for item in found.warnings} == {
        16: '"fast" in IOps is not a number',
        17: "has no name and specification",
        18: '"whatever" is no row',
    }
    assert len(found.tables[0].rows) == 2


def test_decimal_commas_are_told_and_not_taken_for_figures():
    names = headings("1.1.0")[:-3]
    row = ",".join(["ALL", "All", "Mixed", *["1,5"] * (len(names) - 3)])
    with pytest.raises(InputError) as refused:
        read_results("old.csv", table() + "'Results\n'" + ",".join(names) + f"\n{row}\n")
    assert "decimal points" in str(refused.value)


def test_several_tests_of_a_file_stay_apart():
    found = read_results("old.csv", table(WORKER) + table(WORKER | {"IOps": "9"}))
    assert [len(one.rows) for one in found.tables] == [1, 1]
    assert found.tables[1].rows[0].figures["IOps"] == 9


@pytest.mark.parametrize(
    "text", ["", "'Results\n", "'Target Type,Target Name\nALL\n", table(), "\0" * 99, ",\n" * 99]
)
def test_a_file_without_a_row_is_refused(text: str):
    with pytest.raises(InputError):
        read_results("old.csv", text)


def test_results_and_configurations_are_told_apart_and_kept(tmp_path: Path):
    path = tmp_path / "old.csv"
    path.write_text(table(*others(WORKER), WORKER), encoding="utf-16")
    assert recognise(path).kind == IOMETER_RESULTS
    icf = tmp_path / "x.icf"
    icf.write_text("Version 1.1.0\n'ACCESS SPECIFICATIONS ===\n", encoding="utf-8")
    assert recognise(icf).kind == ICF
    [(_, found)] = read_imports([path]).results
    target = keep_results(found, tmp_path / "runs")
    kept = json.loads(target.read_text(encoding="utf-8"))
    assert kept["tables"][0]["rows"][2]["figures"]["IOps"] == 2000
    assert kept["name"] == "old.csv", "where it lay is nobody's business"
    with pytest.raises(FolderError, match="exists"):
        keep_results(found, tmp_path / "runs")


def test_bursts_weigh_the_sizes_of_a_specification():
    """A line holds for a burst: half of the bursts are nine tenths of the transfers.

    Why: a sound table of such a specification was said not to add up.
    """
    lines = "4096,50,67,100,0,1,0,0,\n65536,50,67,100,0,9,0,0,"
    rate = 2000 * (4096 + 9 * 65536) / 10 / 2**20
    row = WORKER | {"MiBps (Binary)": f"{rate:.4f}"}
    text = table(*others(row), row).replace("4096,100,67,100,0,1,0,0,", lines)
    assert "iometer_sizes" not in rules(read_results("old.csv", text))
