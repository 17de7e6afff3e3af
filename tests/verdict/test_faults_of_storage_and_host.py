"""What the run itself saw of faults.

Bits that flipped under load, hung I/O, lost data, a host that stood still.
"""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.arrays.presets import array_preset
from plimsoll.files import folder
from plimsoll.report.checksums import checksum_sections
from tests.support.plain_stages import judge, summarize, summary_of
from tests.support.planted_run import ENVIRONMENT, MS, judged, run_folder, stall
from tests.verdict.test_verdict import PLAN, changed, summary

FLIPPED = {("corrected_page", 1): {"count": 3}}
#: Reads of 25 ms against a limit of 20: a fifth of the time must explain them.
SLOW_READS = {
    ("database_read", 1): {"each_ns": 25 * MS},
    ("device_read_time", 1): {"value": 100 * 15.0 * MS},
}


def failed(verdict: dict[str, Any]) -> list[str]:
    return [check["name"] for check in verdict["checks"] if check["status"] == "fail"]


def test_bits_that_flip_under_load_fail_as_in_the_checksum_pass(tmp_path: Path) -> None:
    """301 reads were put right while a run was measured, and it passed.

    A storage that flips bits is no storage.
    """
    found = judged(tmp_path / "run", FLIPPED)
    assert (found["result"], failed(found)) == ("fail", ["bad_pages"])
    assert "30 pages with a flipped bit were put right under load" in found["reasons"][0]
    assert found["headline"].startswith("Fail by damaged pages")


def test_corrected_pages_stand_in_summary_and_report(tmp_path: Path) -> None:
    """Who reads the report must see them beside what the checksum pass found."""
    found = summarize(run_folder(tmp_path / "run", FLIPPED))
    assert (found["databases"][0]["pages_corrected"], found["total"]["pages_corrected"]) == (30, 30)
    tables = {table.title: table for table in checksum_sections(summary_of(found))}
    assert tables["Pages corrected under load"].rows == [["one/database001", 30], ["(Sum)", 30]]


def test_a_run_that_never_asked_is_judged_by_its_checksum_pass(tmp_path: Path) -> None:
    """Runs of earlier versions have no such metric: nothing is known, and nothing fails."""
    found = summarize(run_folder(tmp_path / "run", {}))
    assert "pages_corrected" not in {**found["total"], **found["databases"][0]}
    assert judged(tmp_path / "again", {})["result"] == "pass"


@pytest.mark.parametrize(("gap_ms", "result"), [(210, "inconclusive"), (190, "fail")])
def test_a_host_that_stood_still_is_named_and_not_the_storage(
    tmp_path: Path, gap_ms: int, result: str
) -> None:
    """A fifth of the time stopped makes 20 ms of reads 25: what a gap can explain is no fail.

    What it cannot is.
    """
    gap = {("clock_gap", 0): {"count": 1, "each_ns": gap_ms * MS}}
    found = judged(tmp_path / "run", SLOW_READS | gap)
    assert found["result"] == result
    assert any(f"stood still for {gap_ms / 100:.1f} s" in text for text in found["warnings"])
    assert not found["qualifying"]
    blamed = [entry["cause"] for entry in found["bottlenecks"] if entry["what"] == "check"]
    assert (blamed == ["paused"]) == (result == "inconclusive")


def test_a_long_transaction_across_a_gap_is_laid_to_the_gap_and_not_to_the_log(
    tmp_path: Path,
) -> None:
    """A process that was stopped for five seconds had its log write blamed for them."""
    gap = {("clock_gap", 0): {"count": 1, "each_ns": 5000 * MS}}
    long = stall(1.0, page_ms=0.0, flush_ms=5100.0)
    entry = judged(tmp_path / "gap", gap, [long])["bottlenecks"][0]
    assert (entry["layer"], entry["cause"]) == ("engine", "paused")
    assert judged(tmp_path / "none", {}, [long])["bottlenecks"][0]["cause"] != "paused"


@pytest.mark.parametrize(
    "lost",
    [
        {"requests_count": 7, "sets": []},
        {"requests_count": 0, "sets": [{"group": "pool", "at_s": 12.0, "dirty_bytes": 0}]},
    ],
)
def test_a_modelled_array_that_has_lost_data_fails_by_data_loss(lost: dict[str, Any]) -> None:
    """RAID 5 without two of its drives was the fastest of all."""
    plan = {**PLAN, "judgement": {**PLAN["judgement"], "modelled": array_preset("nearline-raid6")}}
    found = judge(plan, {**summary(), "virtual_time": True, "data_loss": lost}, ENVIRONMENT)
    assert found["result"] == "fail"
    assert "data_loss" in failed(found)
    assert found["headline"] == "Predicted fail by data loss (MODELLED, not measured)"
    sound = judge(plan, {**summary(), "virtual_time": True}, ENVIRONMENT)
    assert "data_loss" not in failed(sound)


def test_a_modelled_run_that_was_cut_off_predicts_nothing() -> None:
    """Its headline said "Predicted pass" over an inconclusive result."""
    plan = {**PLAN, "judgement": {**PLAN["judgement"], "modelled": array_preset("nearline-raid6")}}
    cut = {**summary(), "virtual_time": True, "ending": "interrupted"}
    found = judge(plan, cut, ENVIRONMENT)
    assert found["result"] == "inconclusive"
    assert found["headline"].startswith("Inconclusive")
    assert found["headline"].endswith("(MODELLED, not measured)")


def test_a_hung_io_is_a_fail_by_hung_io() -> None:
    """An I/O that never returned ended as "says nothing about the storage"."""
    hung = changed(
        "error", {"family": "disk", "text": "hung I/O: an I/O that was under way has not returned"}
    )
    hung["ending"], hung["checksums"] = "failed", []
    found = judge(PLAN, hung, ENVIRONMENT)
    assert (found["result"], found["headline"].split(" (")[0]) == ("fail", "Fail by hung I/O")
    counted = judge(PLAN, changed("total.hung_in_run", 2), ENVIRONMENT)
    assert counted["headline"].startswith("Fail by hung I/O")


def test_a_hung_io_that_only_the_watch_saw_fails_too(tmp_path: Path) -> None:
    """A thread that the kernel holds counts nothing any more; its caller told of the hung I/O."""
    path = run_folder(tmp_path / "run", {})
    (path / folder.EVENTS).write_text(
        '{"time_ns": 1, "utc_ns": 1, "level": "error", "kind": "hung_io", "phase": "measure", '
        '"text": "a read"}\n'
    )
    assert summarize(path)["total"]["hung_in_run"] == 1
