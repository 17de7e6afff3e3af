"""Who is guilty: processor, log, device, neighbour and queue are planted one at a time, and each
must be named.

The splits are computed by hand from the rows of `planted_run`.
"""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.files import folder
from tests.support.plain_stages import judge, summarize
from tests.support.planted_run import ENVIRONMENT, MS, judged, run_folder, stall

Planted = dict[tuple[str, int], dict[str, float]]

READS_BROKEN = {"stated_limits": ["database_read_latency_ms_mean<4"]}
LOG_BROKEN = {"stated_limits": ["log_write_latency_ms_mean<0.5"]}
RATE_BROKEN = {"required_iops": 10_000.0}


def accused(found: dict[str, Any], what: str = "check") -> tuple[str, str]:
    """Layer and cause of the only entry of a kind."""
    entries = [entry for entry in found["bottlenecks"] if entry["what"] == what]
    assert len(entries) == 1, entries
    assert entries[0]["evidence"]
    return entries[0]["layer"], entries[0]["cause"]


def reads(ours_ms: float, device_ms: float) -> Planted:
    return {
        ("database_read", 1): {"each_ns": ours_ms * MS},
        ("device_read_time", 1): {"value": 100 * device_ms * MS},
        ("read", 1): {"each_ns": (ours_ms + 6) * MS},
        ("replace", 1): {"each_ns": (ours_ms + 6) * MS},
    }


BUSY = {
    ("executor_busy", 0): {"value": 0.97},
    ("reap_gap", 0): {"latency_ns_p99": 9.0 * MS, "latency_ns_max": 9.0 * MS},
}
#: Another program reads as much from the disk as the run does.
NEIGHBOUR = {
    ("device_reads", 1): {"value": 200.0},
    ("device_read_bytes", 1): {"value": 200 * 32768.0},
}


@pytest.mark.parametrize(
    ("title", "planted", "plan", "layer", "cause"),
    [
        ("slow device", reads(15, 14.5), READS_BROKEN, "device", "device"),
        ("slow device, by the rate", reads(15, 14.5), RATE_BROKEN, "device", "device"),
        ("I/O limit before the device", reads(15, 0.5), READS_BROKEN, "kernel_queue", "queue"),
        (
            "noisy neighbour",
            reads(15, 14.5) | NEIGHBOUR | {("device_read_time", 1): {"value": 200 * 14.5 * MS}},
            READS_BROKEN,
            "device",
            "neighbour",
        ),
        (
            "neighbour that fills the queue before the device",
            reads(15, 0.5) | NEIGHBOUR | {("device_read_time", 1): {"value": 200 * 0.5 * MS}},
            READS_BROKEN,
            "kernel_queue",
            "neighbour",
        ),
        (
            "neighbour that leaves the device idle",
            reads(15, 14.5)
            | NEIGHBOUR
            | {
                ("device_read_time", 1): {"value": 200 * 14.5 * MS},
                ("device_busy", 1): {"value": 0.4},
            },
            READS_BROKEN,
            "device",
            "device",
        ),
        (
            "no processor, by the rate",
            BUSY | {("read", 1): {"each_ns": 30 * MS}},
            RATE_BROKEN,
            "engine",
            "cpu",
        ),
        ("completions nobody looked at", BUSY | reads(15, 0.5), READS_BROKEN, "engine", "cpu"),
        (
            "slow log, by the rate",
            {("log_flush_wait", 1): {"each_ns": 20 * MS}, ("read", 1): {"each_ns": 30 * MS}},
            RATE_BROKEN,
            "log_flush",
            "log",
        ),
        (
            "slow log, by its writes",
            {
                ("log_write", 0): {"each_ns": 8 * MS},
                ("device_write_time", 0): {"value": 90 * 7.0 * MS},
            },
            LOG_BROKEN,
            "device",
            "log",
        ),
        (
            "slow log on a machine that others use a little",
            {
                ("log_flush_wait", 1): {"each_ns": 20 * MS},
                ("read", 1): {"each_ns": 30 * MS},
                ("executor_wait", 0): {"value": 0.2},
            },
            RATE_BROKEN,
            "log_flush",
            "log",
        ),
        (
            "commits that wait for a processor",
            {
                ("log_flush_wait", 1): {"each_ns": 20 * MS},
                ("read", 1): {"each_ns": 30 * MS},
                ("executor_wait", 0): {"value": 0.6},
            },
            RATE_BROKEN,
            "log_flush",
            "cpu",
        ),
        (
            "slow submission",
            {("handing_over", 1): {"value": 100 * 20.0 * MS}},
            READS_BROKEN,
            "submission",
            "submission",
        ),
        ("the engine itself", {("read", 1): {"each_ns": 90 * MS}}, RATE_BROKEN, "engine", "engine"),
    ],
)
def test_a_planted_bottleneck_is_named(
    tmp_path: Path, title: str, planted: Planted, plan: dict[str, Any], layer: str, cause: str
) -> None:
    """Money is spent on what this names."""
    found = judged(tmp_path / "run", planted, **plan)
    assert accused(found) == (layer, cause), title


def test_a_server_of_the_plan_is_no_neighbour(tmp_path: Path) -> None:
    """A database server works on the disk too, because the plan wants it to."""
    planted = reads(15, 14.5) | NEIGHBOUR | {("device_read_time", 1): {"value": 200 * 14.5 * MS}}
    path = run_folder(
        tmp_path / "run",
        planted,
        target=[{"name": "disk", "path": "/data"}, {"name": "server"}],
        instance=[
            {"name": "one", "database_size_mib": 64 * 1024, "target": "disk"},
            {
                "name": "shop",
                "backend": "postgresql",
                "store_address": "postgresql://shop@127.0.0.1:5432/shop",
                "target": "server",
            },
        ],
        workload=[{"name": "mix", "instances": ["one"]}],
        **READS_BROKEN,
    )
    outcome = folder.read_json(path / folder.OUTCOME)
    outcome["devices"].append({"instance": "shop", "databases": "vda", "log": None})
    folder.write_json(path / folder.OUTCOME, outcome)
    found = judge(folder.read_json(path / folder.PLAN), summarize(path), ENVIRONMENT)
    assert accused(found) == ("device", "device")
    (entry,) = [entry for entry in found["bottlenecks"] if entry["what"] == "check"]
    told = " ".join(entry["evidence"])
    assert "servers of the plan work on it" in told and "shop" in told
    assert "not asked for by this run" not in told


def test_stalled_faults_are_the_caches_fault_or_the_devices(tmp_path: Path) -> None:
    """With an idle device the cache is too small; with a busy one the device writes too slowly."""
    stalls = {("page_fault_stall", 0): {"count": 5}}
    idle = judged(tmp_path / "idle", stalls | {("device_busy", 1): {"value": 0.3}})
    busy = judged(tmp_path / "busy", stalls | {("device_busy", 1): {"value": 0.95}})
    assert (accused(idle), idle["result"]) == (("engine", "cache"), "inconclusive")
    assert (accused(busy), busy["result"]) == (("device", "device"), "fail")


def test_errors_are_the_storages(tmp_path: Path) -> None:
    """There is no time to split: the fault itself is the evidence."""
    found = judged(tmp_path / "run", {("hung", 0): {"count": 1}})
    assert accused(found) == ("device", "fault")


def test_a_pass_accuses_nobody(tmp_path: Path) -> None:
    """Only failed checks have a culprit."""
    assert judged(tmp_path / "run", {})["bottlenecks"] == []


def test_the_split_of_a_read_is_the_arithmetic_that_is_documented(tmp_path: Path) -> None:
    """5 ms of which 4.8 in the block layer, looks 0.02 ms apart.

    Handed over after 0.05, seen late by half a gap.
    """
    summary = summarize(run_folder(tmp_path / "run", {}))
    split = next(
        row
        for row in summary["time_splits"]
        if row["scope"] == "one/database001" and row["window"] == "whole"
    )
    # The mean square of the gaps is about their median squared, in 1000 gaps of every second.
    late = (0.98 * 0.02**2 + 0.02 * 0.04**2 + 0.02**2 / 1000) * 1000 / (2 * 1000)
    assert split["split_ms"] == pytest.approx(
        {
            "engine": late,
            "log_flush": 0.0,
            "submission": 0.05,
            "device": 4.8,
            "kernel_queue": 0.2 - late,
        }
    )
    assert split["device"]["others_share"] == 0.0
    assert split["device"]["read_latency_ms_mean"] == pytest.approx(4.8)


def test_a_log_write_is_a_write_and_the_flush_behind_it(tmp_path: Path) -> None:
    """Of 1 ms the block layer counted 0.7 for a write and 0.2 for a flush.

    A durable write takes both.
    """
    summary = summarize(run_folder(tmp_path / "run", {}))
    split = next(
        row
        for row in summary["time_splits"]
        if row["metric"] == "log_write" and row["window"] == "whole"
    )
    assert split["split_ms"]["device"] == pytest.approx(0.9)
    assert sum(split["split_ms"].values()) == pytest.approx(1.05)


def test_the_split_of_a_transaction_adds_up_to_its_response(tmp_path: Path) -> None:
    """11 ms: 1 for the log, one read of 5.05, and the rest the engine's."""
    summary = summarize(run_folder(tmp_path / "run", {}))
    split = next(row for row in summary["transaction_splits"] if row["scope"] == "run")["split_ms"]
    assert sum(split.values()) == pytest.approx(11.0)
    assert (split["log_flush"], split["device"]) == (pytest.approx(1.0), pytest.approx(4.8))
    assert split["engine"] == pytest.approx(11 - 1 - 5.05 + 0.0002, abs=0.0005)


def test_waiting_for_a_free_session_counts_for_what_sessions_wait_for(tmp_path: Path) -> None:
    """An open load queues in front of its sessions: that queue is as long as the disk is slow."""
    waiting = {("pool_wait", 1): {"count": 100, "each_ns": 89 * MS}} | {
        (kind, 1): {"each_ns": 100 * MS} for kind in ("read", "replace")
    }
    split = next(
        row
        for row in summarize(run_folder(tmp_path / "run", waiting))["transaction_splits"]
        if row["scope"] == "run"
    )
    assert sum(split["split_ms"].values()) == pytest.approx(100.0)
    assert split["split_ms"]["device"] == pytest.approx(4.8 / 11 * 100)
    assert split["pool_wait_ms_mean"] == pytest.approx(89.0)


def test_without_block_counters_queue_and_device_are_one(tmp_path: Path) -> None:
    """A network file system tells nothing of its device: what is not known must not be split."""
    folder_path = run_folder(tmp_path / "run", reads(15, 14.5), **READS_BROKEN)
    outcome = folder_path / "outcome.json"
    outcome.write_text(outcome.read_text().replace('"vda"', "null"))
    summary = summarize(folder_path)
    split = next(row for row in summary["time_splits"] if row["scope"] == "one/database001")[
        "split_ms"
    ]
    assert split["kernel_queue"] is None
    assert split["device"] == pytest.approx(15.0, abs=0.01)
    assert summary["devices"] == []


@pytest.mark.parametrize(
    ("title", "planted", "parts", "layer", "cause"),
    [
        ("log", {}, {"page_ms": 5, "flush_ms": 800}, "log_flush", "log"),
        ("device", {}, {"page_ms": 800, "flush_ms": 5}, "device", "device"),
        ("queue", reads(15, 0.5), {"page_ms": 800, "flush_ms": 5}, "kernel_queue", "queue"),
        (
            "neighbour",
            reads(15, 29.0) | NEIGHBOUR,
            {"page_ms": 800, "flush_ms": 5},
            "device",
            "neighbour",
        ),
        ("engine", {}, {"page_ms": 5, "flush_ms": 5, "engine_ms": 800}, "engine", "engine"),
        (
            "processor lost",
            {("reap_gap", 0): {"latency_ns_max": 790.0 * MS}},
            {"page_ms": 800, "flush_ms": 5},
            "engine",
            "cpu",
        ),
    ],
)
def test_a_planted_stall_is_laid_at_the_right_door(
    tmp_path: Path, title: str, planted: Planted, parts: dict[str, float], layer: str, cause: str
) -> None:
    """The longest transaction is what a user remembers."""
    found = judged(tmp_path / "run", planted, [stall(3.2, **parts)])
    assert accused(found, "stall") == (layer, cause), title
    entry = next(entry for entry in found["bottlenecks"] if entry["what"] == "stall")
    assert entry["length_ms"] == pytest.approx(sum(parts.values()))
    assert sum(value or 0.0 for value in entry["split_ms"].values()) == pytest.approx(
        entry["length_ms"]
    )


def test_only_the_ten_longest_stalls_of_the_measured_phase_are_listed(tmp_path: Path) -> None:
    """Preparing and stopping stall as they like."""
    stalls = [stall(second / 10, 10 + second, 0) for second in range(1, 15)]
    stalls.append({**stall(0.05, 5000, 0), "phase": 2})
    found = judged(tmp_path / "run", {}, stalls)
    lengths = [entry["length_ms"] for entry in found["bottlenecks"]]
    assert lengths == [pytest.approx(10 + second) for second in range(14, 4, -1)]


def test_the_worst_sample_is_split_by_its_own_figures(tmp_path: Path) -> None:
    """A check on the worst quarter of a minute must not be explained by the rest of the run."""
    summary = summarize(run_folder(tmp_path / "run", {}))
    windows = {
        row["window"]: row["seconds"] for row in summary["time_splits"] if row["scope"] == "one"
    }
    assert windows == {"whole": 10.0, "worst_sample": 10.0}


def engine_share(path: Path, planted: Planted) -> float:
    """The engine's share of the latency of database reads in "Time by layer"."""
    summary = summarize(run_folder(path, planted))
    split = next(
        row
        for row in summary["time_splits"]
        if (row["metric"], row["window"]) == ("database_read", "whole")
    )
    parts = {layer: value or 0.0 for layer, value in split["split_ms"].items()}
    return float(parts["engine"] / sum(parts.values()))


def test_what_the_device_measured_is_not_the_engines(tmp_path: Path) -> None:
    """The table said 100 % engine where the block layer had counted two thirds of each read."""
    long_gaps = {
        ("reap_gap", 0): {
            "latency_ns_p50": 4.0 * MS,
            "latency_ns_p99": 60.0 * MS,
            "latency_ns_max": 90.0 * MS,
        }
    }
    share = engine_share(tmp_path / "run", reads(15, 10) | long_gaps)
    assert share == pytest.approx(1 / 3, abs=0.01)


@pytest.mark.parametrize("gap_ms", [10.0, 100.0, 400.0])
def test_a_long_gap_moves_the_split_by_no_more_than_its_own_time(
    tmp_path: Path, gap_ms: float
) -> None:
    """One gap of a thousand in each second.

    No more can complete in it than was in flight, however long it is.
    """
    slow = reads(15, 0.5)
    before = engine_share(tmp_path / "before", slow)
    after = engine_share(
        tmp_path / "after", slow | {("reap_gap", 0): {"latency_ns_max": gap_ms * MS}}
    )
    assert 0 < after - before <= gap_ms / 1000 + 1e-6
