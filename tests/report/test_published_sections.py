"""The report has every section of the published reports, with their columns, and with their figures
where they are known.

The run under test was made from the rates of the two-hour run of the EMC VNXe3300 report (appendix
C), so its tables must read as the published ones do.
"""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from plimsoll.files import folder
from plimsoll.report.sections import IO_COLUMNS
from tests.support.report_page import Page

DATABASES = ("instance1/database001", "instance2/database001")
#: What the published Total table says: reads/s and mean bytes of the database, reads/s and mean
#: bytes of the log.
PUBLISHED_TOTAL = {
    DATABASES[0]: (129.867, 81552.83, 1.093),
    DATABASES[1]: (125.06, 76206.333, 1.091),
}


@pytest.fixture(scope="module")
def page(published: Path) -> Page:
    return Page(published / folder.REPORT)


@pytest.fixture(scope="module")
def summary(published: Path) -> Any:
    return folder.read_json(published / folder.SUMMARY)


def number(text: str) -> float:
    return float(text.replace(",", "").split()[0])


def test_RPT_16_sections_come_in_the_published_order(page: Page) -> None:
    """Readers of the published reports find their way; the verdict stands first."""
    published = [
        "✓ Pass",
        "Key figures",
        "Checks",
        "Test summary",
        "Database sizing and throughput",
        "System parameters",
        "Database configuration",
        "Transactional I/O",
        "Background database maintenance I/O",
        "Log replication I/O",
        "Total I/O",
        "Host system performance",
        "Checksum statistics",
        "Environment",
        "Test log",
        "What was not measured",
    ]
    places = [page.headings.index(heading) for heading in published]
    assert places == sorted(places)


def test_RPT_01_test_summary_has_the_published_fields(page: Page) -> None:
    """Result, machine, times, versions: who reads only this block knows what was run."""
    table = page.tables["Test summary"]
    assert table.row("Collection started") == ["2011-04-21T03:48:01.000+00:00"]
    assert table.row("Collection ended") == ["2011-04-21T05:48:01.000+00:00"]
    for name in (
        "Test",
        "Machine",
        "Test started",
        "Plimsoll",
        "Engine",
        "Operating system",
        "Run folder",
    ):
        assert table.row(name) != ["–"], name


def test_RPT_02_sizing_block_adds_up(page: Page) -> None:
    """The rows of the databases sum up to the achieved rate, and sizes are bytes as published."""
    achieved = number(
        page.tables["Database sizing and throughput"].row("Achieved transactional I/O per second")[
            0
        ]
    )
    assert achieved == pytest.approx(329.489, abs=0.001)
    rows = [number(page.tables["Each database"].row(name)[0]) for name in DATABASES]
    assert sum(rows) == pytest.approx(achieved, abs=0.0011)
    sizing = page.tables["Database sizing and throughput"]
    assert sizing.row("Initial database size (bytes)") == ["2,086,905,446,400"]
    assert sizing.row("Final database size (bytes)") == ["2,087,979,188,224"]
    assert sizing.row("Database files (count)") == ["2"]


def test_RPT_03_system_parameters_are_those_of_the_plan(page: Page, published: Path) -> None:
    """What was asked for, with the words of the published block."""
    plan = folder.read_json(published / folder.PLAN)["run"]
    table = page.tables["System parameters"]
    mix = plan["workloads"][0]["mix"]
    assert table.row("Load (sessions are the published threads)") == [
        "mix: 3 sessions for each database"
    ]
    for kind in ("insert", "delete", "replace", "read"):
        assert table.row(f"{kind.capitalize()} operations") == [f"{mix[f'{kind}_percent']} %"]
    assert table.row("Lazy commits") == [f"{mix['lazy_commit_percent']} %"]
    assert table.row("Maximum database cache") == [
        f"{plan['instances'][0]['cache_bytes_max'] >> 20} MiB"
    ]
    assert table.row("Copies of each database") == ["2"]
    assert table.row("Background database maintenance")[0].startswith("on: ")


def test_RPT_04_database_configuration_names_log_and_file(page: Page) -> None:
    """One row for each instance: where its log is, where its databases are."""
    table = page.tables["Database configuration"]
    assert table.row("instance1")[:2] == [
        "/srv/array/instance1",
        "/srv/array/instance1/database001.edb",
    ]
    assert [row[0] for row in table.rows] == ["instance1", "instance2"]


def test_RPT_05_transactional_table_has_the_twelve_columns(page: Page) -> None:
    """Latency, rate and bytes, reads before writes, the database before the log.

    Figures as published.
    """
    table = page.tables["Transactional I/O"]
    assert table.headings[1:] == IO_COLUMNS
    assert len(IO_COLUMNS) == 12
    first = table.row(DATABASES[0])
    assert [number(cell) for cell in first[:4]] == [12.056, 8.037, 102.641, 62.924]
    assert [number(first[place]) for place in (4, 5, 11)] == pytest.approx(
        [33763.495, 37486.773, 5173.336], rel=1e-5
    )
    assert [number(first[place]) for place in (7, 9)] == [2.914, 51.545]
    assert (first[6], first[8]) == ("–", "0.000"), "no log was read for transactions"


def test_RPT_06_maintenance_table(page: Page) -> None:
    """Rate and size of background maintenance, apart from what transactions read."""
    rows = page.tables["Background database maintenance I/O"]
    assert [number(cell) for cell in rows.row(DATABASES[0])] == pytest.approx(
        [27.226, 261718.563], rel=1e-5
    )
    assert [number(cell) for cell in rows.row(DATABASES[1])] == pytest.approx(
        [23.42, 261690.19], rel=1e-5
    )


def test_RPT_07_replication_table(page: Page) -> None:
    """Rate and size of log reads for further copies."""
    assert [
        number(cell) for cell in page.tables["Log replication I/O"].row("instance1")
    ] == pytest.approx([1.093, 232553.766], rel=1e-5)


def test_RPT_08_total_table_follows_from_the_others(page: Page, summary: Any) -> None:
    """Reads are transactions' and maintenance's, sizes weighted by rate.

    As published, and as the other tables say.
    """
    total = page.tables["Total I/O"]
    for name, (reads_per_s, read_bytes, log_reads_per_s) in PUBLISHED_TOTAL.items():
        row = [0.0 if cell == "–" else number(cell) for cell in total.row(name)]
        assert (row[2], row[8]) == pytest.approx((reads_per_s, log_reads_per_s), abs=0.0015)
        assert row[4] == pytest.approx(read_bytes, abs=1.0)
        transactional = [
            0.0 if c == "–" else number(c) for c in page.tables["Transactional I/O"].row(name)
        ]
        scans = [
            number(cell) for cell in page.tables["Background database maintenance I/O"].row(name)
        ]
        assert row[2] == pytest.approx(transactional[2] + scans[0], abs=0.0011)
        weighted = (transactional[2] * transactional[4] + scans[0] * scans[1]) / row[2]
        assert row[4] == pytest.approx(weighted, abs=1.0)
        assert row[3] == transactional[3]


def test_RPT_09_host_table_lies_between_its_bounds(page: Page) -> None:
    """MON-01: processor, memory and stalls under the published names, each average between minimum
    and maximum.
    """
    table = page.tables["Host system performance"]
    assert table.headings == ["Counter", "Average", "Minimum", "Maximum"]
    assert {"% Processor Time", "Available MBytes", "Database Page Fault Stalls/s"} <= {
        row[0] for row in table.rows
    }
    for name, *cells in table.rows:
        average, low, high = (number(cell) for cell in cells)
        assert low <= average <= high, name
    assert [number(cell) for cell in table.row("% Processor Time")] == pytest.approx(
        [20.0, 10.0, 30.0], abs=0.1
    )


def test_RPT_10_test_log_is_the_events_in_order(page: Page, published: Path) -> None:
    """Everything that happened, oldest first, with its second; what was told, word for word."""
    told = [event["text"] for event in folder.read_events(published)]
    rows = page.tables["Test log"].rows
    assert [row[-1] for row in rows if row[-1] in told] == told
    seconds = [float(row[0]) for row in rows]
    assert seconds == sorted(seconds)


def test_RPT_11_checksum_statistics_sum_up(page: Page) -> None:
    """Pages times page size is the length of the file.

    The time of all is the longest, not the sum.
    """
    table = page.tables["Checksum statistics"]
    for name in DATABASES:
        pages, *_, length_mib, _, _ = (number(cell) for cell in table.row(name))
        assert pages * 32768 / 1048576 == pytest.approx(length_mib, abs=0.1)
    total = [number(cell) for cell in table.row("(Sum)")]
    assert total[0] == sum(number(table.row(name)[0]) for name in DATABASES)
    assert total[6] == 100.0


def test_RPT_12_disks_under_the_checksum(page: Page) -> None:
    """MON-07: seconds, rates and sizes of the disks, databases and logs apart."""
    table = page.tables["Disk subsystem during the checksum"]
    assert [row[0] for row in table.rows] == [
        "instance1, databases",
        "instance1, log",
        "instance2, databases",
        "instance2, log",
    ]
    assert table.row("instance1, databases")[:4] == ["sda", "0.04800", "–", "1,295.4"]
    assert number(table.row("instance1, databases")[5]) == 65536.0
    assert table.row("instance1, log")[0] == "sdb"


def test_RPT_13_memory_and_processor_during_the_checksum(page: Page) -> None:
    """The same counters as for the load, over the checksum phase alone."""
    table = page.tables["Memory and processor during the checksum"]
    assert [number(cell) for cell in table.row("% Processor Time")] == [21.0, 21.0, 21.0]


def test_RPT_17_every_sample_is_there_and_gives_the_same_figures(
    page: Page, published: Path, summary: Any
) -> None:
    """MON-05: who distrusts the report adds the samples up again."""
    for name in (folder.SAMPLES, folder.HISTOGRAMS, folder.SUMMARY, folder.EVENTS):
        assert name in page.links
        assert (published / name).is_file()
    rows = duckdb.sql(
        "SELECT instance, sum(count)::DOUBLE / 7200, sum(latency_ns_sum)::DOUBLE / sum(count) / "
        "1e6, count(*)"
        f" FROM '{published / folder.SAMPLES}' WHERE phase = 'measure' AND metric = "
        f"'database_read' GROUP BY ALL"
    ).fetchall()
    for database in summary["databases"]:
        _, per_s, latency_ms, count = next(row for row in rows if row[0] == database["instance"])
        assert count == 480
        assert database["database_read"]["per_s"] == pytest.approx(per_s)
        assert database["database_read"]["latency_ms_mean"] == pytest.approx(latency_ms)


def test_RPT_30_every_number_of_the_findings_traces_to_a_value(page: Page, published: Path) -> None:
    """A summary in words may not say what the files do not.

    Each number carries the path of its value.
    """
    values = {
        name: json.loads((published / f"{name}.json").read_text())
        for name in ("summary", "verdict")
    }
    assert len(page.sources) > 10
    for path, text in page.sources:
        value: Any = values
        for step in path.split("."):
            value = value[int(step)] if step.isdigit() else value[step]
        if isinstance(value, str):
            assert text == value
        elif not text.endswith(("iB", "%")):
            assert number(text) == pytest.approx(value, rel=0.006), path
