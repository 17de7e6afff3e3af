"""NVMe drives: what the kernel shows of them, how warm they became, and what is made of it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from plimsoll.advice.run_facts import _environment_facts, _summary_facts
from plimsoll.documents.drive_health import DriveHealth
from plimsoll.documents.environment import DiskHealth
from plimsoll.host import nvme, smart

LOG: dict[str, Any] = {
    "critical_warning": 0,
    "temperature": 41,
    "available_spare": 99,
    "percentage_used": 3,
    "data_units_written": 1_000_000,
    "media_errors": 0,
    "warning_temp_time": 5,
    "critical_comp_time": 0,
}


def written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """A host with one controller of two namespaces, and a disk of another kind."""
    controller = tmp_path / "devices/nvme0"
    for name, text in {
        "model": "Flash 3840",
        "firmware_rev": "1.2",
        "transport": "pcie",
        "queue_count": "9",
        "hwmon1/temp1_input": "51850",
        "hwmon1/temp1_max": "77850",
        "hwmon1/temp1_crit": "84850",
    }.items():
        written(controller / name, text)
    for number, cache in ((1, "write back"), (2, "write through")):
        disk = tmp_path / f"block/nvme0n{number}"
        written(disk / "queue/logical_block_size", "4096")
        written(disk / "queue/physical_block_size", "4096")
        written(disk / "queue/write_cache", cache)
        written(disk / "metadata_bytes", "8")
        (disk / "device").symlink_to(controller)
    written(tmp_path / "block/sda/size", "100")
    written(tmp_path / "block/nvme0c0n1/size", "100")
    return tmp_path


def test_the_kernel_is_asked_what_a_drive_is(sysfs: Path) -> None:
    """A drive with a volatile cache makes another log latency than one without, and 512-byte blocks
    others than 4 KiB: who compares two reports has to see it. Paths of a multipath controller are
    no drives.
    """
    first, second = nvme.nvme_drives(sysfs)
    assert (first["name"], second["name"]) == ("nvme0n1", "nvme0n2")
    assert (first["model"], first["firmware"], first["transport"]) == ("Flash 3840", "1.2", "pcie")
    assert (first["block_bytes"], first["metadata_bytes"], first["queues_count"]) == (4096, 8, 9)
    assert (first["volatile_write_cache"], second["volatile_write_cache"]) == (True, False)
    assert first["namespaces_count"] == 2
    temperatures = [
        first["temperature_c"],
        first["temperature_warning_c"],
        first["temperature_critical_c"],
    ]
    assert temperatures == [51.85, 77.85, 84.85]


def test_a_drive_is_asked_for_its_power_state(tmp_path: Path) -> None:
    """The number is what Get Features answers in its first dword; who may not ask knows nothing."""
    (tmp_path / "nvme0").touch()
    asked: list[tuple[int, int]] = []

    def ask(_handle: int, request: int, command: bytearray) -> int:
        assert request == nvme.ADMIN_COMMAND and len(command) == 72
        asked.append((command[0], struct.unpack_from("<I", command, 40)[0]))
        struct.pack_into("<I", command, 68, 0x63)
        return 0

    assert nvme.power_state("nvme0", ask, tmp_path) == 3
    assert asked == [(0x0A, 2)]

    def refuses(_handle: int, _request: int, _command: bytearray) -> int:
        raise PermissionError

    assert nvme.power_state("nvme0", refuses, tmp_path) is None
    assert nvme.power_state("nvme7", ask, tmp_path) is None


def health(**changed: object) -> DiskHealth:
    said = {
        "smart_status": {"passed": True},
        "nvme_smart_health_information_log": LOG | changed,
    }
    return smart.understood("nvme0n1", said)


def over_a_run(sysfs: Path, warmest: str, **after: object) -> DriveHealth:
    now = [0.0]
    watch = nvme.DriveWatch(["nvme0n1", "sda"], sysfs, lambda: now[0])
    sensor = sysfs / "devices/nvme0/hwmon1/temp1_input"
    for second, text in ((0.0, "41850"), (2.0, "99000"), (6.0, warmest), (12.0, "40850")):
        now[0] = second
        sensor.write_text(text)
        watch.look()
    found = watch.found([health()], [health(**after)]).drives
    assert len(found) == 1
    return found[0]


def test_what_a_run_did_to_a_drive_is_the_difference(sysfs: Path) -> None:
    """Minutes of an earlier run are not this one's, and what the sensor says between two looks is
    not asked for.
    """
    found = over_a_run(
        sysfs,
        "78850",
        warning_temp_time=12,
        data_units_written=1_002_000,
        percentage_used=4,
        thermal_mgmt_temp1_trans_count=2,
    )
    assert found.temperature_c_max == 78.85
    assert (found.warm_minutes, found.critical_minutes) == (7, 0)
    assert found.written_bytes == 2000 * 512_000
    assert (found.life_used_percent_before, found.life_used_percent_after) == (3, 4)
    assert found.was_throttled


def test_a_cool_drive_was_not_throttled(sysfs: Path) -> None:
    """Else every run would be doubted."""
    assert not over_a_run(sysfs, "45850").was_throttled


def test_a_host_without_such_drives_says_nothing(tmp_path: Path) -> None:
    """Most hosts have none: nothing of theirs is a fact."""
    assert nvme.nvme_drives(tmp_path) == []
    assert nvme.DriveWatch(["sda"], tmp_path).found([], []).drives == ()


@pytest.mark.parametrize(
    ("drives", "throttled"),
    [
        ([], None),
        ([{"warm_minutes": None, "critical_minutes": None, "throttled_count": None}], None),
        ([{"warm_minutes": 0, "critical_minutes": 0, "throttled_count": None}], 0),
        ([{"warm_minutes": 0, "critical_minutes": 3, "throttled_count": None}], 1),
    ],
)
def test_advice_knows_of_drives_that_slowed_down(
    drives: list[dict[str, Any]], throttled: int | None
) -> None:
    """A drive that tells nothing is not known to be cool."""
    assert _summary_facts({"drive_health": drives}).get("drives_throttled_count") == throttled


def test_advice_knows_of_write_caches() -> None:
    """One drive of which nothing is known leaves the question open."""
    drives: list[dict[str, Any]] = [
        {"volatile_write_cache": True, "block_bytes": 512, "power_state": 0},
        {"volatile_write_cache": False, "block_bytes": 4096, "power_state": 2},
    ]
    facts = _environment_facts({"nvme": drives}, None)
    assert facts["nvme_volatile_caches_count"] == 1
    assert (facts["nvme_block_bytes_min"], facts["nvme_power_state_max"]) == (512, 2)
    drives.append({"volatile_write_cache": None})
    assert _environment_facts({"nvme": drives}, None)["nvme_volatile_caches_count"] is None
