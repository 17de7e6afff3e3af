"""The summary is arithmetic on samples: every figure here was computed by hand."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from plimsoll.documents.outcome import Outcome
from plimsoll.files import folder, parquet
from plimsoll.plan.complete import plan_of_options
from plimsoll.results.measurements import Measurements
from tests.support.plain_stages import summarize, whole_outcome

SECOND = 1_000_000_000
PHASES = [{"kind": "prepare"}, {"kind": "measure", "duration_s": 30}, {"kind": "stop"}]


def make_folder(path: Path, rows: list[dict[str, Any]], buckets: list[dict[str, Any]]) -> Path:
    """A run folder of one database that was measured from second 10 to second 40."""
    plan = plan_of_options(
        {
            "name": "case",
            "target": [{"name": "disk", "path": "/data"}],
            "instance": [{"name": "one", "backend": "raw_files"}],
            "phase": PHASES,
        }
    ).plain()
    database = {"path": "/data/one/database001.dat", "size_bytes": 1 << 30, "records_ever": 5}
    times = {"prepare": (0, 10), "measure": (10, 40), "stop": (40, 41)}
    phases = [
        {
            "name": kind,
            "kind": kind,
            "start_ns": start * SECOND,
            "end_ns": end * SECOND,
            "complete": True,
            "databases": [[database]],
            "checksums": [],
        }
        for kind, (start, end) in times.items()
    ]
    outcome = {
        "ending": "complete",
        "error": None,
        "debug_build": False,
        "virtual_time": False,
        "io_method": "memory",
        "io_remarks": [],
        "anchors": [{"monotonic_ns": 0, "utc_ns": 0, "host_offset_ns": 0}],
        "phases": phases,
    }
    path.mkdir()
    folder.write_json(path / folder.PLAN, plan)
    folder.write_json(path / folder.OUTCOME, whole_outcome(outcome))
    usual = {
        "interval_ns": SECOND,
        "phase": "measure",
        "host": "local",
        "instance": "one",
        "database": 1,
        "workload": "",
        "metric": "database_read",
        "count": 0,
        "errors": 0,
        "bytes": 0,
        "latency_ns_sum": 0,
        "latency_ns_max": 0,
        "latency_ns_p50": 0,
        "latency_ns_p99": 0,
        "value": 0.0,
    }
    table = [{**usual, **row} for row in rows]
    usual_bucket = {
        "phase": "measure",
        "instance": "one",
        "database": 1,
        "workload": "",
        "metric": "database_read",
        "latency_ns_sum": 0,
        "latency_ns_max": 0,
    }
    for name, content in (
        (folder.SAMPLES, table),
        (folder.HISTOGRAMS, [{**usual_bucket, **row} for row in buckets]),
    ):
        source = path / "rows.json"
        source.write_text(json.dumps(content))
        duckdb.sql(
            f"COPY (SELECT * FROM read_json('{source}')) TO '{path / name}' (FORMAT parquet)"
        )
        source.unlink()
    return path


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Reads: ten of 2 ms in the first 15 s, thirty of 10 ms in the second.

    A prepare phase that must not count.
    """
    rows = [
        {
            "end_ns": 5 * SECOND,
            "phase": "prepare",
            "count": 1000,
            "latency_ns_sum": 10**12,
            "errors": 2,
        },
        {
            "end_ns": 20 * SECOND,
            "count": 10,
            "latency_ns_sum": 20_000_000,
            "latency_ns_max": 3_000_000,
            "bytes": 327680,
        },
        {"end_ns": 24 * SECOND},
        {
            "end_ns": 30 * SECOND,
            "count": 30,
            "latency_ns_sum": 300_000_000,
            "latency_ns_max": 50_000_000,
            "bytes": 983040,
        },
        {
            "end_ns": 30 * SECOND,
            "metric": "log_write",
            "database": 0,
            "count": 4,
            "latency_ns_sum": 4_000_000,
            "errors": 1,
        },
        {"end_ns": 30 * SECOND, "metric": "executor_busy", "database": 0, "value": 0.25},
    ]
    buckets = [
        {"upper_ns": 2_000_000, "count": 39},
        {"upper_ns": 50_000_000, "count": 1},
        {"upper_ns": 9_000_000_000, "count": 1000, "phase": "prepare"},
    ]
    return make_folder(tmp_path / "run", rows, buckets)


def test_means_are_weighted_and_the_published_mean_stands_beside(run_folder: Path) -> None:
    """The two kinds of mean differ by a third here; confusing them would move verdicts."""
    read = summarize(run_folder)["databases"][0]["database_read"]
    assert (read["count"], read["per_s"]) == (40, pytest.approx(40 / 30))
    assert read["latency_ms_mean"] == pytest.approx(8.0)
    assert read["latency_ms_mean_of_samples"] == pytest.approx((2.0 + 10.0) / 2)
    assert read["latency_ms_sample_mean_max"] == pytest.approx(10.0)
    assert read["latency_ms_max"] == 50.0
    assert read["bytes_mean"] == 32768


def test_percentiles_come_from_the_distribution_of_the_measured_phase(run_folder: Path) -> None:
    """39 of 40 within 2 ms: p90 is in the first bucket, p99 in the last, and preparing does not
    count.
    """
    read = summarize(run_folder)["databases"][0]["database_read"]
    assert (read["latency_ms_p90"], read["latency_ms_p99"]) == (2.0, 50.0)


def test_errors_count_over_the_whole_run(run_folder: Path) -> None:
    """An error while preparing is an error of the storage all the same."""
    summary = summarize(run_folder)
    assert summary["total"]["errors_in_run"] == 3
    assert summary["instances"][0]["log_write"]["errors"] == 1


def test_nothing_measured_gives_no_figure(run_folder: Path) -> None:
    """Zero would look like a very fast disk."""
    write = summarize(run_folder)["databases"][0]["database_write"]
    assert (write["count"], write["latency_ms_mean"], write["latency_ms_p99"]) == (0, None, None)
    assert write["latency_ms_sample_mean_max"] is None


def test_window_and_sizes(run_folder: Path) -> None:
    """Times of the report come from the anchors, sizes from the phases."""
    summary = summarize(run_folder)
    assert summary["window"]["seconds"] == 30.0
    assert summary["window"]["start_utc"] == "1970-01-01T00:00:10.000+00:00"
    assert summary["databases"][0]["final_bytes"] == 1 << 30
    assert summary["generator"]["executor_busy_mean"] == 0.25


def test_a_folder_without_samples_says_so(run_folder: Path) -> None:
    """A run that was cut off must not end in a traceback."""
    (run_folder / folder.SAMPLES).unlink()
    with pytest.raises(folder.FolderError, match="cut off"):
        summarize(run_folder)


def test_the_last_milliseconds_of_a_phase_are_no_extreme(tmp_path: Path) -> None:
    """The kernel's clocks hardly move in 4 ms.

    "processor time between 0 and 100 %" would tell of a machine that never idled.
    """
    short = {"end_ns": 40 * SECOND, "interval_ns": 4_000_000}
    seconds = [{"end_ns": end * SECOND} for end in (11, 12, 13)]
    busy = [
        {**row, "metric": "cpu_busy", "database": 0, "value": value}
        for row, value in zip(seconds, (0.9, 0.8, 1.0), strict=True)
    ]
    stalls = [{**row, "metric": "page_fault_stall", "database": 0, "count": 1} for row in seconds]
    rows = [*busy, *stalls, {**short, "metric": "cpu_busy", "database": 0}]
    rows.append({**short, "metric": "page_fault_stall", "database": 0, "count": 1})
    reads = [
        {**row, "count": 10, "latency_ns_sum": 10_000_000, "latency_ns_p99": 1_000_000}
        for row in seconds
    ]
    buckets = [{"upper_ns": 1_000_000, "count": 30}]
    found = summarize(make_folder(tmp_path / "run", [*rows, *reads], buckets))
    level = found["machine"]["cpu_busy"]
    # They belong to the sample before them.
    assert (level["min"], level["max"]) == (0.8, pytest.approx(1.0 / 1.004))
    assert level["mean"] == pytest.approx(2.7 / 3.004)
    stalls = found["page_fault_stalls"]
    assert (stalls["min"], stalls["max"]) == (1.0, pytest.approx(2 / 1.004))
    assert (stalls["samples_above_zero_count"], stalls["samples_count"]) == (3, 3)


def test_a_generator_is_as_busy_as_its_time_says(tmp_path: Path) -> None:
    """Milliseconds at the end of a phase in which it worked counted like whole seconds."""
    rows = [
        {"end_ns": (10 + second) * SECOND, "metric": "executor_busy", "database": 0, "value": 0.2}
        for second in range(1, 10)
    ]
    rest = {"end_ns": 19_004_000_000, "interval_ns": 4_000_000, "value": 1.0}
    buckets = [{"upper_ns": 1_000_000, "count": 1}]
    run = make_folder(tmp_path / "run", [*rows, {**rows[0], **rest}], buckets)
    found = summarize(run)["generator"]
    assert found["executor_busy_mean"] == pytest.approx((9 * 0.2 + 0.004) / 9.004)
    assert found["executor_busy_max"] == pytest.approx((0.2 + 0.004) / 1.004)


def test_an_average_lies_between_its_extremes(tmp_path: Path) -> None:
    """A rest that was busier than every sample counted in the average and in no extreme.

    0.91 between 0.2 and 0.9.
    """
    rest = {"end_ns": 13_400_000_000, "interval_ns": 400_000_000}
    seconds = [{"end_ns": end * SECOND} for end in (11, 12, 13)]
    busy = [{**row, "metric": "cpu_busy", "database": 0, "value": 0.2} for row in seconds]
    stalls = [{**row, "metric": "page_fault_stall", "database": 0, "count": 1} for row in seconds]
    late = [{**rest, "metric": "cpu_busy", "database": 0, "value": 1.0}]
    late.append({**rest, "metric": "page_fault_stall", "database": 0, "count": 9})
    reads = [
        {**row, "count": 10, "latency_ns_sum": 10_000_000, "latency_ns_p99": 1_000_000}
        for row in seconds
    ]
    buckets = [{"upper_ns": 1_000_000, "count": 30}]
    found = summarize(make_folder(tmp_path / "run", [*busy, *stalls, *late, *reads], buckets))
    for level in (found["machine"]["cpu_busy"], found["page_fault_stalls"]):
        assert level["min"] <= level["mean"] <= level["max"], level


def test_curves_are_drawn_where_the_samples_were(tmp_path: Path) -> None:
    """Beats go on across phases, so that the first sample is short.

    What follows must not be drawn a second late.
    """
    tenth = SECOND // 10
    rows = [{"end_ns": 10 * SECOND + 2 * tenth, "interval_ns": 2 * tenth, "count": 20}]
    rows += [
        {"end_ns": 10 * SECOND + 2 * tenth + number * SECOND, "count": 100 * number}
        for number in (1, 2)
    ]
    home = make_folder(tmp_path / "run", rows, [{"upper_ns": 1_000_000, "count": 320}])
    measured = Measurements(home, Outcome.read(home / folder.OUTCOME))
    drawn = [
        (point["second"], round(point["per_s"])) for point in measured.series("database_read", 240)
    ]
    assert drawn == [(0.0, 100), (1.0, 200)]


def test_the_worst_sample_is_found_where_it_is_behind_a_gap(tmp_path: Path) -> None:
    """Two measured minutes with ten others between them.

    The worst quarter minute was looked for in the gap.
    """
    rows = two_minutes(
        tmp_path,
        {
            (name, start + second): 50 if start and 15 < second <= 30 else 5
            for name, start in (("first", 0), ("second", 660))
            for second in range(1, 61)
        },
    )
    with Measurements(tmp_path, rows) as measured:
        found = measured.worst_sample_ns("database_read", "one", 1)
    assert found == (675 * SECOND, 690 * SECOND)


def test_a_quarter_minute_does_not_reach_from_one_phase_into_the_next(tmp_path: Path) -> None:
    """Its last second alone was a sample: one of 60 slow seconds failed a limit of fifteen."""
    latencies = {
        (name, start + second): 150 if (name, second) == ("first", 61) else 5
        for name, start, seconds in (("first", 0, 61), ("second", 660, 60))
        for second in range(1, seconds + 1)
    }
    with Measurements(tmp_path, two_minutes(tmp_path, latencies)) as measured:
        figures = measured.transfers.of("database_read", "one", 1)
    # The second beyond the minute belongs to the quarter before it.
    assert figures.latency_ms_sample_mean_max == pytest.approx((15 * 5 + 150) / 16)
    assert figures.latency_ms_mean_of_samples == pytest.approx((7 * 5 + (15 * 5 + 150) / 16) / 8)


def test_transfers_of_any_number_of_places_are_asked_for_at_once(tmp_path: Path) -> None:
    """A hundred databases were asked for four figures each, with four queries for each figure."""
    latencies = {("first", second): 5 for second in range(1, 61)}
    with Measurements(tmp_path, two_minutes(tmp_path, latencies)) as measured:
        assert measured.database_purposes("one", 1)["database_read"].count == 6000
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(measured, "_database", None)
            assert measured.database_purposes("one", 2)["database_read"].count == 0
            assert measured.database_purposes()["database_read"].latency_ms_mean == 5.0
            assert measured.log_purposes("one")["log_write"].latency_ms_mean is None


def test_a_metric_is_asked_for_once_however_many_figures_of_it_are_drawn(tmp_path: Path) -> None:
    """Reads are drawn as a rate, as a mean, as a percentile, and in the overview."""
    latencies = {("first", second): 5 for second in range(1, 61)}
    with Measurements(tmp_path, two_minutes(tmp_path, latencies)) as measured:
        first = measured.series("database_read", 24)
        assert len(first) == 20
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(measured, "_database", None)
            assert measured.series("database_read", 24) == first


def two_minutes(home: Path, latencies_ms: dict[tuple[str, int], int]) -> Outcome:
    """Samples of a second each, by phase and end, with 100 reads that took so long."""
    names = dict.fromkeys(name for name, _ in latencies_ms)
    ends = {name: [end for of, end in latencies_ms if of == name] for name in names}
    phases = [
        {
            "name": name,
            "kind": "measure",
            "start_ns": (min(ends[name]) - 1) * SECOND,
            "end_ns": max(ends[name]) * SECOND,
            "complete": True,
        }
        for name in names
    ]
    rows = [
        {
            "host": "local",
            "instance": "one",
            "database": 1,
            "workload": "",
            "metric": "database_read",
            "errors": 0,
            "end_ns": end * SECOND,
            "interval_ns": SECOND,
            "phase": name,
            "count": 100,
            "bytes": 0,
            "latency_ns_sum": 100 * 1_000_000 * latency_ms,
            "latency_ns_max": 50_000_000,
            "latency_ns_p50": 0,
            "latency_ns_p99": 0,
            "value": 0.0,
            "upper_ns": 5_000_000,
        }
        for (name, end), latency_ms in latencies_ms.items()
    ]
    source = home / "rows.json"
    for name in (folder.SAMPLES, folder.HISTOGRAMS):
        source.write_text(json.dumps(rows))
        duckdb.sql(
            f"COPY (SELECT * FROM read_json('{source}')) TO '{home / name}' (FORMAT parquet)"
        )
    return Outcome.from_plain(whole_outcome({"phases": phases}))


def test_sums_are_made_by_one_thread() -> None:
    """Those of several differ in the last digit, and a report written again from what it was."""
    with parquet.database() as database:
        assert database.sql("SELECT current_setting('threads')").fetchall() == [(1,)]
