"""The health of drives by their own word.

Understood for every command set, never guessed, and a run that costs a drive data fails.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from plimsoll.files import folder
from plimsoll.host import smart
from tests.support.places import plimsoll

NVME = {
    "smart_status": {"passed": True},
    "nvme_smart_health_information_log": {
        "percentage_used": 7,
        "media_errors": 3,
        "num_err_log_entries": 900,
    },
}
ATA = {
    "smart_status": {"passed": False},
    "ata_smart_attributes": {
        "table": [
            {"id": 5, "raw": {"value": 12}},
            {"id": 9, "raw": {"value": 40000}},
            {"id": 197, "raw": {"value": 0}},
            {"id": 198, "raw": {"value": "?"}},
        ]
    },
}
SCSI = {
    "smart_status": {"passed": True},
    "scsi_grown_defect_list": 2,
    "scsi_percentage_used_endurance_indicator": 1,
    "scsi_error_counter_log": {
        "read": {"total_uncorrected_errors": 1},
        "write": {"total_uncorrected_errors": 0},
    },
}
DENIED = {
    "smartctl": {
        "messages": [{"string": "Smartctl open device: /dev/sda failed: Permission denied"}]
    }
}


@pytest.mark.parametrize(
    ("said", "healthy", "used", "counters"),
    [
        (NVME, True, 7, {"media_errors": 3}),
        (ATA, False, None, {"reallocated_sectors": 12, "pending_sectors": 0}),
        (
            SCSI,
            True,
            1,
            {"uncorrected_read_errors": 1, "uncorrected_write_errors": 0, "grown_defects": 2},
        ),
    ],
    ids=["NVMe", "ATA", "SCSI"],
)
def test_each_command_set_is_understood(
    said: dict[str, Any], healthy: bool, used: int | None, counters: dict[str, int]
) -> None:
    """Each kind of drive counts its losses under other names.

    Hours of power and entries of a log are no losses.
    """
    found = smart.understood("sda", said)
    assert (found["read"], found["healthy"], found["life_used_percent"]) == (True, healthy, used)
    assert found["counters"] == counters


@pytest.mark.parametrize(
    "said", [DENIED, {}, {"smart_status": "yes"}, {"ata_smart_attributes": {"table": [7, {}]}}]
)
def test_what_was_not_read_is_not_healthy(said: dict[str, Any]) -> None:
    """Silence of a drive, or of a program without rights, must not look like health."""
    found = smart.understood("sda", said)
    assert (found["read"], found["healthy"], found["counters"]) == (False, None, {})
    assert found["reason"]


def test_without_the_program_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Most machines do not have it; the run goes on and the report tells why it knows nothing."""
    monkeypatch.setattr(smart.shutil, "which", lambda *_, **__: None)
    assert [item["reason"] for item in smart.read_smart(["sda"])] == ["smartctl is not installed"]


def fake_program(home: Path, answers: list[dict[str, Any]]) -> Path:
    """A `smartctl` that gives one answer after the other, and the last one for ever."""
    home.mkdir()
    for number, answer in enumerate(answers):
        (home / f"answer{number}").write_text(json.dumps(answer))
    program = home / "smartctl"
    program.write_text(
        f'#!/bin/sh\ncd "{home}"\nnumber=$(cat count 2>/dev/null || echo 0)\n'
        f"[ $number -lt {len(answers) - 1} ] && echo $((number + 1)) > count\ncat answer$number\n"
    )
    program.chmod(0o755)
    return home


def test_JST_15_a_drive_that_lost_data_during_the_run_fails_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the latencies were.

    And a drive that calls itself failing keeps a pass from being a qualification.
    """
    worse = NVME | {"nvme_smart_health_information_log": {"percentage_used": 7, "media_errors": 4}}
    results = {}
    for name, answers in (("grown", [NVME, worse]), ("failing", [ATA])):
        program = fake_program(tmp_path / name, answers)
        monkeypatch.setenv("PATH", f"{program}:{os.environ['PATH']}")
        result = plimsoll(
            "test",
            "performance",
            tmp_path / "disk",
            "--databases",
            "1",
            "--size-mib",
            "64",
            "--minutes",
            "0.02",
            "--backend",
            "raw_files",
            "--out",
            tmp_path / f"run-{name}",
            "--quiet",
            cwd=tmp_path,
        )
        results[name] = (result, folder.read_json(tmp_path / f"run-{name}" / folder.VERDICT))
    result, verdict = results["grown"]
    if "smart/" not in (tmp_path / "run-grown" / folder.DEVICE_ERRORS).read_text():
        pytest.skip(f"{tmp_path} lies on no disk")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "media_errors: 1 more error (3 before, 4 after)" in result.stdout
    _, verdict = results["failing"]
    assert verdict["qualifying"] is False
    assert any(
        "says of itself that it is failing" in reason
        for reason in verdict["not_qualifying_because"]
    )
    page = (tmp_path / "run-failing" / folder.REPORT).read_text()
    assert "Health of the disks under test (SMART)" in page and "reallocated sectors 12" in page
