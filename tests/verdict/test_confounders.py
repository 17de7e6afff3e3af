"""Inconclusive only where the load generator's own delay could have changed a check.

Each cause planted, both directions.

Every case is planted three times: into a run that fails a limit (then the verdict must be
inconclusive), just below the cause's threshold into the same run (then it must be a fail), and into
a run inside its limits (then it must be a pass)."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll import settings
from plimsoll.documents.verdict import Check
from plimsoll.files import folder
from plimsoll.verdict.confounders import doubts_of
from tests.support.plain_stages import judge, summarize, summary_of
from tests.support.planted_run import ENVIRONMENT, MS, judged, run_folder

#: Reads of 25 ms instead of 5, of which the block layer saw only 15: the published limit of 20 ms
#: is broken.
SLOW_READS = {
    ("database_read", 1): {"each_ns": 25 * MS},
    ("device_read_time", 1): {"value": 100 * 15.0 * MS},
}
STALLING = {("page_fault_stall", 0): {"count": 2}}
NEEDED = {"required_iops": 1000.0}
RESPONSE = {"stated_limits": ["replace_response_ms_mean<10"]}

Planted = dict[tuple[str, int], dict[str, float]]


def level(metric: str, value: float) -> Planted:
    return {(metric, 0): {"value": value}}


def gap(p99_ns: float) -> Planted:
    return {("reap_gap", 0): {"latency_ns_p99": p99_ns}}


def lag(p99_ms: float) -> Planted:
    return {("arrival_lag", 0): {"count": 100, "each_ns": p99_ms * MS}}


def still(share: float) -> Planted:
    return {("clock_gap", 0): {"count": 1, "each_ns": share * 1000 * MS}}


def responses(ms: float) -> Planted:
    return {(name, 1): {"each_ns": ms * MS} for name in ("read", "replace")}


#: A generator that would make twice its 150 a second with all of its time.
AT_HALF: Planted = {("executor_busy", 0): {"value": 0.5}}
#: name, what breaks a limit, further keys of the plan, the cause just beyond its threshold, just
#: below it.
CASES: list[tuple[str, Planted, dict[str, Any], Planted, Planted]] = [
    ("executor_busy", SLOW_READS, {}, level("executor_busy", 0.91), level("executor_busy", 0.89)),
    ("executor_busy", {}, NEEDED, level("executor_busy", 0.91), level("executor_busy", 0.89)),
    # 25 ms less 5 are 20; 100 reads of 5 ms and 50 writes are 150 a second, and of 1000 in 5 ms
    # 4.25 would have to be the gap's.
    ("reap_gap", SLOW_READS, {}, gap(5.1 * MS), gap(4.9 * MS)),
    ("reap_gap", {}, NEEDED, gap(4.3 * MS), gap(4.2 * MS)),
    ("arrival_lag", {}, RESPONSE, lag(1.1), lag(0.9)),
    ("arrival_lag", {}, NEEDED, lag(8510), lag(8490)),
    ("cpu_throttled", SLOW_READS, {}, level("cpu_throttled", 0.21), level("cpu_throttled", 0.19)),
    ("cpu_stolen", SLOW_READS, {}, level("cpu_stolen", 0.21), level("cpu_stolen", 0.19)),
    ("executor_wait", SLOW_READS, {}, level("executor_wait", 0.21), level("executor_wait", 0.19)),
    # Of 25 ms against a limit of 20 a fifth of the time is what a standstill must explain.
    ("clock_gap", SLOW_READS, {}, still(0.21), still(0.19)),
    ("clock_gap", {}, {"required_iops": 200.0}, still(0.26), still(0.24)),
    ("out_of_reach", AT_HALF, NEEDED, responses(20), responses(10)),
    (
        "page_fault_stalls",
        STALLING,
        {},
        {("device_busy", 1): {"value": 0.49}},
        {("device_busy", 1): {"value": 0.51}},
    ),
]
TITLES = [f"{name} {'with a rate' if plan else 'with a latency'}" for name, _, plan, _, _ in CASES]


@pytest.mark.parametrize(("name", "broken", "plan", "beyond", "below"), CASES, ids=TITLES)
def test_a_failed_check_is_doubted_beyond_the_threshold_only(
    tmp_path: Path,
    name: str,
    broken: Planted,
    plan: dict[str, Any],
    beyond: Planted,
    below: Planted,
) -> None:
    """The storage must not be blamed for the generator, nor excused by it."""
    doubted = judged(tmp_path / "beyond", broken | beyond, **plan)
    failed = [check for check in doubted["checks"] if check["status"] == "fail"]
    assert doubted["result"] == "inconclusive"
    assert [doubt["name"] for doubt in failed[0]["doubts"]] == [name]
    certain = judged(tmp_path / "below", broken | below, **plan)
    assert (certain["result"], certain["doubts"]) == ("fail", [])


@pytest.mark.parametrize(("name", "broken", "plan", "beyond", "below"), CASES, ids=TITLES)
def test_a_run_inside_its_limits_is_a_pass_however_late_the_generator_was(
    tmp_path: Path,
    name: str,
    broken: Planted,
    plan: dict[str, Any],
    beyond: Planted,
    below: Planted,
) -> None:
    """Delays only make figures worse, so figures within their limits are true."""
    found = judged(tmp_path / "run", beyond)
    assert (found["result"], found["doubts"]) == ("pass", [])


#: Reads a little beyond the limit of 20 ms, which a small delay could make up.
NEARLY = {
    ("database_read", 1): {"each_ns": 20.1 * MS},
    ("device_read_time", 1): {"value": 100 * 15.0 * MS},
}
SMALL: list[tuple[str, Planted, Planted]] = [
    ("reap_gap", gap(1.1 * MS), gap(0.9 * MS)),
    ("cpu_throttled", level("cpu_throttled", 0.011), level("cpu_throttled", 0.009)),
    ("cpu_stolen", level("cpu_stolen", 0.051), level("cpu_stolen", 0.049)),
    ("executor_wait", level("executor_wait", 0.11), level("executor_wait", 0.09)),
]


@pytest.mark.parametrize(("name", "beyond", "below"), SMALL, ids=[name for name, *_ in SMALL])
def test_a_delay_that_is_nothing_unusual_excuses_nothing(
    tmp_path: Path, name: str, beyond: Planted, below: Planted
) -> None:
    """Every machine takes a little of the time; below the threshold that is no reason."""
    assert [doubt["name"] for doubt in _doubts(judged(tmp_path / "beyond", NEARLY | beyond))] == [
        name
    ]
    assert judged(tmp_path / "below", NEARLY | below)["result"] == "fail"


def _doubts(verdict: Any) -> list[Any]:
    return [doubt for check in verdict["checks"] for doubt in check["doubts"]]


def test_a_delay_excuses_no_more_than_its_largest_share(tmp_path: Path) -> None:
    """On fast storage a gap of 0.05 ms was more than a twentieth of a read, and a storage that made
    a seventh of its rate got away.
    """
    fast = {
        ("database_read", 1): {"each_ns": 0.1 * MS},
        ("device_read_time", 1): {"value": 100 * 0.09 * MS},
    }
    found = judged(tmp_path / "much", fast | gap(0.05 * MS), **NEEDED)
    assert (found["result"], found["doubts"]) == ("fail", [])
    found = judged(tmp_path / "little", fast | gap(0.05 * MS), required_iops=290.0)
    assert found["result"] == "inconclusive"
    assert found["doubts"][0].endswith(
        "; without it 150 could be up to 300, which reaches the 290 required"
    )
    found = judged(tmp_path / "latency", SLOW_READS | level("executor_wait", 0.5))
    assert found["doubts"][0].endswith(
        "; 25 ms less 50.0% are 12.5 ms, which is within the limit of 20"
    )


@pytest.mark.parametrize(("achieved", "is_doubted"), [(85.8, True), (70.0, True), (60.0, False)])
@pytest.mark.parametrize(
    ("name", "metric", "statistic", "unit", "whole"),
    [
        ("homes_achieved", "home_scenario", "completed", "%", 100.0),
        ("store_carried", "transactions_per_s", "completed", "%", 100.0),
        ("mail_achieved", "mail", "mail", "ratio", 1.0),
    ],
)
def test_users_who_waited_for_a_late_generator_are_no_overload(
    tmp_path: Path,
    name: str,
    metric: str,
    statistic: str,
    unit: str,
    whole: float,
    achieved: float,
    *,
    is_doubted: bool,
) -> None:
    """Why: in memory, with other programs at work, users of home folders "overloaded the storage".

    A third of the time takes at most a third of what is made: 70 % could be 105, 60 only 90.
    """
    run = run_folder(tmp_path, level("executor_wait", 1 / 3))
    summary = summary_of(summarize(run))
    check = Check(
        name=name,
        title="",
        scope="users",
        metric=metric,
        statistic=statistic,
        measured=achieved / 100 * whole,
        limit=0.95 * whole,
        unit=unit,
        status="fail",
        reason="",
        source="",
    )
    found = [doubt.name for doubt in doubts_of(check, summary)]
    assert found == ["executor_wait"] * is_doubted


def test_all_of_a_longest_transfer_can_be_a_delays_doing(tmp_path: Path) -> None:
    """A share of the time says nothing of how it was spread; only a mean is bounded by it."""
    longest = {"stated_limits": ["database_read_latency_ms_max<4"]}
    assert (
        judged(tmp_path / "max", level("executor_wait", 0.11), **longest)["result"]
        == "inconclusive"
    )
    mean = {"stated_limits": ["database_read_latency_ms_mean<4"]}
    assert judged(tmp_path / "mean", level("executor_wait", 0.11), **mean)["result"] == "fail"


def test_a_processor_bound_run_that_met_its_rate_is_a_true_pass(tmp_path: Path) -> None:
    """The rate was reached: that the generator could do no more says nothing against the storage,
    but must be said.
    """
    found = judged(tmp_path / "run", level("executor_busy", 0.99), required_iops=140.0)
    assert (found["result"], found["doubts"]) == ("pass", [])
    assert "at work 99%" in found["generator_limited"][0]
    assert judged(tmp_path / "idle", {}, required_iops=140.0)["generator_limited"] == []


def test_what_the_block_layer_counted_itself_is_not_doubted(tmp_path: Path) -> None:
    """Reads of 22 ms inside the block layer are the storage's, whatever the generator added to
    them.
    """
    busy = level("executor_busy", 0.99)
    slow = {
        ("database_read", 1): {"each_ns": 25 * MS},
        ("device_read_time", 1): {"value": 100 * 22.0 * MS},
    }
    assert judged(tmp_path / "ours", slow | busy)["result"] == "fail"
    others = {
        ("device_reads", 1): {"value": 150.0},
        ("device_read_time", 1): {"value": 150 * 22.0 * MS},
    }
    assert judged(tmp_path / "others", slow | busy | others)["result"] == "inconclusive"


def test_one_certain_failure_outweighs_a_doubted_one(tmp_path: Path) -> None:
    """Damage has nothing to do with timing; a doubted latency beside it changes nothing."""
    hung = {("hung", 0): {"count": 1}}
    found = judged(tmp_path / "run", SLOW_READS | level("executor_busy", 0.99) | hung)
    assert found["result"] == "fail"


def test_disk_latency_is_not_doubted_for_late_arrivals(tmp_path: Path) -> None:
    """It counts from submission: an arrival that was late made no I/O slower."""
    assert judged(tmp_path / "run", SLOW_READS | lag(400))["result"] == "fail"


def test_a_rate_out_of_the_generators_reach_is_excused_by_arithmetic_only(
    tmp_path: Path,
) -> None:
    """100,000 a second were required of memory, 12,090 made, and memory was blamed.

    A rate that the generator would reach with all of its time is the storage's to reach, and so is
    one that transactions wait for.
    """
    own = AT_HALF | responses(20)
    found = judged(tmp_path / "own", own, **NEEDED)
    assert found["result"] == "inconclusive"
    assert found["doubts"][0].endswith(
        "at work 50% of the time it made 150 a second, so with all of it at most 300 of 1,000"
    )
    assert found["bottlenecks"][0]["layer"] == "engine"
    assert judged(tmp_path / "within", own, required_iops=290.0)["result"] == "fail"
    assert judged(tmp_path / "waits", AT_HALF, **NEEDED)["result"] == "fail"
    stated = {"stated_limits": ["transactions_per_s>500"]}
    assert judged(tmp_path / "stated", own, **stated)["result"] == "inconclusive"
    less = {"stated_limits": ["transactions_per_s<50"]}
    assert judged(tmp_path / "less", own, **less)["result"] == "fail"


def test_every_doubt_can_be_explained_and_is_planted() -> None:
    """A new doubt without a case here would be a new excuse that nobody tested."""
    names = {row["name"] for row in settings.doubts()}
    assert names == {name for name, *_ in CASES} | {"ceiling", "above_window"}


def _window(least: float, most: float) -> dict[str, Any]:
    return {"workload": [{"name": "mix", "window": {"iops": [least, most]}}]}


@pytest.mark.parametrize(
    ("least", "most", "result"),
    [(100, 149, "inconclusive"), (100, 200, "fail"), (151, 200, "fail")],
)
def test_a_time_under_more_load_than_planned_is_doubted_and_one_under_less_is_not(
    tmp_path: Path, least: float, most: float, result: str
) -> None:
    """The run makes 150 database I/O a second. What is too slow under less is too slow."""
    found = judged(tmp_path / "run", SLOW_READS, **_window(least, most))
    assert found["result"] == result, found["reasons"]
    doubts = {doubt["name"] for check in found["checks"] for doubt in check["doubts"]}
    assert doubts == ({"above_window"} if result == "inconclusive" else set())
    quiet = judged(tmp_path / "quiet", {}, **_window(least, most))
    inside = least <= 150 <= most
    assert quiet["result"] == ("pass" if inside else "inconclusive")
    damaged = judged(
        tmp_path / "errors", {("database_read", 1): {"errors": 1}}, **_window(least, most)
    )
    assert damaged["result"] == "fail", "errors are no matter of load"


def test_stalls_on_storage_without_counters_are_the_caches_where_our_own_io_left_it_idle(
    tmp_path: Path,
) -> None:
    """Memory and shares have no block device; by Little's law I/O that was seldom under way kept
    nothing busy.
    """
    summary = summarize(run_folder(tmp_path / "run", STALLING)) | {"devices": []}
    for split in summary["transaction_splits"]:
        split["device"] = None
    plan = folder.read_json(tmp_path / "run" / folder.PLAN)
    busy = judge(plan, summary, ENVIRONMENT)
    assert (busy["result"], busy["doubts"]) == ("fail", []), "0.5 reads and 0.15 writes under way"
    summary["databases"][0]["database_read"]["latency_ms_mean"] = 0.05
    idle = judge(plan, summary, ENVIRONMENT)
    assert (idle["result"], [row["name"] for row in _doubts(idle)]) == (
        "inconclusive",
        ["page_fault_stalls"],
    )
    assert (idle["bottlenecks"][0]["layer"], idle["bottlenecks"][0]["cause"]) == ("engine", "cache")


@pytest.mark.parametrize(("read_ms", "result"), [(0.9, "inconclusive"), (1.1, "fail")])
def test_stalls_on_storage_that_answers_at_once_are_the_caches(
    tmp_path: Path, read_ms: float, result: str
) -> None:
    """Memory that did 12,000 I/O a second of 0.05 ms was blamed for a cache of 16 MiB: several were
    under way, and it was idle.
    """
    summary = summarize(run_folder(tmp_path / "run", STALLING)) | {"devices": []}
    for split in summary["transaction_splits"]:
        split["device"] = None
    for name in ("database_read", "database_write"):
        summary["databases"][0][name] |= {"latency_ms_mean": read_ms, "per_s": 12_000.0}
    found = judge(folder.read_json(tmp_path / "run" / folder.PLAN), summary, ENVIRONMENT)
    assert (found["result"], len(found["doubts"])) == (result, int(result == "inconclusive"))


@pytest.mark.parametrize(
    ("run", "result"),
    [
        ({"max_iops": 200.0}, "inconclusive"),
        ({"max_iops": 1000.0}, "fail"),
        ({"max_mib_per_s": 5.0}, "inconclusive"),
        ({"max_mib_per_s": 50.0}, "fail"),
    ],
)
def test_a_rate_that_the_run_itself_held_back_is_not_the_storages_fault(
    tmp_path: Path, run: dict[str, float], result: str
) -> None:
    """190 transfers and 4.8 MiB a second: at its own ceiling it asked the storage for no more."""
    found = judged(tmp_path / "run", {}, required_iops=1000.0, **run)
    assert found["result"] == result
    assert [row["name"] for row in _doubts(found)] == ["ceiling"] * (result == "inconclusive")
    named = len(found["bottlenecks"])
    assert named == (result == "fail"), "the ceiling is no layer"
