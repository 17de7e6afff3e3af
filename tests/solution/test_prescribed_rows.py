"""Tables 2 and 3 of a tested solution: rows that must be there, and where values come from."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from plimsoll.documents.environment import Environment
from plimsoll.solution import tables
from plimsoll.solution.prescribed import HARDWARE, NOT_STATED, SOFTWARE
from plimsoll.solution.solution import Solution, read_solution
from plimsoll.solution.write import write_solution

EXAMPLE = Path(__file__).parents[2] / "examples" / "esrp"

FOUND: Environment = {
    "plimsoll": "0.1.0",
    "machine": {
        "host_name": "one",
        "vendor": "Maker",
        "product": "Server 1",
        "cpu_model": "Xeon 4310",
        "cpus_present": 24,
        "memory_kib": 64 * 1024**2,
    },
    "operating_system": {"distribution": "Debian 12", "kernel": "6.1"},
    "adapters": [
        {
            "name": "host7",
            "driver": "lpfc",
            "driver_version": "12.8",
            "model": "LPe12002",
            "firmware": "2.02",
            "transport": "fc",
            "speed": "8 Gbit",
            "commands_max": 8192,
            "queue_depth_min": 30,
            "queue_depth_max": 64,
        },
        {"name": "host0", "driver": "ahci", "transport": "sata", "queue_depth_min": 32},
    ],
    "multipath": [{"paths_count": 4, "policy": "service-time"}],
}  # type: ignore[typeddict-item]


@pytest.fixture(scope="module")
def solution() -> Solution:
    """The example, made of the published figures."""
    return read_solution(EXAMPLE / "solution.toml")


def told(solution: Solution, environment: Environment) -> dict[str, str]:
    """Both tables of a description that states nothing, on such a host."""
    run = replace(solution.runs["performance"][0], environment=environment)
    silent = replace(
        solution,
        content={**solution.content, "hardware": [], "software": []},
        runs={**solution.runs, "performance": (run,)},
    )
    rows = [*tables.table_2(silent).rows, *tables.table_3(silent).rows]
    return {str(name): str(value) for name, value in rows}


def test_what_is_not_stated_comes_from_the_host(solution: Solution) -> None:
    """Queue depths are what nobody writes down and everybody asks for; disks inside the server are
    no part of the storage.
    """
    found = told(solution, FOUND)
    assert found["Storage connectivity"] == "Fibre Channel 8 Gbit"
    assert found["Host adapter model and firmware"] == "LPe12002, firmware 2.02"
    assert found["Host adapters in a host"] == "1"
    assert found["Host adapter driver"] == "lpfc 12.8"
    assert found["Host adapter queue (commands at once)"] == "8192"
    assert found["Queue depth of a disk"] == "30 to 64"
    assert found["Multipathing"] == "device mapper, 4 paths, service-time"
    assert found["Host server"] == "Maker Server 1, Xeon 4310, 24 processors, 64 GiB memory"
    assert found["Host operating system"] == "Debian 12, 6.1"
    assert found["Database engine"] == "Plimsoll 0.1.0"
    assert found["Switch model and firmware"] == NOT_STATED


def test_every_prescribed_row_is_there_and_the_description_decides(solution: Solution) -> None:
    """A row that is missing reads as if it did not matter."""
    for table, prescribed, stated in (
        (tables.table_2(solution), HARDWARE, solution.content["hardware"]),
        (tables.table_3(solution), SOFTWARE, solution.content["software"]),
    ):
        names = [row[0] for row in table.rows]
        assert names[: len(prescribed)] == [name for name, _ in prescribed]
        shown = dict(table.rows)
        assert stated
        for item in stated:
            assert shown[item["name"]] == item["value"]


def test_rows_of_ones_own_follow(solution: Solution) -> None:
    """A maker may have more to say."""
    more = [{"name": "Cooling", "value": "water"}]
    own = replace(solution, content={**solution.content, "hardware": more})
    assert tables.table_2(own).rows[-1] == ["Cooling", "water"]


def test_published_backups_and_replays_are_evidence(solution: Solution) -> None:
    """The published tool sets no limit for them: a document whose evidence said "inconclusive" of
    what was carried out in full told its readers to doubt it.
    """
    rows = tables.evidence_table(solution).rows
    results = {row[0]: row[2] for row in rows}
    assert (results["backup"], results["recovery"]) == ("pass", "pass")


def test_every_sheet_fits_the_width_of_a_page(tmp_path: Path) -> None:
    """Table 9 was printed on four pages side by side."""
    write_solution(EXAMPLE / "solution.toml", tmp_path, ["xlsx"])
    with zipfile.ZipFile(next(tmp_path.glob("*.xlsx"))) as book:
        sheets = [name for name in book.namelist() if name.startswith("xl/worksheets/sheet")]
        assert len(sheets) > 9
        for name in sheets:
            text = book.read(name).decode()
            assert 'fitToPage="1"' in text and 'fitToHeight="0"' in text, name
            assert 'orientation="landscape"' in text, name
