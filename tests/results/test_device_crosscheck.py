"""The disk's own counters next to the engine's: both say the same, or the reader is told."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.documents.outcome import InstanceDevices
from plimsoll.results.device_crosscheck import device_view
from tests.results.test_counter_table import PHASES
from tests.support.planted_run import MS, SECONDS, judged

MIB = 1 << 20
#: The quiet run moves too little to be compared: here 100 reads a second of 1 MiB and 90 writes,
#: and the disk agrees.
AGREE: dict[tuple[str, int], dict[str, float]] = {
    ("database_read", 1): {"bytes": 100 * MIB},
    ("database_write", 1): {"bytes": 50 * MIB},
    ("log_write", 0): {"bytes": 4 * MIB},
    **{
        (f"device_{name}", row): {"value": value}
        for row in (0, 1)
        for name, value in {
            "read_bytes": 100.0 * MIB,
            "write_bytes": 54.0 * MIB,
            "write_time": 90 * 1.9 * MS,
            "flush_time": 40 * 0.2 * MS,
        }.items()
    },
}


def found(path: Path, **changes: float) -> list[str]:
    """The warnings of a run where the disk counted something else."""
    planted: dict[tuple[str, int], dict[str, float]] = {**AGREE}
    for name, value in changes.items():
        planted |= {(f"device_{name}", row): {"value": value} for row in (0, 1)}
    path.mkdir(exist_ok=True)
    verdict: dict[str, Any] = judged(path / "run", planted, phase=PHASES)
    assert [
        text for text in verdict["not_qualifying_because"] if text in verdict["warnings"]
    ] == verdict["warnings"]
    return list(verdict["warnings"])


def test_views_that_agree_are_no_news(tmp_path: Path) -> None:
    """MON-02: host and device totals agree within the tolerance of a tenth of the bytes."""
    assert found(tmp_path) == []
    assert found(tmp_path / "b", read_bytes=91.0 * MIB) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"read_bytes": 60.0 * MIB}, f"read {60 * SECONDS} MiB of the {100 * SECONDS} MiB"),
        ({"read_bytes": 140.0 * MIB}, "others used it"),
        ({"write_bytes": 10.0 * MIB}, "something above the disk"),
        ({"read_time": 100 * 1.0 * MS}, "the rest is waited above the disk"),
        ({"read_time": 100 * 25.0 * MS}, "the I/O of others on the disk is slower"),
        ({"read_time": 100 * 2500.0 * MS}, "by the disk's counters 2.5 s"),
    ],
)
def test_a_disk_that_says_something_else_is_a_warning(
    tmp_path: Path, changes: dict[str, float], words: str
) -> None:
    """A page cache that answers, a neighbour, a queue above the disk.

    Each makes the figures something else than the disk's.
    """
    warnings = found(tmp_path, **changes)
    assert len(warnings) == 1
    assert words in warnings[0]


def test_little_is_not_compared(tmp_path: Path) -> None:
    """A few mebibytes of somebody's log must not taint a short run that moved nothing."""
    quiet = {("database_write", 1): {"each_ns": MS}}
    assert judged(tmp_path / "run", quiet, phase=PHASES)["warnings"] == []


def test_a_disk_below_a_server_of_the_plan_is_not_compared() -> None:
    """What the server reads and writes is asked for by the plan, and counted by no one here."""
    rows = [
        {"instance": "one", "is_log": False, "metric": metric, "count": 9e4, "value": value}
        | {"bytes": moved, "time_ns": 1e11}
        for metric, moved, value in (
            ("database_read", 9e9, 0.0),
            ("device_reads", 0.0, 3e5),
            ("device_read_bytes", 0.0, 3e10),
        )
    ]
    alone = [InstanceDevices(instance="one", databases="vda", log=None)]
    beside = [*alone, InstanceDevices(instance="shop", databases="vda", log=None)]

    def found(devices: list[InstanceDevices], *servers: str) -> list[str]:
        views = device_view(lambda *_: [{**row} for row in rows], devices, ["measure"], servers)
        return [text for view in views for text in view.disagreements]

    assert any("others used it" in text for text in found(alone))
    assert any("others used it" in text for text in found(beside))
    assert found(beside, "shop") == []
    assert found(alone, "shop") != []
