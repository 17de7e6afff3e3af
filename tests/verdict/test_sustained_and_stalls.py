"""Bursts, stalls and caches: what a mean hides decides nothing, and what was not tested is said."""

import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from plimsoll.files import folder
from plimsoll.results.digits import shown
from plimsoll.results.sustained import Beat, stand_still, sustained_rate
from plimsoll.verdict.text import lines_of
from tests.support.plain_stages import (
    judge,
    plan_of,
    summarize,
    summary_of,
    verdict_of,
    warnings_of,
)
from tests.support.planted_run import SECOND
from tests.support.synthetic import EMC, START_S, make_folder, transfers
from tests.verdict.test_verdict import ENVIRONMENT, PLAN, changed, summary

MEASURE = "phase = 'measure' AND metric IN ('database_read', 'database_write')"


def rewritten(path: Path, **columns: str) -> Path:
    """A run folder with some columns of its samples as SQL says."""
    samples = path / folder.SAMPLES
    changes = ", ".join(f"{text} AS {name}" for name, text in columns.items())
    duckdb.sql(
        f"COPY (SELECT * REPLACE ({changes}) FROM '{samples}') TO '{path / 'changed'}' (FORMAT "
        f"parquet)"
    )
    (path / "changed").rename(samples)
    return path


def bursting(path: Path, required: float | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """A minute of 6,500 reads a second at 0.6 ms for 5 s, then 79 at 31 ms."""
    run = make_folder(
        path, seconds=60, interval_s=1, rates=[{**EMC[0], "database_read": (31.0, 79.0, 32768.0)}]
    )
    early = "phase = 'measure' AND metric = 'database_read' AND end_ns <= 125000000000"
    rewritten(
        run,
        count=f"CASE WHEN {early} THEN 6500 ELSE count END::UBIGINT",
        latency_ns_sum=f"CASE WHEN {early} THEN 6500 * 600000::BIGINT ELSE latency_ns_sum "
        f"END::UBIGINT",
    )
    plan = folder.read_json(run / folder.PLAN)
    plan["judgement"]["required_iops"] = required
    found = summarize(run)
    warm = {"name": "warm", "kind": "warm_up", "start_utc": None, "seconds": 60.0, "complete": True}
    found["phases"] = [warm, *found["phases"]]
    return found, judge(plan, found, folder.read_json(run / folder.ENVIRONMENT))


def test_reads_that_are_slow_after_a_burst_fail(tmp_path: Path) -> None:
    """By operations they took 2.9 ms, in 55 of 60 s they took 31.

    A burst of 5 s drowned a minute.
    """
    found, verdict = bursting(tmp_path / "run")
    figures = found["databases"][0]["database_read"]
    assert figures["latency_ms_mean"] < 5 < 20 < figures["latency_ms_mean_of_samples"]
    failed = [check for check in verdict["checks"] if check["status"] == "fail"]
    assert [check["name"] for check in failed] == ["database_read_latency_mean"]
    assert "plain mean of samples" in failed[0]["reason"]


def test_what_is_required_and_worth_in_users_is_what_was_sustained(tmp_path: Path) -> None:
    """584 of 400 required, headroom 1.46, said the headline of a storage that made 142."""
    found, verdict = bursting(tmp_path / "run", required=400.0)
    assert found["total"]["database_iops"] > 600
    assert 130 < found["sustained"]["database_iops"] < 160
    check = next(check for check in verdict["checks"] if check["name"] == "required_iops")
    assert check["status"] == "fail"
    assert check["measured"] == found["plateaus"]["sustained_iops"]
    assert verdict["headroom"] == pytest.approx(check["measured"] / 400)
    assert "sustained" in verdict["throughput"]
    heavy = next(row for row in verdict["user_equivalents"] if row["profile"] == "heavy")
    assert heavy["users"] < 1500
    assert found["plateaus"]["kind"] == "burst"


def test_a_burst_within_each_sample_fails(tmp_path: Path) -> None:
    """Of each 15 s one is fast.

    By operations and by samples reads take 2 ms, in 56 of 60 s they take 31.
    """
    run = make_folder(
        tmp_path / "run",
        seconds=60,
        interval_s=1,
        rates=[{**EMC[0], "database_read": (31.0, 79.0, 32768.0)}],
    )
    fast = "phase = 'measure' AND metric = 'database_read' AND (end_ns // 1000000000) % 15 = 0"
    rewritten(
        run,
        count=f"CASE WHEN {fast} THEN 65000 ELSE count END::UBIGINT",
        latency_ns_sum=f"CASE WHEN {fast} THEN 65000 * 600000::BIGINT ELSE latency_ns_sum "
        f"END::UBIGINT",
    )
    found = summarize(run)
    figures = found["databases"][0]["database_read"]
    assert figures["latency_ms_mean"] < 5 and figures["latency_ms_mean_of_samples"] < 5
    assert 28 < figures["latency_ms_mean_over_time"] < 30
    verdict = judge(
        folder.read_json(run / folder.PLAN), found, folder.read_json(run / folder.ENVIRONMENT)
    )
    failed = {
        check["name"]: check["reason"] for check in verdict["checks"] if check["status"] == "fail"
    }
    assert "all moments of the time alike" in failed["database_read_latency_mean"]


def test_the_other_weighting_fails_too(tmp_path: Path) -> None:
    """A time in which hardly anything completes counts as little in the plain mean.

    By operations it still fails.
    """
    slow = changed("databases.0.database_read.latency_ms_mean", 21.0)
    slow["databases"][0]["database_read"]["latency_ms_mean_of_samples"] = 12.0
    assert judge(PLAN, slow, ENVIRONMENT)["result"] == "fail"
    quick = changed("databases.0.database_read.latency_ms_mean_of_samples", 19.0)
    assert judge(PLAN, quick, ENVIRONMENT)["result"] == "pass"


@pytest.mark.parametrize("rate", [20.0, 80.0, 600.0, 20_000.0])
def test_a_steady_rate_is_sustained(rate: float) -> None:
    """Independent arrivals differ by chance.

    A low quantile that does not know it would fail sound storage at low rates.
    """
    short = 0
    for seed in range(200):
        drawn = random.Random(seed)
        rows = [
            Beat(second * SECOND, 1.0, max(0.0, drawn.gauss(rate, rate**0.5)))
            for second in range(1, 301)
        ]
        mean = sum(row.operations for row in rows) / len(rows)
        found = sustained_rate([rows], mean)
        assert found is not None
        short += found.database_iops < mean * 0.97
    assert short <= 4


def still(path: Path, seconds: int, in_flight: float = 4.0) -> dict[str, Any]:
    """Ten minutes in which nothing was completed in some seconds of every minute."""
    run = make_folder(path, seconds=600, interval_s=1)
    quiet = f"phase = 'measure' AND (end_ns // 1000000000) % 60 < {seconds}"
    rewritten(
        run,
        count=f"CASE WHEN {quiet} THEN 0 ELSE count END::UBIGINT",
        value=f"CASE WHEN metric = 'in_flight' THEN {in_flight} ELSE value END",
    )
    found = summarize(run)
    verdict = judge(
        folder.read_json(run / folder.PLAN), found, folder.read_json(run / folder.ENVIRONMENT)
    )
    return {"summary": found, "verdict": verdict}


def test_time_without_an_answer_is_said_and_does_not_qualify(tmp_path: Path) -> None:
    """Nothing was answered for 12 s of every 30, and the run passed without a word."""
    found = still(tmp_path / "still", 6)
    assert found["summary"]["stand_still"]["longest_s"] == pytest.approx(6)
    assert any(
        "no I/O was completed in 60 s of 600 s (10.0%)" in text
        for text in found["verdict"]["warnings"]
    )
    idle = still(tmp_path / "idle", 6, in_flight=0.0)
    assert "stand_still" not in idle["summary"]
    assert not any("no I/O was completed" in text for text in idle["verdict"]["warnings"])


@pytest.mark.parametrize(("share", "qualifies"), [(0.01, True), (0.0101, False)])
def test_more_than_a_hundredth_of_the_time_without_an_answer_does_not_qualify(
    share: float, qualifies: bool
) -> None:
    """A run of the published kind, well within every limit, but for its stalls."""
    stalled = summary()
    stalled["stand_still"] = {
        "seconds": share * 7200,
        "share": share,
        "longest_s": 12.0,
        "count": 6,
    }
    found = judge(PLAN, stalled, ENVIRONMENT)
    assert (found["result"], found["qualifying"]) == ("pass", qualifies)
    assert any("although I/O was waiting" in text for text in found["warnings"]) != qualifies
    assert found["headline"] == ("Pass" if qualifies else "Rehearsal passed")


def test_a_standstill_counts_only_what_waits() -> None:
    """A second without load is no stall."""
    rows = [Beat(n * SECOND, 1.0, 0.0, completed=float(n % 2), in_flight=1.0) for n in range(1, 11)]
    found = stand_still([rows])
    assert found is not None
    assert (found.seconds, found.count, found.longest_s, found.share) == (5.0, 5, 1.0, 0.5)


@pytest.mark.parametrize(
    ("path", "figure", "within", "beyond"),
    [
        ("databases.0.database_read", "latency_ms_p999", 200.0, 201.0),
        ("databases.0.database_read", "latency_ms_max", 1000.0, 12_000.0),
        ("instances.0.log_write", "latency_ms_p999", 100.0, 101.0),
        ("instances.0.log_write", "latency_ms_max", 1000.0, 1001.0),
    ],
)
def test_single_transfers_far_beyond_the_limit_do_not_qualify(
    path: str, figure: str, within: float, beyond: float
) -> None:
    """1 % of the reads at 500 ms passed without a word."""
    assert judge(PLAN, changed(f"{path}.{figure}", within), ENVIRONMENT)["qualifying"]
    found = judge(PLAN, changed(f"{path}.{figure}", beyond), ENVIRONMENT)
    assert (found["result"], found["qualifying"]) == ("pass", False)
    assert [("stalled" in text) for text in found["warnings"]] == [True]


def test_seconds_are_said_as_seconds() -> None:
    """ "1.2e+04 ms" is no sentence."""
    assert [shown(value, "ms") for value in (999.0, 12_000.0, 1500.0)] == [
        "999 ms",
        "12 s",
        "1.5 s",
    ]


def test_whether_flushes_are_honest_is_said_of_every_run() -> None:
    """A storage that dropped every fsync was the fastest, and nothing said that nobody had
    looked.
    """
    found = judge(PLAN, summary(), ENVIRONMENT)
    assert "plimsoll powercut" in found["not_tested"][0]
    assert any(line.startswith("note: whether a flush") for line in lines_of(verdict_of(found)))
    assert found["qualifying"], "what no run under load can know is no fault of this one"


def test_a_run_through_the_page_cache_says_so_in_its_headline() -> None:
    """7,339 IOPS of a cache read like 7,339 IOPS of a storage."""
    cached = changed(
        "io.remarks",
        ["buffered I/O on /data: its file system refuses direct I/O, figures include ..."],
    )
    assert judge(PLAN, cached, ENVIRONMENT)["headline"].startswith(
        "Rehearsal passed through the page cache"
    )


@pytest.mark.parametrize("kind", ["unknown", "memory", "ram_disk"])
def test_memory_and_unknown_storage_do_not_qualify(kind: str) -> None:
    """tmpfs, zram, and what nobody can name: the figures are nobody's."""
    target = {
        "path": "/data",
        "storage_class": {"class": kind, "title": "some storage", "meaning": "nothing is known"},
    }
    place = {**ENVIRONMENT["targets"][0], **target}
    found = judge(PLAN, summary(), {**ENVIRONMENT, "targets": [place]})
    assert (found["result"], found["qualifying"]) == ("pass", False)
    assert "/data is some storage" in found["not_qualifying_because"][0]
    brief = judge(
        PLAN,
        {**summary(), "window": {**summary()["window"], "seconds": 10.0}},
        {**ENVIRONMENT, "targets": [place]},
    )
    assert "/data is some storage" in brief["not_qualifying_because"][0], "the gravest comes first"
    local = {**target, "storage_class": {**target["storage_class"], "class": "local_drive"}}
    assert judge(PLAN, summary(), {**ENVIRONMENT, "targets": [{**place, **local}]})["qualifying"]


def test_whether_direct_io_works_is_asked_again_by_the_run() -> None:
    """Before the first database there is no file to try it on.

    The run then opened its databases with it.
    """
    asked = {
        **ENVIRONMENT,
        "warnings": ["whether direct I/O works is not known: there is no file to try it on"],
    }
    phases = [
        {"name": "prepare", "kind": "prepare", "complete": True, "seconds": 1.0, "start_utc": None}
    ]
    assert judge(PLAN, {**summary(), "phases": phases}, asked)["qualifying"]
    assert not judge(PLAN, {**summary(), "phases": []}, asked)["qualifying"]


def test_capacity_measures_its_answer_for_a_minute(tmp_path: Path) -> None:
    """A cache of some seconds carried a capacity of ten times what the disk does."""
    from plimsoll.plan.capacity_search import answer, capacity_options

    measure = [
        phase
        for phase in capacity_options(tmp_path, 1.0, "2010", 256)["phase"]
        if phase["kind"] == "measure"
    ]
    assert measure[0]["duration_s"] >= 60
    carried = summary_of(
        {**summary(), "sustained": {"database_iops": 120.0}, "load": {"searches": []}}
    )
    verdict = verdict_of({"result": "pass"})
    assert answer(plan_of(PLAN), carried, verdict, "heavy", 0.12).database_iops == 120.0


def test_a_stall_that_reaches_beyond_the_end_is_said(tmp_path: Path) -> None:
    """Nothing was answered in the last second of the hour, nor in eight more.

    What ends after the measured time is in no figure of it, and no word was said.
    """
    end_s = START_S + 3600
    beyond = {
        **transfers("between phases", "instance1", "database_read", 1, [end_s + 8], 8, (4, 0, 0)),
        "latency_ns_max": np.array([9 * SECOND], np.uint64),
    }
    run = make_folder(tmp_path / "run", seconds=3600, interval_s=15, further=[beyond])
    outcome = folder.read_json(run / folder.OUTCOME)
    for phase in outcome["phases"][2:]:
        phase["start_ns"] += 8 * SECOND
        phase["end_ns"] += 8 * SECOND
    folder.write_json(run / folder.OUTCOME, outcome)
    found = summarize(run)
    assert found["databases"][0]["database_read"]["latency_ms_max"] < 1000
    (unfinished,) = found["unfinished"]
    assert (unfinished["metric"], unfinished["latency_ms_max"]) == ("database_read", 9000.0)
    verdict = judge(
        folder.read_json(run / folder.PLAN), found, folder.read_json(run / folder.ENVIRONMENT)
    )
    said = "database reads of instance1/database001 stalled when the measured time ended"
    for texts in (verdict["warnings"], verdict["not_qualifying_because"]):
        assert any(text.startswith(said) and "9 s" in text for text in texts)
    found["unfinished"][0]["latency_ms_max"] = 900.0
    assert not any("stalled" in text for text in warnings_of(found))
