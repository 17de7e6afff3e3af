"""Percentiles of the user's choice, and how far they can be trusted."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from plimsoll.files import folder
from plimsoll.results.chosen_percentiles import PercentileError, percentile_lines, shares_of

GOLDEN = Path(__file__).parents[1] / "golden" / "run"


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run whose reads are known: 10,000 of 1 ms, 100 of 10 ms, 5 of 100 ms."""
    outcome = (GOLDEN / folder.OUTCOME).read_text()
    (tmp_path / folder.OUTCOME).write_text(outcome)
    with duckdb.connect() as database:
        database.execute(
            "CREATE TABLE bucket (phase TEXT, metric TEXT, upper_ns UBIGINT, count UBIGINT,"
            " latency_ns_sum UBIGINT)"
        )
        rows = [("measure", "database_read", ms * 1_000_000, count, 1) for ms, count in BUCKETS]
        rows.append(("prepare", "database_read", 900_000_000, 7_000_000, 1))
        rows.append(("measure", "cache_used", 0, 0, 0))
        database.executemany("INSERT INTO bucket VALUES (?, ?, ?, ?, ?)", rows)
        database.execute(f"COPY bucket TO '{tmp_path / folder.HISTOGRAMS}'")
    return tmp_path


BUCKETS = [(1, 10_000), (10, 100), (100, 5)]


def test_percentiles_come_from_the_distribution(run_folder: Path) -> None:
    """Of measured phases alone: writes of the preparation are no latencies of the load."""
    heading, row, remark = percentile_lines(run_folder, [50.0, 99.0, 99.9, 99.99])
    assert heading.split()[-4:] == ["p50", "p99", "p99.9", "p99.99"]
    # 101 of 10,105 lie above p99, 10 above p99.9, one above p99.99.
    assert row.split()[2:] == ["10,105", "1.000", "10.000", "10.000", "100.000*"]
    assert remark.startswith("* fewer than 10 events")


def test_words_of_the_command_line(run_folder: Path) -> None:
    """All mistakes at once, each with what to write."""
    assert shares_of("p50, 99.999") == (50.0, 99.999)
    with pytest.raises(PercentileError) as error:
        shares_of("0,99.9999,many")
    assert len(error.value.problems) == 3
    assert all("write them like 50,99.9" in problem for problem in error.value.problems)


def test_a_run_without_latencies_says_so(tmp_path: Path) -> None:
    """A run that was stopped before it measured."""
    (tmp_path / folder.OUTCOME).write_text((GOLDEN / folder.OUTCOME).read_text())
    with duckdb.connect() as database:
        database.execute(
            "COPY (SELECT 'prepare' AS phase, 'prepare' AS metric, 5::UBIGINT AS upper_ns,"
            " 1::UBIGINT AS count, 5::UBIGINT AS latency_ns_sum)"
            f" TO '{tmp_path / folder.HISTOGRAMS}' (FORMAT parquet)"
        )
    assert percentile_lines(tmp_path, [99.0]) == [
        "no latencies were measured, so there are no percentiles"
    ]
