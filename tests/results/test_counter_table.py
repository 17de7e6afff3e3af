"""The table of counters: the published names over the run's own samples, at the published
intervals.
"""

import csv
from pathlib import Path
from typing import Any

import duckdb
import pytest

from plimsoll import _native, settings
from plimsoll.cli import run_program
from plimsoll.files import folder
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from plimsoll.results import counters
from tests.support.plain_stages import plan_of, summarize
from tests.support.planted_run import MS, run_folder

PHASES = [
    {"kind": "prepare"},
    {"kind": "measure", "duration_s": 10, "counter_interval_s": 2},
    {"kind": "stop"},
]
INSTANCES = "MSExchange Database ==> Instances"


def table(path: Path) -> list[dict[str, Any]]:
    rows = duckdb.sql(f"SELECT * FROM '{path / folder.COUNTERS}'")
    return [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]


def values(path: Path, thing: str, counter: str) -> list[float]:
    rows = [row for row in table(path) if (row["object"], row["counter"]) == (thing, counter)]
    return [row["value"] for row in sorted(rows, key=lambda row: row["end_ns"])]


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    further = {
        ("memory_used", 0): {"value": 3 << 30},
        ("network_received", 0): {"value": 5000.0},
        ("device_in_flight", 1): {"value": 2.0},
    }
    path = run_folder(tmp_path / "run", further, phase=PHASES)
    counters.write_counters(path)
    return path


def test_MON_01_engine_and_machine_stand_in_one_table_on_one_clock(planted: Path) -> None:
    """Who correlates a latency with a processor needs both in the same interval under the names he
    knows.
    """
    rows = table(planted)
    measured = [row for row in rows if row["phase"] == "measure"]
    ends = {
        row["object"]: {row["end_ns"] for row in measured if row["object"] == row["object"]}
        for row in measured
    }
    assert {
        INSTANCES,
        "MSExchange Database",
        "LogicalDisk",
        "Processor",
        "Linux Memory",
        "Network Interface",
    } <= set(ends)
    assert len({frozenset(each) for each in ends.values()}) == 1
    assert {round(row["interval_s"]) for row in measured} == {2}
    assert len({row["end_ns"] for row in measured}) == 5
    assert values(planted, INSTANCES, "I/O Database Reads/sec") == pytest.approx([100] * 5)
    assert values(planted, INSTANCES, "I/O Database Reads Average Latency") == pytest.approx(
        [5] * 5
    )
    assert values(planted, INSTANCES, "I/O Log Writes Average Bytes") == pytest.approx([4096] * 5)
    assert values(planted, "LogicalDisk", "Avg. Disk sec/Read") == pytest.approx([0.0048] * 5)
    assert values(planted, "LogicalDisk", "Disk Writes/sec") == pytest.approx([90] * 5)
    assert values(planted, "Processor", "% Processor Time") == pytest.approx([20] * 5)
    assert values(planted, "Network Interface", "Bytes Received/sec") == pytest.approx([5000] * 5)


def test_MON_05_averages_can_be_computed_again_from_the_table(planted: Path) -> None:
    """RPT-17: the report's averages are plain means of the intervals, with their least and most."""
    found = summarize(planted)["counters"]
    assert len(found) > 20
    for item in found:
        key = (item["object"], item["counter"])
        rows = [
            row["value"]
            for row in table(planted)
            if (row["object"], row["counter"]) == key
            and (row["instance"], row["phase_kind"]) == (item["instance"], item["phase_kind"])
        ]
        assert item["intervals_count"] == len(rows)
        assert (item["average"], item["minimum"], item["maximum"]) == pytest.approx(
            (sum(rows) / len(rows), min(rows), max(rows))
        )
        assert item["source"] and item["nearness"]


def test_MON_07_a_disk_says_what_it_is_for(planted: Path) -> None:
    """One disk under both roles appears once and names both, so that nobody adds it up twice."""
    roles = {
        (row["instance"], row["role"]) for row in table(planted) if row["object"] == "LogicalDisk"
    }
    assert roles == {("vda", "databases of one, log of one")}
    assert {row["role"] for row in table(planted) if row["object"] == INSTANCES} == {
        "database",
        "log",
    }


def test_STU_18_memory_used_and_available_are_fields(planted: Path) -> None:
    """A comparison of memory needs both under names that stay."""
    assert values(planted, "Linux Memory", "Used MBytes") == pytest.approx([3072] * 5)
    names = {(row["object"], row["counter"]) for row in settings.counters()["counter"]}
    assert {("Memory", "Available MBytes"), ("Linux Memory", "Used MBytes")} <= names


def test_an_interval_without_transfers_counts_as_zero(tmp_path: Path) -> None:
    """As published: the log's latency of a recovery is 0.003 ms because most of its samples held no
    write.
    """
    path = run_folder(
        tmp_path / "run", {("log_write", 0): {"count": 0, "each_ns": 0}}, phase=PHASES
    )
    counters.write_counters(path)
    assert values(path, INSTANCES, "I/O Log Writes Average Latency") == [0] * 5


def test_a_short_rest_belongs_to_the_interval_before(tmp_path: Path) -> None:
    """Ten seconds in threes are three intervals, the last of four seconds.

    Rates must not be those of a crumb.
    """
    phases = [
        {**phase, "counter_interval_s": 3} if phase["kind"] == "measure" else phase
        for phase in PHASES
    ]
    path = run_folder(tmp_path / "run", {}, phase=phases)
    counters.write_counters(path)
    assert values(path, INSTANCES, "I/O Database Reads/sec") == pytest.approx([100] * 3)
    assert sorted({round(row["interval_s"]) for row in table(path)}) == [3, 4]


def test_the_published_intervals_are_the_default() -> None:
    """15 s for a load, 30 s for checksum and backup, 2 s for recovery, and what a plan states
    before all.
    """
    plan = plan_of({"judgement": {"counter_interval_s": {"mine": 7}}})
    kinds = {"measure": 15, "warm_up": 15, "checksum": 30, "backup": 30, "recover": 2}
    assert {kind: counters.interval_s("any", kind, plan) for kind in kinds} == kinds
    assert counters.interval_s("mine", "checksum", plan) == 7


def test_an_interval_shorter_than_a_sample_is_refused() -> None:
    """A table finer than its samples would have holes that look like idle time."""
    phase = {"kind": "checksum", "counter_interval_s": 2}
    options = {
        "target": [{"name": "d", "path": "/d"}],
        "instance": [{"name": "one"}],
        "sample_interval_ms": 5000,
    }
    with pytest.raises(InputError, match="counter_interval_s` is shorter than a sample"):
        plan_of_options({**options, "phase": [{"kind": "prepare"}, phase]})


def test_every_counter_names_its_sources_and_metrics_that_exist() -> None:
    """A counter of a metric that nobody samples would be empty for ever."""
    known = {name for name, _, _, _ in _native.metrics()}
    rows = settings.counters()["counter"]
    assert len({(row["object"], row["counter"]) for row in rows}) == len(rows)
    for row in rows:
        assert {*row["metrics"], *([row["per"]] if "per" in row else [])} <= known, row["counter"]
        assert row["source"] and row["published"]
        assert row["nearness"] in ("same", "Linux alone") or row["nearness"].startswith("near: ")
        assert (row["nearness"] == "Linux alone") == row["object"].startswith("Linux")


def test_every_counter_of_the_published_host_table_has_a_source() -> None:
    """MON-01: the host table of the published reports, counter by counter."""
    memory = {row["counter"] for row in settings.counters()["counter"] if row["object"] == "Memory"}
    assert {
        "Available MBytes",
        "Free System Page Table Entries",
        "Transition Pages RePurposed/sec",
        "Pool Nonpaged Bytes",
        "Pool Paged Bytes",
    } <= memory


def test_the_counters_go_out_as_csv(planted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each interval and one column for each counter, as readers of performance logs
    expect it.
    """
    (planted / folder.COUNTERS).unlink()
    assert run_program(["export", str(planted), "--csv", str(planted / "mine.csv")]) == 0
    with (planted / "mine.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 5
    assert lines[0]["phase"] == "measure"
    assert lines[0]["end_utc"] == "1970-01-01T00:00:03.000Z"
    name = "\\LogicalDisk(vda)\\Disk Writes/sec"
    assert [float(line[name]) for line in lines] == pytest.approx(
        values(planted, "LogicalDisk", "Disk Writes/sec")
    )
    assert "5 intervals" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("where", "words"), [("missing", "does not exist"), ("run", "cannot be written")]
)
def test_what_cannot_be_exported_is_said(
    planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str, words: str
) -> None:
    """Not a trace of the program, but what to do."""
    target = tmp_path / "nowhere" / "file.csv"
    assert run_program(["export", str(tmp_path / where), "--csv", str(target)]) == 2
    error = capsys.readouterr().err
    assert words in error or "name another file" in error


def test_latencies_of_the_table_are_those_of_the_samples(planted: Path) -> None:
    """The table is another view of the same samples, never a second measurement."""
    found = summarize(planted)
    latency = next(
        item
        for item in found["counters"]
        if item["counter"] == "I/O Database Reads Average Latency"
    )
    assert latency["average"] == pytest.approx(found["total"]["database_read"]["latency_ms_mean"])
    assert latency["average"] == pytest.approx(5 * MS / 1e6)
