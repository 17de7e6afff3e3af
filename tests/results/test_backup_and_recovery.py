"""Backup and soft recovery.

The published arithmetic, the verdict without a load, and both tests as a user starts them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.documents.outcome import Outcome
from plimsoll.files import folder
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options
from plimsoll.results.backup_recovery import MIB, backup_total, backups, in_words, recoveries
from tests.support.places import plimsoll
from tests.support.plain_stages import (
    judge,
    outcome_of,
    plan_of,
    summarize,
    summary_of,
    whole_outcome,
)
from tests.support.planted_run import SECONDS, run_folder

SMALL = ["--size-mib", "128", "--cache-mib", "16"]
PLAN = plan_of_options(
    {
        "target": [{"name": "disk", "path": "/data"}],
        "instance": [{"name": "one"}, {"name": "two"}],
        "phase": [
            {"kind": "prepare"},
            {"kind": "generate_logs", "logs": 501},
            {"kind": "recover"},
            {"kind": "backup"},
            {"kind": "stop"},
        ],
    }
).plain()


def outcome(**found: Any) -> Outcome:
    """An outcome in which the engine states backups and recoveries."""
    spans = {"generate_logs": (0, 3875), "recover": (3875, 4996), "backup": (4996, 22161)}
    content = {
        "phases": [
            {
                "name": name,
                "kind": name,
                "start_ns": start * 10**9,
                "end_ns": end * 10**9,
                "complete": True,
            }
            | {key: value for key, (phase, value) in found.items() if phase == name}
            for name, (start, end) in spans.items()
        ]
    }
    return outcome_of(content)


def test_JST_05_sums_and_means_of_a_backup_are_those_of_the_published_table() -> None:
    """Table 7 from appendix E of the EMC report.

    58.415 MB/s for each database, 116.83 for the server.
    """
    size = round(994882.09 * MIB)
    stated = [
        {
            "instance": 0,
            "database": 1,
            "bytes": size,
            "seconds": 994882.09 / 58.87,
            "pages_count": 1,
        },
        {
            "instance": 1,
            "database": 1,
            "bytes": size,
            "seconds": 994882.09 / 57.96,
            "pages_count": 1,
        },
    ]
    rows = [
        {
            "phase": "backup",
            "instance": name,
            "database": 1,
            "bytes": 0,
            "seconds": 1,
            "reads_count": reads,
            "read_s": read_s,
        }
        # 7.097 and 7.207 ms of 256 KiB.
        for name, reads, read_s in (("one", 3_979_528, 28_243.0), ("two", 3_979_528, 28_680.0))
    ]
    found = backups(lambda *_: rows, plan_of(PLAN), outcome(backups=("backup", stated)))
    total = backup_total(found)
    assert total is not None
    assert [row.mib_per_s for row in found] == pytest.approx([58.87, 57.96])
    assert total.mib_per_s_mean == pytest.approx(58.415, abs=0.001)
    assert total.mib_per_s_sum == pytest.approx(116.83, abs=0.001)
    assert [round(row.outstanding_mean, 2) for row in found] == [1.67, 1.67], (
        "published: 1.67 reads in flight"
    )
    assert found[0].read_latency_ms_mean == pytest.approx(7.097, abs=0.001)


def test_JST_06_seconds_for_each_log_are_those_of_the_published_table() -> None:
    """Table 8 from appendix F: 501 logs in 1114.9 and 1121.0 s are 2.23 s each, 3.46 times as fast
    as they were generated.
    """
    stated = [
        {
            "instance": number,
            "seconds": seconds,
            "logs_count": 501,
            "log_bytes": 501 * MIB,
            "changes_made": 1,
        }
        for number, seconds in enumerate((1114.9027582, 1121.0023689))
    ]
    rows = [
        {
            "phase": "recover",
            "instance": name,
            "seconds": 1.0,
            "log_read_bytes": 0,
            "log_reads_count": 4509,
            "reads_count": 501 * reads,
            "read_bytes": 501 * pages * 32768,
            "read_s": 8000.0,
            "writes_count": 3006,
        }
        for name, reads, pages in (("one", 709, 890), ("two", 716, 902))
    ]
    found = recoveries(lambda *_: rows, plan_of(PLAN), outcome(recoveries=("recover", stated)))
    assert sum(row.seconds_per_log for row in found) / 2 == pytest.approx(2.2314, abs=0.0001)
    assert found[0].faster_than_generated == pytest.approx(3.46, abs=0.02)
    assert (found[0].reads_per_log, found[0].pages_read_per_log, found[0].writes_per_log) == (
        709,
        890,
        6,
    )
    assert found[0].log_reads_per_log == 9
    assert (
        "501 logs in 1114.9 s, 2.23 s for each"
        in in_words(summary_of({}).replace(recoveries=found))[0]
    )


def test_the_replay_of_a_dead_node_takes_as_long_as_the_engine_says() -> None:
    """It was as long as the samples around it: 2.0 s for 0.7 s; here its node dies twice."""
    deaths = [
        {
            "event": "left dies",
            "recovery": {"instance": 0, "seconds": seconds, "logs_count": 3, "log_bytes": 3 * MIB},
        }
        for seconds in (0.7, 0.5)
    ]
    row = {
        "phase": "recover",
        "instance": "one",
        "seconds": 2.0,
        "log_read_bytes": 7 * MIB,
        "log_reads_count": 7,
        "reads_count": 12,
        "read_bytes": 12 * 32768,
        "read_s": 0.6,
        "writes_count": 0,
    }
    (found,) = recoveries(lambda *_: [row], plan_of(PLAN), outcome(failovers=("recover", deaths)))
    assert (found.seconds, found.logs_count, found.log_bytes) == (1.2, 6, 6 * MIB)
    assert found.reads_per_log == 2


def test_every_instance_with_a_log_has_its_recovery() -> None:
    """A store that was recovered was looked for among databases of records, and ended the report
    with a traceback.
    """
    plan = plan_of_options(
        {
            "target": [{"name": "disk", "path": "/data"}],
            "instance": [
                {"name": "shop", "backend": "store", "page_kib": 8},
                {"name": "post", "backend": "mail_store", "page_kib": 32},
            ],
            "workload": [
                {"name": "orders", "instances": ["shop"]},
                {"name": "tasks", "instances": ["post"], "load": {"users": 2}},
            ],
        }
    )
    rows = [
        {
            "phase": "prepare",
            "instance": name,
            "seconds": 1.0,
            "log_read_bytes": 2 * MIB,
            "log_reads_count": 2,
            "reads_count": 4,
            "read_bytes": 8 * pages_bytes,
            "read_s": 0.1,
            "writes_count": 1,
        }
        for name, pages_bytes in (("shop", 8192), ("post", 32768))
    ]
    found = recoveries(lambda *_: rows, plan, outcome())
    assert [(row.instance, row.pages_read_per_log) for row in found] == [("shop", 4), ("post", 4)]


def test_a_test_without_a_load_is_judged_by_what_it_did(tmp_path: Path) -> None:
    """A backup has no latency limits of its own.

    It must neither fail nor be inconclusive for lack of a load.
    """
    phases = [{"kind": "prepare"}, {"kind": "backup"}, {"kind": "stop"}]
    planted: dict[tuple[str, int], dict[str, float]] = {
        ("backup", 1): {"count": 400, "each_ns": 5e6, "bytes": 400 * 2**18}
    }
    run = run_folder(tmp_path / "run", planted, test="backup", phase=phases)
    content = json.loads((run / folder.OUTCOME).read_text())
    for phase in content["phases"]:
        if phase["kind"] == "measure":
            phase["kind"] = "backup"
            stated = {
                "bytes": SECONDS * 400 * 2**18,
                "seconds": float(SECONDS),
                "pages_count": SECONDS * 3200,
            }
            phase["backups"] = [{"instance": 0, "database": 1, **stated}]
    folder.write_json(run / folder.OUTCOME, whole_outcome(content))
    summary = summarize(run)
    plan = folder.read_json(run / folder.PLAN)
    found = judge(plan, summary, {"machine": {"memory_kib": 1024}, "warnings": [], "targets": []})
    assert found["result"] == "pass", found["reasons"]
    assert "100.0 MiB/s" in found["throughput"]
    assert {check["name"] for check in found["checks"]} == {
        "bad_pages",
        "io_errors",
        "hung_io",
        "kernel_log_errors",
    }
    plan["judgement"]["stated_limits"] = ["backup_mib_per_s>150"]
    assert (
        judge(plan, summary, {"machine": {"memory_kib": 1}, "warnings": [], "targets": []})[
            "result"
        ]
        == "fail"
    )


def test_plans_that_cannot_be_backed_up_or_recovered_are_refused() -> None:
    """Every mistake at once, before the disk is touched."""
    with pytest.raises(InputError) as caught:
        plan_of_options(
            {
                "target": [{"name": "disk", "path": "/data"}],
                "instance": [{"name": "one", "backend": "raw_files"}],
                "phase": [
                    {"kind": "backup", "logs": 5},
                    {"kind": "recover", "duration_s": 5},
                    {"kind": "generate_logs", "logs": 0},
                ],
            }
        ).plain()
    text = str(caught.value)
    assert text.count("needs the engine") == 3
    assert "`phase[1].logs` means nothing in a phase of kind backup" in text
    assert "`phase[2].duration_s` means nothing" in text
    assert "`phase[3].logs` is 0" in text


def test_JST_05_a_backup_test_on_a_disk(tmp_path: Path) -> None:
    """As a user starts it: a rate for each database and for the server, in the summary, on the
    terminal and in the report.
    """
    result = plimsoll(
        "test", "backup", tmp_path / "disk", *SMALL, "--out", tmp_path / "run", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    assert [item["bytes"] for item in summary["backups"]] == [128 * MIB - 2 * 32768] * 2
    assert all(item["mib_per_s"] > 1 for item in summary["backups"])
    assert "256 MiB read at" in result.stdout
    assert "Backup statistics" in (tmp_path / "run" / folder.REPORT).read_text()


def test_JST_06_a_recovery_test_on_a_disk(tmp_path: Path) -> None:
    """Every instance replays what it wrote, reads many pages and writes few, and every page is
    sound afterwards.
    """
    command = [
        "test",
        "recovery",
        tmp_path / "disk",
        *SMALL,
        "--logs",
        "6",
        "--sessions",
        "8",
        "--out",
        tmp_path / "run",
    ]
    result = plimsoll(*command, cwd=tmp_path)
    assert result.returncode in (0, 1, 3), result.stderr
    summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    assert summary["ending"] == "complete", summary["error"]
    for found in summary["recoveries"]:
        assert found["logs_count"] >= 6
        assert found["pages_read_per_log"] > 20 * found["writes_per_log"]
    assert summary["total"]["pages_damaged"] == 0
    assert summary["window"]["seconds"] > 0, "the load that wrote the logs is judged like any other"
    report = (tmp_path / "run" / folder.REPORT).read_text()
    assert "Soft recovery statistics" in report
    assert "Soft recovery I/O for each log" in report
